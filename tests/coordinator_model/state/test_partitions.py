"""Partitions by topic: each topic once, ascending, and no topic without a partition."""

from coordinator_model.state.partitions import common, merged, without


def test_a_topic_named_twice_has_all_of_both() -> None:
    """Topics stand in the order in which they come first."""
    found = merged([("u", [3, 1]), ("t", ()), ("u", [2, 1]), ("s", [0])])

    assert {"u": (1, 2, 3), "s": (0,)} == found
    assert ["u", "s"] == list(found)


def test_common_and_without_share_the_first_out() -> None:
    """What is in one is not in the other, and both together are the first."""
    parts, others = {"t": (0, 1, 2), "u": (5,), "v": (1,)}, {"t": (1, 9), "v": (1,)}

    assert {"t": (1,), "v": (1,)} == common(parts, others)
    assert {"t": (0, 2), "u": (5,)} == without(parts, others)
    assert parts == dict(merged([*without(parts, others).items(), *common(parts, others).items()]))

"""What counts as a difference between a monitor and Kafka's Admin client, and what does not."""

from typing import Any

from tests.chaos.kafka_answers import Groups, Said, differences, of_monitor


def kafka(state: str = "Empty", **lags: int | None) -> Groups:
    """One group with an offset of 5 in each place."""
    facts: dict[str, Any] = {"type": "classic", "state": state}
    return {"g": Said(facts, dict.fromkeys(lags, 5), dict(lags))}


def monitor(state: str = "Empty", method: str = "caught_up", **lags: int | None) -> Groups:
    """The same as the API answers it."""
    offsets = [
        {"topic": place[0], "partition": int(place[2:]), "offset": 5, "lag": lag, "lag_method": method}
        for place, lag in lags.items()
    ]
    group = {"group": "g", "type": "classic", "state": state, "members": [], "offsets": offsets}
    return of_monitor({"groups": [group]})


def places(**lags: int | None) -> dict[str, Any]:
    """`t_0=3` as `{"t-0": 3}`."""
    return {name.replace("_", "-"): lag for name, lag in lags.items()}


def test_the_same_is_no_difference() -> None:
    """Types, states, members, offsets and lag alike."""
    assert [] == differences(kafka(**places(t_0=3)), monitor(**places(t_0=3)))


def test_groups_too_many_and_too_few_are_differences() -> None:
    """A phantom, and one that is missing."""
    assert ["g: not shown, Kafka says {'type': 'classic', 'state': 'Empty'}"] == differences(kafka(), {})
    assert ["g: shown as {'type': 'classic', 'state': 'Empty'}, Kafka has no such group"] == differences({}, monitor())


def test_a_lag_that_is_not_known_is_a_difference() -> None:
    """Where its end can be had, a lag is known."""
    assert ["g: lag of t-0 shown None (no_end_offset), is 3"] == differences(
        kafka(**places(t_0=3)), monitor(method="no_end_offset", **places(t_0=None))
    )


def test_a_lag_is_unknown_by_right() -> None:
    """Of an offset beyond the end, or of the topic that had the name before; for half a minute the former is level.

    Where the log was cut off under it, its consumer goes on from there, and the lag is counted from there.
    """
    assert [] == differences(kafka(**places(t_0=3)), monitor(method="topic_recreated", **places(t_0=None)))
    assert [] == differences(kafka(**places(t_0=None)), monitor(method="ahead_of_end", **places(t_0=0)))
    assert [] == differences(kafka(**places(t_0=None)), monitor(method="truncated", **places(t_0=2)))


def test_the_state_is_compared_at_rest() -> None:
    """What a classic group does between two records is not written down."""
    assert [] == differences(kafka("PreparingRebalancing"), monitor("Empty"))
    assert ["g: state shown Empty, is Stable"] == differences(kafka("Stable"), monitor("Empty"))

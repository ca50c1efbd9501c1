"""The mapping of all groups: changed by making another, and compared by what is not shared."""

import random

from streaming.base.persistent_map import PARTS, GroupMap


def test_a_mapping_is_what_a_dictionary_would_be() -> None:
    """Whatever comes and goes, and however often: names, values, pairs and number are those of a plain dictionary."""
    chance = random.Random(5)
    groups: GroupMap[int] = GroupMap()
    expected: dict[str, int] = {}
    for step in range(60):
        changes: dict[str, int | None] = {
            f"g-{chance.randrange(300)}": chance.choice([None, step, step]) for _ in range(chance.randrange(40))
        }
        groups = groups.with_changes(changes)
        for name, value in changes.items():
            if value is None:
                expected.pop(name, None)
            else:
                expected[name] = value

        assert expected == dict(groups) == dict(groups.items()) == dict(zip(groups, groups.values(), strict=True))
        assert len(expected) == len(groups)
        assert {name: expected.get(name, -1) for name in changes} == {name: groups.get(name, -1) for name in changes}
    assert "g-none" not in groups
    assert groups.get("g-none") is None


def test_a_mapping_stays_as_it_was_when_the_next_one_is_made() -> None:
    """Readers keep what they got."""
    first: GroupMap[int] = GroupMap()
    second = first.with_changes({"a": 1, "b": 2})
    third = second.with_changes({"a": 3, "b": None})

    assert ({}, {"a": 1, "b": 2}, {"a": 3}) == (dict(first), dict(second), dict(third))


def test_the_next_mapping_shares_what_no_change_touched() -> None:
    """Three groups of ten thousand cost three small dictionaries, not ten thousand entries."""
    nothing: GroupMap[int] = GroupMap()
    groups = nothing.with_changes({f"g-{n}": n for n in range(10_000)})
    after = groups.with_changes({"g-1": -1, "g-2": None, "new": 0})
    copied = [was is not now for was, now in zip(groups._parts, after._parts, strict=True)]

    assert (PARTS, True) == (len(copied), 1 <= sum(copied) <= 3)


def test_differences_are_found_in_both_directions() -> None:
    """What came, changed and went since another mapping, which may be the later one."""
    kept, was, now = object(), object(), object()
    nothing: GroupMap[object] = GroupMap()
    first = nothing.with_changes({"kept": kept, "changed": was, "gone": was})
    second = first.with_changes({"changed": now, "gone": None, "new": now})

    assert {("changed", was, now), ("gone", was, None), ("new", None, now)} == set(second.since(first))
    assert {("changed", now, was), ("gone", None, was), ("new", now, None)} == set(first.since(second))
    assert [] == list(second.since(second))

"""A migration over time: from the states and events that a history keeps."""

from collections.abc import Callable
from pathlib import Path
from typing import Any, Final

import pytest

from streaming.history.burn_down import GROUPS, NOTHING, Counted, counted
from streaming.history.queries import POINTS, History
from streaming.history.store import HistoryStore
from streaming.history.tables import rows
from tests.streaming.history.entries import DAY_MS, NOON_MS, deleted, event

HOUR_MS: Final = 3_600_000


def kept(group: str, time_ms: int, phase: str | None, members: int = 3, upgraded: int = 0) -> dict[str, Any]:
    """A group's entry as the history keeps it, as far as a burn-down looks."""
    migration = {"phase": phase, "members": members, "upgraded_members": upgraded}
    state = {"group": group, "type": "consumer" if upgraded else "classic", "simple": False, "migration": migration}
    return {"kind": "group", "group": group, "time": time_ms, "state": state}


def stalled(group: str, time_ms: int, *, cleared: bool = False) -> dict[str, Any]:
    entry = event(time_ms % 1_000_003, group=group, time_ms=time_ms, kind="migration_stalled")
    entry["event"]["detail"] = {"cleared": True} if cleared else {"mixed_ms": 1}
    return entry


@pytest.fixture
def ask(tmp_path: Path) -> Callable[..., dict[str, Any]]:
    """The burn-down of the day from NOON_MS on, in a history with one group that is rolled and three others."""
    entries = [
        kept("rolled", NOON_MS - 3 * HOUR_MS, "classic"),
        kept("still", NOON_MS - 3 * HOUR_MS, "classic", members=2),
        kept("odd", NOON_MS - 3 * HOUR_MS, "blocked", members=1),
        kept("gone", NOON_MS - 3 * HOUR_MS, "classic", members=5),
        kept("rolled", NOON_MS + 2 * HOUR_MS, "upgrading", upgraded=1),
        kept("rolled", NOON_MS + 2 * HOUR_MS + 1, "upgrading", upgraded=2),
        stalled("rolled", NOON_MS + 4 * HOUR_MS),
        stalled("rolled", NOON_MS + 8 * HOUR_MS, cleared=True),
        deleted(group="gone", time_ms=NOON_MS + 9 * HOUR_MS),
        # Beyond midnight, in another day's file.
        kept("rolled", NOON_MS + 20 * HOUR_MS, "upgraded", upgraded=3),
    ]
    store = HistoryStore(tmp_path / "history")
    for part in (entries[:6], entries[6:]):
        for table, ordered in rows(enumerate(part, start=entries.index(part[0]))).items():
            store.write(table, ordered)
    store.set_complete(NOON_MS - 3 * HOUR_MS)

    def asked(since_ms: int = NOON_MS, chosen: Callable[[str], bool] = lambda _: True) -> dict[str, Any]:
        return dict(History(tmp_path / "history").burn_down(since_ms, NOON_MS + DAY_MS, chosen))

    return asked


def at(found: dict[str, Any], hours: int) -> dict[str, Any]:
    """The figures of the last point that is no later."""
    point = max(number for number, time_ms in enumerate(found["times"]) if time_ms <= NOON_MS + hours * HOUR_MS)
    return {name: line[point] for name, line in found["groups"].items()} | {
        f"{name} members": line[point] for name, line in found["members"].items()
    }


def test_groups_and_members_burn_down(ask: Callable[..., dict[str, Any]]) -> None:
    """As they were last seen to be: classic, between protocols and stalled, then on the consumer protocol."""
    found = ask()

    assert POINTS == len(found["times"])
    assert (NOON_MS, NOON_MS + DAY_MS) == (found["times"][0], found["times"][-1])
    figures = {hours: tuple(at(found, hours).values()) for hours in (0, 3, 5, 10, 24)}
    assert (*GROUPS, "classic members", "consumer members") == tuple(at(found, 0))
    assert {
        0: (3, 0, 0, 1, 0, 11, 0),
        3: (2, 1, 0, 1, 0, 9, 2),
        5: (2, 1, 0, 1, 1, 9, 2),
        10: (1, 1, 0, 1, 0, 4, 2),
        24: (1, 0, 1, 1, 0, 3, 3),
    } == figures


def test_what_was_before_the_history_is_not_known(ask: Callable[..., dict[str, Any]]) -> None:
    """No zero stands where nothing was kept."""
    found = ask(NOON_MS - 2 * DAY_MS)

    assert found["groups"]["classic"][0] is None
    assert found["members"]["consumer"][0] is None
    assert 1 == found["groups"]["consumer"][-1]


def test_completed_rebalances_are_counted_by_group(tmp_path: Path) -> None:
    """Those of the span, of all groups, each once though it was written twice; none before the history is complete."""
    completed = [
        event(number, group=group, time_ms=NOON_MS + hours * HOUR_MS, kind="rebalance_completed")
        for number, (group, hours) in enumerate([("a", -30), ("a", -2), ("a", 1), ("b", 2), ("b", 20)])
    ]
    store = HistoryStore(tmp_path / "history")
    for written in (completed, [completed[2], event(90, group="a", time_ms=NOON_MS, kind="member_joined")]):
        for table, ordered in rows(enumerate(written)).items():
            store.write(table, ordered)

    history = History(tmp_path / "history")
    unknown = history.rebalances(NOON_MS - DAY_MS, NOON_MS + 3 * HOUR_MS)
    store.set_complete(NOON_MS - HOUR_MS)

    assert (0, {}) == unknown
    assert (4 * HOUR_MS, {"a": 1, "b": 1}) == history.rebalances(NOON_MS - HOUR_MS, NOON_MS + 3 * HOUR_MS)
    assert (4 * HOUR_MS, {"a": 2, "b": 1}) == history.rebalances(NOON_MS - DAY_MS, NOON_MS + 3 * HOUR_MS)


def test_only_chosen_groups_count(ask: Callable[..., dict[str, Any]]) -> None:
    """By name."""
    found = ask(chosen=lambda name: name == "still")

    assert {(1, 0)} == set(zip(found["groups"]["classic"], found["groups"]["blocked"], strict=True))
    assert {2} == set(found["members"]["classic"])


@pytest.mark.parametrize(
    ("changed", "expected"),
    [
        ({}, Counted("mixed", 2, 1)),
        ({"simple": True}, NOTHING),
        ({"type": "share"}, NOTHING),
        ({"migration": {"phase": None, "out_of_scope": True}}, NOTHING),
        ({"migration": {"phase": "of a later release", "members": 1, "upgraded_members": 0}}, Counted("mixed", 1, 0)),
    ],
)
def test_what_there_is_to_migrate_counts(changed: dict[str, Any], expected: Counted) -> None:
    """Groups that only commit, other types and other protocol types are none of it."""
    state = kept("g", 0, "upgrading", upgraded=1)["state"]

    assert expected == counted({**state, **changed})
    assert NOTHING == counted(None)

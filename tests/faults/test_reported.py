"""What counts as lost, repeated and wrong where a partition lost its end after it was read."""

from typing import Any

from tests.faults.coordinator_log import Answer
from tests.faults.reported import Cut, Reported, after_cuts

CUT = Cut(partition=0, reported=frozenset({"0-5-member_left-0"}), live_from=10, alarms=frozenset({"0-2-member_left-0"}))


def event(partition: int, offset: int, severity: str = "warning", **detail: Any) -> dict[str, dict[str, Any]]:
    """By its id."""
    of = f"{partition}-{offset}-member_left-0"
    named = {"id": of, "group": "g", "kind": "member_left", "partition": partition, "offset": offset}
    return {of: {**named, "severity": severity, "detail": detail, "inferred": False}}


def news(reported: dict[str, Any], answer: dict[str, Any] | None = None) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """Events lost, and events added."""
    found = after_cuts(CUT).reports(Reported(events=reported), Answer(events=answer or {}))
    return found.events_lost, found.events_added


def test_what_was_reported_of_the_lost_records_was_true() -> None:
    """And an alarm of it may be cleared."""
    assert ((), ()) == news({**event(0, 5), **event(0, 6, cleared=True)})


def test_what_is_read_again_is_no_news() -> None:
    """It may be reported or not, as the monitor noticed; but no alarm that a replay has not."""
    assert ((), ()) == news(event(0, 2), event(0, 3))
    assert ((), ("0-4-member_left-0",)) == news(event(0, 4))


def test_what_comes_later_is_as_ever() -> None:
    """Neither more nor less; in other partitions as well."""
    assert ((), ()) == news(event(0, 12), event(0, 12))
    assert (("0-12-member_left-0",), ()) == news({}, event(0, 12))
    assert ((), ("1-3-member_left-0",)) == news(event(1, 3))

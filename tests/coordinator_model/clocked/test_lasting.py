"""Alarms that only looks find, over a restart."""

from dataclasses import replace

from coordinator_model.clocked.lasting import GONE_FOR_MS, LastingAlarms
from coordinator_model.state.events import WARNING, Event

NOW_MS = 1_000_000
OPENED = Event(time_ms=5, group="g", kind="rebalance_stuck", severity=WARNING, partition=0, offset=7)


def ended_after_a_restart(*reported: Event) -> list[Event]:
    """What ends once nothing was found for longer than an alarm may be missing."""
    alarms = LastingAlarms()
    alarms.resume(reported, NOW_MS)
    assert [] == alarms.ended([], NOW_MS + GONE_FOR_MS)
    return alarms.ended([], NOW_MS + GONE_FOR_MS + 1)


def test_alarm_that_was_open_before_a_restart_is_over_once() -> None:
    """Its end has the record of its beginning."""
    (end,) = ended_after_a_restart(OPENED)

    assert ({"cleared": True}, 7, 1) == (end.detail, end.offset, end.ordinal)


def test_alarm_that_was_over_before_a_restart_is_not_over_again() -> None:
    """Whatever opened since stays open."""
    (end,) = ended_after_a_restart(OPENED)
    other = replace(OPENED, group="h", offset=8)

    assert [] == ended_after_a_restart(OPENED, end)
    assert ["h"] == [of.group for of in ended_after_a_restart(OPENED, other, end)]


def test_alarm_that_a_look_found_is_over_when_no_look_finds_it() -> None:
    """Once; found by each look in between it lasts."""
    alarms = LastingAlarms()

    assert [] == alarms.ended([OPENED], NOW_MS)
    assert [] == alarms.ended([OPENED], NOW_MS + GONE_FOR_MS)
    assert [] == alarms.ended([], NOW_MS + 2 * GONE_FOR_MS)
    (end,) = alarms.ended([], NOW_MS + 2 * GONE_FOR_MS + 1)
    assert (NOW_MS + GONE_FOR_MS, "info", {"cleared": True}) == (end.time_ms, end.severity, end.detail)
    assert [] == alarms.ended([], NOW_MS + 4 * GONE_FOR_MS)


def test_what_happens_and_does_not_last_is_never_over() -> None:
    """A storm's end is said by the rules that said its beginning."""
    alarms = LastingAlarms()
    storm = replace(OPENED, kind="rebalance_storm")
    alarms.resume([storm], NOW_MS)

    assert [] == alarms.ended([storm], NOW_MS)
    assert [] == alarms.ended([], NOW_MS + 2 * GONE_FOR_MS)

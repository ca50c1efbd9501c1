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

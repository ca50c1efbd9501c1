"""`share_partition_stalled`: a share partition does not get on, though a member has it and records wait."""

from dataclasses import replace
from typing import Final

import pytest

from coordinator_model.clocked.share_stalls import MOST_LOCKS, STALLED_MS, SharePlace, ShareStalls, stalled
from coordinator_model.kinds.table import sentence
from coordinator_model.state.events import event_view
from coordinator_model.state.findings import Position

NOW_MS: Final = 10_000_000
LONG_AGO_MS: Final = NOW_MS - STALLED_MS

HELD: Final = SharePlace(
    group="queue",
    topic_id="topic-id",
    partition=3,
    log="__share_group_state",
    written=Position(7, 40, LONG_AGO_MS - 5),
    first_not_done=20,
    done_to=None,
    done_ms=LONG_AGO_MS - 5,
    waits_since_ms=LONG_AGO_MS,
    arrived_ms=None,
    assigned=True,
)
"""The record at offset 20 has waited for ten minutes, and nothing became done since."""


# -- reported ---------------------------------------------------------------------------------------------------------


def test_nothing_that_becomes_done_for_ten_minutes_is_reported_and_its_end() -> None:
    """Once, by the last record of the share partition; its end carries the same."""
    stalls = ShareStalls()
    (opened,) = stalls.look([HELD], NOW_MS)
    assert {"queue"} == stalls.groups
    assert [] == stalls.look([replace(HELD, written=Position(7, 55, NOW_MS))], NOW_MS + 5_000)
    (ended,) = stalls.look([replace(HELD, first_not_done=21, waits_since_ms=NOW_MS)], NOW_MS + 9_000)

    assert {
        "id": "__share_group_state-7-40-share_partition_stalled-0",
        "time": NOW_MS,
        "group": "queue",
        "kind": "share_partition_stalled",
        "severity": "warning",
        "partition": 7,
        "offset": 40,
        "detail": {
            "topic": "topic-id",
            "topic_partition": 3,
            "why": "nothing_done",
            "since": LONG_AGO_MS,
            "first_offset": 20,
        },
        "inferred": True,
        "log": "__share_group_state",
    } == event_view(opened)
    assert "__share_group_state-7-40-share_partition_stalled-1" == ended.id
    assert ("info", True, NOW_MS + 9_000) == (ended.severity, ended.detail["cleared"], ended.time_ms)
    assert set() == stalls.groups
    assert "nothing became done for ten minutes; the first offset that is not" in sentence(event_view(opened))
    assert "topic-id/3 gets on again" == sentence(event_view(ended))


def test_record_that_holds_back_as_many_as_may_be_in_flight_is_reported() -> None:
    """Though records after it became done a moment ago: now nothing more is delivered."""
    of = replace(HELD, done_to=20 + MOST_LOCKS, done_ms=NOW_MS - 1)

    assert ("held_back", LONG_AGO_MS) == stalled(of, NOW_MS)
    assert None is stalled(replace(of, done_to=20 + MOST_LOCKS - 1), NOW_MS)


def test_partition_that_is_not_initialized_while_records_come_is_reported() -> None:
    """Ten minutes after the first of them, or after it was set up."""
    of = replace(HELD, first_not_done=None, waits_since_ms=None, arrived_ms=LONG_AGO_MS)

    assert ("not_initialized", LONG_AGO_MS) == stalled(of, NOW_MS)
    assert None is stalled(replace(of, arrived_ms=LONG_AGO_MS + 1), NOW_MS)
    assert None is stalled(replace(of, written=Position(7, 40, LONG_AGO_MS + 1)), NOW_MS)


def test_what_was_reported_before_a_restart_is_not_reported_again() -> None:
    """Nor is what was over."""
    stalls = ShareStalls()
    events = stalls.look([HELD, replace(HELD, partition=4)], NOW_MS)
    events += stalls.look([HELD], NOW_MS + 1_000)
    again = ShareStalls()
    again.resume(events)

    later = again.look([HELD, replace(HELD, partition=4)], NOW_MS + 2_000)
    assert [4] == [of.detail["topic_partition"] for of in later]


# -- silent -----------------------------------------------------------------------------------------------------------


def test_all_done_and_idle_is_silent() -> None:
    """However long."""
    assert None is stalled(replace(HELD, waits_since_ms=None), NOW_MS + 10 * STALLED_MS)


def test_record_that_is_slow_while_others_become_done_is_silent() -> None:
    """Its offset and age are shown."""
    assert None is stalled(replace(HELD, done_to=60, done_ms=NOW_MS - 1), NOW_MS)


@pytest.mark.parametrize("changed", [replace(HELD, waits_since_ms=LONG_AGO_MS + 1), replace(HELD, done_ms=NOW_MS)])
def test_ten_minutes_count_from_when_records_wait(changed: SharePlace) -> None:
    """And from when something last became done: a night without records is no stall in the morning."""
    assert None is stalled(changed, NOW_MS)


def test_without_a_member_it_is_silent() -> None:
    """Then nobody is to take them; that the group is empty is seen elsewhere."""
    assert None is stalled(replace(HELD, assigned=False), NOW_MS)


def test_one_that_is_not_initialized_and_idle_is_silent() -> None:
    """It is set up with the first record that is delivered."""
    assert None is stalled(replace(HELD, first_not_done=None, waits_since_ms=None), NOW_MS)


def test_what_is_not_known_ends_nothing() -> None:
    """As long as a group may be anything, what is open of it stays open."""
    stalls = ShareStalls()
    stalls.look([HELD], NOW_MS)

    assert [] == stalls.look([], NOW_MS + 1, known=())
    assert {"queue"} == stalls.groups
    assert 1 == len(stalls.look([], NOW_MS + 1, known=["queue"]))

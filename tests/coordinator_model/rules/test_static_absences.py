"""Static members that are away: one restart of a deployment is one alarm, and who stays away is named."""

from collections.abc import Iterable
from typing import Any

import pytest

from coordinator_model.clocked.alarms import still_open
from coordinator_model.kinds.table import sentence
from coordinator_model.log_replica import LogReplica
from coordinator_model.recording_clock import Looks
from coordinator_model.replica import Replica
from coordinator_model.rules.static_absences import ABSENT, CLOSED_AFTER_MS, JOINS_MS, NEXT_MS, TOGETHER_MS
from coordinator_model.state.events import Event, event_view
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.snapshot import dump_group, load_group
from lab.builders import topic_id
from lab.coordinator_events import (
    consumer_group_deleted,
    consumer_join,
    consumer_leave,
    static_goes_away,
    static_returns,
)
from tests.histories import Moment, Reported, at, history
from tests.moments import overdue

PODS = [f"pod-{number}" for number in range(5)]
FIRST_MS = 60_000


def joined(pods: Iterable[str] = PODS) -> list[Moment]:
    """Static members of the consumer protocol, each with a partition."""
    moments: list[Moment] = []
    owned: dict[str, dict[str, list[int]]] = {}
    for number, pod in enumerate(pods):
        owned[f"{pod}.0"] = {"t": [number]}
        records = consumer_join("g", f"{pod}.0", epoch=2 + number, targets=dict(owned), instance_id=pod)
        moments.append(at(number * 1_000, *records))
    return moments


def closes(time_ms: int, pod: str, turn: int = 0) -> Moment:
    """One says that it will be back."""
    number = int(pod.rpartition("-")[2])
    return at(time_ms, *static_goes_away("g", f"{pod}.{turn}", assigned={"t": [number]}, previous_epoch=6))


def returns(time_ms: int, pod: str, turn: int = 0) -> Moment:
    """It is back under another member id."""
    number = int(pod.rpartition("-")[2])
    old, new = f"{pod}.{turn}", f"{pod}.{turn + 1}"
    return at(time_ms, *static_returns("g", old=old, new=new, instance_id=pod, epoch=6, assigned={"t": [number]}))


def expires(time_ms: int, pod: str, epoch: int = 7) -> Moment:
    """Its session is over."""
    return at(time_ms, *consumer_leave("g", f"{pod}.0", epoch=epoch))


def another_joins(time_ms: int) -> Moment:
    """A record of the group by which it is seen what is over by then; the member is no static one."""
    owned = {f"{pod}.0": {"t": [number]} for number, pod in enumerate(PODS)}
    return at(time_ms, *consumer_join("g", "other", epoch=9, targets={**owned, "other": {"t": [9]}}))


def said(reported: Reported) -> list[tuple[int, str, list[str]]]:
    """(time, severity, instance ids) of what was said of the kind, in the order of its beginning."""
    return [(of.time_ms, of.severity, of.detail["instance_ids"]) for of in reported.events if of.kind == ABSENT]


def state_while_open(*moments: Moment) -> GroupState:
    """The group as a monitor has it that read so far, with more to come."""
    replica = Replica()
    for of in history(*moments).records:
        replica.replay(of.place, of.key, of.value)
    replica.settle(now_ms=moments[-1].time_ms)
    return load_group(dump_group(replica.groups["g"]))


def looked(state: GroupState, now_ms: int) -> list[Event]:
    """What a clock finds of the kind."""
    return [of for of in overdue(state, now_ms) if of.kind == ABSENT]


def ends(reported: Reported) -> list[dict[str, Any]]:
    return [of for of in reported.details(ABSENT) if of.get("cleared")]


def test_restart_of_a_deployment_is_one_alarm_that_lists_all() -> None:
    """They are stopped at once, and close within seconds; it is over when the last is back, and not sooner."""
    away = [closes(FIRST_MS + 800 * number, pod) for number, pod in enumerate(PODS)]
    back = [returns(90_000 + 1_000 * number, pod) for number, pod in enumerate(PODS)]
    before_the_last = history(*joined(), *away, *back[:-1]).replayed()

    assert [(FIRST_MS, "warning", PODS)] == said(before_the_last)
    reported = history(*joined(), *away, *back).replayed()
    assert [(FIRST_MS, "warning", PODS), (94_000, "info", PODS)] == said(reported)
    assert [{"instance_ids": PODS, "cleared": True}] == ends(reported)
    assert {topic_id("t"): [0, 1, 2, 3, 4]} == reported.details(ABSENT)[0]["partitions"]


@pytest.mark.parametrize("pause_ms", [0, NEXT_MS - 21_000])
def test_roll_from_one_to_the_next_is_one_alarm(pause_ms: int) -> None:
    """Each closes when the one before is back and ready."""
    moments, time_ms = joined(), FIRST_MS
    for pod in PODS:
        moments += [closes(time_ms, pod), returns(time_ms + 20_000, pod)]
        time_ms += 21_000 + pause_ms

    reported = history(*moments).replayed()

    assert [(FIRST_MS, "warning", [PODS[0]]), (time_ms - 1_000 - pause_ms, "info", PODS)] == said(reported)


def test_restarts_of_two_days_are_two_alarms() -> None:
    """The first is over three minutes after the last was back; the end has the time at which it was."""
    later_ms = FIRST_MS + 10_000 + NEXT_MS + 1
    log = [*joined(), closes(FIRST_MS, "pod-0"), returns(FIRST_MS + 10_000, "pod-0")]
    log += [closes(later_ms, "pod-1"), returns(later_ms + 10_000, "pod-1"), another_joins(later_ms + 10_001 + NEXT_MS)]
    reported = history(*log).replayed()

    assert [
        (FIRST_MS, "warning", ["pod-0"]),
        (FIRST_MS + 10_000, "info", ["pod-0"]),
        (later_ms, "warning", ["pod-1"]),
        (later_ms + 10_000, "info", ["pod-1"]),
    ] == said(reported)


def test_one_that_stays_away_is_named_and_the_alarm_stays() -> None:
    """Its session expires, which is no way to be back: for a day it is among those that are away."""
    away = [closes(FIRST_MS + number, pod) for number, pod in enumerate(PODS)]
    back = [returns(70_000 + number, pod) for number, pod in enumerate(PODS[:-1])]
    reported = history(*joined(), *away, *back, expires(110_000, "pod-4")).replayed()
    state = reported.states["g"]

    assert [(FIRST_MS, "warning", PODS)] == said(reported)
    assert ["pod-4"] == [*still_open(state, ABSENT, 110_000)]
    last_ms = 70_003
    assert [] == looked(state, last_ms + CLOSED_AFTER_MS)
    (event,) = looked(load_group(dump_group(state)), last_ms + CLOSED_AFTER_MS + 1)
    assert {"instance_ids": PODS, "not_back": ["pod-4"], "why": "one_day", "cleared": True} == event.detail
    assert last_ms + CLOSED_AFTER_MS == event.time_ms
    assert {} == still_open(state, ABSENT, event.time_ms + 1)
    assert "pod-4 is not back after a day, of 5 static members that closed" == sentence(event_view(event))


def test_one_that_comes_after_its_session_ends_it() -> None:
    """It joins as a new member under its instance id, whichever protocol it speaks."""
    owned = {f"{pod}.0": {"t": [number]} for number, pod in enumerate(PODS)}
    again = consumer_join("g", "pod-0.9", epoch=8, targets={**owned, "pod-0.9": {"t": [0]}}, instance_id="pod-0")
    log = [*joined(), closes(FIRST_MS, "pod-0"), expires(105_000, "pod-0"), at(150_000, *again)]
    log.append(another_joins(150_001 + NEXT_MS))

    assert [(FIRST_MS, "warning", ["pod-0"]), (150_000, "info", ["pod-0"])] == said(history(*log).replayed())


def test_one_that_closes_long_after_another_stayed_away_is_another_restart() -> None:
    """It is reported for itself, with who is away still, and both are awaited from then on."""
    later_ms = FIRST_MS + JOINS_MS + 1
    log = [*joined(), closes(FIRST_MS, "pod-0"), expires(105_000, "pod-0"), closes(later_ms, "pod-1")]
    reported = history(*log).replayed()

    assert [(FIRST_MS, "warning", ["pod-0"]), (later_ms, "warning", ["pod-1", "pod-0"])] == said(reported)
    assert ["pod-0"] == reported.details(ABSENT)[1]["away_before"]
    assert {"pod-0", "pod-1"} == still_open(reported.states["g"], ABSENT, later_ms).keys()
    soon = history(*joined(), closes(FIRST_MS, "pod-0"), closes(FIRST_MS + JOINS_MS, "pod-1")).replayed()
    assert 1 == len(said(soon))


def test_one_that_was_given_up_is_forgotten() -> None:
    """The next one that closes, two days later, is alone; and the end of the first was said once."""
    later_ms = FIRST_MS + 2 * CLOSED_AFTER_MS
    log = [*joined(), closes(FIRST_MS, "pod-0"), expires(105_000, "pod-0"), closes(later_ms, "pod-1")]
    reported = history(*log).replayed()

    assert [
        (FIRST_MS, "warning", ["pod-0"]),
        (FIRST_MS + CLOSED_AFTER_MS, "info", ["pod-0"]),
        (later_ms, "warning", ["pod-1"]),
    ] == said(reported)
    assert {"pod-1"} == reported.states["g"].open(ABSENT).keys()


def test_it_ends_with_the_group() -> None:
    """No member is awaited in a group that was deleted."""
    gone = [expires(105_000, "pod-0"), at(200_000, *consumer_group_deleted("g"))]
    reported = history(*joined(["pod-0"]), closes(FIRST_MS, "pod-0"), *gone).replayed()

    assert [(FIRST_MS, "warning"), (200_000, "info")] == [
        (time_ms, severity) for time_ms, severity, _ in said(reported)
    ]
    assert [("group_deleted", ["pod-0"])] == [(of["why"], of["not_back"]) for of in ends(reported)]


def test_where_nothing_more_is_written_the_clock_says_it_once() -> None:
    """The same event that a record would have shown: that all are back. Who closed the micro-batch has said."""
    away = state_while_open(*joined(), closes(FIRST_MS, "pod-0"))
    back = state_while_open(*joined(), closes(FIRST_MS, "pod-0"), returns(70_000, "pod-0"))

    assert [] == looked(away, FIRST_MS + TOGETHER_MS + 1)
    assert [] == looked(back, 70_000 + NEXT_MS)
    (event,) = looked(back, 70_000 + NEXT_MS + 1)
    later = another_joins(70_001 + NEXT_MS)
    assert event in history(*joined(), closes(FIRST_MS, "pod-0"), returns(70_000, "pod-0"), later).replayed().events


def test_an_end_is_said_once_though_the_group_goes_on() -> None:
    """By a look first, and then by the group's next record, as in a recording; a look that found nothing takes none."""
    later_ms = FIRST_MS + 10_000 + NEXT_MS + 1
    log = [*joined(), closes(FIRST_MS, "pod-0"), returns(FIRST_MS + 10_000, "pod-0")]
    log += [closes(later_ms, "pod-1"), returns(later_ms + 10_000, "pod-1"), another_joins(later_ms + 10_001 + NEXT_MS)]
    replica, events = LogReplica(None), list[Event]()
    looks = Looks(replica, {})
    for of in history(*log).records:
        events += looks.before(of.place)
        events += replica.replay(of.place, of.key, of.value)
    events += [*replica.settle(), *looks.at_end()]

    shown = [event for event in replica.reported(events) if event.kind == ABSENT]
    assert [(FIRST_MS, False), (FIRST_MS + 10_000, True), (later_ms, False), (later_ms + 10_000, True)] == [
        (of.time_ms, "cleared" in of.detail) for of in shown
    ]
    assert shown == [of for of in history(*log).replayed().events if of.kind == ABSENT]


def test_a_pause_of_seconds_ends_no_restart() -> None:
    """Between one process that is back and the next that closes nothing may come; nor does a micro-batch end it."""
    roll = [closes(FIRST_MS, "pod-0"), returns(70_000, "pod-0"), closes(100_000, "pod-1"), returns(110_000, "pod-1")]
    replica, events = Replica(), list[Event]()
    for moment in (moments := [*joined(), *roll]):
        for of in (of for of in history(*moments).records if of.place.timestamp_ms == moment.time_ms):
            events += replica.replay(of.place, of.key, of.value)
        events += replica.settle(now_ms=moment.time_ms)
        events += replica.settle()
        # A record of another group of the partition, a day later by its broker's clock, says nothing of this one.
        events += replica.end_moments(moment.time_ms + 2 * CLOSED_AFTER_MS)

    assert [(FIRST_MS, "warning", ["pod-0"])] == [
        (of.time_ms, of.severity, of.detail["instance_ids"]) for of in events if of.kind == ABSENT
    ]
    (event,) = looked(replica.groups["g"], 110_001 + NEXT_MS)
    assert (110_000, "info", ["pod-0", "pod-1"]) == (event.time_ms, event.severity, event.detail["instance_ids"])


def test_who_was_away_before_the_live_tail_is_not_reported() -> None:
    """Neither that it is away nor that it is back; who closes from then on is."""
    log = history(*joined(), closes(FIRST_MS, "pod-0"), closes(90_000, "pod-1"), returns(95_000, "pod-0"))
    live_from = next(of.place.offset for of in log.records if of.place.timestamp_ms == 90_000)

    assert [(90_000, "warning", ["pod-1", "pod-0"])] == said(log.replayed(live_from=live_from))

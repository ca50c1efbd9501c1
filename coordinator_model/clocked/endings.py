"""Alarms that end because nothing is written any more: they are reported again with `cleared`.

    alarm                        is over when
    static_member_contended      no process took the instance id for ten minutes
    static_member_restarting     no process took the instance id for ten minutes
    poll_interval_exceeded       no process left again for one and a half of its rebalance timeouts
    static_member_absent         all are back and none went for three minutes, or one is away for a day
    rebalance_storm              five minutes hold half the rebalances that restarting every member takes

The event belongs to the last record of what is over, so it is the same for every monitor, and after a restart; its time
is when it was over, by the table. It is found as long as the group's state says that the alarm is open. Where another
run began before anybody looked, the state keeps for an hour that the one before has ended.
"""

from __future__ import annotations

from binascii import crc32
from collections.abc import Callable, Iterator, Mapping
from typing import Final

from coordinator_model.clocked.moment import Moment
from coordinator_model.rules import poll_intervals, rebalance_storm, static_absences, static_members
from coordinator_model.state.events import INFO, Event
from coordinator_model.state.findings import Finding, Position, events_of
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.rule_memory import Ending


def alarms_over(moment: Moment) -> Iterator[Event]:
    """What was reported, and is over by now."""
    state = moment.state
    for said in static_absences.over(state, moment.now_ms):
        yield from static_absences.events_of_said(state, said)
    for ending in state.endings.values():
        yield from _cleared(state, ending)
    for kind in OF_INSTANCES:
        for instance_id, alarm in state.open(kind).items():
            history = state.instances.get(instance_id) or state.departed.get(instance_id)
            if history is None:
                # Read again, and another stands for it: what is known of the end is that it was not later.
                ending = Ending(kind=kind, name=instance_id, offset=alarm.offset, time_ms=moment.now_ms)
                yield from _cleared(state, ending, member_ids=list(alarm.members))
            elif not static_members.is_going_on(history, moment.now_ms):
                over_ms = static_members.end_ms(history)
                ending = Ending(kind=kind, name=instance_id, offset=history.replaced_offset, time_ms=over_ms)
                yield from _cleared(state, ending, member_ids=[history.member_id])
    for over in _polls_in_time(state, moment.now_ms):
        yield from _cleared(state, over)
    if rebalance_storm.is_reported(state) and not rebalance_storm.is_storm(state, moment.now_ms):
        yield from _cleared(state, rebalance_storm.ending(state))


def _polls_in_time(state: GroupState, now_ms: int) -> Iterator[Ending]:
    for name, alarm in state.open(poll_intervals.EXCEEDED).items():
        run = poll_intervals.last_of(state.poll_runs, name)
        if run is None:
            # Read again, and the run is not known any more: what is known of the end is that it was not later.
            yield Ending(kind=poll_intervals.EXCEEDED, name=name, offset=alarm.offset, time_ms=now_ms)
        elif not poll_intervals.is_open(state, poll_intervals.EXCEEDED, name, now_ms):
            yield poll_intervals.ending(name, run)


def _cleared(state: GroupState, ending: Ending, **detail: object) -> Iterator[Event]:
    named = {"instance_id": ending.name} if ending.name else {}
    if ending.kind == poll_intervals.EXCEEDED:
        named = poll_intervals.process_of(ending.name)
    finding = Finding(ending.kind, {**named, **detail, "cleared": True}, severity=INFO, inferred=True)
    position = Position(state.partition, ending.offset, ending.time_ms)
    yield from events_of(state.name, position, [finding], first_ordinal=1 + crc32(ending.name.encode()))


OF_INSTANCES: Final = (static_members.CONTENDED, static_members.RESTARTING)

ENDED_BY_TIME: Final[Mapping[str, Callable[[GroupState, str, str, int], bool]]] = {
    **dict.fromkeys(OF_INSTANCES, static_members.is_open),
    poll_intervals.EXCEEDED: poll_intervals.is_open,
    static_absences.ABSENT: static_absences.is_away,
    rebalance_storm.STORM: lambda state, _, __, now_ms: rebalance_storm.is_storm(state, now_ms),
}
"""Kind → whether a group's alarm of that kind and a name lasts at a time. All others end with a record."""

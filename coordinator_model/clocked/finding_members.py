"""Which members a finding that still holds is about, so that an operator knows whom to look at.

    finding                   members
    duplicate_assignment      those that own a partition another one owns too
    static_member_absent      those that said they would be back
    static_member_contended   those that stand for an instance id which processes take from each other, over and over
    static_member_restarting  those that stand for one which a process takes again and again
    poll_interval_exceeded    those that joined in the place of one that left after its poll interval, again and again
    rebalance_stuck           those that have not reached the target within their rebalance timeout

Which kinds name members says `kinds/table.py`; that a member is away is said of it by its record.

The findings are the kinds of the events that tell of their beginning.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from coordinator_model.clocked import stuck
from coordinator_model.clocked.alarms import still_open
from coordinator_model.clocked.moment import Moment
from coordinator_model.kinds.table import ALARMS, LOOK
from coordinator_model.rules.members import Member, is_absent, members_of
from coordinator_model.rules.static_absences import ABSENT
from coordinator_model.rules.static_members import DOUBTED
from coordinator_model.state.group_state import GroupState

STUCK: Final = "rebalance_stuck"
FINDINGS: Final = tuple(
    row.name for row in sorted(ALARMS.values(), key=lambda row: (row.ends == LOOK, row.rank)) if row.involves
)


def involved_members(
    state: GroupState, now_ms: int, moved_ms: int | None = None, read_ms: int | None = None
) -> Iterator[tuple[str, Member]]:
    """(finding, member) of all that holds at this moment, each pair once, in the order of `FINDINGS` and member ids.

    Args:
        state: the group.
        now_ms: the time, by the brokers' clocks.
        moved_ms: when the group's coordinator was last seen to move; None for never.
        read_ms: as a `Moment` has it.
    """
    members = members_of(state.membership)
    found = {
        kind: {
            member_id
            for alarm in still_open(state, kind, now_ms).values()
            if alarm.detail != DOUBTED
            for member_id in alarm.members
        }
        for kind in FINDINGS
    }
    found[ABSENT] = {member_id for member_id, member in members.items() if is_absent(member)}
    found[STUCK] = {
        late["member_id"]
        for event in stuck.rebalance_stuck(Moment(state=state, now_ms=now_ms, moved_ms=moved_ms, read_ms=read_ms))
        for late in event.detail["members"]
    }
    for finding, member_ids in found.items():
        for member_id in sorted(member_ids & members.keys()):
            yield finding, members[member_id]

"""What is known of a group whose partition of the log was read again, or read with a gap: before and after, compared.

A log can lose its tail (an unclean election), or go unread until tombstones are removed. Then the partition
is read again from its beginning, and only state is made of it (`beginning.py`). Of what was known before is kept:

    the group after it           what rules remember
    has the same members         all of it: nothing happened to the group
    has others                   its counters and what is alarmed, which is judged again: what holds stays open, as it
                                 was reported, and what does not is cleared
    is not there any more        what is alarmed is cleared

Where records were cleaned away before they were read, rules cannot follow: what is left shows states that never were.
What came of it is seen all the same by a look at the group before and after, and reported as inferred:

    a group that is gone            group_deleted
    an offset that is gone          offset_deleted
    an offset that is lower         offset_rewound
    an offset of another topic id   topic_recreated
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from coordinator_model.rules import deletions, rewinds, steps
from coordinator_model.rules.members import members_of
from coordinator_model.state.events import Event
from coordinator_model.state.findings import Finding
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.membership import Membership
from coordinator_model.state.offsets import CommittedOffset, goes_back
from coordinator_model.state.rule_memory import Deleted, Deletions, Rewinds, Rewound

CommittedOffsets = Mapping[tuple[str, int], CommittedOffset]
"""(topic, partition) → what is committed of it."""

ALARMED: Final = (
    "recent_rebalances_ms",
    "recent_rebalance_members",
    "last_rebalance_offset",
    "poll_runs",
    "absences",
    "endings",
    "alarms",
)
"""Fields of `GroupState` in which rules keep what they reported, and what it takes to see its end."""


def taken_over(former: GroupState, state: GroupState) -> GroupState:
    """The group as it was read again, with what is still so of what was known; `state` has its memory begun."""
    if former.step is None and former.membership == state.membership:
        return replace(
            former,
            offset_count=state.offset_count,
            buckets=state.buckets,
            topic_ids={**former.topic_ids, **state.topic_ids},
            newer_versions=state.newer_versions,
            known_ids=state.known_ids,
            rewinds=None,
            awaited_rewinds=(),
            deletions=None,
            last_step_ms=state.last_step_ms,
            last_step_offset=state.last_step_offset,
        )
    same = {
        instance: history
        for instance, history in former.instances.items()
        if instance in state.instances and state.instances[instance].member_id == history.member_id
    }
    return replace(
        state,
        **{name: getattr(former, name) for name in ALARMED},
        counters=former.counters,
        instances={**state.instances, **same},
        withheld=True,
    )


def cleared(former: GroupState) -> list[Event]:
    """The ends of what was alarmed of a group that is not there any more."""
    alarmed = {name: getattr(former, name) for name in ALARMED}
    gone = GroupState(
        name=former.name,
        partition=former.partition,
        membership=Membership(),
        last_step_ms=former.last_step_ms,
        last_step_offset=former.last_step_offset,
        withheld=True,
        **alarmed,
    )
    return steps.judge(gone)


def differences(
    former: GroupState, before: CommittedOffsets, state: GroupState | None, after: CommittedOffsets
) -> Iterator[Finding]:
    """What must have happened to a group between two looks at it; `state` is None where there is none."""
    if state is None or not state.exists:
        if former.exists:
            yield Finding("group_deleted", inferred=True)
        return
    back: dict[str, Rewound] = {}
    gone = Deletions(time_ms=-1, offset=-1)
    for (topic, partition), was in sorted(before.items()):
        now = after.get((topic, partition))
        place = {"topic": topic, "partition": partition}
        if now is None:
            gone.partitions[f"{topic}/{partition}"] = Deleted(offset=was.offset)
        elif None not in (was.topic_id, now.topic_id) and was.topic_id != now.topic_id:
            found = {"from": was.offset, "to": now.offset, "former_topic_id": was.topic_id, "topic_id": now.topic_id}
            yield Finding("topic_recreated", {**place, **found}, inferred=True)
        elif goes_back(was.offset, now.offset):
            is_clear = None not in (was.topic_id, now.topic_id)
            unclear_since_ms = None if is_clear else was.commit_timestamp_ms
            back[f"{topic}/{partition}"] = Rewound(before=was.offset, to=now.offset, unclear_since_ms=unclear_since_ms)
    if gone.partitions:
        yield replace(deletions.reported(state, gone, ()), inferred=True)
    if back:
        simple = not state.membership.exists
        seen = Rewinds(
            time_ms=-1,
            offset=-1,
            group_empty=None if simple else not members_of(state.membership),
            simple=simple,
            partitions=back,
        )
        finding = rewinds.reported(seen)
        yield Finding(finding.kind, finding.detail, finding.severity, inferred=True)

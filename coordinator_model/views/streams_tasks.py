"""Tasks of a Kafka Streams application on the classic protocol: who runs which, who keeps copies, how far those are.

Since KIP-441 a member says with each join how far each copy of a task's state is: the sum of the offsets that it has
restored of the task's changelogs. Where the changelogs end is not in the log, nor where the running task is. So

    of the task, in the same join                      a copy is behind by
    a member ran it                                    what no record has: not known
    no member ran it, and this copy's sum is unknown   not known
    no member ran it                                   at least the most advanced copy's sum less its own

and the recovery lag, which is to the changelogs' end, is known of none. Streams groups (KIP-1071) have no such claims:
their members tell the coordinator in heartbeats, and it writes none of that down.
"""

from __future__ import annotations

from typing import Any

from coordinator_model.state.membership import ClassicGroup, ClassicMember, StreamsClaim


def task_views(group: ClassicGroup) -> dict[str, dict[str, Any]]:
    """Member id → `process_id`, `tasks` and `task_copies`, of those members that sent or were given any tasks."""
    claims = {of.member_id: of.claim.streams for of in group.members.values() if of.claim and of.claim.streams}
    if not claims:
        return {}
    running = {
        f"{subtopology}_{partition}"
        for claim in claims.values()
        for subtopology, partitions in claim.active.items()
        for partition in partitions
    }
    most: dict[str, int] = {}
    for claim in claims.values():
        for task, offset_sum in claim.copies.items():
            most[task] = max(most.get(task, -1), offset_sum)
    return {of: _view(group.members[of], claim, running, most) for of, claim in claims.items()}


def _view(member: ClassicMember, claim: StreamsClaim, running: set[str], most: dict[str, int]) -> dict[str, Any]:
    copies = [
        {
            "task": task,
            "offset_sum": offset_sum if offset_sum >= 0 else None,
            "behind_most_advanced": None if task in running or offset_sum < 0 else most[task] - offset_sum,
        }
        for task, offset_sum in sorted(claim.copies.items())
    ]
    return {
        "process_id": claim.process_id,
        "tasks": {
            "active": {name: list(of) for name, of in sorted(member.streams_active.items())},
            "standby": {name: list(of) for name, of in sorted(member.streams_standby.items())},
        },
        "task_copies": copies,
    }

"""What a coordinator would answer about a group, in the words of the schemas."""

from collections import Counter
from collections.abc import Iterable
from typing import Any, Final

from tests.simulator.cluster import Place
from tests.simulator.memory import STABLE, SUBTOPOLOGIES, Group, Member, by_topic

STATE_NAMES: Final = ("Stable", "UnrevokedPartitions", "UnreleasedPartitions")
TASK_STATE_NAMES: Final = ("Stable", "UnrevokedTasks", "UnreleasedTasks")
"""Of a streams group; on the log each is written as one more."""


def view(group: Group, offsets: dict[Place, dict[str, Any]] | None = None) -> dict[str, Any]:
    """The GROUP, with the offsets that a reader knows. The phase of a mixed group is `mixed`.

    Which way it goes is an inference, not a fact.
    """
    known = group.offsets if offsets is None else offsets
    modern = group.kind not in (None, "classic")
    shown = list(group.members.values()) if modern else list(group.written)
    found = {
        "group": group.name,
        "type": group.kind or "classic",
        "state": _state(group, shown),
        "epoch": group.epoch if modern else group.written_generation,
        "assignment_epoch": group.assignment_epoch if modern else None,
        "protocol": _protocol(group, shown),
        "simple": group.kind is None,
        "members": [_member(group, member) for member in sorted(shown, key=lambda of: of.member_id)],
        "offsets": [known[place] for place in sorted(known)],
        "migration": _migration(group, shown),
    }
    if group.kind == "share":
        states = {"initializing": group.initializing, "initialized": group.initialized}
        found["delivery_state"] = {name: by_topic(group.cluster.named(places)) for name, places in states.items()} | {
            "deleting": []
        }
    if group.kind == "streams":
        found["topology"] = {
            "epoch": 0 if group.topology else None,
            "validated_epoch": group.validated if group.validation_reported and group.validated >= 0 else None,
        }
    return found


def committed(
    place: Place, offset: int, *, leader_epoch: int, metadata: str, time_ms: int, topic_id: str | None
) -> dict[str, Any]:
    """The Offset."""
    return {
        "topic": place[0],
        "partition": place[1],
        "offset": offset,
        "leader_epoch": leader_epoch,
        "metadata": metadata,
        "commit_timestamp": time_ms,
        "topic_id": topic_id,
    }


def _protocol(group: Group, shown: list[Member]) -> str | None:
    if group.kind == "classic":
        return group.protocol if shown else None
    asked = Counter(of.server_assignor for of in shown if of.server_assignor)
    return max(asked, key=lambda of: (asked[of], of)) if asked else None


def _state(group: Group, shown: list[Member]) -> str:
    if not shown:
        return "Empty"
    if group.kind in ("classic", "share"):
        return "Stable"
    if group.kind == "streams" and (not group.topology or group.validated != 0):
        return "NotReady"
    if group.epoch > group.assignment_epoch:
        return "Assigning"
    settled = all(of.state == STABLE and of.epoch == group.assignment_epoch for of in shown)
    return "Stable" if settled else "Reconciling"


def _member(group: Group, member: Member) -> dict[str, Any]:
    modern = group.kind not in (None, "classic")
    given = member.assigned if modern else group.assignment.get(member.member_id, set())
    target = group.targets.get(member.member_id, set()) if modern else given
    shown = {"streams": _read_by_tasks, "classic": by_topic}.get(group.kind or "", group.cluster.shown)
    names = TASK_STATE_NAMES if group.kind == "streams" else STATE_NAMES
    view = {
        "member_id": member.member_id,
        "instance_id": member.instance_id,
        "client_id": member.client_id,
        "client_host": member.client_host,
        "protocol": "classic" if member.classic else "consumer",
        "epoch": member.epoch if modern else group.written_generation,
        "state": names[member.state] if modern else "Stable",
        "assigned": shown(given),
        "pending_revocation": shown(member.pending) if modern else {},
        "target": shown(target),
    }
    return {**view, **_tasks(group, member)} if group.kind == "streams" else view


def _read_by_tasks(tasks: Iterable[Place]) -> dict[str, list[int]]:
    return by_topic({(topic, partition) for subtopology, partition in tasks for topic in SUBTOPOLOGIES[subtopology]})


def _tasks(group: Group, member: Member) -> dict[str, Any]:
    def by_role(active: Iterable[Place], standby: Iterable[Place], warmup: Iterable[Place]) -> dict[str, Any]:
        return {"active": by_topic(active), "standby": by_topic(standby), "warmup": by_topic(warmup)}

    targets = (group.targets, group.standby_targets, group.warmup_targets)
    return {
        "topology_epoch": 0,
        "process_id": member.process_id,
        "tasks": by_role(member.assigned, member.standby, member.warmup),
        "tasks_pending_revocation": by_role(member.pending, member.pending_standby, member.pending_warmup),
        "target_tasks": by_role(*(of.get(member.member_id, set()) for of in targets)),
    }


def _migration(group: Group, shown: list[Member]) -> dict[str, Any]:
    upgraded = sum(not member.classic for member in shown)
    blocked = group.kind == "classic" and group.custom_assignor and bool(shown)
    phase: str | None = None  # share and streams groups are on no way
    if group.kind == "consumer":
        phase = "upgraded" if group.mixed_since_ms is None else "mixed"
    elif group.kind in (None, "classic"):
        phase = "blocked" if blocked else "downgraded" if group.was_downgraded else "classic"
    return {
        "phase": phase,
        "members": len(shown),
        "upgraded_members": upgraded,
        "mixed_since": group.mixed_since_ms,
        "blockers": ["assignment_user_data"] if blocked else [],
        "leftovers": group.leftovers,
    }

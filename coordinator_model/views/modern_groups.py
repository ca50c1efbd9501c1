"""What only share and streams groups show: the keys of GROUP and Member that go beyond the common ones.

`kafka-share-groups` and `kafka-streams-groups` with `--describe --members --verbose`, and the admin client behind them,
are the measure: whatever of theirs is in the log is here under the same words. Not in the log are a streams member's
task offsets, and a share group's start offsets, which are in a topic of their own.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from coordinator_model.state.membership import (
    CONSUMER,
    SHARE,
    STREAMS,
    InternalTopics,
    ModernGroup,
    ModernMember,
    Partitions,
    TaskTarget,
)


def listed(parts: Partitions, topic_names: Mapping[str, str] | None = None) -> dict[str, list[int]]:
    """Topic name, or its id where the name is not known → partitions. A recreated topic has two ids and one name."""
    names, shown = topic_names or {}, dict[str, list[int]]()
    for topic, partitions in parts.items():
        name = names.get(topic, topic)
        shown[name] = sorted({*shown[name], *partitions}) if name in shown else list(partitions)
    return dict(sorted(shown.items()))


def group_keys(group: ModernGroup) -> dict[str, Any]:
    """Consumer groups' `regexes` (expression → topics), share groups' `delivery_state`, streams groups' `topology`."""
    if group.family == CONSUMER:
        return {"regexes": {regex: sorted(topics) for regex, topics in sorted(group.regexes.items())}}
    if group.family == SHARE:
        state = group.delivery_state
        return {
            "delivery_state": {
                "initializing": listed(state.initializing),
                "initialized": listed(state.initialized),
                "deleting": list(state.deleting),
            }
        }
    if group.family == STREAMS:
        validated = group.validated_topology_epoch
        return {
            "topology": {
                "epoch": group.topology_epoch,
                "validated_epoch": validated if validated >= 0 else None,
                "subtopologies": {name: _subtopology(group, name) for name in sorted(group.subtopologies)},
            }
        }
    return {}


def member_keys(group: ModernGroup, member: ModernMember) -> dict[str, Any]:
    """What a share member subscribes to; a streams member's process and its tasks, by subtopology."""
    if group.family == SHARE:
        return {"rack_id": member.rack_id, "subscribed_topics": list(member.subscribed_topics)}
    if group.family != STREAMS:
        return {}
    target, endpoint = group.task_targets.get(member.member_id, TaskTarget()), member.user_endpoint
    return {
        "rack_id": member.rack_id,
        "topology_epoch": member.topology_epoch,
        "process_id": member.process_id,
        "user_endpoint": None if endpoint is None else {"host": endpoint.host, "port": endpoint.port},
        "client_tags": dict(sorted(member.client_tags.items())),
        "tasks": _by_role(member.assigned, member.standby_tasks, member.warmup_tasks),
        "tasks_pending_revocation": _by_role(
            member.pending_revocation, member.standby_pending_revocation, member.warmup_pending_revocation
        ),
        "target_tasks": _by_role(target.active, target.standby, target.warmup),
    }


def _by_role(active: Partitions, standby: Partitions, warmup: Partitions) -> dict[str, dict[str, list[int]]]:
    return {"active": listed(active), "standby": listed(standby), "warmup": listed(warmup)}


def _subtopology(group: ModernGroup, name: str) -> dict[str, list[str]]:
    internal = group.internal_topics.get(name, InternalTopics())
    return {
        "source_topics": [topic for topic in group.subtopologies[name] if topic not in internal.repartition_source],
        "repartition_source_topics": list(internal.repartition_source),
        "repartition_sink_topics": list(internal.repartition_sink),
        "state_changelog_topics": list(internal.changelog),
    }

"""A group and an event as text: what `replay`, `groups` and `describe` print, from the objects the API serves too."""

import json
from collections.abc import Iterator, Mapping, Sequence
from typing import Any, Final

from coordinator_model.kinds.table import sentence
from coordinator_model.kinds.words import ranges
from coordinator_model.migration.upgrade_blockers import BLOCKERS
from streaming.base.doubt import cannot_tell
from streaming.base.text import printable
from streaming.base.times import time_text
from streaming.cli.render.output import table

Group = Mapping[str, Any]

_COMPARED: Final = {
    "members_not_given_their_target": "not given their targets",
    "members_not_at_their_target": "not at their targets before",
    "offsets_back": "offsets that went back or were deleted",
}
"""What a downgrade did not keep → how it is said."""

_CARRIED: Final = {
    "members_not_carried_over": "not carried over",
    "members_with_other_partitions": "with other partitions",
    "offsets_back": "offsets that went back or were deleted",
}
"""What an upgrade did not keep → how it is said."""


def partitions_text(partitions: Mapping[str, Sequence[int]]) -> str:
    """`orders:0-2,5 audit:1`, or `-` for none."""
    return (
        " ".join(f"{topic}:{ranges(numbers, '-', ',')}" for topic, numbers in sorted(partitions.items()) if numbers)
        or "-"
    )


def groups_table(groups: Sequence[Group]) -> str:
    """One line a group; columns for lag if the groups carry it, and for doubt if there is one of some."""
    lag = any("lag" in group for group in groups)
    doubted = any(group.get("doubt") for group in groups)
    headers = ["GROUP", "TYPE", "STATE", "EPOCH", "ASSIGNMENT-EPOCH", "PROTOCOL", "#MEMBERS", "MIGRATION"]
    rows = [
        [
            group["group"],
            group["type"],
            group["state"],
            group["epoch"],
            group["assignment_epoch"],
            group["protocol"],
            _member_count(group),
            _migration_text(group) if group.get("migration") else None,
            *([_records(group), _seconds(group, "max_lag_seconds")] if lag else []),
            *([cannot_tell(group["doubt"]) if group.get("doubt") else None] if doubted else []),
        ]
        for group in groups
    ]
    return table([*headers, *(["LAG", "MAX-LAG-SECONDS"] if lag else []), *(["DOUBT"] if doubted else [])], rows)


def group_text(group: Group) -> Iterator[str]:
    """Paragraphs on one group: itself, its members, its offsets."""
    yield groups_table([group])
    yield from _migration_paragraphs(group.get("migration") or {})
    if group.get("newer_value_versions"):
        versions = ", ".join(f"type {type_} v{version}" for type_, version in group["newer_value_versions"].items())
        yield f"read from records newer than this release knows, which may hold more than is shown: {versions}"
    for lack in group.get("log_lacks") or ():
        yield printable(lack["text"])
    yield from _topics_text(group)
    if group.get("members"):
        yield table(
            ["MEMBER", "INSTANCE", "CLIENT-ID", "HOST", "PROTOCOL", "EPOCH", "STATE", "ASSIGNED", "PENDING", "TARGET"],
            [_member_row(member) for member in group["members"]],
        )
        with_details = [member for member in group["members"] if "subscription" in member]
        if with_details:
            yield table(_DETAIL_HEADERS, [_detail_row(member) for member in with_details])
        yield from (
            printable(f"{member['member_id']} {member['waiting']['text']}")
            for member in group["members"]
            if member.get("waiting")
        )
    if group.get("static_members"):
        yield table(
            ["INSTANCE-ID", "MEMBER", "SINCE", "FORMER-MEMBERS", "REBALANCES-SAVED", "AWAY-SINCE", "AWAY", "SESSION"],
            [_static_row(of) for of in group["static_members"]],
        )
    translated = [member for member in group.get("members") or () if member.get("classic_protocol")]
    if translated:
        yield table(
            ["CLASSIC-MEMBER", "STATE", "SINCE", "SITUATION", "REBALANCES", "KEEPS", "REVOKES", "WAITS-FOR"],
            [_classic_row(member["member_id"], member["classic_protocol"]) for member in translated],
        )
    if group.get("type") == "streams" and group.get("members"):
        yield table(_TASK_HEADERS, [_task_row(member) for member in group["members"]])
    with_copies = [member for member in group.get("members") or () if "task_copies" in member]
    if with_copies:
        yield table(
            ["STREAMS-MEMBER", "PROCESS", "ACTIVE-TASKS", "STANDBY-TASKS", "COPIES"],
            [_streams_row(member) for member in with_copies],
        )
    if group.get("offsets"):
        yield _offsets_table(group["offsets"])
    yield from _share_text(group)


_SHARE_HEADERS: Final = (
    *("SHARE-TOPIC", "PARTITION", "START-OFFSET", "FIRST-NOT-DONE", "DONE-BEHIND-START", "DELIVERED-AGAIN"),
    *("HIGHEST-COUNT", "AT-LIMIT", "REJECTED", "UNCLEAR"),
)


def _share_text(group: Group) -> Iterator[str]:
    shares = group.get("share_partitions") or ()
    if not shares:
        return
    # A recording does not say where the partitions ended.
    if any("lag" in of for of in shares):
        rows = [[*_share_row(of), of["lag"], _seconds(of, "lag_seconds")] for of in shares]
        yield table([*_SHARE_HEADERS, "LAG", "LAG-SECONDS"], rows)
    else:
        yield table(_SHARE_HEADERS, [_share_row(of) for of in shares])


def _share_row(of: Mapping[str, Any]) -> list[object]:
    """A share partition: how far it is, what was delivered before in vain, and what was given up, by cause."""
    return [
        *(of["topic"], of["partition"], of["start_offset"], of["first_not_done"], of["delivery_complete_count"]),
        *(of["redelivered"], of["max_delivery_count"]),
        *(of["archived_total"]["limit"], of["archived_total"]["rejected"], of["archived_unclear"]),
    ]


_DETAIL_HEADERS: Final = (
    *("MEMBER", "SUBSCRIBES-TO", "PATTERN", "MATCHES", "RACK", "ASSIGNOR", "REBALANCE-TIMEOUT", "SESSION-TIMEOUT"),
    "CLAIMED",
)


def _detail_row(member: Mapping[str, Any]) -> list[object]:
    """What a member asks for, and what it claimed to own when it joined; timeouts in seconds."""
    asks = member["subscription"]
    claims = (
        f"{partitions_text(claim['owned'])}@{'-' if claim['generation'] is None else claim['generation']}"
        for claim in member["claims"]
        if claim["owned"]
    )
    return [
        member["member_id"],
        " ".join(asks["topics"]),
        asks["regex"],
        None if asks["regex_topics"] is None else " ".join(asks["regex_topics"]),
        member["rack_id"],
        member["assignor"],
        *(
            None if ms is None else f"{ms / 1000:g}"
            for ms in (member["rebalance_timeout_ms"], member["session_timeout_ms"])
        ),
        "; ".join(claims),
    ]


def _migration_paragraphs(migration: Mapping[str, Any]) -> Iterator[str]:
    """What stands in the way of an upgrade, what a downgrade left, and what either kept."""
    if migration.get("blockers"):
        yield printable("upgrade blocked: " + ", ".join(BLOCKERS.get(code, code) for code in migration["blockers"]))
    if migration.get("out_of_scope"):
        yield "no consumers: there is nothing to migrate"
    if migration.get("leftovers"):
        types = ", ".join(f"{count} of type {type_}" for type_, count in migration.get("leftover_types", {}).items())
        yield f"records left over from a downgrade: {types or _detail(migration['leftovers'])}"
    if migration.get("downgrade"):
        yield printable(_downgrade_text(migration["downgrade"]))
    if migration.get("upgrade"):
        yield printable(_upgrade_text(migration["upgrade"]))


def event_text(event: Mapping[str, Any]) -> str:
    """One line an event: time, severity, kind, group, a sentence, and whether it is inferred."""
    inferred = " (inferred)" if event["inferred"] else ""
    line = (
        f"{time_text(event['time'])} {event['severity']:<8} {event['kind']} {event['group'] or '-'} {sentence(event)}"
    )
    return printable(line.rstrip()) + inferred


def _topics_text(group: Group) -> Iterator[str]:
    """What a share group keeps delivery state of; what a streams group's subtopologies read and write."""
    delivery = group.get("delivery_state")
    if delivery is not None:
        parts = [
            f"{name} {partitions_text(delivery[name])}" for name in ("initialized", "initializing") if delivery[name]
        ]
        parts += [f"deleting {' '.join(delivery['deleting'])}"] if delivery["deleting"] else []
        yield printable(f"delivery state: {', '.join(parts) or '-'}")
    topology = group.get("topology")
    if topology is not None and topology["epoch"] is None:
        yield "topology: -"
    elif topology is not None:
        validated = (
            "not validated" if topology["validated_epoch"] is None else f"validated {topology['validated_epoch']}"
        )
        yield f"topology: epoch {topology['epoch']}, {validated}"
        headers = ["SUBTOPOLOGY", "SOURCE-TOPICS", "REPARTITION-SOURCE", "REPARTITION-SINK", "CHANGELOG"]
        rows = [[name, *(" ".join(topics) for topics in of.values())] for name, of in topology["subtopologies"].items()]
        yield table(headers, rows)


def _records(group: Mapping[str, Any]) -> object:
    """Lag of a group; while some partition's is not known, that of the others as `>= 40`."""
    is_partly = group.get("lag") is None and group.get("max_lag") is not None
    return f">= {group.get('at_least')}" if is_partly else group.get("lag")


def _seconds(of: Mapping[str, Any], name: str) -> object:
    """Lag in seconds, to the millisecond as times in the log are; a lower bound as `> 720`."""
    seconds = of.get(name)
    rounded = round(seconds, 3) if isinstance(seconds, float) else seconds
    return f"> {rounded}" if of.get(f"{name}_at_least") else rounded


def _offsets_table(offsets: Sequence[Mapping[str, Any]]) -> str:
    lag = any("lag" in offset for offset in offsets)
    headers = ["TOPIC", "PARTITION", "OFFSET", "LEADER-EPOCH", "COMMITTED", "METADATA"]
    rows = [
        [
            offset["topic"],
            offset["partition"],
            offset["offset"],
            None if offset["leader_epoch"] == -1 else offset["leader_epoch"],
            None if offset["commit_timestamp"] is None else time_text(offset["commit_timestamp"]),
            offset["metadata"],
            *([offset.get("log_end_offset"), offset.get("lag"), _seconds(offset, "lag_seconds")] if lag else []),
        ]
        for offset in offsets
    ]
    return table([*headers, "LOG-END-OFFSET", "LAG", "LAG-SECONDS"] if lag else headers, rows)


def _static_row(of: Mapping[str, Any]) -> list[object]:
    """Who stands for an instance id; how long it has been away, of how long it may be."""
    away_ms, session_ms = of.get("absent_ms"), of["session_timeout_ms"]
    return [
        of["instance_id"],
        of["member_id"],
        time_text(of["since"]),
        " ".join(former["member_id"] for former in of["former"]),
        of["rebalances_saved"],
        None if of["absent_since"] is None else time_text(of["absent_since"]),
        None if away_ms is None else f"{away_ms / 1000:.0f} s",
        None if session_ms is None else f"{session_ms / 1000:g} s",
    ]


def _member_row(member: Mapping[str, Any]) -> list[object]:
    return [
        member["member_id"],
        member["instance_id"],
        member["client_id"],
        member["client_host"],
        member["protocol"],
        member["epoch"],
        member["state"],
        *(partitions_text(member[name]) for name in ("assigned", "pending_revocation", "target")),
    ]


def _classic_row(member_id: str, progress: Mapping[str, Any]) -> list[object]:
    """What is inferred carries a question mark."""
    waits_for = (f"{holder} ({partitions_text(parts)})" for holder, parts in progress["waits_for"].items())
    protocol = progress["rebalance_protocol"] or "unknown"
    return [
        member_id,
        progress["state"] + "?" * progress["inferred"],
        time_text(progress["since"]),
        progress["situation"],
        protocol + "?" * progress["rebalance_protocol_inferred"],
        partitions_text(progress["keeps"]),
        partitions_text(progress["revokes"]),
        ", ".join(waits_for) or "-",
    ]


_ROLES = ("active", "standby", "warmup")
_TASK_HEADERS = [
    "MEMBER",
    "TOPOLOGY-EPOCH",
    "PROCESS-ID",
    "ENDPOINT",
    "TAGS",
    *(f"{what}{role.upper()}" for what in ("", "PENDING-", "TARGET-") for role in _ROLES),
]


def _task_row(member: Mapping[str, Any]) -> list[object]:
    endpoint = member["user_endpoint"]
    return [
        member["member_id"],
        member["topology_epoch"],
        member["process_id"],
        None if endpoint is None else f"{endpoint['host']}:{endpoint['port']}",
        ",".join(f"{key}={value}" for key, value in member["client_tags"].items()),
        *(
            partitions_text(member[tasks][role])
            for tasks in ("tasks", "tasks_pending_revocation", "target_tasks")
            for role in _ROLES
        ),
    ]


def _upgrade_text(upgrade: Mapping[str, Any]) -> str:
    """When, from which assignor to which, and what was not carried over."""
    found = [
        f"{what}: {', '.join(str(name) for name in upgrade[key])}" for key, what in _CARRIED.items() if upgrade[key]
    ]
    if upgrade["first_epoch"] not in (None, upgrade["generation"]):
        found.insert(0, f"began at epoch {upgrade['first_epoch']}, not at generation {upgrade['generation']}")
    assignors = f"{upgrade['assignor_before'] or '-'} to {upgrade['assignor_after'] or 'the default of the broker'}"
    kept = "; ".join(found) or "members, assignments and offsets kept"
    return f"upgraded {time_text(upgrade['begun'])}, from assignor {assignors}; {kept}"


def _downgrade_text(downgrade: Mapping[str, Any]) -> str:
    """When, and what was not as it was before."""
    if downgrade["completed"] is None:
        return f"downgrade under way since {time_text(downgrade['begun'])}"
    found = [
        f"{what}: {', '.join(str(name) for name in downgrade[key])}"
        for key, what in _COMPARED.items()
        if downgrade[key]
    ]
    return f"downgraded {time_text(downgrade['completed'])}; " + ("; ".join(found) or "assignments and offsets kept")


def _streams_row(member: Mapping[str, Any]) -> list[object]:
    """Of a copy, how far behind the most advanced one it is, where that is known."""
    copies = []
    for copy in member["task_copies"]:
        behind = copy["behind_most_advanced"]
        copies.append(copy["task"] if behind is None else f"{copy['task']} (behind {behind})")
    tasks = [partitions_text(member["tasks"][role]) for role in ("active", "standby")]
    return [member["member_id"], member["process_id"], *tasks, ", ".join(copies) or "-"]


def _member_count(group: Group) -> object:
    members = group.get("members")
    return len(members) if isinstance(members, list) else members


def _migration_text(group: Group) -> str | None:
    if group["type"] not in ("classic", "consumer"):
        return None  # it has a protocol of its own
    migration: Mapping[str, Any] = group["migration"]
    text = "out of scope" if migration.get("out_of_scope") else str(migration["phase"] or "mixed")
    return f"{text} {migration['upgraded_members']}/{migration['members']}" if migration["upgraded_members"] else text


def _detail(value: object) -> str:
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, separators=(",", ":"))

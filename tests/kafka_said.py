"""What Kafka's own tools said of a group at the end of its recording, as values to compare with a GROUP view.

Each release prints other columns for each kind of group: what a table does not have is not in the values either, and
nothing is compared then.
"""

import re
from typing import Any, Final

from tests.group_tables import Row, member_rows, offset_rows, rows, state_rows

Truth = dict[str, str]
"""`tool` (`kafka-consumer-groups` where missing), and what it printed with --state, --members and --offsets."""

_NOT_FOUND: Final = re.compile(r"GroupIdNotFoundException|does not exist|^Dead$")
# Tables of a group that is empty begin with a sentence that says so.
_NO_MEMBERS: Final = re.compile(r"^Error: .*has no active members\.$", re.MULTILINE)
_TASKS: Final = re.compile(r"([A-Z-]+): ((?:[^:;\s]+:\[[\d,]*\]; ?)+)")
_SUBTOPOLOGY: Final = re.compile(r"([^:;\s]+):\[([\d,]*)\]")

_SHARE_EPOCHS: Final = {"GROUP-EPOCH": "epoch", "ASSIGNMENT-EPOCH": "assignment_epoch"}
_STREAMS_EPOCHS: Final = {"GROUP-EPOCH": "epoch", "TARGET-ASSIGNMENT-EPOCH": "assignment_epoch"}
_TASK_KINDS: Final = ("active", "standby", "warmup")


def exists(truth: Truth) -> bool:
    """Whether Kafka knew the group at the end; a deleted one is not found, or said to be Dead."""
    return _NOT_FOUND.search(truth["state"]) is None


def kind(truth: Truth) -> str:
    """`consumer`, `share` or `streams`: whose tool it was. The first is for classic groups, too."""
    return truth.get("tool", "kafka-consumer-groups").split("-")[1]


def state(truth: Truth) -> dict[str, Any]:
    """`state`, number of `members`, and the epochs that are reported."""
    if kind(truth) == "consumer":
        (reported,) = state_rows(truth["state"])
        return {name: reported[name] for name in ("state", "members", "epoch", "assignment_epoch")}
    (row,) = _rows(truth["state"])
    epochs = _SHARE_EPOCHS if kind(truth) == "share" else _STREAMS_EPOCHS
    return {
        "state": row["STATE"],
        "members": int(row["#MEMBERS"]),
        **{name: int(row[column]) for column, name in epochs.items() if column in row},
    }


def members(truth: Truth) -> list[dict[str, Any]]:
    """What is reported of each member, by member id; `owned` is what it is said to have been assigned."""
    of_kind = {"consumer": _consumer_members, "share": _share_members, "streams": _streams_members}[kind(truth)]
    return sorted(of_kind(truth["members"]), key=lambda member: str(member["member_id"]))


def offsets(truth: Truth) -> dict[tuple[str, int], int] | None:
    """(topic, partition) → committed offset; None where the tool shows something else.

    Of share groups it shows what is in another log, and of a streams group without members it shows nothing.
    """
    if kind(truth) == "share" or (kind(truth) == "streams" and not truth["offsets"].strip()):
        return None
    if kind(truth) == "streams":
        return {
            (row["TOPIC"], int(row["PARTITION"])): int(row["CURRENT-OFFSET"])
            for row in _rows(truth["offsets"])
            if row["CURRENT-OFFSET"].isdigit()
        }
    return {
        (str(row["topic"]), int(row["partition"] or 0)): row["offset"]
        for row in offset_rows(truth["offsets"])
        if row["offset"] is not None
    }


def as_reported(member: dict[str, Any], release: tuple[int, int]) -> dict[str, Any]:
    """A member's view in the form of `members`, with all that any tool shows of a broker of a release."""
    names = ("member_id", "instance_id", "client_id", "client_host", "epoch", "target", "protocol")
    return {
        **{name: member[name] for name in names},
        # Since 4.3 a broker describes as assigned what is still to be revoked, too.
        "owned": _union(member["assigned"], member["pending_revocation"] if release >= (4, 3) else {}),
        "tasks": {kind: parts for kind, parts in member.get("tasks", {}).items() if parts},
        "target_tasks": {kind: parts for kind, parts in member.get("target_tasks", {}).items() if parts},
        "process_id": member.get("process_id"),
        "topology_epoch": member.get("topology_epoch"),
    }


def _rows(text: str) -> list[Row]:
    return rows(_NO_MEMBERS.sub("", text))


def _consumer_members(text: str) -> list[dict[str, Any]]:
    return [
        {
            "member_id": row["member_id"],
            "instance_id": row["instance_id"],
            "client_id": row["client_id"],
            "client_host": row["client_host"],
            "owned": row["assigned"],
            # Not reported of members of a classic group.
            **({} if row["epoch"] is None else {"epoch": row["epoch"], "target": row["target"]}),
            # Reported only where a group is half upgraded.
            **({} if row["upgraded"] is None else {"protocol": "consumer" if row["upgraded"] else "classic"}),
        }
        for row in member_rows(text)
    ]


def _share_members(text: str) -> list[dict[str, Any]]:
    return [
        {
            "member_id": row["CONSUMER-ID"],
            "client_id": row["CLIENT-ID"],
            "client_host": row["HOST"],
            "owned": _shared(row["ASSIGNMENT"]),
            **({"epoch": int(row["MEMBER-EPOCH"])} if "MEMBER-EPOCH" in row else {}),
        }
        for row in _rows(text)
    ]


def _streams_members(text: str) -> list[dict[str, Any]]:
    return [
        {
            "member_id": row["MEMBER"],
            "client_id": row["CLIENT-ID"],
            "process_id": row["PROCESS"],
            "epoch": int(row["MEMBER-EPOCH"]),
            "topology_epoch": int(row["TOPOLOGY-EPOCH"]),
            "tasks": {kind: tasks for kind, tasks in reported.items() if kind in _TASK_KINDS},
            "target_tasks": {
                kind.removeprefix("target-"): tasks for kind, tasks in reported.items() if kind.startswith("target-")
            },
        }
        for row in _rows(text)
        for reported in [_tasks(row["ASSIGNMENTS"])]
    ]


def _shared(cell: str) -> dict[str, list[int]]:
    """`orders:0,1;bills:2`, or as 4.0 has it `orders:1,orders:0,bills:2`, as topic → partitions."""
    found: dict[str, list[int]] = {}
    topic = ""
    for part in re.split("[,;]", cell.strip("-")):
        named, colon, number = part.rpartition(":")
        topic = named if colon else topic
        if number:
            found.setdefault(topic, []).append(int(number))
    return {topic: sorted(partitions) for topic, partitions in sorted(found.items())}


def _tasks(cell: str) -> dict[str, dict[str, list[int]]]:
    """`ACTIVE: 0:[0,1]; 1:[0]; STANDBY: 1:[1,2]; ` as kind → subtopology → partitions."""
    return {
        name.lower(): {
            subtopology: sorted(int(number) for number in numbers.split(","))
            for subtopology, numbers in _SUBTOPOLOGY.findall(text)
        }
        for name, text in _TASKS.findall(cell)
    }


def _union(assigned: dict[str, list[int]], pending: dict[str, list[int]]) -> dict[str, list[int]]:
    return {
        topic: sorted({*assigned.get(topic, ()), *pending.get(topic, ())}) for topic in sorted({*assigned, *pending})
    }

"""The groups of a cluster as `kafka-consumer-groups` describes them, and as a monitor does, in one form to compare."""

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from lab.monitor_process import MonitorProcess
from tests.group_tool import GroupTool

AGREE_SECONDS: Final = 30.0
"""How long the monitor may take to show what the tool says: a micro-batch, and a sample of the log ends."""

Described = dict[str, dict[str, Any]]
"""Group → type, state, epochs, members by id, committed offsets by topic and partition."""


def of_tool(tool: GroupTool) -> Described:
    """Every group as Kafka's own tool shows it."""
    # A header, then a name and a type in each line.
    types = dict(line.split() for line in tool.run("--list", "--type").splitlines()[1:])
    groups: Described = {name: {"type": type_.lower(), "members": {}, "offsets": {}} for name, type_ in types.items()}
    if not groups:
        return groups
    for state in tool.states():
        shown = {name: value for name, value in state.items() if name in ("state", "epoch", "assignment_epoch")}
        groups[state["group"]] |= shown
    for member in tool.members():
        group = groups[member["group"]]
        # The tool says so of a mixed group only; else all members speak the group's protocol.
        protocol = {True: "consumer", False: "classic", None: group["type"]}[member["upgraded"]]
        names = ("instance_id", "client_id", "client_host", "epoch")
        group["members"][member["member_id"]] = {
            **{name: value for name, value in member.items() if name in names},
            "protocol": protocol,
            "owned": member["assigned"],
            # What the leader of a classic group made of it is in force at once, and the tool leaves it out.
            "target": member["assigned"] if group["type"] == "classic" else member["target"],
        }
    for offset in tool.offsets():
        if offset["offset"] is not None:
            place = f"{offset['topic']}-{offset['partition']}"
            groups[offset["group"]]["offsets"][place] = (offset["offset"], offset["log_end_offset"], offset["lag"])
    return groups


def of_monitor(groups: Mapping[str, Mapping[str, Any]]) -> Described:
    """The same of GROUPs with lag, as the API answers them."""
    return {name: _of_view(group) for name, group in groups.items()}


def agreement(
    tool: GroupTool,
    monitor: MonitorProcess,
    *,
    holds: Callable[[Described], bool] = lambda _: True,
    seconds: float = AGREE_SECONDS,
) -> tuple[Described, Described]:
    """What both say at one moment, as soon as it is the same; else the last that they said.

    A moment is the same when the tool says the same before and after the monitor is asked.

    Args:
        tool: Kafka's.
        monitor: ours.
        holds: what the tool has to say for the moment to be the one that is meant.
        seconds: how long to wait for it.
    """
    deadline = time.monotonic() + seconds
    while True:
        before, found, expected = of_tool(tool), of_monitor(monitor.groups()), of_tool(tool)
        if (before == expected == found and holds(expected)) or time.monotonic() > deadline:
            return expected, found
        time.sleep(0.3)


def _of_view(group: Mapping[str, Any]) -> dict[str, Any]:
    # Of a classic group the tool shows no epochs, neither its own nor its members'.
    epochs = group["type"] != "classic"
    return {
        "type": group["type"],
        "state": group["state"],
        "epoch": group["epoch"] if epochs else None,
        "assignment_epoch": group["assignment_epoch"],
        "members": {member["member_id"]: _member(member, epochs=epochs) for member in group["members"]},
        "offsets": {
            f"{offset['topic']}-{offset['partition']}": (offset["offset"], offset["log_end_offset"], offset["lag"])
            for offset in group["offsets"]
        },
    }


def _member(member: Mapping[str, Any], *, epochs: bool) -> dict[str, Any]:
    shown = {name: member[name] for name in ("instance_id", "client_id", "client_host", "target", "protocol")}
    # The tool shows as assigned what is still to be revoked, too.
    owned = {
        topic: sorted({*member["assigned"].get(topic, ()), *member["pending_revocation"].get(topic, ())})
        for topic in sorted({*member["assigned"], *member["pending_revocation"]})
    }
    return {**shown, "epoch": member["epoch"] if epochs else None, "owned": owned}

"""`make soak-hurried`: fifty real groups migrated in a hurry, with `kill -9`, and what each lost has to be named.

Members are librdkafka's, each in a process of its own, dynamic and static. All those of a group are killed at once, and
started again with the consumer protocol, but for the ones that are lost. What a supervisor does is done for the others:
one that its client ended is started again, as brokers refuse a static member whose former process has a session yet.

    of ten groups   lose
    six             none: no word of them
    two             a member
    one             all members but one
    one             all, the first of them once it has converted the group

The monitor has the time that a restart may take, and then `members_not_back`, the plan and the gate have to say the
same: how many are missing of which group, and which. It takes ten minutes.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

from coordinator_model.clocked.not_back import KIND
from coordinator_model.migration.roll_members import RESTART_MS
from lab.monitor_process import MonitorProcess, until
from streaming.demo.embedded_broker import EmbeddedBroker
from streaming.demo.verifiable_consumer import Protocol, create_topics
from tests.brokers.members import Member, librdkafka
from tests.soak.verdicts import GROUPS, TOPICS

_JOIN_SECONDS: Final = 300.0
_SESSIONS_SECONDS: Final = 180.0
"""After a kill, until the broker has given up on all that were: a session is 45 s, and machines do other work."""
_SUPERVISED_EVERY_SECONDS: Final = 1.0
_OTHERS_LOST: Final = 9
_ALL_LOST: Final = 4


@dataclass
class Group:
    """A group, its members by client id, and those that it loses."""

    name: str
    topic: str
    static: bool
    names: list[str]
    lost: set[str]
    members: dict[str, Member] = field(default_factory=dict)
    starts: int = 0

    def start(self, servers: str, name: str, protocol: Protocol, directory: Path) -> None:
        """Start a member, in the place of the one of its name if there was one."""
        self.starts += 1
        own = directory / f"{self.name}-{self.starts}"
        own.mkdir()
        instance_id = name if self.static else None
        self.members[name] = librdkafka(
            servers, self.name, name, self.topic, own, protocol=protocol, instance_id=instance_id
        )

    def supervise(self, servers: str, directory: Path) -> None:
        """Start again what ended unasked."""
        for name, member in list(self.members.items()):
            if member.exit_status is not None:
                self.start(servers, name, "consumer", directory)

    def is_assigned(self) -> bool:
        """Whether every member was given partitions, or may have been: three share six."""
        return all(member.is_assigned() for member in self.members.values())


def groups(chance: Random, count: int) -> Iterator[Group]:
    """As the table says."""
    for number in range(count):
        name, kind = f"group-{number:02}", number % 10
        names = [f"{name}-{member}" for member in range(chance.randint(2, 3))]
        lost = {1: names[-1:], 7: names[-1:], _OTHERS_LOST: names[1:], _ALL_LOST: names}.get(kind, [])
        yield Group(
            name=name, topic=chance.choice(sorted(TOPICS)), static=number // 2 % 2 == 0, names=names, lost=set(lost)
        )


def main() -> int:
    """Run; returns 1 where what was lost is not what is said."""
    parser = argparse.ArgumentParser(prog="make soak-hurried", description=__doc__)
    parser.add_argument("--groups", type=int, default=GROUPS)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="hurried-") as made, ExitStack() as stack:
        directory = Path(made)
        broker = stack.enter_context(EmbeddedBroker(directory / "broker"))
        servers = broker.bootstrap_servers
        create_topics(servers, TOPICS)
        monitor = stack.enter_context(MonitorProcess(directory / "run", servers, state=directory / "state"))
        monitor.await_ready(_JOIN_SECONDS)
        found = list(groups(Random(options.seed), options.groups))
        stack.callback(_end, found)
        for group in found:
            for name in group.names:
                group.start(servers, name, "classic", directory)
        for group in found:
            until(group.is_assigned, _JOIN_SECONDS, f"{group.name} was never given partitions")
        _say(f"{len(found)} groups of {sum(len(group.names) for group in found)} members are at work")
        for group in found:
            _hurry(group, servers, directory, monitor)
        _say(f"all were killed, and started again but for {sum(len(group.lost) for group in found)} members")
        deadline = time.monotonic() + RESTART_MS / 1000 + _SESSIONS_SECONDS
        while time.monotonic() < deadline:
            for group in found:
                group.supervise(servers, directory)
            time.sleep(_SUPERVISED_EVERY_SECONDS)
        return _verdict(found, monitor)


def _hurry(group: Group, servers: str, directory: Path, monitor: MonitorProcess) -> None:
    """Kill all, and start again those that come back."""
    for member in group.members.values():
        member.kill()
    group.members.clear()
    for name in group.names:
        if name not in group.lost:
            group.start(servers, name, "consumer", directory)
    if group.lost == {*group.names}:
        # A roll is one only from the first member of the other protocol on.
        first = group.names[0]
        group.start(servers, first, "consumer", directory)

        def has_converted() -> bool:
            group.supervise(servers, directory)
            # So soon after so many have joined, the monitor may not have come to it yet.
            return bool(monitor.json(f"/api/v1/groups/{group.name}").get("type") == "consumer")

        until(has_converted, _SESSIONS_SECONDS, f"{group.name} was never converted")
        group.members.pop(first).kill()


def _verdict(found: list[Group], monitor: MonitorProcess) -> int:
    said = {group.name: _missing(monitor.events(group=group.name)) for group in found}
    plan = {each["group"]: each for each in monitor.json("/api/v1/plan")["groups"]}
    gate = monitor.json("/api/v1/gate/upgrade")
    closed = {reason["group"] for reason in gate["reasons"] if reason["code"] == KIND}
    wrong = []
    _say("\n| group | members | lost | said to be missing | plan | |\n|---|---|---|---|---|---|")
    for group in found:
        named = said[group.name]
        planned = plan[group.name]
        codes = {reason["code"] for reason in planned["reasons"]}
        right = named == group.lost and bool(group.lost) == (KIND in codes) == (group.name in closed)
        if not right:
            wrong.append(group.name)
        if group.lost or not right:
            cells = (group.name, len(group.names), _list(group.lost), _list(named), planned["readiness"])
            _say(f"| {' | '.join(map(str, cells))} | {'ok' if right else 'WRONG'} |")
    losing = sum(bool(group.lost) for group in found)
    _say(f"\n{len(found)} groups, {losing} of them lost members; {len(wrong)} not said as it is")
    return int(bool(wrong) or not losing)


def _missing(events: list[dict[str, Any]]) -> set[str]:
    """Client ids of the members of a group that are missing, by the last word of it; nothing where that is over."""
    last: dict[str, Any] = {"cleared": True}
    for event in events:
        if event["kind"] == KIND:
            last = event["detail"]
    return set() if last.get("cleared") else {of["client_id"] for of in last["missing_members"]}


def _list(names: set[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _end(found: list[Group]) -> None:
    for group in found:
        for member in group.members.values():
            member.kill()


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

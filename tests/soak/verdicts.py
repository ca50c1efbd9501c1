"""`make soak-verdicts MINUTES=60`: fifty real groups, rolled one after another, and no alarm in all that time.

Members are librdkafka's, two or three a group, on both protocols, dynamic and static, eager and cooperative. All that
happens is lawful: records arrive, offsets are committed, each group is rolled every eleven minutes, and every other
eager group goes over to the consumer protocol with its first roll. What is more than information is a false alarm.
"""

import argparse
import os
import sys
import tempfile
import threading
import time
from collections import Counter
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from dataclasses import dataclass, field
from pathlib import Path
from random import Random
from typing import Any, Final

from confluent_kafka import Producer

from lab.monitor_process import MonitorProcess
from streaming.demo.embedded_broker import EmbeddedBroker
from streaming.demo.verifiable_consumer import Protocol, create_topics
from tests.in_process_members import InProcessMember

GROUPS: Final = 50
TOPICS: Final = {f"topic-{number}": 6 for number in range(10)}
ROLLED_EVERY_SECONDS: Final = 660.0
"""Longer than take-overs of one instance id may be apart to be one run of them."""

BY_DESIGN: Final = frozenset({"static_member_absent", "upgrade_blocked"})
"""A static member on the consumer protocol that is restarted says that it will be back. The cooperative assignor of
librdkafka gives user data, so that brokers do refuse to upgrade such groups: they stay on the classic protocol here."""

ROUNDS_LOST: Final = 5
"""A member that joins late costs a round, which is a fact. So many of one group may be lost: the limit of its alert."""

LOOK_SECONDS: Final = 5.0
RECORDS_A_SECOND: Final = 20


@dataclass
class Group:
    """A group and its members."""

    name: str
    topic: str
    protocol: Protocol
    assignor: str
    static: bool
    upgrades: bool
    members: list[InProcessMember] = field(default_factory=list)
    rolls: int = 0

    def member(self, servers: str, number: int) -> InProcessMember:
        """One more of them, on the group's protocol now."""
        name = f"{self.name}-{number}"
        return InProcessMember(
            servers,
            self.name,
            self.topic,
            protocol=self.protocol,
            instance_id=name if self.static else None,
            client_id=name,
            assignor=self.assignor if self.protocol == "classic" else None,
        )

    def roll(self, servers: str, chance: Random) -> None:
        """Restart one member after the other; an upgrade does so on the other protocol."""
        if self.upgrades:
            self.protocol = "consumer"
        for number, member in enumerate(self.members):
            member.close()
            time.sleep(chance.uniform(0.2, 2.0))
            self.members[number] = self.member(servers, number)
            time.sleep(chance.uniform(0.5, 2.0))
        self.rolls += 1


def groups(chance: Random, count: int) -> Iterator[Group]:
    """Of each kind about as many."""
    for number in range(count):
        classic = number % 2 == 0
        yield Group(
            name=f"group-{number:02}",
            topic=chance.choice(sorted(TOPICS)),
            protocol="classic" if classic else "consumer",
            assignor=("range", "cooperative-sticky")[number // 2 % 2],
            static=number // 4 % 2 == 0,
            upgrades=classic and number % 4 == 0 and number % 16 >= 8,
        )


def main() -> int:
    """Run; returns 1 where there was an alarm, or nothing was monitored."""
    parser = argparse.ArgumentParser(prog="make soak-verdicts", description=__doc__)
    parser.add_argument("--minutes", type=float, default=60.0)
    parser.add_argument("--groups", type=int, default=GROUPS)
    parser.add_argument("--seed", type=int, default=1)
    options = parser.parse_args()
    chance = Random(options.seed)
    with tempfile.TemporaryDirectory(prefix="soak-") as made, ExitStack() as stack:
        broker = stack.enter_context(EmbeddedBroker(Path(made) / "broker"))
        servers = broker.bootstrap_servers
        create_topics(servers, TOPICS)
        monitor = stack.enter_context(MonitorProcess(Path(made) / "run", servers, state=Path(made) / "state"))
        monitor.await_ready(300)
        found = list(groups(chance, options.groups))
        for group in found:
            group.members = [group.member(servers, number) for number in range(chance.randint(2, 3))]
            time.sleep(0.3)
        events = _played(monitor, found, servers, 60 * options.minutes, chance)
        shown = monitor.groups()
        for group in found:
            for member in group.members:
                member.close()
    return _verdict(found, events, shown)


def _played(
    monitor: MonitorProcess, found: list[Group], servers: str, seconds: float, chance: Random
) -> dict[str, dict[str, Any]]:
    """Roll group after group, and look at the events meanwhile; returns them by id."""
    events: dict[str, dict[str, Any]] = {}
    producer, started = Producer({"bootstrap.servers": servers, "log_level": 2}), time.monotonic()
    stopping = threading.Event()

    def look() -> None:
        while not stopping.wait(LOOK_SECONDS):
            for topic in TOPICS:
                for _ in range(int(RECORDS_A_SECOND * LOOK_SECONDS / len(TOPICS))):
                    producer.produce(topic, b"x")
            producer.flush(LOOK_SECONDS)
            with suppress(OSError):
                for event in monitor.events():
                    key = f"{event['group']} {event['kind']} {event['partition']} {event['offset']} {event['detail']}"
                    if key not in events and _is_alarm(event):
                        _say(f"{event['time']} {event['kind']} {event['group']} {event['detail']}")
                    events[key] = event

    looking = threading.Thread(target=look, daemon=True)
    looking.start()
    turn = 0
    while time.monotonic() - started < seconds:
        group = found[turn % len(found)]
        due = started + turn * ROLLED_EVERY_SECONDS / len(found)
        if due - started > seconds:
            break
        time.sleep(max(0.0, due - time.monotonic()))
        group.roll(servers, chance)
        turn += 1
        if turn % 10 == 0:
            _say(f"{(time.monotonic() - started) / 60:.1f} min: {turn} rolls, {len(events)} events")
    time.sleep(max(0.0, started + seconds - time.monotonic()))
    stopping.set()
    looking.join()
    return events


def _is_alarm(event: dict[str, Any]) -> bool:
    return event["severity"] != "info" and event["kind"] not in BY_DESIGN


def _verdict(found: list[Group], events: dict[str, dict[str, Any]], shown: dict[str, Any]) -> int:
    kinds = Counter((event["kind"], event["severity"]) for event in events.values())
    _say("\n| kind | severity | events |\n|---|---|---|")
    for (kind, severity), count in sorted(kinds.items()):
        _say(f"| {kind} | {severity} | {count} |")
    alarms = [of for of in events.values() if _is_alarm(of) and of["kind"] != "rebalance_rounds_lost"]
    lost = Counter(of["group"] for of in events.values() if of["kind"] == "rebalance_rounds_lost")
    alarms += [
        of for of in events.values() if lost[of["group"]] > ROUNDS_LOST and of["kind"] == "rebalance_rounds_lost"
    ]
    missing = [group.name for group in found if group.name not in shown]
    rolls = sum(group.rolls for group in found)
    _say(f"\n{len(found)} groups, {rolls} rolls, {len(events)} events, {len(alarms)} alarms; {len(missing)} not shown")
    _say(f"load average at the end {os.getloadavg()[0]:.1f}")
    return int(bool(alarms or missing or not rolls))


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

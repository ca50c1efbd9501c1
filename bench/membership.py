"""Members that come and go: how soon it is reported, and what twenty thousand rebalances at once are.

The records are those by which a coordinator makes members join and leave; they go the way of all others, so the figure
has the whole job in it but not the time that a member itself takes to be let in.
"""

import json
import threading
import time
from collections.abc import Iterator
from contextlib import suppress
from itertools import cycle
from typing import Any, Final
from urllib.request import urlopen

from bench import log, truth, writer
from bench.figures import Outcome, percentile
from bench.log import LogRecord
from bench.process_tree import Meter
from bench.stage import Log, Monitored, Stage
from bench.writer import Trickle
from coordinator_model.state.shards import offsets_partition
from lab import builders, coordinator_events
from lab.builders import RecordBytes

_POLL_SECONDS: Final = 0.02
_REPORTED_SECONDS: Final = 30.0
_SETTLED_SECONDS: Final = 120.0
_LOOK_EVERY_SECONDS: Final = 0.25
_DATA: Final = b"data: "

Change = tuple[str, str, str]
"""(kind of event, group, member id)"""


def events(stage: Stage, size: dict[str, Any]) -> Outcome:
    """While `rate` commits a second go to `groups` groups, a member joins and one leaves `changes` times a second."""
    outcome = Outcome(size)
    read = stage.log(log.Plan.of(size["groups"], rounds=2))
    monitor = stage.running(read)
    commits = read.commits(size["groups"])
    with Trickle(stage.broker.bootstrap_servers, read.topic, commits, read.expected, size["rate"]):
        time.sleep(size["warm"])
        reported = _Reported(monitor)
        reported.listen()
        asked = _change(stage, read, size)
        deadline = time.monotonic() + _REPORTED_SECONDS
        while asked.keys() - reported.at.keys() and time.monotonic() < deadline:
            time.sleep(_POLL_SECONDS)
    missing = asked.keys() - reported.at.keys()
    if missing:
        raise truth.WrongResult(f"{len(missing)} of {len(asked)} events were not reported, {min(missing)} is one")
    for kind in ("member_joined", "member_left"):
        waits = [reported.at[change] - sent for change, sent in asked.items() if change[0] == kind]
        outcome.add(f"{kind}_p50_seconds", "s", percentile(waits, 0.5))
        outcome.add(f"{kind}_p99_seconds", "s", percentile(waits, 0.99))
    waits = [reported.at[change] - sent for change, sent in asked.items()]
    outcome.add("events", "events", len(waits))
    outcome.add("p50_seconds", "s", percentile(waits, 0.5))
    outcome.add("p99_seconds", "s", percentile(waits, 0.99))
    monitor.require(read)
    return outcome


def storm(stage: Stage, size: dict[str, Any]) -> Outcome:
    """All of `groups` groups go through a rebalance at once, `repeats` times: seconds until the last one is settled."""
    outcome = Outcome(size)
    plan = log.Plan(
        classic_groups=size["groups"] // 2,
        consumer_groups=size["groups"] // 2,
        simple_groups=0,
        topics=log.Plan.topics_for(size["groups"]),
        rounds=1,
    )
    read = stage.log(plan)
    monitor = stage.running(read)
    for _ in range(size["repeats"]):
        records = list(log.rebalances(plan, read.expected, int(time.time() * 1000), read.topic_ids))
        # The log of a partition is replayed in its order: when its last group is settled, all are.
        waiting = set({offsets_partition(name, log.OFFSETS_PARTITIONS): name for name in plan.names}.values())
        meter, begun = Meter(monitor.tree), time.monotonic()
        writer.write(stage.broker.bootstrap_servers, ((read.topic, record) for record in records))
        outcome.add("write_seconds", "s", time.monotonic() - begun, reference=True)
        deadline = begun + _SETTLED_SECONDS
        while waiting and time.monotonic() < deadline:
            waiting = {name for name in waiting if not _settled(monitor, name, read.expected.groups[name].epoch)}
            time.sleep(_LOOK_EVERY_SECONDS if waiting else 0)
        if waiting:
            raise truth.WrongResult(f"{len(waiting)} groups are not settled, {min(waiting)} is one")
        outcome.add("settled_seconds", "s", time.monotonic() - begun)
        used = meter.read()
        outcome.add("cpu_seconds", "s", used["cpu_seconds"])
        outcome.add("others_share", "1", used["others_share"])
        outcome.add("records", "records", len(records))
        monitor.require(read)
    return outcome


class _Reported:
    """Events as a listener gets them, with the time at which they arrived."""

    def __init__(self, monitor: Monitored) -> None:
        self._url = f"{monitor.url}/api/v1/events/stream"
        self.at: dict[Change, float] = {}
        self._listens = threading.Event()
        self._thread = threading.Thread(target=self._run, name="events", daemon=True)

    def listen(self) -> None:
        """Begin, and return when the stream has; it ends with the monitor, and the thread with it."""
        self._thread.start()
        if not self._listens.wait(_REPORTED_SECONDS):
            raise truth.WrongResult(f"{self._url}: nothing was sent within {_REPORTED_SECONDS:g} s")

    def _run(self) -> None:
        # Longer than the stream is ever silent.
        with suppress(OSError), urlopen(self._url, timeout=_REPORTED_SECONDS) as stream:  # noqa: S310 - our own address
            for line in stream:
                now = time.time()
                self._listens.set()
                if line.startswith(_DATA):
                    event = json.loads(line.removeprefix(_DATA))
                    if event["kind"] in ("member_joined", "member_left"):
                        self.at.setdefault((event["kind"], event["group"], event["detail"]["member_id"]), now)


class Guests:
    """Members that come to the consumer groups in turn, each staying until its group's next turn."""

    def __init__(self, read: Log) -> None:
        self._read = read
        self._turns = cycle([name for name in read.plan.names if name.startswith("consumer")])
        self._staying: dict[str, str] = {}
        self._count = 0

    def next(self) -> tuple[Change, list[LogRecord]]:
        """The next one that comes or goes, with its records; what is expected is kept up."""
        name = next(self._turns)
        group, guest = self._read.expected.groups[name], self._staying.pop(name, None)
        group.epoch += 1
        if guest is None:
            self._count += 1
            guest = self._staying[name] = f"{name}-guest-{self._count}"
            group.members += 1
            change, records = ("member_joined", name, guest), _joins(self._read, name, guest)
        else:
            group.members -= 1
            change, records = ("member_left", name, guest), _leaves(self._read, name, guest)
        now_ms, shard = int(time.time() * 1000), offsets_partition(name, log.OFFSETS_PARTITIONS)
        made = [LogRecord(shard, now_ms, key, value) for key, value in records]
        self._read.expected.records += len(made)
        return change, made


def _change(stage: Stage, read: Log, size: dict[str, Any]) -> dict[Change, float]:
    """Let a member come or go `changes` times a second for `seconds`; when each was sent."""
    to_log, guests = writer.Writer(stage.broker.bootstrap_servers), Guests(read)
    sent: dict[Change, float] = {}
    begun = time.monotonic()
    while time.monotonic() < begun + size["seconds"]:
        change, records = guests.next()
        sent[change] = time.time()
        to_log.write((read.topic, record) for record in records)
        time.sleep(max(0.0, begun + len(sent) / size["changes"] - time.monotonic()))
    return sent


def _joins(read: Log, name: str, guest: str) -> Iterator[RecordBytes]:
    """A member comes to whom nothing is left to give: the others keep what they have."""
    epoch = read.expected.groups[name].epoch
    yield builders.consumer_group_member_subscription(name, guest, topics=(read.plan.topic(name),))
    yield from coordinator_events.consumer_join(name, guest, epoch=epoch, targets={guest: {}})[1:]
    yield from _follow(read, name, epoch)


def _leaves(read: Log, name: str, guest: str) -> Iterator[RecordBytes]:
    epoch = read.expected.groups[name].epoch
    yield from coordinator_events.consumer_leave(name, guest, epoch=epoch)
    yield builders.consumer_group_target_assignment_epoch(name, epoch)
    yield from _follow(read, name, epoch)


def _follow(read: Log, name: str, epoch: int) -> Iterator[RecordBytes]:
    """The members that stay move on to the epoch."""
    topic = read.plan.topic(name)
    for member_id, share in log.assignments(read.plan, name, topic).items():
        for record in coordinator_events.consumer_moves(
            name, member_id, epoch=epoch, previous_epoch=epoch - 1, assigned=share
        ):
            yield log.of_topic(record, topic, read.topic_ids)


def _settled(monitor: Monitored, name: str, epoch: int) -> bool:
    group = monitor.json(f"/api/v1/groups/{name}")
    return bool(group["epoch"] == epoch and group["state"] == "Stable")

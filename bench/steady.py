"""Commits at an even rate: how soon they are seen, what a micro-batch of them costs, and what it costs without any.

For the latency, commits go to the log, a thousand a second over two hundred groups; `/metrics` is read again and again,
as a Prometheus in a hurry would. A commit counts as visible when the first page that holds its offset, or a later one
of the same partition, has arrived: the wait for the next page, and its making, are part of the figure. Beside it
stands how long the producer itself waited for the broker's acknowledgement.
"""

import time
from collections.abc import Mapping
from typing import Any, Final

from bench import log, truth
from bench.figures import Outcome, percentile
from bench.process_tree import Meter
from bench.stage import Monitored, Stage
from bench.writer import Trickle

READ_EVERY_SECONDS: Final = 0.1
"""Between the ends and beginnings of two pages."""

_ALL_SEEN_SECONDS: Final = 30.0


def latency(stage: Stage, size: dict[str, Any]) -> Outcome:
    """Commit `rate` times a second over `groups` groups, for `seconds` after `warm` ones."""
    outcome = Outcome(size)
    read = stage.log(log.Plan.of(size["groups"], rounds=2))
    monitor = stage.running(read)
    commits = read.commits(size["groups"])
    with Trickle(stage.broker.bootstrap_servers, read.topic, commits, read.expected, size["rate"]) as trickle:
        time.sleep(size["warm"])
        pages = _Pages(monitor, trickle)
        pages.read()
        pages.forget()
        acknowledged = len(trickle.ack_seconds)
        batches = len(monitor.progress())
        meter = Meter(monitor.tree)
        until = time.monotonic() + size["seconds"]
        while time.monotonic() < until:
            pages.read()
            time.sleep(READ_EVERY_SECONDS)
        used = meter.read()
        reports = monitor.batches_since(batches)
        trickle.paused.set()
        deadline = time.monotonic() + _ALL_SEEN_SECONDS
        while pages.unseen() and time.monotonic() < deadline:
            pages.read()
            time.sleep(READ_EVERY_SECONDS)
    if pages.unseen():
        raise truth.WrongResult(f"/metrics: {pages.unseen()} commits were never seen")
    outcome.add("commits", "commits", len(pages.waits))
    outcome.add("p50_seconds", "s", percentile(pages.waits, 0.5))
    outcome.add("p99_seconds", "s", percentile(pages.waits, 0.99))
    outcome.add("page_seconds", "s", *pages.page_seconds)
    acks = trickle.ack_seconds[acknowledged:]
    outcome.add("ack_p50_seconds", "s", percentile(acks, 0.5), reference=True)
    outcome.add("ack_p99_seconds", "s", percentile(acks, 0.99), reference=True)
    add_batches(outcome, reports, used)
    monitor.require(read)
    return outcome


def add_batches(outcome: Outcome, reports: list[dict[str, Any]], used: Mapping[str, float]) -> None:
    """What micro-batches took, from Spark's own reports, and the processor time meanwhile."""
    durations = [report["batchDuration"] / 1000 for report in reports]
    outcome.add("batch_p50_seconds", "s", percentile(durations, 0.5))
    outcome.add("batch_p99_seconds", "s", percentile(durations, 0.99))
    outcome.add("batches", "batches", len(durations))
    outcome.add("cpu_seconds_a_batch", "s", used["cpu_seconds"] / len(durations))
    outcome.add("cpu_share", "1", used["cpu_seconds"] / used["wall_seconds"])
    outcome.add("others_share", "1", used["others_share"])


def batch_cost(stage: Stage, size: dict[str, Any]) -> Outcome:
    """With `groups` groups in state, commit `rate` times a second over `active` of them, for `seconds` after `warm`."""
    outcome = Outcome(size)
    read = stage.log(log.Plan.of(size["groups"], rounds=2))
    monitor = stage.running(read)
    commits = read.commits(size["active"])
    with Trickle(stage.broker.bootstrap_servers, read.topic, commits, read.expected, size["rate"]) as trickle:
        time.sleep(size["warm"])
        batches = len(monitor.progress())
        meter = Meter(monitor.tree)
        begun, sent = time.monotonic(), trickle.count
        time.sleep(size["seconds"])
        used = meter.read()
        reports = monitor.batches_since(batches)
        rate = (trickle.count - sent) / (time.monotonic() - begun)
    outcome.add("commits_per_second", "commits/s", rate)
    add_batches(outcome, reports, used)
    monitor.require(read)
    return outcome


def wide_group(stage: Stage, size: dict[str, Any]) -> Outcome:
    """Commit to one partition after the other, `rate` a second: of a group of `narrow` partitions, then of `wide`.

    The topic of the wide group is not there, so there is no lag of it: ten thousand partitions are more than a small
    broker makes in a minute.
    """
    outcome = Outcome(size)
    plan = log.Plan(
        classic_groups=1,
        consumer_groups=0,
        simple_groups=0,
        wide_groups=1,
        partitions=size["narrow"],
        wide_partitions=size["wide"],
        topics=1,
        rounds=1,
    )
    read = stage.log(plan)
    monitor = stage.running(read)
    for name, kind in (("wide-000000", "warm"), ("classic-000000", "narrow"), ("wide-000000", "wide")):
        commits = read.commits_of(name)
        with Trickle(stage.broker.bootstrap_servers, read.topic, commits, read.expected, size["rate"]):
            batches, meter = len(monitor.progress()), Meter(monitor.tree)
            time.sleep(size["warm"] if kind == "warm" else size["seconds"])
            used, reports = meter.read(), monitor.batches_since(batches)
        if kind == "warm":
            continue
        durations = [report["batchDuration"] / 1000 for report in reports]
        outcome.add(f"{kind}_p50_seconds", "s", percentile(durations, 0.5), reference=kind == "narrow")
        outcome.add(f"{kind}_p99_seconds", "s", percentile(durations, 0.99), reference=kind == "narrow")
        outcome.add(f"{kind}_cpu_seconds_a_batch", "s", used["cpu_seconds"] / len(reports), reference=kind == "narrow")
        outcome.add("others_share", "1", used["others_share"])
    outcome.add("times_narrow", "1", outcome.median("wide_p50_seconds") / outcome.median("narrow_p50_seconds"))
    monitor.require(read)
    return outcome


def idle(stage: Stage, size: dict[str, Any]) -> Outcome:
    """`groups` groups, none of which does anything for `seconds` after `warm` ones: the share of one core."""
    outcome = Outcome(size)
    read = stage.log(log.Plan.of(size["groups"], rounds=2))
    monitor = stage.running(read)
    monitor.require(read)
    time.sleep(size["warm"])
    meter = Meter(monitor.tree)
    batches = len(monitor.progress())
    time.sleep(size["seconds"])
    used = meter.read()
    outcome.add("core_share", "1", used["cpu_seconds"] / used["wall_seconds"])
    outcome.add("others_share", "1", used["others_share"])
    outcome.add("batches", "batches", len(monitor.progress()) - batches)
    return outcome


class _Pages:
    """What was seen on pages of /metrics, and when.

    Attributes:
        waits: seconds from each commit to the page that showed it.
        page_seconds: how long each page took.
    """

    def __init__(self, monitor: Monitored, trickle: Trickle) -> None:
        self._monitor, self._trickle = monitor, trickle
        self._seen: dict[tuple[str, int], int] = {}
        self.waits: list[float] = []
        self.page_seconds: list[float] = []

    def read(self) -> None:
        """Take one page."""
        begun = time.monotonic()
        _, page = self._monitor.get("/metrics")
        arrived = time.time()
        self.page_seconds.append(time.monotonic() - begun)
        for _, labels, value in truth.samples(page, (truth.OFFSET,)):
            place = (labels["group"], int(labels["partition"]))
            if place not in self._trickle.first:
                continue
            first, sent = self._trickle.first[place], self._trickle.sent[place]
            for offset in range(max(self._seen.get(place, 0) + 1, first), int(value) + 1):
                self.waits.append(arrived - sent[offset - first])
            self._seen[place] = int(value)

    def forget(self) -> None:
        """Count what was seen so far for nothing."""
        self.waits.clear()
        self.page_seconds.clear()

    def unseen(self) -> int:
        """How many commits were sent and not seen yet."""
        first, sent = self._trickle.first, self._trickle.sent
        return sum(max(0, first[at] + len(sent[at]) - 1 - self._seen.get(at, 0)) for at in first)

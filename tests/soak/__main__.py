"""`make soak MINUTES=30 RATE=10000`: prints a table of memory and latency, fails where something was lost or grows."""

import argparse
import os
import sys
import tempfile
import time
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from typing import Final

from kafka import KafkaConsumer, TopicPartition

from lab.monitor_process import MonitorProcess, until
from streaming.demo.embedded_broker import EmbeddedBroker
from streaming.demo.verifiable_consumer import create_topics
from tests.soak import report
from tests.soak.commits import PARTITIONS, TOPIC, Load
from tests.soak.report import Counts
from tests.soak.samples import Sample, Sampler

OFFSETS: Final = "__consumer_offsets"
EVERY_SECONDS: Final = 10.0
CATCH_UP_SECONDS: Final = 120.0


def main() -> int:
    """Run; returns 1 where something was lost, is wrong or grows."""
    parser = argparse.ArgumentParser(prog="make soak", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--rate", type=float, default=10_000.0, help="commits a second")
    parser.add_argument("--write", action="store_true", help="keep the run in tests/soak/results.json, for the docs")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak-") as made, ExitStack() as stack:
        directory = Path(made)
        broker = stack.enter_context(EmbeddedBroker(directory / "broker"))
        create_topics(broker.bootstrap_servers, {TOPIC: PARTITIONS})
        monitor = stack.enter_context(
            MonitorProcess(directory / "run", broker.bootstrap_servers, state=directory / "state")
        )
        monitor.await_ready()
        load = Load(broker.bootstrap_servers, options.rate)
        # The first micro-batch of a JVM takes many times what later ones take: it is no part of a steady load.
        load.commit_once()
        until(lambda: _counted(monitor) >= load.acknowledged, CATCH_UP_SECONDS, "no micro-batch was finished")
        samples: list[Sample] = []
        before = load.acknowledged
        with load:
            for sample in _looks(monitor, load, 60 * options.minutes):
                samples.append(sample)
                _say(_row(sample, samples[-2] if len(samples) > 1 else None, before))
        _catch_up(monitor, load)
        counts = _counts(broker.bootstrap_servers, monitor, load)
        problems = list(_problems(monitor, load, counts))
    if options.write:
        report.save(samples, options.rate, counts, problems)
    return _verdict(samples, options.rate, counts, problems)


def _looks(monitor: MonitorProcess, load: Load, seconds: float) -> Iterator[Sample]:
    sampler, started = Sampler.of(monitor), time.monotonic()
    sampler.look(0.0, load.acknowledged)
    _say("| minute | commits/s | driver MiB | JVM MiB | workers MiB | latency p50 s | p95 s | batch s | lag records |")
    _say("|---|---|---|---|---|---|---|---|---|")
    # A last look after a moment would show a latency of nothing.
    while seconds - (time.monotonic() - started) > EVERY_SECONDS / 2:
        time.sleep(EVERY_SECONDS)
        yield sampler.look((time.monotonic() - started) / 60, load.acknowledged)


def _row(sample: Sample, last: Sample | None, at_start: int) -> str:
    minutes, commits = (last.minute, last.acknowledged) if last is not None else (0.0, at_start)
    rate = (sample.acknowledged - commits) / (60 * (sample.minute - minutes))
    memory = f"{sample.driver_mib:.0f} | {sample.jvm_mib:.0f} | {sample.workers_mib:.0f}"
    latency = f"{sample.latency_p50:.2f} | {sample.latency_p95:.2f} | {sample.batch_seconds:.2f}"
    return f"| {sample.minute:.1f} | {rate:,.0f} | {memory} | {latency} | {sample.lag_records:,.0f} |"


def _catch_up(monitor: MonitorProcess, load: Load) -> None:
    """Give the monitor its time; what it does not get to shows in the counts."""
    with suppress(AssertionError):
        until(lambda: _counted(monitor) >= load.acknowledged, CATCH_UP_SECONDS, "")


def _counts(servers: str, monitor: MonitorProcess, load: Load) -> Counts:
    consumer = KafkaConsumer(bootstrap_servers=servers)
    places = [TopicPartition(OFFSETS, partition) for partition in consumer.partitions_for_topic(OFFSETS) or ()]
    ends = sum(consumer.end_offsets(places).values())
    consumer.close()
    counts = Counts(acknowledged=load.acknowledged, in_log=ends, counted=int(_counted(monitor)))
    _say(f"\nacknowledged {counts.acknowledged:,} · in the broker's log {counts.in_log:,} · counted {counts.counted:,}")
    return counts


def _problems(monitor: MonitorProcess, load: Load, counts: Counts) -> Iterator[str]:
    """What differs between producer, broker and monitor, once the monitor has had its time."""
    if not counts.agree:
        yield "producer, broker and monitor count differently"
    for name, group in monitor.groups().items():
        truth = load.committed[name]
        wrong = [of for of in group["offsets"] if of["offset"] != truth.offset(of["partition"])]
        if wrong or len(group["offsets"]) != PARTITIONS:
            yield f"{name}: {len(group['offsets'])} offsets, {len(wrong)} of them wrong"
    missing = load.committed.keys() - monitor.groups().keys()
    if missing:
        yield f"groups missing: {len(missing)}"


def _counted(monitor: MonitorProcess) -> float:
    return sum(monitor.samples().get("kafka_group_commits_total", {}).values())


def _verdict(samples: list[Sample], asked: float, counts: Counts, problems: list[str]) -> int:
    grows = report.grown(samples)
    _say("\n| judged | mean | a minute | over the time judged |\n|---|---|---|---|")
    for of in grows:
        _say(f"| {of.what} | {of.mean:.2f} | {of.a_minute:+.3f} | {of.share:+.1%}{' grows' * of.is_too_much} |")
    rate = (samples[-1].acknowledged - samples[0].acknowledged) / 60 / (samples[-1].minute - samples[0].minute)
    _say(f"\n{rate:,.0f} commits/s of {asked:,.0f}; load average at the end {os.getloadavg()[0]:.1f}")
    for problem in problems:
        _say(f"lost: {problem}")
    return 1 if problems or not counts.agree or any(of.is_too_much for of in grows) else 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

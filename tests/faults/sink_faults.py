"""Faults behind the stream: what takes its events is slow, full or gone."""

import json
import os
import signal
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import pyarrow.parquet as pq

from lab.monitor_process import until
from streaming.config.kafka_sections import KafkaSection
from streaming.demo.embedded_broker import EmbeddedBroker
from streaming.demo.verifiable_consumer import create_topics
from streaming.history.store import HistoryStore
from streaming.history.tables import EVENTS
from streaming.kafka.client_settings import confluent_settings
from streaming.kafka.topic_reader import TopicReader
from streaming.sinks.kafka_sinks import EVENTS_SINK
from tests.faults.disk import SmallDisk
from tests.faults.reported import reported_in
from tests.faults.trial import Trial

TOPIC: Final = "events"
BEHIND_SECONDS: Final = 15.0
"""A sink that stands still is left alone until it is so far behind."""


def sink_brokers_away(trial: Trial) -> None:
    """The brokers of the events' topic stand still (`kill -STOP`), then are stopped and started, records arriving."""
    trial.disturbed.end(trial.monitor)
    sink = EmbeddedBroker(trial.directory / "sink-broker", offsets_partitions=1, heap="256m")
    trial.stack.enter_context(sink)
    create_topics(sink.bootstrap_servers, {TOPIC: 1})
    trial.disturbed.set(f"kafka_sink.events_topic={TOPIC}", f"kafka_sink.bootstrap_servers={sink.bootstrap_servers}")
    trial.restart()

    def stand_still() -> Callable[[], object]:
        assert sink.pid is not None
        process = sink.pid
        os.kill(process, signal.SIGSTOP)
        return lambda: os.kill(process, signal.SIGCONT)

    def go() -> Callable[[], object]:
        sink.stop()
        return sink.start

    for _ in range(trial.rounds):
        for fault in (stand_still, go):
            behind(trial, EVENTS_SINK, fault, 0.45 / trial.rounds)
    trial.log.write(*trial.events)
    trial.events = []
    trial.disturbed.await_reported()
    caught_up(trial, EVENTS_SINK)
    has_all(trial, in_topic(sink.bootstrap_servers))


def history_disk_away(trial: Trial) -> None:
    """The disk of the history is full to the last byte, then takes nothing any more, records arriving."""
    trial.disturbed.end(trial.monitor)
    disk = trial.stack.enter_context(SmallDisk(trial.directory / "history-disk"))
    assert disk.is_mounted, "no file system could be mounted"
    trial.disturbed.set("history.enabled=true", f"history.dir={disk.directory / 'history'}", "history.interval_ms=1000")
    # The records are of any day.
    trial.disturbed.set("history.retain_days=3650")
    trial.restart()

    def fill() -> Callable[[], object]:
        disk.fill()
        return disk.make_room

    def refuse() -> Callable[[], object]:
        disk.set_writable(False)
        return lambda: disk.set_writable(True)

    for _ in range(trial.rounds):
        for fault in (fill, refuse):
            behind(trial, "history", fault, 0.45 / trial.rounds)
    trial.log.write(*trial.events)
    trial.events = []
    trial.disturbed.await_reported()
    caught_up(trial, "history")
    has_all(trial, in_history(disk.directory / "history"))


def behind(trial: Trial, sink: str, fault: Callable[[], Callable[[], object]], share: float) -> None:
    """Do it, see that the stream goes on and that what is late is shown, and undo it."""
    undo = fault()
    try:
        with trial.writing(share):
            pass
        begun = time.monotonic()
        trial.disturbed.await_reported()
        trial.worst("longest time from a record to its being reported, s", time.monotonic() - begun)
        until(lambda: shown(trial, "waiting_seconds", sink) > BEHIND_SECONDS, 120, "nothing is shown to be late")
        assert shown(trial, "waiting", sink) > 0
        trial.worst("most that waited", shown(trial, "waiting", sink))
        assert 200 == trial.monitor.get("/ready")[0]
    finally:
        undo()
    begun = time.monotonic()
    caught_up(trial, sink)
    trial.worst("longest time until nothing waited any more, s", time.monotonic() - begun)
    trial.times += 1


def caught_up(trial: Trial, sink: str) -> None:
    """Wait until a sink has taken all there is."""
    until(lambda: 0 == shown(trial, "waiting", sink), 180, lambda: f"{shown(trial, 'waiting', sink)} wait for {sink}")
    assert 0 == shown(trial, "dropped_total", sink)


def shown(trial: Trial, what: str, sink: str) -> float:
    """A figure of a sink on /metrics."""
    samples = trial.monitor.samples()[f"group_monitor_sink_{what}"]
    (value,) = (value for labels, value in samples.items() if dict(labels)["sink"] == sink)
    return value


def has_all(trial: Trial, found: Iterator[dict[str, Any]]) -> None:
    """Every event that was reported is there, under its id and as it was; those that are there twice are counted."""
    reported = reported_in(trial.disturbed.reported_file).events
    times = Counter[str]()
    for event in found:
        times[event["id"]] += 1
        known = reported.get(event["id"])
        # What no batch brought is by the clock alone: inferred, or the end of an alarm that time brings.
        by_the_clock = event["inferred"] or "cleared" in _detail(event)
        assert by_the_clock if known is None else event["kind"] == known["kind"], event
    lost = reported.keys() - times.keys()
    assert not lost, f"{len(lost)} of {len(reported)} events never arrived"
    trial.figures["events that arrived"] = len(times)
    trial.figures["of these again under their id"] = sum(of > 1 for of in times.values())


def _detail(event: dict[str, Any]) -> dict[str, Any]:
    """Of an event as the topic has it, or the history, in which it is text."""
    detail = event["detail"]
    return dict(json.loads(detail) if isinstance(detail, str) else detail)


def in_topic(servers: str) -> Iterator[dict[str, Any]]:
    """Events that the topic holds."""
    reader = TopicReader(confluent_settings(KafkaSection(bootstrap_servers=servers), "test"), {TOPIC: None})
    try:
        while True:
            yield from (json.loads(value or b"null") for _, _, value in reader.poll())
            if reader.at_first_end:
                return
    finally:
        reader.close()


def in_history(directory: Path) -> Iterator[dict[str, Any]]:
    """Events that the history's files hold; looked at again where the monitor merged some meanwhile."""
    store = HistoryStore(directory)
    for day in store.days(EVENTS):
        while True:
            try:
                tables = [pq.read_table(file.path) for file in store.files(EVENTS, day)]
                break
            except FileNotFoundError:
                continue
        for table in tables:
            yield from table.to_pylist()

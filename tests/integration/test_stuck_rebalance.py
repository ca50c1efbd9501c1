"""A real classic rebalance that hangs: suspected by its silence, confirmed by its coordinator, reported once.

A running monitor that tells it while it lasts is in `test_verdicts.py`.
"""

import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest
from confluent_kafka import Producer

from streaming.board.board import Board
from streaming.config.kafka_sections import KafkaSection
from streaming.demo.embedded_broker import EmbeddedBroker
from streaming.demo.verifiable_consumer import create_topics
from streaming.end_offsets.client import KafkaOffsetsClient
from streaming.end_offsets.sampler import EndOffsetSampler
from streaming.end_offsets.store import EndOffsets
from streaming.kafka.client_settings import python_settings
from streaming.kafka.cluster_client import ClusterClient
from streaming.recording.recorder import LogRecorder
from streaming.watchers.hang_sampler import HangSampler
from streaming.watchers.lag_sampler import LagSampler
from streaming.watchers.overdue_watch import OverdueWatch
from tests.in_process_members import InProcessMember
from tests.integration.raw_member import RawMember
from tests.left_out import needs_kafka_jars
from tests.streaming.board_rows import Shard

pytestmark = [
    pytest.mark.broker,
    # kafka-python reads its message schemas by a function that Python 3.11 calls deprecated (and 3.13 no longer).
    pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning"),
    needs_kafka_jars,
]

PATIENCE_SECONDS: Final = 30
HASTE: Final = 20
"""How much faster the monitor's clock runs than the brokers', so that no one waits for a minute."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    directory: Path = tmp_path_factory.mktemp("broker")
    with EmbeddedBroker(directory, offsets_partitions=1, initial_rebalance_delay_ms=0) as running:
        create_topics(running.bootstrap_servers, {"orders": 1})
        yield running


class Clock:
    """A wall clock in a hurry."""

    def __init__(self) -> None:
        self._begun = time.time()

    def __call__(self) -> int:
        return int(1000 * (self._begun + HASTE * (time.time() - self._begun)))


def write(broker: EmbeddedBroker, count: int) -> None:
    producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
    for _ in range(count):
        producer.produce("orders", b"x", partition=0)
    producer.flush(10)


def board_of(kafka: KafkaSection, clock: Clock) -> Board:
    """A board that has read the log to its end, with lag beside it."""
    shard, recorder = Shard(), LogRecorder(kafka, [0])
    try:
        rows = shard.batch((record.timestamp_ms, record.key, record.value) for record in recorder.records())
    finally:
        recorder.close()
    board = Board(EndOffsets())
    board.load([])
    board.health.set_log_end_at_start({0: 1}, {0: 1})
    board.apply(0, rows, clock())
    board.health.set_positions({0: 1}, {0: 1}, 0)
    client = KafkaOffsetsClient(python_settings(kafka, "ends"))
    assert EndOffsetSampler(board.ends, lambda: client, board.wanted, clock_ms=clock).sample()
    client.close()
    assert board.health.ready()[0]
    return board


def test_rebalance_that_hangs_is_reported_once_and_healthy_groups_are_not(broker: EmbeddedBroker) -> None:
    """Its leader joined again and never gave an assignment: the coordinator waits for it, and writes nothing.

    A group that reads all there is looks as silent after a while, and is not even asked about; one that lags and is
    silent is, and is found Stable.
    """
    kafka = KafkaSection(bootstrap_servers=broker.bootstrap_servers)
    write(broker, 5)
    with (
        InProcessMember(broker.bootstrap_servers, "idle", "orders", protocol="classic"),
        RawMember(broker.bootstrap_servers, "hanging", "orders") as hanging,
        RawMember(broker.bootstrap_servers, "slow", "orders") as slow,
    ):
        for member in (hanging, slow):
            member.join(rebalance_timeout_ms=1_000)
            member.sync(0)
            member.commit(0, 1)
        hanging.join(rebalance_timeout_ms=50_000)
        deadline = time.monotonic() + PATIENCE_SECONDS
        clock = Clock()
        board = board_of(kafka, clock)
        while not all_committed(board, "idle", 5) and time.monotonic() < deadline:
            time.sleep(0.2)
            board = board_of(kafka, clock)
        asked: list[str] = []
        client = ClusterClient(python_settings(kafka, "suspects"))
        sampler = HangSampler(board, lambda: client, clock)
        lag = LagSampler(board.lag_history, lambda: board.shown.groups, board.ends, lambda: True, clock, sampler.look)
        watch = OverdueWatch(board, board.add_events, clock, lambda: sampler.answers)
        try:
            while not board.findings.overdue["rebalance_stuck"] and time.monotonic() < deadline:
                time.sleep(0.1)
                lag.sample()
                sampler.check()
                asked += sampler.answers
                watch.check()
            answers = sampler.answers
            for _ in range(10):
                time.sleep(0.1)
                lag.sample()
                sampler.check()
                watch.check()
        finally:
            sampler.stop()

    (event,) = (event for event in board.latest_events(99) if event["kind"] == "rebalance_stuck")
    assert ("hanging", "CompletingRebalance", "assignor") == (
        event["group"],
        event["detail"]["state"],
        event["detail"]["waiting_for"],
    )
    assert {"hanging", "slow"} == set(asked)
    assert ("Stable", 1) == (answers["slow"].state, answers["slow"].members)
    assert frozenset({"hanging"}) == board.findings.overdue["rebalance_stuck"]


def all_committed(board: Board, group: str, offset: int) -> bool:
    held = board.shown.groups.get(group)
    return held is not None and [offset] == [committed.offset for _, _, committed in held.offsets]

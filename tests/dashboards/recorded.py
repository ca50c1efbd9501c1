"""A recorded log behind the real exporter, scraped by a real Prometheus: for queries, without Spark or Kafka."""

import json
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from lab import builders
from streaming.base.output_status import SinkState
from streaming.board.board import Board
from streaming.config.sections import HttpSection
from streaming.end_offsets.store import EndOffsets, Topic
from streaming.metrics.exporter import Exporter
from streaming.recording.file_format import open_recording
from streaming.web.server import Server
from tests.dashboards.prometheus_tools import answer, running_prometheus
from tests.streaming.board_rows import Shard

RECORDING: Final = Path(__file__).resolve().parents[1] / "recordings" / "scenarios.ndjson"
CLUSTER: Final = "recorded"
OFFSETS_TOPIC: Final = "__consumer_offsets"
BLOCKED: Final = "connect"
TWICE: Final = "two-owners"
SCRAPES: Final = 4
PATIENCE_SECONDS: Final = 30.0
SINK: Final = SinkState(name="kafka-events", waiting=2, oldest_ms=0, dropped=0, delivered=5, failure="gone")


def recorded_board() -> Board:
    """The board after the recording, with log ends a little beyond the last commits and one record of each odd kind."""
    ends = EndOffsets()
    now_ms = time.time_ns() // 1_000_000
    shards: dict[int, Shard] = {}
    rows = []
    with open_recording(RECORDING) as recording:
        topics = [Topic(topic.id, topic.name, topic.partitions) for topic in recording.header.topics]
        for record in recording:
            shard = shards.setdefault(record.partition, Shard(record.partition))
            shard.pending.append((record.timestamp_ms, record.key, record.value))
    first = shards[min(shards)]
    blocked = builders.group_metadata(
        BLOCKED, generation=1, protocol_type="connect", members=[builders.member("worker", {})]
    )
    owners = [builders.member(name, {"orders": [0]}) for name in ("one", "two")]
    first.pending.append((now_ms, *builders.group_metadata(TWICE, generation=1, members=owners)))
    first.pending += [(now_ms, *blocked), (now_ms, bytes.fromhex("0012000178"), None), (now_ms, b"\x00\x03", None)]
    first.pending.append((now_ms, builders.legacy_offset_commit("x", "t", 0, 1)[0], b"\x00\x01"))
    for shard in shards.values():
        rows += shard.flush()
    ends.set_topics([*topics, Topic(builders.topic_id(OFFSETS_TOPIC), OFFSETS_TOPIC, 50)], [])
    places = [(topic.name, partition) for topic in topics for partition in range(topic.partitions)]
    log = [(OFFSETS_TOPIC, partition) for partition in shards]
    for age_ms, end in ((60_000, 0), (30_000, 10_000), (0, 20_000)):
        high = {**dict.fromkeys(places, end), **dict.fromkeys(log, 1000)}
        ends.record(now_ms - age_ms, high, high)
    ends.record_earliest(dict.fromkeys(places, 0))
    board = Board(ends)
    board.load([])
    board.health.set_log_end_at_start({}, {})
    board.health.set_unread({}, 50)
    at_end = dict.fromkeys(shards, 1000)
    board.health.set_positions(at_end, at_end, now_ms - 1)
    board.apply(0, rows, now_ms)
    board.health.observe_batch(0.3)
    board.health.show_history_size(lambda: 4_096)
    return board


@contextmanager
def scraped_recording(directory: Path, labels: Mapping[str, str] | None = None) -> Iterator[str]:
    """The address of a Prometheus that has scraped the monitor a few times; `labels` are those of the target."""
    board = recorded_board()
    board.health.show_sinks(lambda: [SINK])
    board.health.show_source_age(lambda: 0.0)
    server = Server.of(HttpSection(port=0), board, Exporter(board, CLUSTER))
    server.start()
    try:
        target = {"targets": [server.url.removeprefix("http://")], "labels": dict(labels or {})}
        scrape = {"job_name": "group-monitor", "scrape_interval": "1s", "static_configs": [target]}
        with running_prometheus(directory, json.dumps({"scrape_configs": [scrape]})) as address:
            until = time.monotonic() + PATIENCE_SECONDS
            while time.monotonic() < until and not answer(address, f"count_over_time(up[1m]) >= {SCRAPES}"):
                time.sleep(0.2)
            yield address
    finally:
        server.stop()

"""A real log, the real exporter, a real Prometheus: every signal has an answer, so no panel is empty by mistake."""

import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Final

import pytest

from dashboards.signals import SIGNALS
from streaming.board import Board
from streaming.config_sections import HttpSection
from streaming.exporter import Exporter
from streaming.log_ends import LogEnds, Topic
from streaming.recording import open_recording
from streaming.server import Server
from tests import builders
from tests.dashboards.prometheus_tools import answer, needs_prometheus, running_prometheus
from tests.streaming.board_rows import Shard

RECORDING: Final = Path(__file__).resolve().parents[1] / "recordings" / "scenarios.ndjson"
CLUSTER: Final = "recorded"
OFFSETS_TOPIC: Final = "__consumer_offsets"
BLOCKED: Final = "connect"
TWICE: Final = "two-owners"
SCRAPES: Final = 4
JUST_NOW: Final = "2s"
"""For what is compared with a time ago: Prometheus has scraped for as long."""
PATIENCE_SECONDS: Final = 30.0

# Signal → why a healthy monitor of the recorded log has no answer to it.
SILENT: Final[dict[str, str]] = {
    "downgrading": "no group is on its way back at the end of the recording",
    "firing_alerts": "no rules are loaded",
    "monitor_gone": "the monitor is there",
}


def recorded_board() -> Board:
    """The board after the recording, with log ends a little beyond the last commits and one record of each odd kind."""
    ends = LogEnds()
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
    board.set_log_end_at_start({}, {})
    at_end = dict.fromkeys(shards, 1000)
    board.set_positions(at_end, at_end, now_ms - 1)
    board.apply(0, rows, now_ms)
    board.observe_batch(0.3)
    return board


@pytest.fixture(scope="module")
def prometheus(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """A Prometheus that has scraped the monitor a few times."""
    board = recorded_board()
    server = Server.of(HttpSection(port=0), board, Exporter(board, CLUSTER))
    server.start()
    try:
        target = server.url.removeprefix("http://")
        scrape = {"job_name": "group-monitor", "scrape_interval": "1s", "static_configs": [{"targets": [target]}]}
        config = json.dumps({"scrape_configs": [scrape]})
        with running_prometheus(tmp_path_factory.mktemp("prometheus"), config) as address:
            until = time.monotonic() + PATIENCE_SECONDS
            while time.monotonic() < until and not answer(address, f"count_over_time(up[1m]) >= {SCRAPES}"):
                time.sleep(0.2)
            yield address
    finally:
        server.stop()


@needs_prometheus
@pytest.mark.parametrize("name", SIGNALS)
def test_signal_has_an_answer(name: str, prometheus: str) -> None:
    """What a signal asks of the recorded log is answered, with the labels it names and no others."""
    signal = SIGNALS[name]
    window = "1m" if "[WINDOW]" in signal.expr else JUST_NOW
    found = answer(prometheus, signal.promql(window=window if signal.windowed else None))

    assert (name in SILENT) == (not found), SILENT.get(name)
    for series in found:
        assert series["metric"].keys() <= set(signal.labels)
        assert CLUSTER == series["metric"].get("cluster")

"""A monitor without Spark for tests of its page: the real server over a board that takes the records it is given.

Groups on it: those of the real recording, and one of each kind that the recording has none of.
"""

import time
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Final, Self

from coordinator_model.gates.verdict import BrokerSettings
from coordinator_model.groups import streams
from coordinator_model.records.classic_group import MemberMetadata
from lab import builders
from lab import coordinator_events as happens
from lab.builders import RecordBytes
from streaming.base.expectations import Expectations
from streaming.base.name_filter import Scope
from streaming.board.board import Board
from streaming.config.sections import HttpSection
from streaming.end_offsets.store import EndOffsets, Topic
from streaming.history.queries import History
from streaming.metrics.exporter import Exporter
from streaming.recording.file_format import open_recording
from streaming.watchers.lag_sampler import LagSampler
from streaming.web.api_answers import BrokerAnswers
from streaming.web.server import Server
from tests.streaming.board_rows import Shard, ShareShard
from tests.streaming.boards import shares_read

RECORDING: Final = Path(__file__).resolve().parents[1] / "recordings" / "scenarios.ndjson"
CLUSTER: Final = "stage"
PARTITIONS: Final = 6
SECOND_MS: Final = 1_000

ROLLED: Final = "orders-service"
STABLE: Final = "billing"
SHARED: Final = "parcel-share"
STREAMS: Final = "revenue-streams"
TWICE: Final = "ledger"
CONNECT: Final = "connect-warehouse"

TWICE_TARGETS: Final = {"ledger-a": {"t": [0, 1, 2]}, "ledger-b": {"t": [3, 4, 5]}}

HOSTILE_NAMES: Final = (
    '"><img src=x onerror=alert(1)>',
    "<script>document.title='owned'</script>",
    "it's \"quoted\" & 'fine'",
    "line\nbreak\ttab\x1b[31mred\x00",
    "\u202egnp.exe right to left",
    "zero\u200bwidth\ufeff",
    "مجموعة العملاء",
    "..",
    "a/b?c=d#e%2F",
    "__proto__",
    " ",
    "x" * 1_000,
    "🦔" * 250,
)


def now_ms() -> int:
    return time.time_ns() // 1_000_000


class Stage:
    """A served board, at the end of the log or some records behind it, with a history if given; a context manager."""

    def __init__(
        self,
        port: int = 0,
        *,
        behind: int = 0,
        history: History | None = None,
        scope: Scope | None = None,
        expectations: Expectations | None = None,
    ) -> None:
        self._behind = behind
        self.ends = EndOffsets()
        self.board = Board(self.ends, scope=scope, expectations=expectations)
        brokers = BrokerAnswers(
            tuple,
            lambda: BrokerSettings(
                asked=True,
                consumer_protocol=True,
                migration_policy="bidirectional",
                consumer_max_size=1_000,
                classic_max_size=1_000,
            ),
        )
        exporter = Exporter(self.board, CLUSTER)
        self.server = Server.of(HttpSection(port=port), self.board, exporter, brokers, history=history)
        self.topics = {name: Topic(builders.topic_id(name), name, PARTITIONS) for name in ("t", "u")}
        self.log_end = 0
        self._shard, self._shares = Shard(), ShareShard()
        self._batch = 0
        self._sampled_ms = now_ms() - 60_000
        self._sampler = LagSampler(
            self.board.lag_history, lambda: self.board.shown.groups, self.ends, lambda: True, lambda: self._sampled_ms
        )

    def __enter__(self) -> Self:
        self.board.load([])
        self.board.health.set_log_end_at_start({0: self._behind}, {0: self._behind})
        self.catch_up_to(0)
        self.move_log_ends(10_000, now_ms() - 60 * SECOND_MS)
        self.move_log_ends(0)
        self.server.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.server.stop()

    @property
    def url(self) -> str:
        return self.server.url

    def catch_up_to(self, offset: int) -> None:
        """The readers come this far."""
        self.board.health.set_positions({0: offset}, {0: offset}, now_ms() - 1)

    def write(self, *records: RecordBytes, at_ms: int | None = None) -> None:
        """One micro-batch of records written now."""
        rows = self._shard.write(*records, timestamp_ms=now_ms() if at_ms is None else at_ms)
        self._batch += 1
        self.board.apply(self._batch, rows, now_ms())

    def write_shares(self, *records: RecordBytes) -> None:
        """The same of the share coordinator's log, which is read to its end."""
        shares_read(self.ends)
        rows = self._shares.write(*records, timestamp_ms=now_ms())
        self._batch += 1
        self.board.apply(self._batch, rows, now_ms())

    def move_log_ends(self, by: int, at_ms: int | None = None) -> None:
        """Records are produced to every partition of every topic."""
        self.log_end += by
        self.ends.set_topics(self.topics.values(), [])
        high = {
            (topic.name, partition): self.log_end
            for topic in self.topics.values()
            for partition in range(topic.partitions)
        }
        self.ends.record(now_ms() if at_ms is None else at_ms, high, high)
        self.ends.record_earliest(dict.fromkeys(high, 0))

    def sample_lag(self) -> None:
        """What the monitor's own thread does every few seconds; here the minute before is gone through at once."""
        self._sampled_ms = min(self._sampled_ms + 5 * SECOND_MS, now_ms())
        self._sampler.sample()

    def commit(self, group: str, behind: Mapping[int, int] | int, topic: str = "t") -> None:
        """The group commits, so far behind the log's end in each partition."""
        lag = behind if isinstance(behind, Mapping) else dict.fromkeys(range(PARTITIONS), behind)
        at_ms = now_ms()
        self.write(
            *(
                builders.offset_commit(group, topic, number, self.log_end - records, timestamp=at_ms)
                for number, records in lag.items()
            )
        )

    def play_recording(self) -> None:
        """The groups of the real recording, as they were at its end."""
        shards: dict[int, Shard] = {}
        with open_recording(RECORDING) as recording:
            for topic in recording.header.topics:
                self.topics[topic.name] = Topic(topic.id, topic.name, topic.partitions)
            for record in recording:
                shard = shards.setdefault(record.partition, Shard(record.partition + 1))
                shard.pending.append((record.timestamp_ms, record.key, record.value))
        self._batch += 1
        self.board.apply(self._batch, [row for shard in shards.values() for row in shard.flush()], now_ms())
        self.move_log_ends(0)

    def play_kinds(self) -> None:
        """One group of each kind, all of them well."""
        self.write(*classic(STABLE, {"billing-1": [0, 1, 2], "billing-2": [3, 4, 5]}))
        self.commit(STABLE, 0)
        connect = builders.group_metadata(CONNECT, generation=2, protocol_type="connect", members=[_worker()])
        self.write(connect)
        self.write(*happens.share_join(SHARED, "share-a", epoch=1, targets={"share-a": {"t": [0, 1, 2, 3]}}))
        both = {"share-a": {"t": [0, 1, 2, 3]}, "share-b": {"t": [2, 3, 4, 5]}}
        self.write(*happens.share_join(SHARED, "share-b", epoch=2, targets=both))
        moved = builders.share_group_current_assignment(SHARED, "share-a", epoch=2, assigned=both["share-a"])
        self.write(moved)
        self.write(*streams_group(STREAMS))

    def own_twice(self) -> None:
        """The coordinator gives a partition to two members (as KAFKA-16147 did)."""
        self.write(*happens.consumer_join(TWICE, "ledger-a", epoch=1, targets={"ledger-a": TWICE_TARGETS["ledger-a"]}))
        self.write(*happens.consumer_join(TWICE, "ledger-b", epoch=2, targets=TWICE_TARGETS))
        self.write(*happens.consumer_moves(TWICE, "ledger-a", epoch=2, assigned={"t": [0, 1, 2, 3]}))

    def own_once(self) -> None:
        """The partition owned twice is given up again."""
        self.write(*happens.consumer_moves(TWICE, "ledger-a", epoch=2, assigned=TWICE_TARGETS["ledger-a"]))


def classic(group: str, assigned: Mapping[str, list[int]], generation: int = 3) -> Iterable[RecordBytes]:
    """A classic group of members with partitions of the topic `t`."""
    members = [
        builders.member(member_id, {"t": partitions}, client_id=member_id) for member_id, partitions in assigned.items()
    ]
    yield builders.group_metadata(group, generation=generation, members=members)


def streams_group(group: str) -> Iterable[RecordBytes]:
    """Two processes that share the tasks of two subtopologies, one with standbys, one with a warm-up."""
    tasks = {
        "streams-a": {"active": {"0": [0, 1, 2], "1": [0]}, "standby": {"0": [3]}, "warmup": {}},
        "streams-b": {"active": {"0": [3, 4, 5], "1": [1]}, "standby": {"0": [0]}, "warmup": {"1": [0]}},
    }
    yield builders.streams_group_topology(group, 0, {"0": ["t"], "1": ["u"]})
    for name in tasks:
        yield builders.streams_group_member(group, name, process_id=f"process-of-{name}", client_id=name)
    yield builders.streams_group_epoch(group, 2, validated_topology_epoch=0)
    for name, held in tasks.items():
        yield builders.streams_group_target_assignment(group, name, **held)
    yield builders.streams_group_target_assignment_epoch(group, 2)
    for name, held in tasks.items():
        yield builders.streams_group_current_assignment(
            group,
            name,
            epoch=2,
            state=streams.MEMBER_STABLE,
            active={subtopology: dict.fromkeys(numbers, 1) for subtopology, numbers in held["active"].items()},
            standby=held["standby"],
            warmup=held["warmup"],
        )


def _worker() -> MemberMetadata:
    return builders.member("worker-1", {}, client_id="connect-1")


if __name__ == "__main__":  # to look at: python -m tests.page.stage PORT [hostile]
    import math
    import sys

    with Stage(int(sys.argv[1])) as stage:
        stage.play_recording()
        stage.play_kinds()
        stage.write(*classic(ROLLED, {f"orders-{n}": [2 * n, 2 * n + 1] for n in range(3)}))
        for name in HOSTILE_NAMES if "hostile" in sys.argv else ():
            stage.commit(name, 0)
        names = {f"orders-{n}": {"t": [2 * n, 2 * n + 1]} for n in range(3)}
        stage.write(*happens.converted_to_consumer(ROLLED, generation=4, members=names))
        targets = {**names, "orders-0": {"t": [0]}, "orders-new": {"t": [1]}}
        stage.write(*happens.consumer_join(ROLLED, "orders-new", epoch=5, targets=targets, assigned={}))
        stage.write(
            *happens.consumer_moves(ROLLED, "orders-0", epoch=4, assigned={"t": [0]}, pending={"t": [1]}, state=1)
        )
        stage.own_twice()
        for name in ("audit", "search", "mailer"):
            stage.write(*classic(name, {f"{name}-1": [0, 1, 2], f"{name}-2": [3, 4, 5]}))
        sys.stdout.write(f"{stage.url}\n")
        sys.stdout.flush()
        step = 0
        while True:
            step += 1
            stage.move_log_ends(50)
            stage.commit("audit", {n: int(400 * (1 + math.sin(step / 20 + n))) for n in range(6)})
            stage.commit(ROLLED, {n: 20 * n + step % 7 for n in range(6)})
            stage.commit("mailer", 0)
            if step % 5 == 0:
                stage.sample_lag()
            if step % 25 == 0:
                stage.write(*classic("search", {"search-1": [0, 1, 2], "search-2": [3, 4, 5]}, generation=3 + step))
            time.sleep(1)

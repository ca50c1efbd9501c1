"""A board with one group of each kind on it, at a time that stands still."""

from collections.abc import Mapping

from lab import builders
from streaming.base.batch_rows import BatchRows
from streaming.base.expectations import Expectations
from streaming.board.board import Board
from streaming.board.board_group import BoardGroup
from streaming.board.lag_columns import Lags, measure, table_of
from streaming.end_offsets.store import EndOffsets, Topic
from streaming.metrics.exporter import Exporter
from tests.streaming.board_rows import Shard

NOW_MS = 1_700_000_100_000
THEN_MS = NOW_MS - 10_000
CLUSTER = "prod"
OFFSETS_TOPIC = "__consumer_offsets"


def described(name: str, partitions: int) -> Topic:
    return Topic(builders.topic_id(name), name, partitions, dict.fromkeys(range(partitions), 1))


def log_ends(**partitions: int) -> EndOffsets:
    """Topics by name with so many partitions; nothing sampled."""
    ends = EndOffsets()
    ends.set_topics([described(name, count) for name, count in partitions.items()], [])
    return ends


def sample(ends: EndOffsets, now_ms: int, topic: str, *offsets: int, stable: Mapping[int, int] | None = None) -> None:
    """One sample of a topic's partitions from 0 on; last stable offsets as the high watermarks but for `stable`."""
    high = {(topic, partition): offset for partition, offset in enumerate(offsets)}
    ends.record(now_ms, high, {**high, **{(topic, partition): offset for partition, offset in (stable or {}).items()}})


def lags_of(held: BoardGroup, ends: EndOffsets, now_ms: int) -> Lags:
    """Lag of one group's committed offsets."""
    return measure(table_of([held]), ends, now_ms)


def rendered(exporter: Exporter, accept: str = "") -> tuple[bytes, str]:
    """The whole page of /metrics, and its content type."""
    pieces, content_type = exporter.pieces(accept)
    return b"".join(pieces), content_type


def commits_of(board: Board, name: str) -> dict[str, tuple[int, int]]:
    """Topic → (commits, rewinds) of a group."""
    table = table_of([board.shown.groups[name]])
    return {table.topics[topic]: (commits, rewinds) for _, topic, commits, rewinds in table.counted.T.tolist()}


def classic_group(
    shard: Shard,
    name: str,
    assigned: Mapping[str, Mapping[str, list[int]]],
    generation: int = 3,
    *,
    at_ms: int = THEN_MS,
) -> None:
    """A group of classic members by id, with what each was assigned, all subscribing to the assigned topics."""
    topics = sorted({topic for parts in assigned.values() for topic in parts})
    members = [builders.member(member_id, parts, topics=topics) for member_id, parts in assigned.items()]
    record = builders.group_metadata(name, generation=generation, members=members, timestamp=at_ms - 250)
    shard.pending.append((at_ms, *record))


def caught_up(board: Board) -> Board:
    """The same board, ready: its log is read to the end, and log ends are sampled."""
    board.health.set_log_end_at_start({}, {})
    board.health.set_positions({}, {}, NOW_MS)
    board.ends.record(NOW_MS, {}, {})
    assert board.health.ready()[0]
    return board


def shares_read(ends: EndOffsets) -> EndOffsets:
    """The same, with the share coordinator's log read to its end."""
    ends.share_log.see("readable")
    ends.share_log.meet_ends({0: (0, 0)})
    return ends


def board_of(shard: Shard, ends: EndOffsets | None = None, expectations: Expectations | None = None) -> Board:
    """A board that took what the shard has pending in one batch, with what is expected of its groups."""
    board = Board(ends or log_ends(), expectations=expectations)
    board.load([])
    board.apply(0, BatchRows(shard.flush(), board.expectations.applied), NOW_MS)
    return board

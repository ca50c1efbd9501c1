"""The share coordinator's log in the stateful step: what its records leave in the state, and what is put out."""

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final

import pandas as pd
import pyarrow as pa
import pytest
from pyspark.sql.streaming.tws_tester import TwsTester

from coordinator_model.share_replica import ShareReplica
from coordinator_model.state.findings import Position
from coordinator_model.views.share_partitions import ShareFigures
from lab.builders import NOW_MS, RecordBytes, offset_commit, topic_id
from lab.share_state import share_snapshot, share_snapshot_tombstone, share_update
from streaming.base.batch_rows import Row
from streaming.query.log_continuity import Note
from streaming.query.processor import CoordinatorShards
from streaming.query.row_codec import LOG_LAYOUT, packed, unpacked_output
from streaming.query.schemas import PACKS_STATE
from streaming.query.share_cells import MARK, SHARE_LOG, CellNotes, Pruned, share_cells
from streaming.query.share_task import stored_share_rows

KEY: Final = 7
PARTITION: Final = 3
NO_LIMITS: Final[Mapping[str, int]] = {}
NOT_LOOKED_AT: Final[Mapping[str, Mapping[str, bool]]] = {}


class ShareShard:
    """A stateful step that is fed with micro-batches of the second log."""

    def __init__(self) -> None:
        self._tester = TwsTester(CoordinatorShards({}, {}, {}), timeMode="ProcessingTime")
        self._end = 0
        self.rows: list[Row] = []

    def batch(
        self,
        *records: RecordBytes,
        at: int | None = None,
        limits: Mapping[str, int] = NO_LIMITS,
        looked: Mapping[str, Mapping[str, bool]] = NOT_LOOKED_AT,
        note: Note | None = None,
        pruned: Pruned | None = None,
        also: Iterable[bytes] = (),
        time_ms: int = NOW_MS,
    ) -> list[Row]:
        """Records from an offset on, by default where the last batch ended; returns what is put out."""
        begin = self._end if at is None else at
        self._end = begin + len(records)
        cells = [(PARTITION, begin + number, time_ms + number, *of) for number, of in enumerate(records)]
        columns = zip(*cells, strict=True) if cells else [()] * len(LOG_LAYOUT)
        arrays = [pa.array(column, field.type) for column, field in zip(columns, LOG_LAYOUT, strict=True)]
        name = str(PARTITION)
        said = CellNotes(
            {} if note is None else {name: note},
            {} if pruned is None else {name: pruned},
            {name: self._end},
            limits,
            looked,
        )
        blobs = [cell for _, cell in share_cells(pa.Table.from_arrays(arrays, schema=LOG_LAYOUT), [KEY], said)]
        return self._keep(self._tester.testInPandas(KEY, pd.DataFrame({"bundle": KEY, "rows": [*also, *blobs]})))

    def at(self, processing_time_ms: int) -> list[Row]:
        """Let the clock reach a time; returns the rows of timers that fired."""
        return self._keep(self._tester.setProcessingTime(processing_time_ms))

    def shown(self) -> dict[tuple[str, str, int], ShareFigures]:
        """Share partitions as all rows so far leave them."""
        return figures_of(self.rows)

    def stored(self) -> list[Row]:
        """What the state gives back at a start."""
        packs = self._tester.peekMapState(PACKS_STATE, KEY).items()
        return list(stored_share_rows((at, pack) for at, (pack,) in packs if at[0] >= SHARE_LOG))

    def events(self) -> list[dict[str, Any]]:
        """Every event put out so far."""
        return [json.loads(row.payload) for row in self.rows if row.kind == "event"]

    def _keep(self, frame: Any) -> list[Row]:
        put_out = unpacked_output(frame["rows"]) if frame is not None and len(frame) else []
        self.rows += put_out
        return put_out


def figures_of(rows: Iterable[Row]) -> dict[tuple[str, str, int], ShareFigures]:
    found: dict[tuple[str, str, int], ShareFigures] = {}
    for row in rows:
        if row.kind == "share":
            of = ShareFigures.load(row.payload)
            found[of.group, of.topic_id, of.partition] = of
        elif row.kind == "share_gone":
            found.pop(tuple(json.loads(row.payload)), None)
    return found


def timeless(of: ShareFigures) -> ShareFigures:
    return of._replace(moved_ms=0, done_ms=0, written_ms=0)


def totals(rows: Iterable[Row]) -> Mapping[str, Any]:
    """What was last said of the partition of the log."""
    held: Mapping[str, Any] = json.loads([row.payload for row in rows if row.kind == "share_log"][-1])
    return held


HISTORY: Final = [
    share_snapshot("s", "t", 0),
    share_update("s", "t", 0, (0, 9, 2, 1), delivery_complete_count=10),
    share_snapshot("s", "t", 1, start_offset=-1),
    share_update("s", "t", 0, (10, 10, 0, 2), (11, 11, 4, 5), (12, 12, 4, 1), delivery_complete_count=12),
    share_snapshot("other", "u", 0, start_offset=4),
]


def test_share_partitions_are_the_replica_s() -> None:
    """However the records are divided into micro-batches, figures and events are those of one replay."""
    replica = ShareReplica(gaps=None)
    events = [
        event for offset, of in enumerate(HISTORY) for event in replica.replay(Position(PARTITION, offset, 5), *of)
    ]
    expected = {of.id: ShareFigures.of(of) for of in replica.partitions.values()}

    for cut in range(len(HISTORY) + 1):
        shard = ShareShard()
        for part in (HISTORY[:cut], HISTORY[cut:]):
            shard.batch(*part)
        assert {id_: timeless(of) for id_, of in expected.items()} == {
            id_: timeless(of) for id_, of in shard.shown().items()
        }
        assert [of.id for of in events] == [of["id"] for of in shard.events()]


def test_a_start_shows_what_was_shown() -> None:
    """The state gives back the rows that it was put out in."""
    shard = ShareShard()
    shard.batch(*HISTORY)
    stored = shard.stored()

    assert shard.shown() == figures_of(stored)
    assert totals(shard.rows) == totals(stored)


def test_a_share_partition_that_ends_is_gone() -> None:
    """From what is shown, and from the state."""
    shard = ShareShard()
    shard.batch(*HISTORY)
    shard.batch(share_snapshot_tombstone("s", "t", 0))

    assert ("s", topic_id("t"), 0) not in shard.shown()
    assert shard.shown() == figures_of(shard.stored())


def test_records_read_twice_change_nothing() -> None:
    """As where a former release has read on without this log, and its position is lost."""
    shard = ShareShard()
    shard.batch(*HISTORY)
    before, reported = shard.shown(), shard.events()
    shard.batch(*HISTORY, at=0)

    assert before == shard.shown()
    assert reported == shard.events()


def test_cause_follows_the_limit_of_the_group() -> None:
    """Where brokers say it. Below it a look decides; without one it is not clear that there was a record."""
    shard = ShareShard()
    shard.batch(
        share_update("s", "t", 0, (3, 3, 4, 2)),
        share_update("r", "t", 0, (3, 9, 4, 2)),
        share_update("r", "u", 0, (3, 3, 4, 1)),
        limits={"": 5, "s": 2},
        looked={f"{topic_id('t')}:0": {"3": True, "4": True, "5": False, "6": True}},
    )

    assert [
        ("s", "limit", 3, 3),
        ("r", "rejected", 3, 4),
        ("r", "rejected", 6, 6),
        ("r", "unclear", 7, 9),
        ("r", "unclear", 3, 3),
    ] == [
        (of["group"], *(of["detail"][name] for name in ("why", "first_offset", "last_offset"))) for of in shard.events()
    ]
    assert (0, 3, 3) == shard.shown()["r", topic_id("t"), 0][10:13]


def test_offsets_without_a_record_are_nothing_that_was_given_up() -> None:
    """A transaction's marker, as a client archives it."""
    shard = ShareShard()
    shard.batch(share_update("r", "t", 0, (3, 3, 4, 1)), looked={f"{topic_id('t')}:0": {"3": False}})

    assert [] == shard.events()
    assert (0, 0, 0) == shard.shown()["r", topic_id("t"), 0][10:13]


def test_nothing_below_the_live_tail_is_an_alarm() -> None:
    """What was given up before the monitor came is counted, and not reported."""
    shard = ShareShard()
    shard.batch(*HISTORY, note=Note((0, 0), gap=(4, 4)))
    shard.batch(share_update("s", "t", 0, (13, 13, 4, 5)))

    assert [13] == [of["detail"]["first_offset"] for of in shard.events()]
    assert 2 == shard.shown()["s", topic_id("t"), 0].limit


def test_what_was_not_seen_since_the_log_s_start_is_gone() -> None:
    """Once it is read to the end found with that start, and not before."""
    shard = ShareShard()
    shard.batch(*HISTORY)
    shard.batch(share_snapshot("s", "t", 0, start_offset=20), at=100, pruned=Pruned(100, 102))
    assert 3 == len(shard.shown())

    shard.batch(share_update("s", "t", 0, (20, 20, 2, 1)))
    assert {("s", topic_id("t"), 0)} == shard.shown().keys() == figures_of(shard.stored()).keys()


def test_a_log_that_is_read_again_counts_and_reports_nothing_twice() -> None:
    """Its tail was lost: what it no longer has is gone, what was given up stays counted."""
    shard = ShareShard()
    shard.batch(*HISTORY)
    reported = len(shard.events())
    shard.batch(*HISTORY[:4], at=0, note=Note((0, 0), again={"from": 4, "to": 5}))

    assert {("s", topic_id("t"), 0), ("s", topic_id("t"), 1)} == shard.shown().keys()
    assert (1, 0, 1) == shard.shown()["s", topic_id("t"), 0][10:13]
    assert reported == len(shard.events())
    shard.batch(share_update("s", "t", 0, (13, 13, 4, 5)))
    assert reported + 1 == len(shard.events())


def test_what_could_not_be_read_is_owed() -> None:
    """No later record is replayed before it; read from there, all is as it should be."""
    shard = ShareShard()
    shard.batch(*HISTORY[:2])
    shard.batch(at=4, note=Note((2, 2), unread=True))
    assert 2 == totals(shard.rows)["owed"]
    before = shard.shown()
    shard.batch(*HISTORY[4:])
    assert before == shard.shown()

    shard.batch(*HISTORY[2:], at=2, note=Note((2, 2)))
    assert "owed" not in totals(shard.rows)
    whole = ShareShard()
    whole.batch(*HISTORY)
    assert whole.shown().keys() == shard.shown().keys()


def test_what_is_kept_of_a_minute_is_said_when_it_is_over() -> None:
    """Though no record comes any more."""
    shard = ShareShard()
    shard.batch(*(share_update("s", "t", 0, (offset, offset, 4, 1)) for offset in range(0, 30, 2)))
    assert 10 == len(shard.events())

    shard.at(NOW_MS + 30_000)
    assert 10 == len(shard.events())
    shard.at(NOW_MS + 61_000)
    assert (11, 5) == (len(shard.events()), shard.events()[-1]["detail"]["records"])


def test_both_logs_in_one_micro_batch() -> None:
    """Their partitions have the same numbers and are not mixed up."""
    shard = ShareShard()
    columns = [(PARTITION,), (0,), (NOW_MS,), *((of,) for of in offset_commit("g", "t", 0, 5))]
    arrays = [pa.array(column, field.type) for column, field in zip(columns, LOG_LAYOUT, strict=True)]
    rows = packed([pa.Table.from_arrays(arrays, schema=LOG_LAYOUT)], [KEY])
    put_out = shard.batch(*HISTORY, also=rows["rows"].to_pylist())

    assert {("share", SHARE_LOG + PARTITION), ("group", PARTITION), ("offsets", PARTITION)} <= {
        (row.kind, row.partition) for row in put_out
    }
    assert {""} == {row.group for row in put_out if row.kind.startswith("share")}
    assert 1 == [json.loads(row.payload)["records"] for row in put_out if row.kind == "shard"][-1]


def test_records_that_are_not_known_are_counted_and_said() -> None:
    """An unknown type, and bytes that are not what their type says."""
    shard = ShareShard()
    key, value = HISTORY[0]
    shard.batch((b"\x00\x09" + key[2:], value), (key, b"\x00\x00\x01"))

    assert [1] == [json.loads(row.payload)["offset"] for row in shard.rows if row.kind == "undecodable"]
    assert {"9": 1} == totals(shard.rows)["unknown_records"]
    assert {"0": 1} == totals(shard.rows)["undecodable_records"]


def test_redeliveries_are_counted_by_five_minutes() -> None:
    """Of what became done while it was followed; those long over are let go."""
    shard = ShareShard()
    shard.batch(share_snapshot("s", "t", 0))
    begin = NOW_MS // 300_000 * 300_000
    for number in range(8):
        first = number * 10
        shard.batch(
            share_update("s", "t", 0, (first, first + 3, 2, 2), (first + 4, first + 9, 2, 1)),
            time_ms=begin + number * 300_000,
        )
    windows = totals(shard.rows)["windows"]["s"]

    assert [begin // 300_000 + number for number in range(2, 8)] == sorted(map(int, windows))
    assert {(10, 4)} == {(done, again) for done, again, *_ in windows.values()}


@pytest.mark.parametrize("bundles", [1, 3])
def test_each_cell_says_what_is_of_its_own_bundle(bundles: int) -> None:
    """And no cell is one of the first log."""
    cells = [(partition, 0, NOW_MS, *HISTORY[0]) for partition in range(6)]
    columns = zip(*cells, strict=True)
    rows = pa.Table.from_arrays(
        [pa.array(column, field.type) for column, field in zip(columns, LOG_LAYOUT, strict=True)], schema=LOG_LAYOUT
    )
    found = [*share_cells(rows, range(bundles), CellNotes({}, {}, {str(of): 1 for of in range(6)}, {}, {}))]

    assert list(range(bundles)) == [key for key, _ in found]
    assert all(cell.startswith(MARK) for _, cell in found)

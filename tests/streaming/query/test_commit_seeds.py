"""Offsets made of whole columns are what replaying every commit gives; what is not plain is replayed."""

from collections.abc import Sequence
from functools import partial
from typing import Any

import pyarrow as pa
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_model.state.offsets import ZERO_TOPIC_ID
from lab.builders import (
    RecordBytes,
    group_metadata,
    group_metadata_tombstone,
    legacy_offset_commit,
    member,
    offset_commit,
    offset_commit_tombstone,
    topic_id,
)
from lab.coordinator_events import consumer_join
from streaming.query.first_reading import door
from streaming.query.first_reading.commit_seeds import seeds_of
from streaming.query.row_codec import packed, unpacked_table
from tests.histories import PARTITION, LogRecord, at, history, shown
from tests.streaming.shard import Shard, log_rows


def played(records: Sequence[RecordBytes], cuts: Sequence[int], built_until: int) -> tuple[Any, ...]:
    """State, books and all that was put out, of micro-batches that end there."""
    log = list(shown(history(*(at(1_000 + number, record) for number, record in enumerate(records)))).records)
    shard = Shard(live_from=built_until, built_until=built_until)
    for start, end in zip([0, *cuts], [*cuts, len(log)], strict=True):
        if start < end:
            shard.batch(log[start:end])
    shard.at(1_000_000)
    rows = sorted(
        (row.kind, row.group, row.words, row.payload) if row.kind not in {"group", "offsets"} else (row.kind, row.group)
        for row in shard.rows
    )
    return shard.groups(), shard.buckets(), shard.bundle_book(), rows


def table_of(cells: list[tuple[Any, ...]], built_until: int) -> pa.Table:
    """Rows as a stateful task has them; of those below only state is made."""
    less = partial(door.without_history, live_from={PARTITION: built_until})
    return unpacked_table(packed([log_rows(cells)], [0], less=less)["rows"].to_pylist())


def seeded(records: Sequence[LogRecord], built_until: int) -> list[str]:
    """Groups that are made of columns."""
    cells = [(*of.place, of.key, of.value) for of in records]
    rows = unpacked_table(
        packed([log_rows(cells)], [0], less=partial(door.without_history, live_from={PARTITION: built_until}))[
            "rows"
        ].to_pylist()
    )
    return sorted(seeds_of(rows, [])[0].get(PARTITION, {}))


def without_seeds(rows: pa.Table, known: object) -> tuple[dict[int, Any], pa.Table]:
    return {}, rows


GROUPS = ("a", "b", "c")
METADATA = ("", "", "", "x", "é" * 70)
commits = st.builds(
    offset_commit,
    st.sampled_from(GROUPS),
    st.sampled_from(["t", "u"]),
    st.sampled_from([-1, 0, 1, 63, 64, 200]),
    st.integers(0, 9),
    leader_epoch=st.integers(-1, 3),
    metadata=st.sampled_from(METADATA),
    version=st.integers(0, 4),
    id_of_topic=st.sampled_from([None, None, ZERO_TOPIC_ID, topic_id("recreated")]),
)
tombstones = st.builds(offset_commit_tombstone, st.sampled_from(GROUPS), st.just("t"), st.integers(0, 1))
memberships = st.builds(
    group_metadata, st.sampled_from(GROUPS), generation=st.integers(1, 3), members=st.just([member("m", {"t": [0]})])
)
ends = st.builds(group_metadata_tombstone, st.sampled_from(GROUPS))
joins = st.builds(
    lambda name, topics: consumer_join(name, "m", epoch=2, targets={"m": {topics: [0, 1]}}),
    st.sampled_from(GROUPS),
    st.sampled_from(["t", "u"]),
)


@st.composite
def damaged(draw: st.DrawFn) -> RecordBytes:
    """A record of which a byte is another, some are gone or there are more: in the key, the value or both."""

    def harmed(data: bytes) -> bytes:
        cut = data[: draw(st.integers(0, len(data)))] if draw(st.booleans()) else data
        place = draw(st.integers(0, max(0, len(cut) - 1)))
        byte = draw(st.sampled_from([b"", b"\x00", b"\x05", b"\x7f", b"\x80", b"\xff"]))
        return cut[:place] + byte + cut[place + 1 :] + draw(st.binary(max_size=3))

    key, value = draw(st.one_of(commits, commits, memberships))
    which = draw(st.sampled_from(["key", "value", "both"]))
    key = harmed(key) if which != "value" else key
    return key, harmed(value or b"") if which != "key" else value


ones = st.one_of(commits, commits, commits, tombstones, memberships, ends, damaged()).map(lambda record: [record])


@settings(max_examples=max(80, settings().max_examples))
@given(st.lists(st.one_of(ones, ones, ones, ones, joins), max_size=14), st.data())
def test_same_as_record_by_record(events: list[list[RecordBytes]], data: st.DataObject) -> None:
    """Whatever a log holds, and wherever its live tail begins or a micro-batch ends."""
    records = [record for event in events for record in event]
    built_until = data.draw(st.integers(0, len(records)))
    cuts = sorted(data.draw(st.lists(st.integers(0, len(records)), max_size=2)))
    by_columns = played(records, cuts, built_until)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(door, "seeds_of", without_seeds)

        assert played(records, cuts, built_until) == by_columns


USUAL = (
    offset_commit("usual", "t", 0, 5),
    offset_commit("usual", "t", 1, 6, metadata="x"),
    offset_commit("usual", "t", 70, 6, metadata="x"),
    offset_commit("usual", "u", 1, 7, version=3),
    group_metadata("usual", generation=1, members=[member("m", {"t": [0, 1, 70]})]),
)


def test_usual_group_is_made_of_columns() -> None:
    """None of its commits is replayed; what stands for many counts so many."""
    log = history(at(1_000, *USUAL), at(2_000, *(offset_commit("usual", "t", 0, n) for n in range(6, 16))))
    shard = Shard(live_from=log.end, built_until=log.end)
    shard.batch(log)
    (first, second, other) = (bucket for _, bucket in sorted(shard.buckets().items()))

    assert ["usual"] == seeded(log.records, log.end)
    assert (12, 15) == (first.commits, first.offsets[0].offset)
    assert ["", "x"] == [first.offsets[partition].metadata for partition in (0, 1)]
    assert ("x", topic_id("t")) == (second.offsets[70].metadata, second.offsets[70].topic_id)
    assert (3, None) == (other.offsets[1].value_version, other.offsets[1].topic_id)
    assert len(log) == shard.book().counters.records
    assert [] == shard.events()


@pytest.mark.parametrize(
    "record",
    [
        pytest.param(offset_commit_tombstone("usual", "t", 3), id="tombstone of an offset"),
        pytest.param(offset_commit("usual", "t", 0, 4), id="an offset that goes back"),
        pytest.param(offset_commit("usual", "t", 3, 4, id_of_topic=topic_id("recreated")), id="two ids of a topic"),
        pytest.param((offset_commit("usual", "t", 3, 4)[0], b"\x00\x05\x00"), id="commit of a newer version"),
        pytest.param((offset_commit("usual", "t", 3, 4)[0] + b"\x00", USUAL[0][1]), id="key that is longer"),
        pytest.param((offset_commit("usual", "t", 3, 4)[0], (USUAL[0][1] or b"")[:-1]), id="commit that is cut"),
        pytest.param(legacy_offset_commit("usual", "t", 3, 4), id="commit of type 0"),
        pytest.param(group_metadata_tombstone("usual"), id="end of the group"),
        pytest.param((group_metadata_tombstone("usual")[0], b"\x00\x09"), id="record of a newer version"),
    ],
)
def test_group_that_says_more_is_replayed(record: RecordBytes) -> None:
    """It alone: others of the same log are made of columns."""
    log = history(at(1_000, *USUAL, offset_commit("other", "t", 0, 5)), at(2_000, record))

    assert ["other"] == seeded(log.records, log.end)


def test_names_in_which_bytes_are_replaced_are_replayed() -> None:
    """Two of them may be one name."""
    key, value = offset_commit("ab", "t", 0, 5)
    log = history(at(1_000, *((key.replace(b"ab", name), value) for name in (b"a\xff", b"a\xfe"))))

    assert [] == seeded(log.records, log.end)


def test_partition_that_is_known_is_replayed() -> None:
    """What the state holds of a group is not looked for: a catch-up of many micro-batches is seeded by its first."""
    log = history(at(1_000, *USUAL))
    cells = [(*of.place, of.key, of.value) for of in log.records]
    rows = unpacked_table(
        packed([log_rows(cells)], [0], less=partial(door.without_history, live_from={PARTITION: log.end}))[
            "rows"
        ].to_pylist()
    )

    seeds, left = seeds_of(rows, [PARTITION])

    assert ({}, len(log)) == (seeds, left.num_rows)

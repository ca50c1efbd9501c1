"""Reducing commits: fewer records replayed, nothing reported differently."""

from collections.abc import Sequence
from itertools import count

import pytest
from hypothesis import given
from hypothesis import strategies as st

from coordinator_model.replica import Replica
from coordinator_model.state.findings import Position
from coordinator_model.state.offsets import ZERO_TOPIC_ID
from lab.builders import RecordBytes, group_metadata, member, offset_commit, offset_commit_tombstone, topic_id
from streaming.query import commit_compaction, row_codec
from streaming.query.row_codec import LogRow, packed, unpacked
from tests.histories import at, history, shown
from tests.streaming.shard import KEY, log_rows

Row = tuple[int, int, int, bytes | None, bytes | None]

GROUPS = ("a", "b")
KEY_OF_A = offset_commit("a", "t", 0, 0)[0]


def through(*tasks: list[Row], at_once: int = 1_000_000) -> list[LogRow]:
    """What the stateful step gets of rows that so many source tasks read, `at_once` at a time."""
    reads = [[rows[start : start + at_once] for start in range(0, len(rows), at_once)] for rows in tasks]
    packs = [packed([log_rows(list(read)) for read in task], [KEY]) for task in reads]
    return unpacked(blob for pack in packs for blob in pack["rows"].to_pylist())


def rows_of(records: list[RecordBytes]) -> list[Row]:
    """Records at consecutive offsets of one partition."""
    shown(history(*(at(1_000 + number, record) for number, record in enumerate(records))))
    return [(0, offset, 1_000 + offset, key, value) for offset, (key, value) in zip(count(), records)]


def replayed(rows: list[Row], *, reduced: bool, at_once: int = 1_000_000) -> tuple[object, ...]:
    """State and events of a log, read row by row or reduced, so many rows at a time."""
    replica, events = Replica(), []
    if reduced:
        for row in through(rows, at_once=at_once):
            place = Position(0, row.offset, row.timestamp_ms)
            events += replica.replay(place, row.key, row.value, commits=row.commits)
    else:
        for _, offset, timestamp_ms, key, value in rows:
            events += replica.replay(Position(0, offset, timestamp_ms), key, value)
    events += replica.settle()
    return replica.groups, replica.buckets, replica.counters, events


commits = st.builds(
    offset_commit,
    st.sampled_from(GROUPS),
    st.just("t"),
    st.integers(0, 1),
    st.integers(0, 6),
    version=st.integers(0, 4),
    id_of_topic=st.sampled_from([None, None, None, topic_id("t, recreated"), ZERO_TOPIC_ID]),
)
tombstones = st.builds(offset_commit_tombstone, st.sampled_from(GROUPS), st.just("t"), st.integers(0, 1))
memberships = st.builds(
    group_metadata, st.sampled_from(GROUPS), generation=st.integers(1, 3), members=st.just([member("m", assigned={})])
)
oddities = st.tuples(st.just(offset_commit("a", "t", 0, 1)[0]), st.binary(max_size=12))


@given(st.lists(st.one_of(commits, commits, commits, tombstones, memberships, oddities), max_size=60))
def test_reduced_log_gives_the_same_state_counters_and_events(records: list[RecordBytes]) -> None:
    """Whatever the log holds, replaying it reduced shows exactly what replaying every record shows."""
    rows = rows_of(records)
    padding: list[Row] = [
        (0, len(rows) + n, 5_000, *offset_commit("c", "t", n % 3, n)) for n in range(commit_compaction.WORTH_REDUCING)
    ]

    assert replayed(rows + padding, reduced=False) == replayed(rows + padding, reduced=True)


@given(st.data())
def test_what_was_reduced_is_reduced_again_with_what_comes_after_it(data: st.DataObject) -> None:
    """However a task's records are cut into pieces, they tell the same."""
    one_of_many = st.one_of(commits, commits, commits, commits, tombstones, memberships, oddities)
    records = data.draw(st.lists(one_of_many, max_size=40)) * data.draw(st.integers(1, 40))
    rows = rows_of(records + [offset_commit("c", "t", n % 3, n) for n in range(2 * commit_compaction.WORTH_REDUCING)])
    at_once = data.draw(st.integers(100, 1_000))

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(row_codec, "REDUCE_AFTER", commit_compaction.WORTH_REDUCING)

        assert replayed(rows, reduced=False) == replayed(rows, reduced=True, at_once=at_once)


def test_forward_commits_are_reduced_to_their_ends() -> None:
    """Of a thousand commits of one partition that go forward, two records are replayed."""
    rows = rows_of([offset_commit("a", "t", 0, n) for n in range(1_000)])

    assert [(0, 1), (999, 999)] == [(row.offset, row.commits) for row in through(rows)]


def test_forward_commits_of_many_reads_are_reduced_to_the_same(monkeypatch: pytest.MonkeyPatch) -> None:
    """They are reduced as they are read, so that no more than some are held at once."""
    monkeypatch.setattr(row_codec, "REDUCE_AFTER", commit_compaction.WORTH_REDUCING)
    rows = rows_of([offset_commit("a", "t", 0, n) for n in range(1_000)])

    assert [(0, 1), (999, 999)] == [(row.offset, row.commits) for row in through(rows, at_once=250)]


def test_topic_recreated_is_reported_of_the_commit_that_shows_it() -> None:
    """A run in which the topic id changes is replayed record by record."""
    rows = rows_of(
        [offset_commit("a", "t", 0, n, id_of_topic=None if n < 300 else topic_id("recreated")) for n in range(600)]
    )

    assert replayed(rows, reduced=False) == replayed(rows, reduced=True)


def test_rows_come_in_the_order_of_the_log() -> None:
    """The two readers' rows arrive mixed; the shard sees them by offset."""
    rows = rows_of([offset_commit("a", "t", n, 1) for n in range(10)])

    assert list(range(10)) == [row.offset for row in through(rows[5:], rows[:5])]


def test_small_batches_are_taken_as_they_are() -> None:
    """A batch of a few rows is not worth looking through."""
    rows = rows_of([offset_commit("a", "t", 0, n) for n in range(10)])

    assert 10 == len(list(through(rows)))


WHOLE = offset_commit("a", "t", 0, 5)[1] or b""
NULL_METADATA = WHOLE[:14] + b"\x00" + WHOLE[15:]


@pytest.mark.parametrize(
    ("key", "value"),
    [
        pytest.param(KEY_OF_A, WHOLE[:12], id="cut in the leader epoch"),
        pytest.param(KEY_OF_A, WHOLE[:-17], id="cut in the topic id"),
        pytest.param(KEY_OF_A, WHOLE[:-19], id="without tagged fields"),
        pytest.param(KEY_OF_A, NULL_METADATA, id="without metadata"),
        pytest.param(KEY_OF_A, WHOLE[:14] + b"\xff\xff\xff\xff\xff" + WHOLE[15:], id="with a length without end"),
        pytest.param(KEY_OF_A, b"\x00\x00" + bytes(8) + b"\xff\xff" + bytes(8), id="version 0 without metadata"),
        pytest.param(KEY_OF_A, b"\x00\x01" + bytes(8) + b"\x00\x00" + bytes(8), id="version 1 without its expiry"),
        pytest.param(KEY_OF_A, b"\x00\x03" + bytes(12) + b"\x00\x09" + bytes(16), id="longer than it is"),
        pytest.param(KEY_OF_A[:-1], WHOLE, id="of a key that is cut"),
        pytest.param(b"\x00\x01\xff\xff" + KEY_OF_A[4:], WHOLE, id="of a key without a group"),
    ],
)
@pytest.mark.parametrize("places", [[0], [300], [599], range(600)], ids=["first", "amid", "last", "all"])
def test_a_damaged_commit_is_counted_and_passed_over(places: Sequence[int], key: bytes, value: bytes) -> None:
    """What does not decode is no commit of a run: it is counted, and what was committed before it stands."""
    records = [offset_commit("a", "t", 0, 5) for _ in range(600)]
    for place in places:
        records[place] = key, value
    rows = rows_of(records)
    whole = replayed(rows, reduced=False)

    assert whole == replayed(rows, reduced=True)
    assert {"1": len(places)} == whole[2].undecodable_records  # type: ignore[attr-defined]  # Counters

"""Partitions without state, replayed by child processes: what comes of it is what one process makes of them."""

from typing import Any

import pyarrow as pa
import pytest

from lab.builders import group_metadata, member, offset_commit, offset_commit_tombstone
from lab.coordinator_events import consumer_group_deleted, consumer_join, consumer_leave
from streaming.query.first_reading import replay_shares
from streaming.query.first_reading.replay_shares import MOST_PROCESSES, processes, shares_of
from streaming.query.row_codec import packed, unpacked_table
from tests.histories import at, history
from tests.streaming.shard import Shard, log_rows

PARTITIONS = 5
LATER = "later"
"""A group whose step is still open at the end of its batch."""


def of_partition(partition: int) -> list[tuple[Any, ...]]:
    """Groups of every kind in one partition of the log, a different number of records in each."""
    name = f"{partition}"
    moments = [
        at(1_000, group_metadata(f"classic-{name}", generation=1, members=[member("m", {"t": [0]})])),
        at(2_000, *consumer_join(f"consumer-{name}", "a", epoch=2, targets={"a": {"t": [0, 1]}})),
        *(at(3_000 + n, offset_commit(f"simple-{name}-{n}", "t", n, n)) for n in range(3 + partition)),
        at(4_000, offset_commit(f"simple-{name}-0", "t", 0, 0), offset_commit_tombstone(f"simple-{name}-1", "t", 1)),
        at(5_000, *consumer_leave(f"consumer-{name}", "a", epoch=3), *consumer_group_deleted(f"consumer-{name}")),
        at(6_000, *consumer_join(f"{LATER}-{name}", "a", epoch=2, targets={"a": {"t": [0]}})),
    ]
    records = history(*moments).records
    return [(partition, of.place.offset, of.place.timestamp_ms, of.key, of.value) for of in records]


def rows_of(*partitions: int) -> pa.Table:
    """Their records, as a stateful task has them."""
    cells = [row for partition in partitions for row in of_partition(partition)]
    return unpacked_table(packed([log_rows(cells)], [0])["rows"].to_pylist())


def replayed(first: tuple[int, ...], most: int, built_until: int) -> tuple[Any, ...]:
    """Put out, in state and noted, of a batch of these partitions and one of all; some have state by then."""
    shard = Shard(processes=most, live_from=built_until, built_until=built_until)
    for partitions in filter(None, (first, range(PARTITIONS))):
        shard.read([[row for partition in partitions for row in of_partition(partition)]])
        for partition in first:
            more = group_metadata(f"classic-{partition}", generation=2, members=[member("m", {"t": [0, 1]})])
            shard.read([[(partition, 1_000, 7_000, *more)]])
    shard.at(1_000_000)
    packs = sorted(sorted(pack.items(), key=repr) for pack in shard.packs())
    return sorted(map(repr, shard.rows)), shard.single(), packs, shard.bundle_book()


@pytest.mark.parametrize("most", [2, 3, 8])
@pytest.mark.parametrize("first", [(), (1,), (0, 3)])
@pytest.mark.parametrize("built_until", [0, 100])
def test_shares_of_children_come_to_what_one_process_makes_of_all(
    monkeypatch: pytest.MonkeyPatch, most: int, first: tuple[int, ...], built_until: int
) -> None:
    """Events, groups, offsets, totals, packs and entries of the state, and what waits for the next batch."""
    monkeypatch.setattr(replay_shares, "WORTH_SHARING", 1)

    assert replayed(first, 1, built_until) == replayed(first, most, built_until)


def test_partitions_stay_whole_and_those_with_state_stay_with_the_task(monkeypatch: pytest.MonkeyPatch) -> None:
    """The task has what only it can ask the state of; of the rest there are more shares than processes."""
    monkeypatch.setattr(replay_shares, "WORTH_SHARING", 1)
    rows = rows_of(*range(PARTITIONS))

    shares = [share["partition"].to_pylist() for share in shares_of(rows, [0, 1], 3)]

    assert [0, 1] == sorted(set(shares[0]))
    assert [{2}, {3}, {4}] == sorted((set(share) for share in shares[1:]), key=min)
    assert rows.num_rows == sum(map(len, shares))
    assert all(share == sorted(share) for share in shares)


def test_few_rows_are_not_shared() -> None:
    """A micro-batch at the tail of the log starts no process."""
    assert 1 == len(shares_of(rows_of(*range(PARTITIONS)), [], 4))


def test_partitions_with_state_are_not_shared_however_many_rows_they_have(monkeypatch: pytest.MonkeyPatch) -> None:
    """A resume is one process: rules follow what is in the state."""
    monkeypatch.setattr(replay_shares, "WORTH_SHARING", 1)

    assert 1 == len(shares_of(rows_of(0, 1), [0, 1], 4))


@pytest.mark.parametrize(
    ("cores", "tasks", "each"), [(1, 1, 1), (2, 1, 2), (2, 2, 1), (64, 1, MOST_PROCESSES), (8, 4, 2)]
)
def test_processes_are_those_that_the_tasks_leave_idle(
    monkeypatch: pytest.MonkeyPatch, cores: int, tasks: int, each: int
) -> None:
    """With as many stateful tasks as cores there are no children; where forking is not safe, there are none either."""
    monkeypatch.setattr("os.sched_getaffinity", lambda _: set(range(cores)))

    assert each == processes(tasks)
    monkeypatch.setattr("sys.platform", "darwin")
    assert 1 == processes(tasks)

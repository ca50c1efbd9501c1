"""The replica of the share coordinator holds what Kafka's own one holds after the same log.

Kafka's `ShareCoordinatorShard` runs in a JVM of its own (`tests/share_replay`), without a broker. It is asked what
brokers ask, writes the log, and is loaded again from it; what it writes the replica reads.
"""

from collections.abc import Iterator, Sequence
from random import Random
from typing import Final

import pytest

from coordinator_model.records.share_state_types import (
    ShareStateRecord,
    ShareStateType,
    decode_share_state,
    encode_share_state,
)
from coordinator_model.share_replica import ShareReplica
from coordinator_model.state.findings import Position
from lab.builders import RecordBytes, topic_id
from lab.share_state import share_snapshot, share_snapshot_tombstone, share_update
from tests.histories import LogRecord
from tests.share_replay.chance import history
from tests.share_replay.comparison import differences, held_by
from tests.share_replay.judge import LOAD, SHOW, Said, ShareJudge, Shown, record, share_judge

HISTORIES: Final = 150
PARTITION: Final = 7


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ShareJudge]:
    with share_judge(tmp_path_factory.mktemp("share-judge")) as running:
        yield running


_TOLD: Final[dict[int, Said]] = {}


def told(judge: ShareJudge, seed: int) -> Said:
    """A history of a seed, written once; snapshots come sooner than a broker makes them."""
    if seed not in _TOLD:
        often = Random(seed).choice((2, 5, 20))
        _TOLD[seed] = judge.ask([*history(seed)], partition=PARTITION, records_per_snapshot=often)
        assert None is _TOLD[seed].failed
    return _TOLD[seed]


def log_at(said: Said, shown: Shown) -> list[LogRecord]:
    """The log as it was then: without what was pruned or lost."""
    held: dict[int, LogRecord] = {}
    for of in said.log[: shown.read]:
        if of.place.offset in held:  # what it and the rest was is lost
            held = {offset: known for offset, known in held.items() if offset < of.place.offset}
        held[of.place.offset] = of
    return [of for offset, of in held.items() if shown.start <= offset < shown.end]


def replayed(records: Sequence[LogRecord], replica: ShareReplica | None = None) -> ShareReplica:
    replica = ShareReplica() if replica is None else replica
    for of in records:
        replica.replay(of.place, of.key, of.value)
    return replica


def is_whole(said: Said) -> bool:
    """Whether nothing of it was lost: no offset was written twice."""
    offsets = [of.place.offset for of in said.log]
    return offsets == sorted({*offsets}) and all(
        shown.read == 0 or said.log[shown.read - 1].place.offset + 1 == shown.end for shown in said.shown
    )


def test_what_the_log_holds_gives_what_kafka_holds(judge: ShareJudge) -> None:
    """At places within each history and at its end: after resets, deletions, leaders that changed, pruning, loss."""
    faults, places = [], 0
    for seed in range(HISTORIES):
        said = told(judge, seed)
        for shown in said.shown:
            ours = held_by(replayed(log_at(said, shown)))
            faults += [f"seed {seed} after {shown.read}: {each}" for each in differences(shown.held, ours)]
            places += bool(shown.held)

    assert [] == faults[:10]
    assert places > 3 * HISTORIES


def test_reader_who_saw_all_of_it_holds_the_same(judge: ShareJudge) -> None:
    """What was pruned in its back makes no difference."""
    whole = pruned = 0
    for seed in range(HISTORIES):
        said = told(judge, seed)
        if not is_whole(said):
            continue
        whole += 1
        pruned += said.shown[-1].start > 0
        ours = held_by(replayed(said.log))

        assert [] == differences(said.shown[-1].held, ours)
    assert whole > HISTORIES / 4
    assert pruned > HISTORIES / 10


def test_reader_who_was_away_while_it_was_pruned_goes_on_at_the_start(judge: ShareJudge) -> None:
    """What has no record from the start on is gone."""
    away = 0
    for seed in range(HISTORIES):
        said = told(judge, seed)
        last = said.shown[-1]
        if not is_whole(said) or last.start < 2:
            continue
        away += 1
        replica = replayed([of for of in said.log if of.place.offset < last.start // 2])
        replayed(log_at(said, last), replica)
        replica.forget_before(PARTITION, last.start)

        assert [] == differences(last.held, held_by(replica))
    assert away > HISTORIES / 10


def test_what_kafka_writes_is_read_and_written_alike(judge: ShareJudge) -> None:
    """Byte for byte."""
    for seed in range(20):
        for of in told(judge, seed).log:
            read = decode_share_state(of.key, of.value)
            assert isinstance(read, ShareStateRecord)
            assert (of.key, of.value) == encode_share_state(read.key, read.value)


def given(judge: ShareJudge, *records: RecordBytes) -> Said:
    """Records that no coordinator needs to have written, loaded one by one."""
    log = [LogRecord(Position(PARTITION, at, 1_000 + at), *each) for at, each in enumerate(records)]
    said = judge.ask([*map(record, log), SHOW, LOAD, SHOW], partition=PARTITION)
    for shown in said.shown:
        assert [] == differences(shown.held, held_by(replayed(log)))
    return said


KEY = f"s:{topic_id('t')}:0"


def test_updates_by_themselves_are_held_alike(judge: ShareJudge) -> None:
    """The log begins behind the snapshot: the first is taken as it is, the next are merged."""
    said = given(
        judge,
        share_update("s", "t", 0, (3, 8, 2, 1), start_offset=5, snapshot_epoch=4, delivery_complete_count=4),
        share_update("s", "t", 0, (9, 9, 0, 1), snapshot_epoch=9, leader_epoch=2),
    )

    assert (4, 0, 2, 5, -1) == tuple(
        said.shown[0].held[KEY][name]
        for name in ("snapshot_epoch", "state_epoch", "leader_epoch", "start_offset", "delivery_complete_count")
    )


def test_snapshots_after_each_other_and_tombstones_are_held_alike(judge: ShareJudge) -> None:
    """Whatever their epochs."""
    said = given(
        judge,
        share_snapshot("s", "t", 0, snapshot_epoch=7, state_epoch=3, batches=[(0, 9, 2, 1)], start_offset=4),
        share_snapshot("s", "t", 0, snapshot_epoch=2, state_epoch=1, start_offset=-1),
        share_update("s", "t", 0, (2, 3, 0, 1), (5, 6, 4, 2)),
        share_snapshot("s", "t", 1),
        share_snapshot_tombstone("s", "t", 1),
        share_snapshot_tombstone("s", "u", 0),
    )

    assert [KEY] == list(said.shown[0].held)


def test_states_that_are_not_written_yet_are_held_alike(judge: ShareJudge) -> None:
    """Archiving, and one without a name."""
    given(judge, share_snapshot("s", "t", 0), share_update("s", "t", 0, (0, 4, 3, 2), (2, 9, 9, 1), (1, 1, 4, 2)))


def test_kafka_does_not_survive_the_tombstone_of_an_update(judge: ShareJudge) -> None:
    """Which it does not write; the replica passes it over."""
    key, _ = share_update("s", "t", 0)
    snapshot = LogRecord(Position(PARTITION, 0, 1), *share_snapshot("s", "t", 0))
    said = judge.ask([record(snapshot), record(LogRecord(Position(PARTITION, 1, 2), key, None)), SHOW])

    assert said.failed is not None
    assert "NullPointerException" in said.failed


def test_a_type_that_is_not_known_is_passed_over_by_both(judge: ShareJudge) -> None:
    """As a later Kafka may write."""
    key, value = share_snapshot("s", "t", 0)
    said = given(judge, (key, value), (b"\x00\x02" + key[2:], value))

    assert {2} == {*said.unknown_types}


def test_after_its_tombstone_a_share_partition_begins_at_any_epoch(judge: ShareJudge) -> None:
    """And before it an older state epoch is refused, as is the write of a former leader."""
    of = ["s", topic_id("t"), 0]
    said = judge.ask(
        [
            ["initialize", *of, 5, -1],
            ["initialize", *of, 4, -1],
            ["read", *of, 3],
            ["write", *of, 5, 2, 0, 1, [[0, 0, 2, 1]]],
            ["write", *of, 4, 3, 0, 1, [[0, 0, 2, 1]]],
            ["write", *of, 5, 3, 0, 1, [[0, 0, 2, 1]]],
            SHOW,
            ["delete", *of],
            ["initialize", *of, 1, 7],
            SHOW,
        ]
    )
    written = [ShareStateType(int.from_bytes(each.key[:2], "big")).name for each in said.log]

    assert ["SHARE_SNAPSHOT", "SHARE_UPDATE", "SHARE_UPDATE", "SHARE_SNAPSHOT", "SHARE_SNAPSHOT"] == written
    assert [(5, 3, 0, 1), (1, 0, 7, 0)] == [
        (held["state_epoch"], held["leader_epoch"], held["start_offset"], held["delivery_complete_count"])
        for held in (shown.held[KEY] for shown in said.shown)
    ]


def test_what_is_rarely_written_is_snapshot_as_it_is(judge: ShareJudge) -> None:
    """Five minutes after its last snapshot: epoch and time of writing change, and nothing else."""
    of = ["s", topic_id("t"), 0]
    said = judge.ask(
        [
            ["time", 1_000],
            ["initialize", *of, 1, 0],
            ["write", *of, 1, 0, 0, 1, [[0, 0, 2, 1]]],
            SHOW,
            ["time", 299_999],
            ["cold"],
            ["time", 301_000],
            ["cold"],
            SHOW,
        ]
    )
    before, after = (shown.held[KEY] for shown in said.shown)

    assert 3 == len(said.log)
    assert {"snapshot_epoch": (0, 1), "write_ms": (1_000, 301_000)} == {
        name: (before[name], after[name]) for name in before if before[name] != after[name]
    }

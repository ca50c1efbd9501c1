"""Below the live tail only state is made: the same state as of every record, and no alarm that those do not raise."""

from collections import Counter, defaultdict
from functools import partial
from itertools import pairwise
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from coordinator_model import replica
from coordinator_model.figures.summary import summary
from coordinator_model.first_reading import FirstReading
from coordinator_model.records.record_types import RECORD_SCHEMAS
from coordinator_model.records.serde import decode_key
from coordinator_model.replica import Replica
from coordinator_model.state.events import INFO, Event
from coordinator_model.state.findings import Position
from coordinator_model.views.group_view import migration_view
from lab.builders import group_metadata, member, offset_commit
from lab.coordinator_events import consumer_join, consumer_leave, converted_to_consumer, speaks_classic
from streaming.query.first_reading import door
from streaming.query.first_reading.last_records import ENDS, HIGHEST
from streaming.query.row_codec import LogRow, packed, unpacked
from tests.histories import History, LogRecord, TextStore, at, history, recording
from tests.kafka_replay.held import held_by
from tests.recorder.recordings import PATHS, name_of
from tests.side_by_side import lawful, log_of
from tests.streaming.shard import Shard, log_rows


def read(records: list[LogRecord], built_until: dict[int, int]) -> list[LogRow]:
    """What a stateful task gets of these records in one micro-batch."""
    cells = [(*of.place, of.key, of.value) for of in records]
    less = partial(door.without_history, live_from=built_until)
    return unpacked(packed([log_rows(cells)], [0], less=less)["rows"].to_pylist()) if cells else []


def take(follower: FirstReading, row: LogRow) -> list[Event]:
    """Have a replica follow one row."""
    place = Position(row.partition, row.offset, row.timestamp_ms)
    if row.built:
        return follower.build(place, decode_key(row.key), row.value, records=row.commits)
    return follower.replay(place, row.key, row.value, commits=row.commits)


def replayed(follower: FirstReading, rows: list[LogRow]) -> list[Event]:
    """What a micro-batch of a bundle does (`shard_task.py`)."""
    events = [event for row in rows for event in take(follower, row)]
    follower.begin()
    return events


def remembered(follower: Replica, without: set[str], *, in_one: bool) -> dict[str, Any]:
    """What is counted of commits, of all but these groups.

    A rewind by the first commit of a micro-batch may be left out of it: those are compared where all was read `in_one`.
    """
    names = [name for name, state in sorted(follower.groups.items()) if state.exists and name not in without]
    return {
        f"{name}/{topic}": (bucket.commits, in_one and bucket.rewinds)
        for (name, topic, _), bucket in sorted(follower.buckets.items())
        if name in names and bucket.offsets
    }


def compare(log: History, built_until: dict[int, int], cuts: list[int]) -> None:
    by_partition = defaultdict[int, list[LogRecord]](list)
    for record in log.records:
        by_partition[record.place.partition].append(record)
    ends = {of: records[-1].place.offset + 1 for of, records in by_partition.items()}
    whole = FirstReading()
    expected = list[Event]()
    for record in log.records:
        expected += whole.replay(record.place, record.key, record.value)
    expected += whole.settle()
    store, events = TextStore(), list[Event]()
    for start, end in zip([0, *cuts], [*cuts, max(ends.values(), default=0)], strict=True):
        less = FirstReading(store, store.counters(), live_from=built_until)
        piece = [of for of in log.records if start <= of.place.offset < end]
        events += replayed(less, read(piece, built_until))
        store.keep(less)
    less = FirstReading(store, store.counters(), live_from=built_until)
    for name in store.groups:
        less.known(name)
    for name, topic, number in store.buckets:
        less._bucket(name, topic, number)
    events += less.settle()
    for name in list(less.groups):
        events += less.judge(name)
    for name in list(whole.groups):
        expected += whole.judge(name)

    # A group whose last record was an offset's tombstone is not seen to have ended before it came again.
    ended = {of.group for of in expected if of.kind == "group_deleted"}
    assert held_by(whole) == held_by(less)
    for name, state in less.groups.items():
        for topic, ids in state.topic_ids.items():
            assert name not in whole.groups or ids == whole.groups[name].topic_ids[topic][-len(ids) :]
    assert remembered(whole, ended, in_one=not cuts) == remembered(less, ended, in_one=not cuts)
    assert Counter() == alarms(events) - alarms(expected)


def event_ends(log: History) -> dict[int, list[int]]:
    """By partition the offsets where an event ended, as far as times tell: the log's end is at none but such."""
    ends = defaultdict[int, list[int]](list)
    for before, after in pairwise((*log.records, None)):
        if before is not None and (after is None or before.place[::2] != after.place[::2]):
            ends[before.place.partition].append(before.place.offset + 1)
    return ends


def test_types_and_versions_are_the_model_s() -> None:
    """What is reduced is what the model knows: a type or version more is one that it counts, and is left."""
    known = {int(of): max(row.value.SCHEMA.versions) for of, row in RECORD_SCHEMAS.items()}

    assert known == {of: highest for of, highest in enumerate(HIGHEST.tolist()) if highest >= 0}
    assert replica.ENDS == {*ENDS}


def alarms(events: list[Event]) -> Counter[tuple[str, str]]:
    """Alarms by group and kind, but for which way a roll goes: that may hang on who left minutes before the start."""
    return Counter((of.group, of.kind) for of in events if of.severity != INFO and of.kind != "downgrade_started")


@pytest.mark.parametrize("path", PATHS, ids=name_of)
def test_recording(path: Path) -> None:
    log = recording(path)
    ends = event_ends(log)
    for seed in range(4):
        chance = Random(seed)
        until = {of: each[-1] if seed == 0 else chance.choice(each) for of, each in ends.items()}
        last = max(each[-1] for each in ends.values())
        compare(log, until, sorted(chance.randint(0, last) for _ in range(seed)))


@settings(max_examples=max(60, settings().max_examples))
@given(st.integers(0, 2**32), st.integers(0, 2**32), st.integers(0, 3))
def test_simulated(seed: int, where: int, cuts: int) -> None:
    coordinator, chance = lawful(seed), Random(where)
    log = log_of(coordinator)
    ends = [of.offset + len(of.records) for of in coordinator.log]
    until = {log.records[0].place.partition: chance.choice([log.end, chance.choice(ends)])} if len(log) else {}
    compare(log, until, sorted(chance.randint(0, log.end) for _ in range(cuts)))


# -- what the live tail begins with ------------------------------------------------------------------------------------

PAST: Final = history(
    at(1_000, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [1]}}), offset_commit("g", "t", 1, 5)),
    at(2_000, *consumer_join("g", "b", epoch=3, targets={"b": {"t": [1]}}), offset_commit("g", "t", 1, 9)),
)
"""Two members own one partition in the end."""


def test_nothing_is_reported_of_before_the_start_but_what_still_holds() -> None:
    """An alarm that holds at the live tail is reported there, once, whatever number of micro-batches led to it."""
    shard = Shard(live_from=PAST.end, built_until=PAST.end)
    shard.batch(PAST.cut(9))
    shard.batch(list(PAST.records[9:]))
    shard.batch(history(at(9_000, offset_commit("g", "t", 1, 10)), start=PAST.end))

    assert ["duplicate_assignment"] == shard.kinds()
    ((_, bucket),) = shard.buckets().items()
    assert (3, 10) == (bucket.commits, bucket.offsets[1].offset)


def test_rules_go_on_from_what_the_state_says() -> None:
    """A member that leaves after the start was there before it; the group is not reported as new."""
    shard = Shard(live_from=PAST.end, built_until=PAST.end)
    shard.batch(PAST)
    shard.batch(history(at(9_000, *consumer_leave("g", "b", epoch=4)), start=PAST.end))

    kinds = shard.kinds()
    assert "member_left" in kinds
    assert not {"group_created", "member_joined"} & {*kinds}


def test_group_that_is_mixed_at_the_start_is_mixed_since_nobody_knows_when() -> None:
    """Its conversion is no longer in the log: the way and the time are unknown, and it is mixed all the same."""
    log = history(
        at(1_000, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [0]}})),
        at(2_000, *consumer_join("g", "b", epoch=3, targets={"b": {"t": [1]}}, classic=speaks_classic())),
    )
    shard = Shard(live_from=log.end, built_until=log.end)
    shard.batch(log)
    (state,) = shard.groups().values()
    view = migration_view(state)
    shown = summary(state)

    assert (None, None, 1) == (view["mixed_since"], view["phase"], view["upgraded_members"])
    assert shown.mixed
    assert not shown.words.steady

    shard.batch(history(at(9_000, *consumer_leave("g", "b", epoch=4)), start=log.end))
    (state,) = shard.groups().values()
    (completed,) = (of for of in shard.events() if of["kind"] == "upgrade_completed")

    assert "upgraded" == migration_view(state)["phase"]
    assert "mixed_ms" not in completed["detail"]


def test_conversion_before_the_start_is_known() -> None:
    """A group that the log shows being converted is followed by rules: since when it is mixed, and which way."""
    classic = history(at(1_000, group_metadata("g", generation=1, members=[member("a", {"t": [0, 1]})])))
    upgraded = history(
        at(2_000, *converted_to_consumer("g", generation=2, members={"a": {"t": [0, 1]}})),
        at(2_500, *consumer_join("g", "b", epoch=3, targets={"a": {"t": [0]}, "b": {"t": [1]}})),
        start=classic.end,
    )
    shard = Shard(live_from=upgraded.end, built_until=upgraded.end)
    shard.batch([*classic.records, *upgraded.records])
    view = migration_view(shard.groups()["g"])

    assert {"upgrade": 1, "downgrade": 0} == view["conversions"]
    assert "upgrading" == view["phase"]
    assert view["mixed_since"] is not None


def test_late_commit_of_a_transaction_makes_no_alarm_twice() -> None:
    """It lies before the live tail and is read when the transaction has ended: rules have long begun."""
    shard = Shard(live_from=PAST.end, built_until=PAST.end)
    (late,) = (of for of in PAST.records if of.place.timestamp_ms == 1_000 and of.key[:2] == b"\x00\x01")
    shard.batch([of for of in PAST.records if of is not late])
    assert ["duplicate_assignment"] == shard.kinds()

    shard.batch([late])

    assert ["duplicate_assignment"] == shard.kinds()

"""Offsets in columns say what the bucket's text says, in today's format and in the former one."""

import json
from collections import Counter
from collections.abc import Callable
from dataclasses import asdict, replace
from itertools import islice

import pytest

from coordinator_model.state.group_state import GroupState
from coordinator_model.state.offsets import CommittedOffset, OffsetBucket
from coordinator_model.state.packed_offsets import PackedOffsets, dump_offsets, load_offsets
from coordinator_model.state.snapshot import dump_group, offsets_of_text, text_of_offsets
from streaming.board.board_group import BoardGroup
from streaming.board.group_summary import read
from streaming.board.lag_columns import table_of
from streaming.board.offset_columns import OffsetColumns

ID = "dxazPwDJk_iLOXNZh3UcWA"

BUCKETS = {
    "empty": OffsetBucket(topic="t", number=0, commits=4),
    "usual": OffsetBucket(
        topic="orders",
        number=3,
        commits=9,
        rewinds=2,
        offsets={
            partition: CommittedOffset(offset=partition * 10, leader_epoch=7, commit_timestamp_ms=1_700, topic_id=ID)
            for partition in (255, 192, 200)
        },
    ),
    "each says something else": OffsetBucket(
        topic="t",
        number=0,
        offsets={
            0: CommittedOffset(offset=0),
            1: CommittedOffset(offset=-1, metadata='"offsets":{', topic_id=ID),
            2: CommittedOffset(offset=1 << 62, other_version=1, commit_timestamp_ms=5),
        },
    ),
    **{
        f"topic {topic!r}": OffsetBucket(topic=topic, number=1, commits=1, offsets={64: CommittedOffset(offset=1)})
        for topic in ('","number":7', "back\\slash\\", "new\nline", "реклама 🦔", "\ud800", "", "commits", "{}")
    },
}


def of_text(bucket: OffsetBucket) -> PackedOffsets:
    """As in the topic of groups."""
    return offsets_of_text(text_of_offsets(dump_offsets(bucket)))


def of_text_of_release_0_1(bucket: OffsetBucket) -> PackedOffsets:
    """Format 1: an object for each offset, fields that have their defaults left out or not."""
    return offsets_of_text(json.dumps([1, asdict(bucket)], ensure_ascii=False, separators=(",", ":")))


@pytest.mark.parametrize("name", BUCKETS)
@pytest.mark.parametrize("packed", [dump_offsets, of_text, of_text_of_release_0_1])
def test_a_bucket_says_what_was_written(name: str, packed: Callable[[OffsetBucket], PackedOffsets]) -> None:
    """All of it, by whichever release: numbers, words and counts; and it is passed on as this one writes it."""
    bucket = BUCKETS[name]
    held = OffsetColumns(*packed(bucket))
    expected = sorted(bucket.offsets.items())

    assert (bucket.topic, bucket.number) == held.key
    assert (bucket.topic, bucket.commits, len(expected)) == (held.topic, held.commits, held.count)
    assert expected == list(held.offsets())
    assert max((each.commit_timestamp_ms for _, each in expected), default=-1) == held.newest_commit_ms
    assert Counter(each.value_version for _, each in expected) == held.versions
    assert dump_offsets(bucket) == held.packed
    assert bucket == load_offsets(*packed(bucket))


@pytest.mark.parametrize("chosen", [list(BUCKETS), ["usual"], ["empty"], ["each says something else", "usual"], []])
def test_a_table_of_buckets_says_what_each_says(chosen: list[str]) -> None:
    """Row by row, whoever's it is; what is counted is there of topics that the group has to do with."""
    (state,) = read([(b"", dump_group(GroupState(name="g", partition=0)))])
    groups = [
        BoardGroup(f"g{at}", state, (OffsetColumns(*dump_offsets(BUCKETS[name])),)) for at, name in enumerate(chosen)
    ]

    table = table_of([BoardGroup("none", state, ()), *groups])

    names = {number: id_ for id_, number in table.ids.items()}
    columns = (table.owners, table.topic_of, table.partitions, table.offsets, table.times_ms, table.leader_epochs)
    rows = [
        (owner, table.topics[topic], *numbers, names.get(id_))
        for owner, topic, *numbers, id_ in zip(*(column.tolist() for column in (*columns, table.id_of)), strict=True)
    ]
    assert rows == [
        (at, BUCKETS[name].topic, number, of.offset, of.commit_timestamp_ms, of.leader_epoch, of.topic_id)
        for at, name in enumerate(chosen, 1)
        for number, of in sorted(BUCKETS[name].offsets.items())
    ]
    assert [
        (owner, table.topics[topic], *counts) for owner, topic, *counts in zip(*table.counted.tolist(), strict=True)
    ] == [
        (at, BUCKETS[name].topic, BUCKETS[name].commits, BUCKETS[name].rewinds)
        for at, name in enumerate(chosen, 1)
        if BUCKETS[name].offsets
    ]


def test_words_are_there_once() -> None:
    """Buckets whose commits say the same share them, whatever their numbers."""
    other = replace(BUCKETS["usual"], number=0, offsets={5: replace(BUCKETS["usual"].offsets[192], offset=7)})

    assert OffsetColumns(*dump_offsets(BUCKETS["usual"])).words is OffsetColumns(*dump_offsets(other)).words


@pytest.mark.parametrize("name", BUCKETS)
def test_text_that_is_cut_short_is_refused(name: str) -> None:
    """Wherever it ends: no offsets are made up of it."""
    text = text_of_offsets(dump_offsets(BUCKETS[name]))

    for end in range(len(text)):
        with pytest.raises((ValueError, LookupError)):
            OffsetColumns(*offsets_of_text(text[:end]))


def test_words_and_numbers_that_do_not_go_together_are_refused() -> None:
    """A bucket of another one's numbers is none."""
    mixed, usual, empty = (dump_offsets(BUCKETS[name]) for name in ("each says something else", "usual", "empty"))
    two = dump_offsets(replace(BUCKETS["usual"], offsets=dict(islice(BUCKETS["usual"].offsets.items(), 2))))

    for numbers, words in (
        (two[0], mixed[1]),
        (empty[0], mixed[1]),
        (usual[0], empty[1]),
        (usual[0][:-32], usual[1]),
        (b"AAA", usual[1]),
    ):
        with pytest.raises(ValueError, match="bytes"):
            OffsetColumns(numbers, words)

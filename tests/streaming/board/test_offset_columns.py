"""Offsets in columns say what the bucket's text says."""

import pytest

from coordinator_model.state.offsets import CommittedOffset, OffsetBucket
from coordinator_model.state.snapshot import dump_offsets
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


@pytest.mark.parametrize("name", BUCKETS)
@pytest.mark.parametrize("respaced", [False, True], ids=["as written", "as another release may write it"])
def test_a_bucket_says_what_was_written(name: str, *, respaced: bool) -> None:
    """Topic, number and counts are there before the rest is read, and the offsets are those of the bucket."""
    bucket = BUCKETS[name]
    text = dump_offsets(bucket)
    held = OffsetColumns(text.replace("[1,{", "[1, {", 1) if respaced else text)
    expected = sorted(bucket.offsets.items())

    assert (bucket.topic, bucket.number) == held.key
    assert (bucket.commits, bucket.rewinds) == (held.commits, held.rewinds)
    assert expected == list(held.offsets())
    assert expected == list(held.offsets())
    assert (
        [partition for partition, _ in expected],
        [each.offset for _, each in expected],
        [each.commit_timestamp_ms for _, each in expected],
    ) == tuple(map(list, held.columns))
    assert max((each.commit_timestamp_ms for _, each in expected), default=-1) == held.newest_commit_ms


def test_topic_ids_and_versions_are_reported_once_where_they_are_the_same() -> None:
    """Lag asks for the ids, the downgrade gate for the versions."""
    usual, mixed, empty = (
        OffsetColumns(dump_offsets(BUCKETS[name])) for name in ("usual", "each says something else", "empty")
    )

    assert (ID, (None, ID, None), ()) == (usual.topic_ids, mixed.topic_ids, empty.topic_ids)
    assert ({4: 3}, {3: 1, 4: 1, 1: 1}, {}) == (usual.versions, mixed.versions, empty.versions)

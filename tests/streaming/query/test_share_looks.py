"""Whether there were records at offsets that a share group gave up below its limit."""

from typing import Any, Final

import pytest
from confluent_kafka import KafkaError, Message

from lab.builders import topic_id
from lab.share_state import share_snapshot_tombstone, share_update
from streaming.kafka.plain_consumer import ReadError, ReadPartition
from streaming.query import share_looks
from streaming.query.share_looks import MOST_OFFSETS, Doubtful, ShareLooks, by_id, doubtful, of_json

JOBS: Final = ("jobs", 0)
OTHERS: Final = ("others", 3)


def test_doubtful_is_what_is_archived_below_the_limit() -> None:
    """Of the group, where it has one of its own; records that say nothing of that are passed over."""
    records = [
        share_update("s", "t", 0, (3, 4, 4, 1), (5, 5, 4, 5), (6, 6, 2, 1), (9, 9, 4, 2)),
        share_update("own", "t", 1, (3, 3, 4, 2), (4, 4, 4, 1)),
        share_snapshot_tombstone("s", "t", 2),
        (None, b""),
    ]

    assert {(topic_id("t"), 0): Doubtful(3, 9), (topic_id("t"), 1): Doubtful(4, 4)} == doubtful(records, {"own": 2})


class Topics:
    """As a `PartitionReader`: records at some offsets, ends, and partitions that may not be read."""

    def __init__(self, records: dict[ReadPartition, list[int]], ends: dict[ReadPartition, int]) -> None:
        self._records, self.ends = records, ends
        self.denied: set[ReadPartition] = set()
        self.positions: dict[ReadPartition, int] = {}

    def begin(self, places: dict[ReadPartition, int]) -> None:
        self.positions = dict(places)

    def poll(self, _most: int, _seconds: float) -> list[Message]:
        found = []
        for place, at in self.positions.items():
            if place in self.denied:
                raise ReadError(KafkaError(KafkaError.TOPIC_AUTHORIZATION_FAILED), place)
            found += [(*place, offset) for offset in self._records.get(place, ()) if offset >= at]
            self.positions[place] = self.ends[place]
        return [
            Message(topic=topic, partition=partition, offset=offset, value=b"", timestamp=(1, 1))
            for topic, partition, offset in found
        ]


@pytest.fixture
def topics(monkeypatch: pytest.MonkeyPatch) -> Topics:
    found = Topics({JOBS: [2, 3, 5], OTHERS: [7]}, {JOBS: 8, OTHERS: 9})
    monkeypatch.setattr(share_looks, "PartitionReader", lambda *_: found)
    return found


def look(asked: dict[ReadPartition, Doubtful]) -> Any:
    return ShareLooks({}).look(asked)


def test_each_offset_is_said_to_hold_a_record_or_none(topics: Topics) -> None:
    """A marker, or what was compacted away, is none."""
    assert {JOBS: {3: True, 4: False, 5: True, 6: False}, OTHERS: {7: True}} == look(
        {JOBS: Doubtful(3, 6), OTHERS: Doubtful(7, 7)}
    )
    assert {} == topics.positions


def test_of_a_topic_that_may_not_be_read_nothing_is_said(topics: Topics) -> None:
    """Of the others it is."""
    topics.denied = {JOBS}
    assert {OTHERS: {7: True}} == look({JOBS: Doubtful(3, 6), OTHERS: Doubtful(7, 7)})
    topics.denied = {JOBS, OTHERS}
    assert {} == look({JOBS: Doubtful(3, 6), OTHERS: Doubtful(7, 7)})


def test_beyond_what_was_read_nothing_is_known(topics: Topics) -> None:
    """The end of the partition, or as many offsets as are looked at."""
    assert {JOBS: {7: False}} == ShareLooks({}).look({JOBS: Doubtful(7, 12)}, seconds=0.05)
    topics.ends[JOBS] = 20_000
    assert MOST_OFFSETS == len(look({JOBS: Doubtful(0, 10_000)})[JOBS])


def test_what_was_seen_comes_back_from_json() -> None:
    """By the topic's id, which may hold anything but a colon."""
    looked = {JOBS: {3: True, 4: False}, OTHERS: {}}

    assert {("id-of-jobs", 0): {3: True, 4: False}} == of_json(by_id(looked, {"jobs": "id-of-jobs", "others": "o"}))

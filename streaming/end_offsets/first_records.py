"""Whether a record waits at an offset, by reading there as a consumer of committed records does.

Transactions leave offsets that are never delivered: a marker at the end of each, and all of those that were aborted.
Their number is part of lag, and no request of brokers tells them from records (ListOffsets by time answers with a
marker as with a record): only reading does. What is read is let go of at once; READ on the topic is what it takes.
"""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from streaming.end_offsets.single_records import POLL_SECONDS, SingleRecords
from streaming.end_offsets.store import TopicPartition
from streaming.kafka.plain_consumer import NOT_THERE, REFUSED, UNREADABLE, PartitionReader, ReadError


@dataclass(slots=True)
class FirstRecords:
    """What came of one look.

    Attributes:
        gaps: partition → offset it was looked at from, the first one after it that holds a record or lies beyond what
            can be read, and whether it holds a record. What gave no answer in time is missing, and so is what stands
            before a batch that cannot be read.
        refused: topics that may not be read.
    """

    gaps: dict[TopicPartition, tuple[int, int, bool]] = field(default_factory=dict)
    refused: set[str] = field(default_factory=set)


class RecordLooks:
    """Reads the first committed record at some offset or after it; connects with the first question.

    Args:
        settings: of librdkafka. No group is joined and nothing is committed.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._records = SingleRecords(settings, committed=True, gone="error")

    def first_at(self, places: Mapping[TopicPartition, int]) -> FirstRecords:
        """The first records at these offsets or after them. Raises ReadError."""
        with self._records.reader() as reader:
            try:
                return self._look(reader, places)
            except ReadError:
                self._records.let_go()
                raise

    def close(self) -> None:
        """Let go of all connections; a question under way in another thread ends early."""
        self._records.close()

    def _look(self, reader: PartitionReader, places: Mapping[TopicPartition, int]) -> FirstRecords:
        reader.begin(places)
        found = FirstRecords()
        for _ in self._records.turns():
            if not reader.positions:
                break
            try:
                # One at a time: an error of one partition is to lose nothing of another.
                records = reader.poll(1, POLL_SECONDS)
            except ReadError as error:
                if error.code == REFUSED:
                    found.refused.add(error.place[0])
                elif error.code not in NOT_THERE | UNREADABLE:
                    raise
                reader.leave([place for place in reader.positions if place == error.place or place[0] in found.refused])
                continue
            for record in records:
                place = record.topic() or "", record.partition() or 0
                found.gaps[place] = places[place], record.offset() or 0, True
            for place, at in reader.positions.items():
                if at > places[place] and place not in found.gaps:
                    found.gaps[place] = places[place], at, False
            reader.leave(reader.positions.keys() & found.gaps.keys())
        reader.leave([*reader.positions])
        return found

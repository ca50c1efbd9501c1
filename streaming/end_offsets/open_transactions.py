"""How old the oldest open transaction of a partition is: the age of the record at its last stable offset.

The last stable offset is by definition the first record of the first transaction that is open, so that record's
timestamp is when the transaction wrote there first. It is asked for only where the same offset has stood for some
seconds: applications that commit every 100 ms always have a transaction open, and another one every time. Until it is
known, and where it cannot be had, the age is counted from the first sample that showed the transaction.
"""

from collections.abc import Mapping
from typing import Any, Final

from streaming.end_offsets.single_records import POLL_SECONDS, SingleRecords
from streaming.end_offsets.store import TopicPartition
from streaming.kafka.plain_consumer import UNREADABLE, ReadError

STANDS_MS: Final = 5_000
"""How long a last stable offset has to stand before the record at it is asked for."""


class RecordTimes:
    """Reads single records of the log, uncommitted ones too; connects with the first question.

    Args:
        settings: of librdkafka. No group is joined and nothing is committed.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._records = SingleRecords(settings)

    def written_ms(self, places: Mapping[TopicPartition, int]) -> dict[TopicPartition, int]:
        """Timestamps of the records at these offsets; what does not come in time, or cannot be read, is left out.

        Raises ReadError.
        """
        found: dict[TopicPartition, int] = {}
        with self._records.reader() as reader:
            try:
                reader.begin(places)
                for _ in self._records.turns():
                    if not reader.positions:
                        break
                    try:
                        # One at a time: an error of one partition is to lose nothing of another.
                        records = reader.poll(1, POLL_SECONDS)
                    except ReadError as error:
                        if error.code not in UNREADABLE:
                            raise
                        reader.leave([error.place])
                        continue
                    for record in records:
                        place = record.topic() or "", record.partition() or 0
                        if (record.offset() or 0) >= places[place]:
                            found.setdefault(place, record.timestamp()[1])
                    reader.leave(reader.positions.keys() & found.keys())
            finally:
                if len(found) < len(places):
                    # Who leads the others may be another broker by now: the next question begins with another look.
                    self._records.let_go()
        return found

    def close(self) -> None:
        """Let go of all connections; a question under way in another thread ends early."""
        self._records.close()

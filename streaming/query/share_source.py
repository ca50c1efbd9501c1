"""The share coordinator's log beside the first one: planned with it, read with it, in the same micro-batches.

The position has a second part, `SHARE`, of the same form as the first; both views are one, as this log has no
transactions. What `log_continuity.py` says of leaders and epochs holds here too. What differs:

    of the log it is seen that                 it is
    there is no such topic                     looked for once a minute: Kafka makes it with the first share group
    it may not be read                         the same; nothing waits for it
    records to be read are deleted             lawful: read on at its start, and said so (`share_cells.Pruned`)
    a partition cannot be read                 left out and owed, as one of the first log

The coordinator deletes from the log's start what later records have made superfluous: each share partition that lives
has a snapshot behind the start.
"""

import threading
import time
from collections.abc import Callable, Collection, Mapping
from typing import TYPE_CHECKING, Any, Final

import pyarrow as pa
import pyarrow.compute as pc
from confluent_kafka import KafkaException

from coordinator_model.records.topics import SHARE_STATE_TOPIC
from streaming.kafka.log_bounds import AWAY, LogBounds
from streaming.kafka.range_reader import LogLostError, RangeReader, Ranges, SteppedOver
from streaming.kafka.share_log import ASK_SECONDS, look_for
from streaming.query.log_continuity import Ask, LogContinuity, Look, Note
from streaming.query.progress import MEMBERSHIP
from streaming.query.row_codec import LOG_LAYOUT
from streaming.query.share_cells import Facts, Pruned

if TYPE_CHECKING:
    from streaming.query.share_looks import ShareLooks

LOOK_SECONDS: Final = 60.0
"""How often the topic is looked for, and what is said of limits and topics is asked again."""

NAMES_SECONDS: Final = 5.0
"""How often topics are asked for their names where one is not known."""

_NEVER: Final = float("inf")


class ShareLog:
    """Plans what is read of the log; used by one thread.

    Args:
        settings: of the source (`source.coordinator_log`).
        epoch_ends: asks leaders about epochs of this topic.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        epoch_ends: Ask,
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._settings = settings
        self._epoch_ends = epoch_ends
        self._clock = clock
        self._bounds: LogBounds | None = None
        self._continuity: LogContinuity | None = None
        self._look_at = -_NEVER
        self._is_readable = False
        self._was_absent = False
        self._facts_at = -_NEVER
        self._facts = Facts()

    def look(self, start: Mapping[str, Any]) -> Look | None:
        """What may be read of this log from here on; None where it may not be read at all, or no broker answers."""
        if not self._may_read():
            return None
        assert self._bounds is not None  # noqa: S101 - made when it was seen that the topic may be read
        try:
            bounds = self._bounds.ends()
            if self._continuity is None:
                # Where the log was not there yet, all of it is live.
                known = None if self._was_absent else {int(of) for of in start[MEMBERSHIP]}
                owed = {int(of): Note.of(note) for of, note in self._settings["known"]["share_owed"].items()}
                self._continuity = LogContinuity(self._epoch_ends, live_from=known, tombstone_seconds=_NEVER, owed=owed)
            return self._continuity.look(start, bounds, self._bounds.first)
        except KafkaException as error:
            self._is_readable = error.args[0].code() in AWAY
            return None

    def planned(self, partitions: Collection[int]) -> None:
        """These are read in a micro-batch whose end says all that was found of them."""
        if self._continuity is not None:
            self._continuity.planned(partitions)

    def facts(self) -> Facts:
        """What brokers last said; they are asked beside the reading, and waited for only the first time."""
        now = self._clock()
        if now - self._facts_at >= LOOK_SECONDS:
            is_first, self._facts_at = self._facts_at < 0, now
            asking = threading.Thread(target=self._refresh, name="share-facts", daemon=True)
            asking.start()
            if is_first:
                asking.join(ASK_SECONDS)
        return self._facts

    def _refresh(self) -> None:
        from streaming.kafka import broker_queries
        from streaming.kafka.client_settings import section_of

        kafka = section_of(self._settings["kafka"])
        self._facts = Facts(broker_queries.delivery_count_limits(kafka), broker_queries.topic_names(kafka))

    def _may_read(self) -> bool:
        now = self._clock()
        if self._is_readable or now < self._look_at:
            return self._is_readable
        self._look_at = now + LOOK_SECONDS
        if self._bounds is None:
            self._bounds = LogBounds(self._settings["client"], SHARE_STATE_TOPIC, ASK_SECONDS)
        try:
            is_there, self._is_readable = look_for(self._settings["client"])
        except KafkaException:
            return False
        self._was_absent |= not is_there
        return self._is_readable


class ShareReader:
    """Reads what was planned, in the process that it is made in.

    Args:
        settings: of the source.
        patience_seconds: how long no record may come.
        batch_end: as of `RangeReader`.
    """

    def __init__(
        self,
        settings: Mapping[str, Any],
        patience_seconds: float,
        batch_end: Callable[[int, int, int], int | None],
    ) -> None:
        self._settings = settings
        self._looks: ShareLooks | None = None
        self._names_of: dict[str, str] = {}
        self._named_at = -_NEVER
        self._bounds = LogBounds(settings["client"], SHARE_STATE_TOPIC, ASK_SECONDS)
        self._reader = RangeReader(
            settings["client"] | settings["fetch"],
            SHARE_STATE_TOPIC,
            committed=False,
            timeout_seconds=patience_seconds,
            batch_end=batch_end,
            largest_value_bytes=settings["max_record_bytes"],
        )

    def read(
        self,
        ranges: Ranges,
        left_out: set[int],
        stepped_over: dict[int, list[SteppedOver]],
        *,
        may_leave_out: bool,
    ) -> tuple[pa.Table, dict[int, Pruned]]:
        """Records of the ranges, and where they begin later than was planned, as they are deleted.

        What cannot be read to its end is put into `left_out`, if it `may_leave_out`.

        Raises:
            KafkaException, LogLostError: a partition cannot be read.
        """
        try:
            tables = self._tables(ranges, left_out, stepped_over)
            pruned = self._pruned({of: ranges[of] for of in left_out}) if left_out else {}
        except (KafkaException, LogLostError):
            if not may_leave_out:
                raise
            left_out.update(ranges)
            return LOG_LAYOUT.empty_table(), {}
        lost = pa.array(sorted(left_out), pa.int32())
        tables = [table.filter(pc.invert(pc.is_in(table["partition"], lost))) for table in tables]
        left_out.difference_update(pruned)
        again = {of: (first, ranges[of][1]) for of, (first, _) in pruned.items() if first < ranges[of][1]}
        if again:
            tables += self._tables(again, left_out, stepped_over)
        if left_out and not may_leave_out:
            raise LogLostError(f"{SHARE_STATE_TOPIC}: partitions that cannot be read: {sorted(left_out)}")
        found = pa.concat_tables(tables) if tables else LOG_LAYOUT.empty_table()
        return found, {of: at for of, at in pruned.items() if of not in left_out}

    def looked(self, rows: pa.Table, facts: Facts) -> dict[str, dict[str, bool]]:
        """Whether there are records at offsets that these records archive below the limit, where that may be read."""
        from streaming.query.share_looks import ShareLooks, by_id, doubtful

        asked = doubtful(zip(rows["key"].to_pylist(), rows["value"].to_pylist(), strict=True), facts.limits)
        names = self._names({id_ for id_, _ in asked}, facts)
        if not names:
            return {}
        if self._looks is None:
            self._looks = ShareLooks(self._settings["client"] | self._settings["fetch"])
        looked = self._looks.look({(names[id_], number): of for (id_, number), of in asked.items() if id_ in names})
        return by_id(looked, {name: id_ for id_, name in names.items()})

    def _names(self, ids: set[str], facts: Facts) -> dict[str, str]:
        """Names of topics, asked for where one is not known, which may be new."""
        now = time.monotonic()
        if ids and not ids <= facts.names.keys() | self._names_of.keys() and now - self._named_at >= NAMES_SECONDS:
            from streaming.kafka.broker_queries import topic_names
            from streaming.kafka.client_settings import section_of

            self._named_at = now
            self._names_of = topic_names(section_of(self._settings["kafka"]))
        known = {**facts.names, **self._names_of}
        return {id_: known[id_] for id_ in ids if id_ in known}

    def _pruned(self, asked: Ranges) -> dict[int, Pruned]:
        """Partitions whose log begins behind where they were to be read from."""
        first, ends = self._bounds.first(asked), self._bounds.ends().high
        return {of: Pruned(at, ends.get(of, at)) for of, at in first.items() if at > asked[of][0]}

    def _tables(
        self, ranges: Mapping[int, tuple[int, int]], left_out: set[int], stepped_over: dict[int, list[SteppedOver]]
    ) -> list[pa.Table]:
        return [
            pa.Table.from_arrays(
                [pa.array(column, field.type) for column, field in zip(columns, LOG_LAYOUT, strict=True)],
                schema=LOG_LAYOUT,
            )
            for columns in self._reader.read(ranges, left_out, stepped_over)
        ]

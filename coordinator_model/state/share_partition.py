"""What Kafka holds of one share partition: where delivery begins, and what became of the offsets after it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Final, NamedTuple

AVAILABLE: Final = 0
ACKNOWLEDGED: Final = 2
ARCHIVING: Final = 3
ARCHIVED: Final = 4

STATES: Final = {AVAILABLE: "Available", ACKNOWLEDGED: "Acknowledged", ARCHIVING: "Archiving", ARCHIVED: "Archived"}
"""Delivery states with names. Acquired (1) is never written, archiving not yet."""

DONE: Final = frozenset({ACKNOWLEDGED, ARCHIVED})
"""States after which an offset is not delivered again."""

NOT_INITIALIZED: Final = -1
"""Start offset of a share partition whose state was set up and not yet used."""
NOT_KNOWN: Final = -1
"""Of a leader epoch, or of the count of what is done (brokers before 4.2 write none)."""


LIMIT: Final = "limit"
REJECTED: Final = "rejected"
UNCLEAR: Final = "unclear"
"""Why an offset was archived: delivered too often; rejected by a member; or, perhaps, no record was there."""

REDELIVERED: Final = 2
"""Delivery count from which on a record was delivered before, in vain."""

DEFAULT_DELIVERY_COUNT_LIMIT: Final = 5
"""Kafka's `group.share.delivery.count.limit`."""


class Batch(NamedTuple):
    """Neighbouring offsets of one state and delivery count; `last` is one of them."""

    first: int
    last: int
    state: int
    deliveries: int


class GivenUp(NamedTuple):
    """Offsets that were archived for one cause: from one to another, which need not be all between them."""

    first: int
    last: int
    records: int
    delivery_count: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Crowd:
    """What is said in a minute in which much is given up (`rules/share_records.py`).

    Attributes:
        since_ms: when the minute began.
        reported: how many events were reported in it.
        kept: cause → what came after them, to be reported together.
        offset: of the record that gave up the last of that.
        at_ms: its time.
        ordinal: the first that is free of events of that record.
    """

    since_ms: int
    reported: int = 0
    kept: Mapping[str, GivenUp] = field(default_factory=dict)
    offset: int = -1
    at_ms: int = -1
    ordinal: int = 0


class SharePartitionId(NamedTuple):
    """Which share partition: topics stand under their id, which a topic that is made again does not keep."""

    group: str
    topic_id: str
    partition: int


@dataclass(slots=True, kw_only=True)
class SharePartition:
    """One share partition, as `ShareGroupOffset` has it.

    Attributes:
        state_epoch: goes up with each initialization, by an operator's reset too; 0 where no snapshot was read.
        leader_epoch: of the partition's leader that last read the state; NOT_KNOWN before.
        start_offset: below it nothing is delivered; NOT_INITIALIZED before the first use. It is written before it
            moves, so all that is done behind it may not show yet: `share_partitions.first_not_done`.
        delivery_complete_count: offsets from the start offset on that are done, or NOT_KNOWN.
        batches: what is written of offsets from the start on, ascending and apart, neighbours of one kind joined.
        create_ms: when the state was made, by the coordinator's clock; 0 where no snapshot was read.
        write_ms: when the last snapshot was written, by the same clock.
        log_partition: of the log that this was read from.
        last_offset: of the last record that was applied, in that log.
        last_ms: time of that record.
        highest_start_offset: of this state epoch; what lies below was counted, if it is written again.
        archived: cause (LIMIT, REJECTED, UNCLEAR) → offsets that were given up for it, as far back as the log goes.
        moved_ms: when the first offset that is not done last moved, by the time of its record; -1 before.
        done_ms: the same of when an offset last became done.
    """

    id: SharePartitionId
    snapshot_epoch: int = 0
    state_epoch: int = 0
    leader_epoch: int = NOT_KNOWN
    start_offset: int = NOT_INITIALIZED
    delivery_complete_count: int = NOT_KNOWN
    batches: list[Batch] = field(default_factory=list)
    create_ms: int = 0
    write_ms: int = 0
    log_partition: int = 0
    last_offset: int = -1
    last_ms: int = -1
    highest_start_offset: int = NOT_INITIALIZED
    archived: Mapping[str, int] = field(default_factory=dict)
    crowd: Crowd | None = None
    moved_ms: int = -1
    done_ms: int = -1

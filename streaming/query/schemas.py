"""Row layouts at the borders of the stateful step: what enters it, what it keeps, what leaves it."""

from typing import Final, NamedTuple

from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType

BUNDLE: Final = "bundle"
"""Grouping key: a bundle of partitions of the offsets topic, as many of them as there are stateful tasks."""

PACKED: Final = StructType(
    [StructField(BUNDLE, IntegerType(), nullable=False), StructField("rows", BinaryType(), nullable=False)]
)
"""What one source task read of one bundle, as `row_codec` puts it together."""

GROUP_KEY: Final = StructType([StructField("group", StringType(), nullable=False)])
BUCKET_KEY: Final = StructType(
    [
        StructField("group", StringType(), nullable=False),
        StructField("topic", StringType(), nullable=False),
        StructField("bucket", IntegerType(), nullable=False),
    ]
)
SNAPSHOT: Final = StructType([StructField("snapshot", StringType(), nullable=False)])
"""What every state variable but packs holds: text of `state/snapshot.py`, or the ledger of a shard task."""

SLOT_KEY: Final = StructType(
    [StructField("partition", IntegerType(), nullable=False), StructField("slot", IntegerType(), nullable=False)]
)
PACK: Final = StructType([StructField("pack", BinaryType(), nullable=False)])
"""Entries of groups and offsets, as `state_cache` puts them together."""

GROUPS_STATE: Final = "groups"
OFFSETS_STATE: Final = "offsets"
PACKS_STATE: Final = "packs"
BOOK_STATE: Final = "book"

OUTPUT: Final = StructType([StructField("rows", BinaryType(), nullable=False)])
"""What leaves it: `OutputRow`s, as `row_codec` puts them together."""


class OutputRow(NamedTuple):
    """One row for the sinks. All but events are absolute, so that a repeated batch changes nothing.

    kind            payload
    group           snapshot of a group without its offsets
    group_deleted   empty
    offsets         snapshot of one offset bucket
    event           docs/schemas/event.schema.json, as JSON
    shard           totals of an offsets partition, as JSON
    undecodable     where and why a record was passed over, as JSON
    unreadable      the same of a batch of records
    share           figures of a share partition, as JSON; of no group, as those that follow
    share_gone      which share partition has ended
    share_log       totals of a partition of the share coordinator's log, as JSON
    """

    partition: int
    kind: str
    group: str
    payload: str
    event_kind: str = ""
    """Of an event, so that events are counted without a look into their payload."""

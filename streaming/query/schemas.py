"""Row layouts at the borders of the stateful step: what enters it, what it keeps, what leaves it."""

from typing import Final

from pyspark.sql.types import BinaryType, IntegerType, StringType, StructField, StructType

BUNDLE: Final = "bundle"
"""Grouping key: a bundle of partitions of the offsets topic, as many of them as there are stateful tasks."""

PACKED: Final = StructType(
    [StructField(BUNDLE, IntegerType(), nullable=False), StructField("rows", BinaryType(), nullable=False)]
)
"""What one source task read of one bundle, as `row_codec` puts it together."""

SLOT_KEY: Final = StructType(
    [StructField("partition", IntegerType(), nullable=False), StructField("slot", IntegerType(), nullable=False)]
)
PACK: Final = StructType([StructField("pack", BinaryType(), nullable=False)])
"""Many entries, as `state_cache` puts them together; under a key of its own the task's ledger."""

ENTRY_KEY: Final = StructType(
    [
        StructField("partition", IntegerType(), nullable=False),
        StructField("group", StringType(), nullable=False),
        StructField("topic", StringType(), nullable=False),
        StructField("bucket", IntegerType(), nullable=False),
    ]
)
ENTRY: Final = StructType(
    [StructField("payload", BinaryType(), nullable=False), StructField("words", StringType(), nullable=False)]
)
"""A group or an offset bucket, as a row for the sinks has it."""

PACKS_STATE: Final = "packs"
ENTRIES_STATE: Final = "entries"

GROUP_KEY: Final = StructType([StructField("group", StringType(), nullable=False)])
BUCKET_KEY: Final = StructType(
    [
        StructField("group", StringType(), nullable=False),
        StructField("topic", StringType(), nullable=False),
        StructField("bucket", IntegerType(), nullable=False),
    ]
)
SNAPSHOT: Final = StructType([StructField("snapshot", StringType(), nullable=False)])
GROUPS_STATE: Final = "groups"
OFFSETS_STATE: Final = "offsets"
BOOK_STATE: Final = "book"
"""What state layouts before 7 had beside packs (`former_state.py`)."""

OUTPUT: Final = StructType([StructField("rows", BinaryType(), nullable=False)])
"""What leaves it: rows for the sinks, as `row_codec` puts them together."""

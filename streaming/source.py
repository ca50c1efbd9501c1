"""The coordinator's log as rows for the shards.

Two views of one log (design, decision 5). Offset commits may be transactional, and an aborted one must never count:
they are read committed. Membership records never are, and must not wait behind another group's open transaction:
they are read uncommitted. Routing by record type is done on the key's first two bytes by Spark itself, so neither
reader's other half reaches Python.
"""

import json
from collections.abc import Sequence
from typing import Final

from pyspark.sql import DataFrame, SparkSession
from pyspark.sql import functions as F  # noqa: N812 - everyone's name for it

from streaming.config import Config
from streaming.kafka_client import IsolationLevel, spark_options
from streaming.packing import packer
from streaming.schemas import PACKED

# Record types 0 and 1, as the key's big-endian int16.
_IS_OFFSET_COMMIT: Final = "coalesce(substring(key, 1, 2) in (X'0000', X'0001'), false)"

COMMITTED: Final = "read_committed"
UNCOMMITTED: Final = "read_uncommitted"


def isolation_levels(config: Config) -> tuple[IsolationLevel, ...]:
    """Isolation levels of the readers, in the order of the query's sources."""
    return (COMMITTED,) if config.source.isolation == "committed_only" else (COMMITTED, UNCOMMITTED)


def coordinator_log(spark: SparkSession, config: Config, partitions: int, keys: Sequence[int]) -> DataFrame:
    """Every record of the offsets topic, packed as `schemas.PACKED` under these keys of bundles."""
    readers = [_reader(spark, config, level, partitions) for level in isolation_levels(config)]
    if len(readers) == 1:
        log = _rows(readers[0])
    else:
        committed, uncommitted = readers
        log = _rows(committed.where(_IS_OFFSET_COMMIT)).unionAll(_rows(uncommitted.where(f"not {_IS_OFFSET_COMMIT}")))
    return log.coalesce(config.source.tasks).mapInArrow(packer(keys), PACKED)


def _reader(spark: SparkSession, config: Config, level: IsolationLevel, partitions: int) -> DataFrame:
    options = spark_options(config, level)
    # `subscribe` would make the driver join a group, which would be written into the very topic that is read.
    topic = options.pop("subscribe")
    return (
        spark.readStream.format("kafka")
        .options(**options)
        .option("assign", json.dumps({topic: list(range(partitions))}))
        .option("startingOffsets", "earliest")
        # Records that compaction took are no loss; a log cut off or made anew is, and must not pass in silence.
        .option("failOnDataLoss", "true")
        .load()
    )


def _rows(log: DataFrame) -> DataFrame:
    return log.select(
        F.col("partition"),
        F.col("offset"),
        F.unix_millis("timestamp").alias("timestamp_ms"),
        F.col("key"),
        F.col("value"),
    )

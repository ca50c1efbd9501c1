"""A log that is cleaned within seconds, tombstones and all, so that no one waits for a day."""

import time
from collections.abc import Callable
from typing import Final

from lab import builders
from lab.monitor_process import until
from tests.faults.coordinator_log import PARTITIONS, Events, Log, Write, hash_of

EAGER_CLEANER: Final = {"log.cleaner.backoff.ms": "300", "log.cleaner.min.cleanable.ratio": "0.01"}
"""Of the broker; topics that are not compacted do not notice."""

RETENTION_MS: Final = 4_000
COMPACTED: Final = {
    "cleanup.policy": "compact",
    "delete.retention.ms": str(RETENTION_MS),
    "min.cleanable.dirty.ratio": "0.01",
    # A segment is closed by the next record after so long, and only closed ones are cleaned.
    "segment.ms": "500",
}


FILLERS: Final = tuple(f"filler-{number}" for number in range(PARTITIONS))
"""Groups that only commit, one in each partition."""


def filler(number: int) -> Events:
    """A commit in each partition: it closes the segment before it, and makes the last one dirty again."""
    time_ms = int(1000 * time.time())
    return [
        Write(hash_of(group), time_ms, *builders.offset_commit(group, "t", 0, number, timestamp=time_ms))
        for group in FILLERS
    ]


def groups_in(log: Log) -> set[str]:
    """Names of groups of which any record is left, tombstones included."""
    # The name comes behind the type of the key and its own length.
    return {of.key[4 : 4 + int.from_bytes(of.key[2:4])].decode() for of in log.records()}


def clean_away(log: Log, group: str) -> None:
    """Write on until nothing shows any more that there was such a group."""
    write_on_until(log, lambda: group not in groups_in(log), f"the cleaner leaves records of {group}")


def write_on_until(log: Log, holds: Callable[[], bool], otherwise: str) -> None:
    """Give the cleaner segments that are closed, until something holds of what it has left."""
    number = 0

    def is_so() -> bool:
        nonlocal number
        number += 1
        log.write(filler(number))
        time.sleep(0.6)
        return holds()

    until(is_so, 240, otherwise)

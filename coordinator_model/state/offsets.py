"""Committed offsets of a group, in buckets.

A bucket holds the offsets of up to 64 neighbouring partitions of one topic. It is the unit in which offsets are
kept in the checkpoint and passed on: one state access for a commit of a whole small topic, and at most 64 offsets
rewritten when one partition of ten thousand commits.

The log says nothing about who committed (OffsetCommitValue.json): a commit has no member, generation or epoch.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from typing import Final

BUCKET_PARTITIONS: Final = 64

ZERO_TOPIC_ID: Final = "AAAAAAAAAAAAAAAAAAAAAA"
"""Kafka's "no topic id", as in commits before 4.1 and in transactional ones."""


_VERSION_WITH_TOPIC_ID: Final = 4
_VERSION_WITHOUT: Final = 3


@dataclass(slots=True)
class CommittedOffset:
    """One committed offset (OffsetCommitValue), never changed. `topic_id` is None where the record has none.

    `other_version` is the record's value version where it is not the usual one: 4 with a topic id, 3 without.
    """

    # Not frozen: one is made for every commit of the log, and a frozen dataclass takes four times as long to make.

    offset: int
    leader_epoch: int = -1
    metadata: str = ""
    commit_timestamp_ms: int = -1
    topic_id: str | None = None
    other_version: int | None = None

    @property
    def value_version(self) -> int:
        """Version of the OffsetCommitValue, 0 for a LegacyOffsetCommitValue: who can read the record."""
        if self.other_version is not None:
            return self.other_version
        return _VERSION_WITHOUT if self.topic_id is None else _VERSION_WITH_TOPIC_ID


def goes_back(former: int, committed: int) -> bool:
    """Whether a commit takes back what was read: from -1 and -2, which clients commit before they read, none can."""
    return committed < former >= 0


def other_version(version: int, topic_id: str | None) -> int | None:
    """What `CommittedOffset.other_version` holds of a value version: None where it is the usual one."""
    return None if version == (_VERSION_WITHOUT if topic_id is None else _VERSION_WITH_TOPIC_ID) else version


@dataclass(slots=True, kw_only=True)
class OffsetBucket:
    """Offsets of partitions `number * 64` to `number * 64 + 63` of a topic, and how often they were committed."""

    topic: str
    number: int
    commits: int = 0
    rewinds: int = 0
    offsets: dict[int, CommittedOffset] = field(default_factory=dict)


def bucket_number(partition: int) -> int:
    """Number of the bucket a partition's offset is in."""
    return partition // BUCKET_PARTITIONS

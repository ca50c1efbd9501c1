"""When partitions of topics appeared: a recording says how many there are, and not since when.

Its records tell. A partition was there

    when a record names it, or a higher one of its topic: an assignment, a target, a committed offset, or what brokers
    up to 4.0 wrote of a topic
    when a target names it, since the hash of the topics' metadata, which that target was made by, was first written

A partition that no record names was there when a consumer group that reads its topic had that hash for the first time.
Where there is no such group it was there all along, as far as anybody can tell.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from coordinator_model.groups.embedded_subscription import assignment_of
from coordinator_model.records.record_types import RecordType
from coordinator_model.records.serde import Record, decode_key, decode_value

GrownPartition = tuple[str, int]
"""Topic name and partition."""

_TARGETS: Final = frozenset(
    {RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_MEMBER, RecordType.SHARE_GROUP_TARGET_ASSIGNMENT_MEMBER}
)
_CURRENT: Final = frozenset(
    {RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT, RecordType.SHARE_GROUP_CURRENT_MEMBER_ASSIGNMENT}
)


def appeared_ms(
    records: Iterable[tuple[int, bytes, bytes | None]], names: Mapping[str, str], counts: Mapping[str, int]
) -> dict[GrownPartition, int]:
    """Since when partitions are certain to have been there, of those of which the log tells.

    Args:
        records: (timestamp in milliseconds, key, value), each offsets partition in order.
        names: topic id → name.
        counts: topic name → partitions that it has in the end.
    """
    first: dict[str, dict[int, int]] = {topic: {} for topic in counts}
    """Topic → partition that something names as the highest → since when it was there."""
    hashes: dict[str, tuple[int, int]] = {}
    """Consumer group → hash of its topics' metadata, and since when."""
    readers: dict[str, set[str]] = {topic: set() for topic in counts}
    for time_ms, key, value in records:
        decoded = decode_value(decode_key(key), value)
        if not isinstance(decoded, Record):
            continue
        if decoded.type is RecordType.CONSUMER_GROUP_METADATA:
            _note_hash(hashes, decoded, time_ms)
        elif decoded.value is not None:
            since_ms = time_ms
            if decoded.type in _TARGETS and decoded.group_name in hashes:
                since_ms = hashes[decoded.group_name][1]
            for topic, partition in _named(decoded, names):
                if topic in first:
                    first[topic][partition] = min(first[topic].get(partition, since_ms), since_ms)
                    readers[topic].update({decoded.group_name} & hashes.keys())
    return {
        (topic, partition): since_ms
        for topic, count in counts.items()
        for partition, since_ms in _since(
            first[topic], count, min((hashes[of][1] for of in readers[topic] & hashes.keys()), default=None)
        )
    }


def _note_hash(hashes: dict[str, tuple[int, int]], record: Record, time_ms: int) -> None:
    """Brokers up to 4.0 write none, and a group that is no more has none."""
    hash_ = 0 if record.value is None else record.value.metadata_hash
    if not hash_:
        hashes.pop(record.group_name, None)
    elif record.group_name not in hashes or hashes[record.group_name][0] != hash_:
        hashes[record.group_name] = (hash_, time_ms)


def _since(highest: Mapping[int, int], count: int, unnamed_ms: int | None) -> Iterator[tuple[int, int]]:
    """(partition, since when) of a topic's partitions: each has been there as long as a higher one."""
    since_ms = unnamed_ms
    for partition in range(max(count - 1, *highest, 0), -1, -1):
        if partition in highest:
            since_ms = highest[partition] if since_ms is None else min(since_ms, highest[partition])
        if since_ms is not None and partition < count:
            yield partition, since_ms


def _named(record: Record, names: Mapping[str, str]) -> Iterator[GrownPartition]:
    """The highest partition of each topic that a record names."""
    value: Any = record.value
    if record.type is RecordType.OFFSET_COMMIT:
        yield record.key.topic, record.key.partition
    elif record.type is RecordType.GROUP_METADATA:
        for member in value.members:
            given = assignment_of(value.protocol, member.assignment) if value.protocol_type == "consumer" else None
            for topic, partitions in {} if given is None else given.assigned.items():
                yield topic, max(partitions, default=0)
    elif record.type is RecordType.CONSUMER_GROUP_PARTITION_METADATA:
        for of in value.topics:
            yield of.topic_name, of.num_partitions - 1
    elif record.type in _TARGETS or record.type in _CURRENT:
        for of in value.topic_partitions if record.type in _TARGETS else value.assigned_partitions:
            if of.topic_id in names and of.partitions:
                yield names[of.topic_id], max(of.partitions)

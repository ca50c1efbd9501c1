"""Records of ``__share_group_state`` in the share coordinator's words, as `builders` has those of the first log.

Offsets are given as ``(first offset, last offset, delivery state, delivery count)``.
"""

from collections.abc import Iterable, Sequence
from typing import Any, TypeAlias

from coordinator_model.records import share_state
from coordinator_model.records.share_state_types import encode_share_state
from lab.builders import NOW_MS, RecordBytes, topic_id

Offsets: TypeAlias = Sequence[tuple[int, int, int, int]]


def share_snapshot(
    group: str,
    topic: str,
    partition: int,
    *,
    start_offset: int = 0,
    batches: Offsets = (),
    delivery_complete_count: int = 0,
    snapshot_epoch: int = 0,
    state_epoch: int = 1,
    leader_epoch: int = 0,
    create_timestamp: int = NOW_MS,
    write_timestamp: int = NOW_MS,
) -> RecordBytes:
    """The whole state of a share partition."""
    value = share_state.ShareSnapshotValue(
        snapshot_epoch=snapshot_epoch,
        state_epoch=state_epoch,
        leader_epoch=leader_epoch,
        start_offset=start_offset,
        delivery_complete_count=delivery_complete_count,
        create_timestamp=create_timestamp,
        write_timestamp=write_timestamp,
        state_batches=_state_batches(batches),
    )
    return encode_share_state(share_state.ShareSnapshotKey(**_share_partition(group, topic, partition)), value)


def share_update(
    group: str,
    topic: str,
    partition: int,
    *batches: tuple[int, int, int, int],
    start_offset: int = -1,
    delivery_complete_count: int = -1,
    snapshot_epoch: int = 0,
    leader_epoch: int = -1,
) -> RecordBytes:
    """A change to the state of a share partition."""
    value = share_state.ShareUpdateValue(
        snapshot_epoch=snapshot_epoch,
        leader_epoch=leader_epoch,
        start_offset=start_offset,
        delivery_complete_count=delivery_complete_count,
        state_batches=_state_batches(batches),
    )
    return encode_share_state(share_state.ShareUpdateKey(**_share_partition(group, topic, partition)), value)


def share_snapshot_tombstone(group: str, topic: str, partition: int) -> RecordBytes:
    """The state of a share partition deleted."""
    return encode_share_state(share_state.ShareSnapshotKey(**_share_partition(group, topic, partition)), None)


def _share_partition(group: str, topic: str, partition: int) -> dict[str, Any]:
    return {"group_id": group, "topic_id": topic_id(topic), "partition": partition}


def _state_batches(of: Iterable[tuple[int, int, int, int]]) -> tuple[share_state.StateBatch, ...]:
    return tuple(
        share_state.StateBatch(first_offset=first, last_offset=last, delivery_state=state, delivery_count=count)
        for first, last, state, count in of
    )

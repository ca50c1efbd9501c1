"""A share partition as text, and back: what the stateful step keeps of it between micro-batches."""

from __future__ import annotations

import json
from dataclasses import asdict
from typing import Any, Final

from coordinator_model.state.share_partition import Batch, Crowd, GivenUp, SharePartition, SharePartitionId

FORMAT: Final = 1
"""Grows with a change that a former release would read wrongly."""

_encode: Final = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


def dump_id(of: SharePartitionId) -> str:
    """Which share partition it is; a line without blanks."""
    return _encode(of)


def load_id(text: str) -> SharePartitionId:
    """Inverse of `dump_id`."""
    return SharePartitionId(*json.loads(text))


def dump(of: SharePartition) -> str:
    """All but which it is."""
    return _encode(
        [
            of.snapshot_epoch,
            of.state_epoch,
            of.leader_epoch,
            of.start_offset,
            of.delivery_complete_count,
            of.batches,
            of.create_ms,
            of.write_ms,
            of.log_partition,
            of.last_offset,
            of.last_ms,
            of.highest_start_offset,
            of.archived,
            None if of.crowd is None else asdict(of.crowd),
            of.moved_ms,
            of.done_ms,
        ]
    )


def load(id_: SharePartitionId, text: str) -> SharePartition:
    """Inverse of `dump`."""
    numbers: list[Any] = json.loads(text)
    (
        snapshot_epoch,
        state_epoch,
        leader_epoch,
        start_offset,
        delivery_complete_count,
        batches,
        create_ms,
        write_ms,
        log_partition,
        last_offset,
        last_ms,
        highest_start_offset,
        archived,
        crowd,
        moved_ms,
        done_ms,
    ) = numbers
    return SharePartition(
        id=id_,
        snapshot_epoch=snapshot_epoch,
        state_epoch=state_epoch,
        leader_epoch=leader_epoch,
        start_offset=start_offset,
        delivery_complete_count=delivery_complete_count,
        batches=[Batch(*of) for of in batches],
        create_ms=create_ms,
        write_ms=write_ms,
        log_partition=log_partition,
        last_offset=last_offset,
        last_ms=last_ms,
        highest_start_offset=highest_start_offset,
        archived=archived,
        crowd=None if crowd is None else _crowd(crowd),
        moved_ms=moved_ms,
        done_ms=done_ms,
    )


def _crowd(held: dict[str, Any]) -> Crowd:
    # As JSON has it, a NamedTuple of `kept` is a list.
    return Crowd(**{**held, "kept": {why: GivenUp(*of) for why, of in held["kept"].items()}})

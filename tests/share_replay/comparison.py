"""Where Kafka and a replica of its share coordinator differ after the same log.

Neighbours of one state that Kafka leaves apart, as it does here and there, are joined before: they say the same.
"""

from dataclasses import asdict
from typing import Any, Final

from coordinator_model.share_replica import ShareReplica
from coordinator_model.state.share_partition import SharePartition
from tests.share_replay.judge import HeldShare

_OURS: Final = (
    "id",
    "log_partition",
    "last_offset",
    "last_ms",
    "highest_start_offset",
    "archived",
    "crowd",
    "moved_ms",
    "done_ms",
)
"""What a replica remembers, and Kafka does not."""


def held_by(replica: ShareReplica) -> HeldShare:
    """What a replica holds, in the judge's words."""
    return {":".join(map(str, id_)): _held(of) for id_, of in replica.partitions.items()}


def differences(kafka: HeldShare, ours: HeldShare) -> list[str]:
    """What differs, a line each."""
    return [
        f"{name}.{field}: Kafka has {left.get(field)!r}, the replica {right.get(field)!r}"
        for name in sorted({*kafka, *ours})
        for left, right in [(_joined(kafka.get(name, {})), ours.get(name, {}))]
        for field in sorted({*left, *right})
        if left.get(field) != right.get(field)
    ]


def _held(of: SharePartition) -> dict[str, Any]:
    shown = {name: value for name, value in asdict(of).items() if name not in _OURS}
    return {**shown, "batches": [list(batch) for batch in of.batches]}


def _joined(of: dict[str, Any]) -> dict[str, Any]:
    found: list[list[int]] = []
    for first, last, *kind in of.get("batches", ()):
        if found and found[-1][1] + 1 == first and found[-1][2:] == kind:
            found[-1][1] = last
        else:
            found.append([first, last, *kind])
    return {**of, "batches": found} if of else of

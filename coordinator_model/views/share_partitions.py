"""Share partitions in figures, and as JSON: what is written of them. Lag needs the end of the partition as well."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Any, Final, NamedTuple, Self

from coordinator_model.groups.share_partitions import first_not_done
from coordinator_model.state.share_partition import (
    AVAILABLE,
    DONE,
    LIMIT,
    NOT_INITIALIZED,
    NOT_KNOWN,
    REDELIVERED,
    REJECTED,
    UNCLEAR,
    SharePartition,
)

_encode: Final = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


class ShareFigures(NamedTuple):
    """What is shown of a share partition.

    Attributes:
        start_offset: None while it is not initialized, as `first_not_done`.
        leader_epoch, delivery_complete_count: None where not known.
        redelivered: records available with delivery count 2 or more.
        max_delivery_count: of what is available.
        limit, rejected, unclear: offsets given up, by cause.
        done_to: the offset after the last one that is done; None where none beyond the start offset is.
        moved_ms: when the first offset that is not done last moved; -1 where that is not known.
        done_ms: when an offset last became done; -1 where none did.
        written_ms: time of the last record of it.
        log_partition: of the share coordinator's log that it is in.
        written_offset: of its last record there.
    """

    group: str
    topic_id: str
    partition: int
    start_offset: int | None
    first_not_done: int | None
    state_epoch: int
    leader_epoch: int | None
    delivery_complete_count: int | None
    redelivered: int
    max_delivery_count: int
    limit: int
    rejected: int
    unclear: int
    done_to: int | None
    moved_ms: int
    done_ms: int
    written_ms: int
    log_partition: int
    written_offset: int

    @classmethod
    def of(cls, held: SharePartition) -> Self:
        """Those of a share partition."""
        redelivered, most, done_to = 0, 0, None
        for first, last, state, deliveries in held.batches:
            if state == AVAILABLE:
                most = max(most, deliveries)
                if deliveries >= REDELIVERED:
                    redelivered += last + 1 - first
            elif state in DONE:
                done_to = last + 1
        return cls(
            *held.id,
            start_offset=held.start_offset if held.start_offset != NOT_INITIALIZED else None,
            first_not_done=first_not_done(held),
            state_epoch=held.state_epoch,
            leader_epoch=held.leader_epoch if held.leader_epoch != NOT_KNOWN else None,
            delivery_complete_count=held.delivery_complete_count if held.delivery_complete_count != NOT_KNOWN else None,
            redelivered=redelivered,
            max_delivery_count=most,
            limit=held.archived.get(LIMIT, 0),
            rejected=held.archived.get(REJECTED, 0),
            unclear=held.archived.get(UNCLEAR, 0),
            done_to=done_to,
            moved_ms=held.moved_ms,
            done_ms=held.done_ms,
            written_ms=held.last_ms,
            log_partition=held.log_partition,
            written_offset=held.last_offset,
        )

    @classmethod
    def load(cls, text: str | bytes) -> Self:
        """Inverse of `dump`."""
        return cls(*json.loads(text))

    def dump(self) -> str:
        """As text."""
        return _encode(self)

    def view(self, topic: str) -> dict[str, Any]:
        """As JSON (`docs/schemas/`), under the name of its topic."""
        return {
            "topic": topic,
            "partition": self.partition,
            "topic_id": self.topic_id,
            "start_offset": self.start_offset,
            "first_not_done": self.first_not_done,
            "state_epoch": self.state_epoch,
            "leader_epoch": self.leader_epoch,
            "delivery_complete_count": self.delivery_complete_count,
            "redelivered": self.redelivered,
            "max_delivery_count": self.max_delivery_count,
            "archived_total": {LIMIT: self.limit, REJECTED: self.rejected},
            "archived_unclear": self.unclear,
        }


def share_partitions_view(of: Iterable[SharePartition], topic_names: Mapping[str, str]) -> list[dict[str, Any]]:
    """Share partitions by topic and partition; a topic whose name is not known stands under its id."""
    views = (ShareFigures.of(each).view(topic_names.get(each.id.topic_id, each.id.topic_id)) for each in of)
    return sorted(views, key=lambda view: (view["topic"], view["partition"], view["topic_id"]))

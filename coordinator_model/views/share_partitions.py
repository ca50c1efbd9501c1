"""Share partitions as JSON: what is written of them. Lag needs the end of the partition, and stands elsewhere."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from coordinator_model.groups.share_partitions import first_not_done
from coordinator_model.state.share_partition import (
    AVAILABLE,
    LIMIT,
    NOT_INITIALIZED,
    NOT_KNOWN,
    REDELIVERED,
    REJECTED,
    UNCLEAR,
    SharePartition,
)


def share_partitions_view(of: Iterable[SharePartition], topic_names: Mapping[str, str]) -> list[dict[str, Any]]:
    """Share partitions by topic and partition; a topic whose name is not known stands under its id."""
    views = (_view(each, topic_names.get(each.id.topic_id, each.id.topic_id)) for each in of)
    return sorted(views, key=lambda view: (view["topic"], view["partition"], view["topic_id"]))


def _view(of: SharePartition, topic: str) -> dict[str, Any]:
    available = [batch for batch in of.batches if batch.state == AVAILABLE]
    return {
        "topic": topic,
        "partition": of.id.partition,
        "topic_id": of.id.topic_id,
        "start_offset": of.start_offset if of.start_offset != NOT_INITIALIZED else None,
        "first_not_done": first_not_done(of),
        "state_epoch": of.state_epoch,
        "leader_epoch": of.leader_epoch if of.leader_epoch != NOT_KNOWN else None,
        "delivery_complete_count": of.delivery_complete_count if of.delivery_complete_count != NOT_KNOWN else None,
        "redelivered": sum(batch.last + 1 - batch.first for batch in available if batch.deliveries >= REDELIVERED),
        "max_delivery_count": max((batch.deliveries for batch in available), default=0),
        "archived_total": {why: of.archived.get(why, 0) for why in (LIMIT, REJECTED)},
        "archived_unclear": of.archived.get(UNCLEAR, 0),
    }

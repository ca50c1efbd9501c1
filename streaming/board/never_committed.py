"""Partitions that members hold and of which nothing was ever committed, as rows beside the committed offsets.

Where a consumer begins there is its own configuration (`auto.offset.reset`), so there is neither an offset nor a lag,
and no series: but who looks at a group should see that it is so.
"""

from collections.abc import Mapping
from typing import Any, Final

from coordinator_model.lag import NEVER_COMMITTED, Lag
from streaming.board.group_lag import lag_view
from streaming.end_offsets.store import EndOffsets

_NO_LAG: Final = Lag(None, None, NEVER_COMMITTED)


def rows(group: Mapping[str, Any], ends: EndOffsets) -> list[dict[str, Any]]:
    """Rows of a GROUP's members by topic and partition, like those of its offsets, whose fields are null."""
    # A topic whose name is not known yet stands under its id in assignments, and under its name in commits.
    committed = {(topic, each["partition"]) for each in group["offsets"] for topic in (each["topic"], each["topic_id"])}
    held = {
        (topic, partition)
        for member in group["members"]
        for parts in (member["assigned"], member["pending_revocation"])
        for topic, partitions in parts.items()
        for partition in partitions
    }
    return [_row(topic, partition, ends) for topic, partition in sorted(held - committed)]


def _row(topic: str, partition: int, ends: EndOffsets) -> dict[str, Any]:
    return {
        "topic": topic,
        "partition": partition,
        "offset": None,
        "leader_epoch": None,
        "metadata": None,
        "commit_timestamp": None,
        "topic_id": None,
        "subscribed": True,
        **lag_view(ends, topic, partition, _NO_LAG),
    }

"""Rows of groups' offsets as the API has them: lag offset by offset, read off `lag_columns.py`."""

from collections.abc import Mapping
from typing import Any, Final

from coordinator_model import lag
from coordinator_model.lag import Lag
from streaming.board.lag_columns import Lags, or_none
from streaming.end_offsets.store import EndOffsets

_NEVER: Final = dict.fromkeys(("offset", "leader_epoch", "metadata", "commit_timestamp", "topic_id"))


def offset_rows(lags: Lags, ends: EndOffsets) -> list[dict[str, Any]]:
    """`lag_view` of each offset, in their order; hold the lock of `ends` since they were measured."""
    figures = (or_none(column.tolist()) for column in (lags.records, lags.seconds, lags.stable))
    others = (column.tolist() for column in (lags.table.place_of, lags.methods, lags.truncated, lags.lost))
    rows = []
    for records, seconds, stable, place, number, truncated, lost in zip(*figures, *others, strict=True):
        method = lag.METHODS[number]
        found = Lag(records, seconds, lag.TRUNCATED if truncated else method, stable, method == lag.AT_LEAST)
        topic, partition = lags.table.places[place]
        rows.append(lag_view(ends, topic, partition, found, lost=lost))
    return rows


def never_committed(group: Mapping[str, Any], ends: EndOffsets) -> list[dict[str, Any]]:
    """Rows of partitions that members of a GROUP hold and of which nothing was ever committed, by topic and partition.

    Where a consumer begins there is its own configuration (`auto.offset.reset`), so there is neither an offset nor a
    lag, and no series: but who looks at a group should see that it is so.
    """
    # A topic whose name is not known yet stands under its id in assignments, and under its name in commits.
    committed = {(topic, each["partition"]) for each in group["offsets"] for topic in (each["topic"], each["topic_id"])}
    held = {
        (topic, partition)
        for member in group["members"]
        for parts in (member["assigned"], member["pending_revocation"])
        for topic, partitions in parts.items()
        for partition in partitions
    }
    no_lag = Lag(None, None, lag.NEVER_COMMITTED)
    return [
        {
            "topic": topic,
            "partition": partition,
            **_NEVER,
            "subscribed": True,
            **lag_view(ends, topic, partition, no_lag),
        }
        for topic, partition in sorted(held - committed)
    ]


def lag_view(ends: EndOffsets, topic: str, partition: int, found: Lag, *, lost: bool = False) -> dict[str, Any]:
    """Lag of an offset as the API has it, with the ends of its log: null where they are not known.

    `lost` says that records after it were deleted, or may have been.
    """
    known = ends.partition(topic, partition)
    return {
        "log_end_offset": None if known is None else known.high_watermark,
        "log_start_offset": None if known is None else known.earliest,
        "last_stable_offset": None if known is None else known.last_stable,
        "lag": found.records,
        "stable_lag": found.stable_records,
        "lag_seconds": found.seconds,
        "lag_seconds_at_least": found.at_least,
        "lag_method": found.method,
        "records_lost": lost,
    }

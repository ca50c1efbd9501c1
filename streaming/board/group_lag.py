"""Lag of groups' committed offsets as the API has it: offset by offset, read off `lag_columns.py`."""

from typing import Any

from coordinator_model import lag
from coordinator_model.lag import Lag
from streaming.board.lag_columns import Lags, or_none
from streaming.end_offsets.store import EndOffsets


def offset_rows(lags: Lags, ends: EndOffsets) -> list[dict[str, Any]]:
    """`lag_view` of each offset, in their order; hold the lock of `ends` since they were measured."""
    figures = (or_none(column.tolist()) for column in (lags.records, lags.seconds, lags.stable))
    others = (column.tolist() for column in (lags.table.place_of, lags.methods, lags.truncated))
    rows = []
    for records, seconds, stable, place, number, truncated in zip(*figures, *others, strict=True):
        method = lag.METHODS[number]
        found = Lag(records, seconds, lag.TRUNCATED if truncated else method, stable, method == lag.AT_LEAST)
        topic, partition = lags.table.places[place]
        rows.append(lag_view(ends, topic, partition, found))
    return rows


def lag_view(ends: EndOffsets, topic: str, partition: int, found: Lag) -> dict[str, Any]:
    """Lag of an offset as the API has it, with the ends of its log: null where they are not known."""
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
    }

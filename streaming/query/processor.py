"""The replica inside Spark: one stateful key for a bundle of partitions of the offsets topic.

Keyed by partitions, not by group: a key costs a stateful task some milliseconds, so a batch in which 20,000 groups
commit, spread over fifty partitions, is one key a task (docs/decisions/0001).

    state variable   key                                 holds
    entries          partition, group, topic, bucket     everything of a group but its offsets, or up to 64 of these
    packs            partition, slot                     many of both that changed at once, or lately
                                                         (`state_cache.py`), and the task's ledger (`ledger.py`)

Beside them are those of former releases, which are carried over (`former_state.py`).

This is what Spark sees of it, and no more: before the first batch of a query it starts a process only to ask what
state there is, and waits for it. What replays is taken along where rows are (`shard_task.py`).
"""

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

from pyspark.sql.streaming.stateful_processor import (
    ExpiredTimerInfo,
    StatefulProcessor,
    StatefulProcessorHandle,
    TimerValues,
)

from streaming.query.schemas import (
    BOOK_STATE,
    BUCKET_KEY,
    ENTRIES_STATE,
    ENTRY,
    ENTRY_KEY,
    GROUP_KEY,
    GROUPS_STATE,
    OFFSETS_STATE,
    PACK,
    PACKS_STATE,
    SLOT_KEY,
    SNAPSHOT,
)

if TYPE_CHECKING:
    import pandas as pd

    from streaming.query.shard_task import ShardTask


class CoordinatorShards(StatefulProcessor):
    """Replays the rows of one bundle.

    Args:
        live_from: by partition, from where on alarms are drawn: its end when reading began (`resume_file.py`).
        log_end: its end as it was when this run began, if that is another: what is missing below it was cleaned away.
        reported: by partition, the first offset whose events were not reported by a former reading of the same log.
        processes: among how many a task may share out partitions of which there is no state yet.
    """

    def __init__(
        self,
        live_from: dict[int, int],
        log_end: dict[int, int] | None = None,
        reported: dict[int, int] | None = None,
        *,
        processes: int = 1,
    ) -> None:
        self._processes = processes
        self._live_from = live_from
        self._reported = reported or {}
        self._log_end = live_from if log_end is None else log_end

    def init(self, handle: StatefulProcessorHandle) -> None:
        """Declare the state variables."""
        self._handle = handle
        self._entries = handle.getMapState(ENTRIES_STATE, ENTRY_KEY, ENTRY)
        self._packs = handle.getMapState(PACKS_STATE, SLOT_KEY, PACK)
        self._former = (
            handle.getMapState(GROUPS_STATE, GROUP_KEY, SNAPSHOT),
            handle.getMapState(OFFSETS_STATE, BUCKET_KEY, SNAPSHOT),
            handle.getValueState(BOOK_STATE, SNAPSHOT),
        )

    def handleInputRows(  # type: ignore[override]  # noqa: N802 - Spark's name, and one signature for its two forms
        self,
        key: Any,  # noqa: ANN401, ARG002 - Spark's
        rows: "Iterator[pd.DataFrame]",
        timerValues: TimerValues,  # noqa: N803 - Spark's
    ) -> "Iterator[pd.DataFrame]":
        """Replay what a micro-batch brings to the bundle: rows of `schemas.PACKED` to such of `schemas.OUTPUT`."""
        blobs = (blob for frame in rows for blob in frame["rows"])
        yield from _frames(self._bundle().replay(blobs, timerValues.getCurrentProcessingTimeInMs()))

    def handleExpiredTimer(  # noqa: N802 - Spark's name
        self,
        key: Any,  # noqa: ANN401, ARG002 - Spark's
        timerValues: TimerValues,  # noqa: N803 - Spark's
        expiredTimerInfo: ExpiredTimerInfo,  # noqa: ARG002, N803 - Spark's
    ) -> "Iterator[pd.DataFrame]":
        """Nothing came to finish an open step, or to give a withheld alarm its occasion: do so now."""
        yield from _frames(self._bundle().conclude(timerValues.getCurrentProcessingTimeInMs()))

    def _bundle(self) -> "ShardTask":
        from streaming.query.former_state import FormerState
        from streaming.query.shard_task import Limits, ShardTask, Variables
        from streaming.query.state_cache import StateStore

        return ShardTask(
            Variables(self._handle, StateStore(self._entries, self._packs), FormerState(*self._former)),
            Limits(self._live_from, self._log_end, self._reported),
            self._processes,
        )


def _frames(blobs: Iterator[bytes]) -> "Iterator[pd.DataFrame]":
    import pandas as pd

    for blob in blobs:
        yield pd.DataFrame({"rows": [blob]})

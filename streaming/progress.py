"""How far the query is, from Spark's own progress reports."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

PartitionOffsets = Mapping[int, int]


@dataclass(frozen=True, slots=True)
class Progress:
    """One finished micro-batch. `positions` has, per reader in the order of the sources, the next offset to read."""

    batch_id: int
    duration_ms: int
    rows: int
    positions: tuple[PartitionOffsets, ...]


class ProgressListener(StreamingQueryListener):
    """Passes each finished micro-batch of one query on to a plain callable; a session may run several."""

    def __init__(self, query: str, topic: str, on_progress: Callable[[Progress], None]) -> None:
        super().__init__()
        self._query = query
        self._topic = topic
        self._on_progress = on_progress

    def onQueryStarted(self, event: QueryStartedEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing to tell yet."""

    def onQueryProgress(self, event: QueryProgressEvent) -> None:  # noqa: N802 - Spark's name
        """A micro-batch is finished: its sinks have returned."""
        progress = event.progress
        if progress.name != self._query:
            return
        self._on_progress(
            Progress(
                batch_id=progress.batchId,
                duration_ms=progress.batchDuration,
                rows=progress.numInputRows,
                positions=tuple(offsets_of(source.endOffset, self._topic) for source in progress.sources),
            )
        )

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing new in the log."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        """The supervisor sees it by itself."""


def offsets_of(end_offset: str | None, topic: str) -> PartitionOffsets:
    """Partition → next offset, from the connector's JSON `{"topic": {"0": 17}}`; empty while it has none."""
    held = json.loads(end_offset) if end_offset else None
    return {int(partition): int(offset) for partition, offset in (held or {}).get(topic, {}).items()}

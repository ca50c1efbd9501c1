"""How far the query is, from Spark's own progress reports."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Final

from pyspark.sql.streaming.listener import (
    QueryIdleEvent,
    QueryProgressEvent,
    QueryStartedEvent,
    QueryTerminatedEvent,
    StreamingQueryListener,
)

PartitionOffsets = Mapping[int, int]

COMMITS: Final = "commits"
MEMBERSHIP: Final = "membership"
KINDS: Final = (COMMITS, MEMBERSHIP)
"""Of what a position in the log has a next offset each."""


@dataclass(frozen=True, slots=True)
class Progress:
    """One finished micro-batch. `positions` has the next offsets to read, of commits and of membership (`source`)."""

    batch_id: int
    duration_ms: int
    rows: int
    positions: tuple[PartitionOffsets, ...]


class ProgressListener(StreamingQueryListener):
    """Passes each finished micro-batch of one query on to a plain callable; a session may run several."""

    def __init__(self, query: str, on_progress: Callable[[Progress], None]) -> None:
        super().__init__()
        self._query = query
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
                positions=next((offsets_of(source.endOffset) for source in progress.sources), ()),
            )
        )

    def onQueryIdle(self, event: QueryIdleEvent) -> None:  # noqa: N802 - Spark's name
        """Nothing new in the log."""

    def onQueryTerminated(self, event: QueryTerminatedEvent) -> None:  # noqa: N802 - Spark's name
        """The supervisor sees it by itself."""


def offsets_of(end_offset: str | None) -> tuple[PartitionOffsets, ...]:
    """Next offset of each partition, of commits and of membership, from the source's JSON; empty while it has none."""
    held = json.loads(end_offset) if end_offset else None
    return (
        tuple({int(partition): int(offset) for partition, offset in held[kind].items()} for kind in KINDS)
        if held
        else ()
    )

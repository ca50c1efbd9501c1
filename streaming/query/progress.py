"""How far the query is, from Spark's own progress reports."""

import json
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar, Final

from pyspark import SparkContext
from pyspark.sql import SparkSession

from streaming.query.jvm_objects import borrowed

PartitionOffsets = Mapping[int, int]

COMMITS: Final = "commits"
MEMBERSHIP: Final = "membership"
KINDS: Final = (COMMITS, MEMBERSHIP)
"""Of what a position in the log has a next offset each."""
SHARE: Final = "share"
"""Of a position: where the share coordinator's log is, in the same form (`share_source.py`)."""


@dataclass(frozen=True, slots=True)
class Progress:
    """One finished micro-batch.

    `positions` has the next offsets to read, of commits and of membership (`source`). `input_rows` counts what the
    source read: packs of records. `is_late` says that its query has ended since: Spark reports from a thread of its
    own, on a busy machine seconds later.
    """

    batch_id: int
    duration_ms: int
    positions: tuple[PartitionOffsets, ...]
    input_rows: int
    is_late: bool = False


class ProgressListener:
    """Passes each finished micro-batch of one query on to a plain callable; a session may run several.

    `on_start` gets the query's id, before its first micro-batch. `on_idle` is called when it has looked at the log and
    there was nothing to read: every second or so, but never for a query's first look.

    What `StreamingQueryListener` does in Spark's own way: it has all that a report holds fetched from the JVM first, a
    hundred metrics of the state store one after the other, which was a third of all processor time at a thousand
    commits a second. Here the JVM calls us directly, and is asked for the five things that are of use.
    """

    def __init__(
        self,
        query: str,
        on_progress: Callable[[Progress], None],
        on_start: Callable[[str], object] = lambda _query_id: None,
        on_idle: Callable[[], object] = lambda: None,
    ) -> None:
        self._query = query
        self._on_progress = on_progress
        self._on_start = on_start
        self._on_idle = on_idle
        self._runs = False
        self._known: frozenset[str] = frozenset()

    def ended(self) -> None:
        """The query has ended; what is reported of it until it is started again is late."""
        self._runs = False

    def forget(self) -> None:
        """What the query did until now does not count any more: late reports of it are passed over."""
        self._known = frozenset()

    def listen(self, spark: SparkSession) -> None:
        """Follow what the session's queries do from now on."""
        spark.streams.addListener(self)  # type: ignore[arg-type]  # asked for `_jlistener` alone

    @property
    def _jlistener(self) -> Any:  # noqa: ANN401 - an object of Java
        assert SparkContext._jvm is not None  # noqa: S101, SLF001 - there is one
        return SparkContext._jvm.PythonStreamingQueryListenerWrapper(self)  # noqa: SLF001 - as Spark does

    def onQueryStarted(self, event: Any) -> None:  # noqa: ANN401, N802 - Java's
        """Called before the query's start returns."""
        if event.name() == self._query:
            self._on_start(event.id().toString())
            self._known |= {event.runId().toString()}
            self._runs = True

    def onQueryProgress(self, event: Any) -> None:  # noqa: ANN401, N802 - Java's
        """A micro-batch is finished: its sinks have returned."""
        with borrowed(event), borrowed(event.progress()) as progress:
            if progress.name() != self._query:
                return
            with borrowed(progress.runId()) as run:
                if run.toString() not in self._known:
                    return
            with borrowed(progress.sources()) as sources, borrowed(sources[0]) as source:
                end_offset, input_rows = source.endOffset(), source.numInputRows()
            self._on_progress(
                Progress(
                    batch_id=progress.batchId(),
                    duration_ms=progress.batchDuration(),
                    positions=offsets_of(end_offset),
                    input_rows=input_rows,
                    is_late=not self._runs,
                )
            )

    def onQueryIdle(self, event: Any) -> None:  # noqa: ANN401, N802 - Java's
        """Nothing new in the log."""
        with borrowed(event), borrowed(event.runId()) as run:
            if run.toString() in self._known:
                self._on_idle()

    def onQueryTerminated(self, event: Any) -> None:  # noqa: ANN401, N802 - Java's
        """The supervisor sees it on its own."""

    class Java:
        """Py4J's way to say what it is to Java."""

        implements: ClassVar = ["org.apache.spark.sql.streaming.PythonStreamingQueryListener"]


def offsets_of(end_offset: str | None) -> tuple[PartitionOffsets, ...]:
    """Next offset of each partition, of commits and of membership, from the source's JSON; empty while it has none."""
    held = json.loads(end_offset) if end_offset else None
    return (
        tuple({int(partition): int(offset) for partition, offset in held[kind].items()} for kind in KINDS)
        if held
        else ()
    )

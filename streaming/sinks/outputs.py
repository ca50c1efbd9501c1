"""Outputs other than the board: one durable queue and one delivery thread per consumer.

Without consumers there is no queue, and nothing is written. A sink that follows the board needs no queue.
"""

from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from dataclasses import dataclass
from typing import Final, Protocol

from streaming.base.output_status import SinkState
from streaming.board.board import Board
from streaming.board.event_window import Event
from streaming.config.sections import Config
from streaming.query.foreach_batch import BatchSink
from streaming.sinks.delivery import Delivery
from streaming.sinks.queue import Spool, Spooled
from streaming.sinks.queue_sink import QueueSink

SPOOL: Final = "spool"
"""Its directory below state.dir."""


@dataclass(frozen=True, slots=True, kw_only=True)
class SpoolReader:
    """A consumer of the queue.

    Attributes:
        name: of the sink, in metrics and on the disk: letters, digits and hyphens.
        deliver: takes entries and returns when they have arrived, telling how many were refused for good, None for
            none; raises whatever, and is given them again.
        wants_states: whether states of groups are written for it; events always are.
        pause_seconds: how long it waits after a delivery, so that more comes at once; not where more is there already.
        begin: called before anything is delivered.
        close: called once no more is delivered.
    """

    name: str
    deliver: Callable[[Sequence[Spooled]], int | None]
    wants_states: bool = False
    pause_seconds: float = 0.0
    begin: Callable[[], object] = lambda: None
    close: Callable[[], object] = lambda: None


class Sink(Protocol):
    """An output that follows the board."""

    def start(self) -> None:
        """Begin."""
        ...

    def stop(self) -> None:
        """End."""
        ...

    def state(self) -> SinkState:
        """How it is doing."""
        ...


class Outputs:
    """The outputs of a monitor.

    Args:
        config: the whole of it.
        readers: who reads the spool; without any there is none.
        others: who needs none.
        board: the groups; must have taken a batch before `sinks` do.
        source: whose numbers batch ids are (`Spool.append`).
        clock_ms: the wall clock.
    """

    def __init__(  # noqa: PLR0913 - what it stands between, all named
        self,
        config: Config,
        readers: Sequence[SpoolReader],
        board: Board,
        *,
        others: Sequence[Sink] = (),
        source: Callable[[], str],
        clock_ms: Callable[[], int],
    ) -> None:
        self._settings = config.spool
        self._directory = config.state.dir / SPOOL
        self._readers = readers
        self._others = others
        self._board = board
        self._source = source
        self._clock_ms = clock_ms
        self._stack = ExitStack()
        self._sink: QueueSink | None = None
        self._deliveries: list[Delivery] = []

    @property
    def sinks(self) -> Sequence[BatchSink]:
        """What takes part in a micro-batch, after the board."""
        return [] if self._sink is None else [self._sink]

    def start(self) -> None:
        """Open the spool and begin to deliver; the board holds what the checkpoint does.

        Raises:
            UsageError: the spool cannot be used.
        """
        for other in self._others:
            self._stack.callback(other.stop)
            other.start()
        if self._readers:
            self._start_spool()

    def stop(self) -> None:
        """End all threads; what waits stays in the spool."""
        self._stack.close()

    def add_events(self, events: Iterable[Event]) -> None:
        """Pass on events that no micro-batch brought; raises SpoolError, and is to be given them again."""
        if self._sink is not None:
            self._sink.add_events(events)

    def states(self) -> list[SinkState]:
        """How each sink is doing."""
        return [each.state() for each in (*self._deliveries, *self._others)]

    def _start_spool(self) -> None:
        spool = Spool(
            self._directory,
            [reader.name for reader in self._readers],
            max_bytes=self._settings.max_bytes,
            clock_ms=self._clock_ms,
        )
        self._stack.callback(spool.close)
        self._stack.callback(self._deliveries.clear)
        wants_states = any(reader.wants_states for reader in self._readers)
        interval_ms = self._settings.state_interval_ms if wants_states else None
        self._sink = QueueSink(spool, self._board, self._source, interval_ms=interval_ms, clock_ms=self._clock_ms)
        for reader in self._readers:
            self._stack.callback(reader.close)
            reader.begin()
            delivery = Delivery(spool, reader.name, reader.deliver, pause_seconds=reader.pause_seconds)
            self._stack.callback(delivery.stop)
            self._deliveries.append(delivery)
            delivery.start()
        self._stack.callback(self._sink.stop)
        self._sink.start()

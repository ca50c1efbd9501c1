"""What each kind of monitor is: a board that is served, fed and watched, whatever fills it."""

from abc import ABC, abstractmethod
from collections.abc import Callable, Iterable, Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from streaming.base.times import now_ms
from streaming.board.event_window import Event
from streaming.board.event_window_file import EventWindowFile
from streaming.config.sections import Config
from streaming.history.queries import History
from streaming.monitor import parts
from streaming.monitor.state_formats import END_OFFSETS_FILE, EVENTS_FILE
from streaming.sinks.outputs import Outputs
from streaming.watchers.assembly import Watcher, watchers
from streaming.web.server import Server


class BaseMonitor(ABC):
    """A context manager that owns all it starts, and ends it in the opposite order, also where a start fails.

    Args:
        config: of the cluster.
        source: whose numbers micro-batches have, as of `Outputs`; None for one that passes nothing on, and keeps
            nothing in `state.dir`.

    Attributes:
        board: what is shown.
        server: page, metrics and API.
    """

    server: Server

    def __init__(self, config: Config, source: Callable[[], str] | None = None) -> None:
        self._config = config
        self._directory = Path(config.state.dir)
        self.board = parts.board_of(config)
        self._exporter = parts.exporter_of(config, self.board)
        self._keeps = source is not None
        self._outputs = (
            Outputs(config, (), self.board, source=str, clock_ms=now_ms)
            if source is None
            else parts.outputs_of(config, self.board, self._exporter, source)
        )
        self._stack = ExitStack()

    @abstractmethod
    def _start(self, stack: ExitStack) -> None:
        """Start everything, with its end on the stack."""

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            self._start(stack)
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _server(self) -> Server:
        """Takes the port. The past is that of one's own `state.dir`."""
        config = self._config
        past = History(config.history_dir) if self._keeps and config.history.enabled else None
        return Server.of(config.http, self.board, self._exporter, parts.broker_answers(config), past)

    def _keep_events(self, stack: ExitStack) -> None:
        """Have the events of the run before, and keep those of this one."""
        self.board.events.keep(EventWindowFile(self._directory / EVENTS_FILE))
        stack.callback(self.board.events.close)

    def _watchers(self) -> list[Watcher]:
        """The threads that ask brokers and look at the clock."""
        ends_file = self._directory / END_OFFSETS_FILE if self._keeps else None
        return watchers(self._config, self.board, self._publish, now_ms, ends_file, reads_log=self._keeps)

    def _publish(self, events: Sequence[Event]) -> None:
        """Show events that no micro-batch brought, and pass them on."""
        # Of one that keeps nothing, what is expected was said by the monitor that passed the groups on.
        expectations = self.board.expectations if self._keeps else None
        known = expectations.applied(events) if expectations else events
        self.board.add_events(known)
        self._outputs.add_events(known)


def run_threads(stack: ExitStack, threads: Iterable[Watcher]) -> None:
    """Start threads, or what has some, and have them end with the stack."""
    for thread in threads:
        stack.callback(thread.stop)
        thread.start()

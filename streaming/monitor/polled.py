"""A monitor without the log: groups are polled by the Admin API (`source.kind: admin`), without Spark and Java.

Board, page, metrics, log ends and sinks are those of any monitor. What a poll cannot know is null or absent, and
`board/polls.py` says why.
"""

import uuid
from collections.abc import Sequence
from contextlib import ExitStack
from pathlib import Path
from typing import Self

from streaming.base.batch_rows import BatchRows, Row
from streaming.base.logging_setup import get_logger
from streaming.base.signals import stop_signals
from streaming.base.times import now_ms
from streaming.board.event_window import Event
from streaming.board.event_window_file import EventWindowFile
from streaming.checkpoint.lock import StateLock
from streaming.config.sections import Config
from streaming.history.queries import History
from streaming.kafka import client_settings
from streaming.monitor import parts, state_formats
from streaming.monitor.state_formats import END_OFFSETS_FILE, EVENTS_FILE
from streaming.polling.client import KafkaGroupsClient
from streaming.polling.poller import GroupPoller
from streaming.query.schemas import OutputRow
from streaming.watchers.assembly import watchers
from streaming.web.server import Server

_log = get_logger("start")


class PolledMonitor:
    """A running monitor of polled groups; a context manager.

    Raises on entry, with everything ended again:
        UsageError: the address is taken, or the state directory is another monitor's.
    """

    def __init__(self, config: Config) -> None:
        self._config = config
        self._directory = Path(config.state.dir)
        self.board = parts.board_of(config)
        settings = client_settings.python_settings(config.kafka, "groups")
        self._poller = GroupPoller(
            lambda: KafkaGroupsClient(settings, config.kafka.offsets_topic),
            self._take,
            interval_ms=config.source.poll_interval_ms,
            clock_ms=now_ms,
            set_unread=self.board.health.set_unread,
        )
        self.board.health.show_polls(self._poller.status)
        self.board.health.show_source_age(self._poller.age_seconds)
        # Rounds are numbered from 0 with every start, and the queue takes a number of a source once.
        run = f"polls-{uuid.uuid4()}"
        exporter = parts.exporter_of(config, self.board)
        self._outputs = parts.outputs_of(config, self.board, exporter, lambda: run)
        self._round = 0
        self._lock = StateLock(self._directory)
        past = History(config.history_dir) if config.history.enabled else None
        self.server = Server.of(config.http, self.board, exporter, parts.broker_answers(config), past)
        self._stack = ExitStack()

    def __enter__(self) -> Self:
        with ExitStack() as stack:
            stack.callback(self.server.stop)
            stack.callback(self._lock.release)
            self._lock.take()
            state_formats.refuse_others(self._directory, rebuild=False)
            self._lock.keep()
            self.board.events.keep(EventWindowFile(self._directory / EVENTS_FILE))
            stack.callback(self.board.events.close)
            self.server.start()
            stack.callback(self._outputs.stop)
            self._outputs.start()
            ends_file = self._directory / END_OFFSETS_FILE
            for thread in (self._poller, *watchers(self._config, self.board, self._publish, now_ms, ends_file)):
                stack.callback(thread.stop)
                thread.start()
            self._stack = stack.pop_all()
        return self

    def __exit__(self, *_: object) -> None:
        self._stack.close()

    def _take(self, rows: Sequence[Row], at_ms: int) -> None:
        batch = BatchRows([OutputRow(*row) for row in rows])
        for sink in (self.board, *self._outputs.sinks):
            sink.apply(self._round, batch, at_ms)
        self._round += 1

    def _publish(self, events: Sequence[Event]) -> None:
        known = self.board.expectations.applied(events) if self.board.expectations else events
        self.board.add_events(known)
        self._outputs.add_events(known)


def run(config: Config) -> None:
    """Poll and serve until SIGINT or SIGTERM; raises MonitorError."""
    with PolledMonitor(config) as monitor, stop_signals() as stopped:
        _log.info("serving", address=f"{monitor.server.url}/", source=config.source.kind)
        monitor.server.print_address("  polled")
        stopped.wait()

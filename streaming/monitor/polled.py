"""A monitor without the log: groups are polled by the Admin API (`source.kind: admin`), without Spark and Java.

Board, page, metrics, log ends and sinks are those of any monitor. What a poll cannot know is null or absent, and
`board/polls.py` says why.
"""

import uuid
from collections.abc import Sequence
from contextlib import ExitStack

from streaming.base.batch_rows import BatchRows, Row
from streaming.base.logging_setup import get_logger
from streaming.base.signals import stop_signals
from streaming.base.times import now_ms
from streaming.checkpoint.lock import StateLock
from streaming.config.sections import Config
from streaming.kafka import client_settings
from streaming.monitor import state_formats
from streaming.monitor.base_monitor import BaseMonitor, run_threads
from streaming.polling.client import KafkaGroupsClient
from streaming.polling.poller import GroupPoller

_log = get_logger("start")


class PolledMonitor(BaseMonitor):
    """A running monitor of polled groups.

    Raises on entry, with everything ended again:
        UsageError: the address is taken, or the state directory is another monitor's.
    """

    def __init__(self, config: Config) -> None:
        # Rounds are numbered from 0 with every start, and the queue takes a number of a source once.
        run_id = f"polls-{uuid.uuid4()}"
        super().__init__(config, lambda: run_id)
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
        self._round = 0
        self._lock = StateLock(self._directory)
        self.server = self._server()

    def _start(self, stack: ExitStack) -> None:
        stack.callback(self.server.stop)
        stack.callback(self._lock.release)
        self._lock.take()
        state_formats.refuse_others(self._directory, rebuild=False)
        self._lock.keep()
        self._keep_events(stack)
        self.server.start()
        run_threads(stack, [self._outputs, self._poller, *self._watchers()])

    def _take(self, rows: Sequence[Row], at_ms: int) -> None:
        batch = BatchRows(rows)
        for sink in (self.board, *self._outputs.sinks):
            sink.apply(self._round, batch, at_ms)
        self._round += 1


def run(config: Config) -> None:
    """Poll and serve until SIGINT or SIGTERM; raises MonitorError."""
    with PolledMonitor(config) as monitor, stop_signals() as stopped:
        _log.info("serving", address=f"{monitor.server.url}/", source=config.source.kind)
        monitor.server.print_address("  polled")
        stopped.wait()

"""Page, metrics and API from the topics of events and groups alone: without Spark, and without the monitor's disk.

The compacted topic is read from its beginning and then followed; the topic of events as far back as the window goes.
What the log does not hold (where logs end, how long a suspected group has been silent) this process asks the brokers
itself, as the monitor does. So its figures are the monitor's, a moment later; while the monitor is away they stay, lag
goes on growing, and `group_monitor_source_age_seconds` says how old the rest is.
"""

from collections.abc import Callable, Iterable
from contextlib import ExitStack, closing
from typing import Any, Final

from streaming.base.errors import UsageError, first_line
from streaming.base.logging_setup import get_logger
from streaming.base.signals import stop_signals
from streaming.base.threads import Background
from streaming.base.times import now_ms
from streaming.board.board import Board, Row
from streaming.board.event_window import Event
from streaming.board.polls import STALE_SECONDS, PollStatus
from streaming.config.sections import Config
from streaming.kafka import client_settings
from streaming.kafka.topic_reader import TopicReader
from streaming.monitor.base_monitor import BaseMonitor, run_threads
from streaming.sinks import topic_format

RETRY_SECONDS: Final = 2.0
_STOP_SECONDS: Final = 3.0

_log = get_logger("serving")

Records = Iterable[tuple[str, bytes | None, bytes | None]]


class TopicFollower:
    """Fills a board from the topics.

    Args:
        config: names topics and cluster.
        board: filled by this alone.
        read: opens a reader of the topics.
        clock_ms: the wall clock.
    """

    def __init__(
        self,
        config: Config,
        board: Board,
        read: Callable[[], TopicReader] | None = None,
        clock_ms: Callable[[], int] = now_ms,
    ) -> None:
        self._config = config
        self._board = board
        self._cluster = config.cluster.name
        self._read = read or self._reader
        self._clock_ms = clock_ms
        self._batch = 0
        self._is_ready = False
        self._source_ms: int | None = None
        self._unready_ms: int | None = None
        self._polls: PollStatus | None = None
        self._failure: str | None = None
        self._thread = Background("follower", self._run, stop_seconds=_STOP_SECONDS)

    def start(self) -> None:
        """Begin to follow."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread."""
        self._thread.stop()

    def polls(self) -> PollStatus | None:
        """How the monitor's polling went; None where it reads the log, and before it is heard."""
        return self._polls

    def source_age_seconds(self) -> float | None:
        """How long ago the monitor last said how far it is; None if it never did."""
        return None if self._source_ms is None else max(0, self._clock_ms() - self._source_ms) / 1000

    def missing(self) -> list[dict[str, Any]]:
        """That the monitor has fallen silent, or is not ready itself, as `base.doubt` has it."""
        if self._source_ms is not None and self._clock_ms() - self._source_ms >= STALE_SECONDS * 1_000:
            reason, since_ms = "the monitor that fills the topics has written nothing", self._source_ms
        elif self._unready_ms is not None:
            reason, since_ms = "the monitor that fills the topics is not ready", self._unready_ms
        else:
            return []
        return [{"reason": reason, "since": since_ms, "as_of": since_ms}]

    def _run(self) -> None:
        while not self._thread.stopping.is_set():
            try:
                self._follow()
            except Exception as error:  # noqa: BLE001 - whatever a client raises, the next try may succeed
                reason = first_line(error)
                if self._failure != reason:
                    _log.warning("topics_unreadable", reason=reason)
                self._failure = reason
                self._thread.stopping.wait(RETRY_SECONDS)

    def read_to_end(self, reader: TopicReader) -> None:
        """Fill the board with what is there; raises CannotTellError."""
        held: dict[tuple[str, ...], bytes] = {}
        events: list[Event] = []
        at_end = False
        while not at_end:
            if self._thread.stopping.is_set():
                return
            at_end = reader.at_first_end
            self._collect(reader.poll(), held, events)
        self._load(held, events)

    def follow(self, reader: TopicReader) -> None:
        """Take in what came since; raises CannotTellError."""
        self._apply(reader.poll())

    def _follow(self) -> None:
        with closing(self._read()) as reader:
            self.read_to_end(reader)
            self._failure = None
            while not self._thread.stopping.is_set():
                self.follow(reader)

    def _reader(self) -> TopicReader:
        sink = self._config.kafka_sink
        kafka = sink.connection(self._config.kafka)
        topics: dict[str, int | None] = {str(sink.groups_topic): None}
        if sink.events_topic is not None:
            topics[sink.events_topic] = self._config.events.window
        return TopicReader(client_settings.confluent_settings(kafka, "serve"), topics)

    def _collect(self, records: Records, held: dict[tuple[str, ...], bytes], events: list[Event]) -> None:
        """Take in what is there at first: of each key the newest."""
        for topic, key, value in records:
            if topic == self._config.kafka_sink.events_topic:
                events += self._event(value)
                continue
            name = topic_format.read_key(key)
            if name[:1] != (self._cluster,):
                continue
            if value is None:
                held.pop(name, None)
            else:
                held[name] = value

    def _load(self, held: dict[tuple[str, ...], bytes], events: list[Event]) -> None:
        rows: list[Row] = []
        for name, value in held.items():
            if len(name) > 1:
                rows += self._group(name[1], value, is_new=True)
        self._board.load(rows)
        self._board.add_events(events)
        monitor = held.get((self._cluster,))
        if monitor is not None:
            self._monitor(monitor)

    def _apply(self, records: Records) -> None:
        """Take in what came since."""
        rows: list[Row] = []
        events: list[Event] = []
        held: dict[tuple[str, ...], bytes | None] = {}
        for topic, key, value in records:
            if topic == self._config.kafka_sink.events_topic:
                events += self._event(value)
            elif (name := topic_format.read_key(key))[:1] == (self._cluster,):
                held[name] = value
        monitor = held.pop((self._cluster,), None)
        for (_, group), value in held.items():
            rows += [Row(-1, "group_deleted", group)] if value is None else self._group(group, value)
        if rows or events:
            self._board.add_events(events)
            self._board.apply(self._batch, rows, self._clock_ms())
            self._batch += 1
        if monitor is not None:
            self._monitor(monitor)

    def _event(self, value: bytes | None) -> list[Event]:
        try:
            event = topic_format.read_event(value)
        except ValueError as error:
            _log.error("record_unreadable", topic=self._config.kafka_sink.events_topic, reason=str(error))
            return []
        return [event] if event.pop("cluster", None) == self._cluster else []

    def _group(self, group: str, value: bytes, *, is_new: bool = False) -> list[Row]:
        try:
            shot = topic_format.read_value(value, topic_format.GROUP_FORMAT)["snapshot"]
            return list(topic_format.rows(group, shot, None if is_new else self._board.shown.groups.get(group)))
        except (ValueError, KeyError, TypeError) as error:
            _log.error("record_unreadable", group=group, reason=str(error))
            return []

    def _monitor(self, value: bytes) -> None:
        try:
            held: dict[str, Any] = topic_format.read_value(value, topic_format.MONITOR_FORMAT)
        except ValueError as error:
            _log.error("record_unreadable", cluster=self._cluster, reason=str(error))
            return
        agreed = held.get("agreed", {})
        self._board.health.set_agreed({int(partition): int(number) for partition, number in agreed.items()})
        self._board.apply(self._batch, list(topic_format.shard_rows(held)), self._clock_ms())
        self._batch += 1
        if held["ready"] and not self._is_ready:
            # What the monitor has caught up with, it has written before it says so.
            self._board.health.set_log_end_at_start({}, {})
            # Of partitions that it cannot read it has written the groups as they were.
            self._board.health.know_unread()
            self._is_ready = True
        membership, commits = (
            {int(partition): int(offset) for partition, offset in held["positions"][reader].items()}
            for reader in ("membership", "commits")
        )
        self._board.health.set_positions(membership, commits, self._clock_ms())
        # A former release says nothing of partitions that it cannot read.
        partitions = held.get("offsets_partitions")
        if partitions is not None:
            unread = {int(partition): int(since_ms) for partition, since_ms in held["unread"].items()}
            self._board.health.set_unread(unread, partitions)
        # Nor of the share coordinator's log.
        self._board.ends.share_log.relay(held.get("share_log", NOT_PASSED_ON))
        self._source_ms = int(held["time"])
        was_unready_ms = self._source_ms if self._unready_ms is None else self._unready_ms
        self._unready_ms = was_unready_ms if self._is_ready and not held["ready"] else None
        source = held.get("source")
        self._polls = None if source is None else PollStatus.of_json(source)


NOT_PASSED_ON: Final = "the monitor that fills the topics is of a release that does not know how far share groups are"


class Service(BaseMonitor):
    """A running `serve`.

    Raises on entry:
        UsageError: no topic of groups is configured, or the address is taken.
    """

    def __init__(self, config: Config) -> None:
        if config.kafka_sink.groups_topic is None:
            raise UsageError("kafka_sink.groups_topic: found none, accepted: the topic that a monitor writes groups to")
        super().__init__(config)
        self._follower = TopicFollower(config, self.board)
        self.board.health.show_source_age(self._follower.source_age_seconds)
        self.board.health.show_polls(self._follower.polls)
        self.board.health.show_start(self._follower.missing)
        self.server = self._server()

    def _start(self, stack: ExitStack) -> None:
        run_threads(stack, [self.server, self._follower, *self._watchers()])


def run(config: Config) -> None:
    """Serve until SIGINT or SIGTERM; raises MonitorError."""
    with Service(config) as service, stop_signals() as stopped:
        service.server.print_address()
        stopped.wait()

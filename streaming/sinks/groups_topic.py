"""Keeps a compacted topic equal to the board: a record for each group that changed, a tombstone for one that is gone.

Not out of the spool: a group's state is absolute, so what counts is what the topic should hold and does not. A thread
compares the groups on the board with those it has written, which are the same objects until a batch changes them; what
could not be written is still different at the next look, and of many changes meanwhile the last one goes. At its first
look it reads the topic, so that a restart writes what changed while it was away, tombstones of groups that went
included, and nothing else.
"""

import heapq
import threading
from collections.abc import Callable, Iterable, Mapping
from contextlib import closing
from typing import Any, Final

from streaming.base.errors import first_line
from streaming.base.logging_setup import get_logger
from streaming.base.output_status import SinkState
from streaming.base.persistent_map import GroupMap
from streaming.base.threads import Repeating
from streaming.board.board import Board
from streaming.board.board_group import BoardGroup
from streaming.kafka.producer import KafkaWriter, TopicRecord
from streaming.kafka.topic_reader import TopicReader
from streaming.sinks import topic_format

CHECK_EVERY_SECONDS: Final = 0.2
GROUPS_AT_ONCE: Final = 200
MONITOR_EVERY_MS: Final = 1_000
"""How often the monitor says how far it is: a reader that hears nothing for longer knows that it is away."""

_log = get_logger("group_topic")


class GroupsTopic:
    """The thread.

    Args:
        name: of the sink, in metrics.
        cluster: part of every key; several monitors may share the topic.
        topic: its name.
        board: what it is to hold.
        writer: writes it; used by this thread alone.
        read: opens a reader of the topic.
        interval_ms: shortest time between two records of a group that only commits.
        clock_ms: the wall clock.
    """

    def __init__(  # noqa: PLR0913 - what it stands between, all named
        self,
        name: str,
        *,
        cluster: str,
        topic: str,
        board: Board,
        writer: KafkaWriter,
        read: Callable[[], TopicReader],
        interval_ms: int,
        clock_ms: Callable[[], int],
    ) -> None:
        self._name = name
        self._cluster = cluster
        self._topic = topic
        self._board = board
        self._writer = writer
        self._read = read
        self._interval_ms = interval_ms
        self._clock_ms = clock_ms
        self._lock = threading.Lock()
        self._found: dict[str, bytes] | None = None
        """What the topic held at first and was not compared yet: group → digest of its snapshot."""
        self._written: dict[str, tuple[BoardGroup, int]] = {}
        """Group → as it was written, and when."""
        self._seen: GroupMap[BoardGroup] = GroupMap()
        self._pending: set[str] = set()
        """Groups that may differ from what was written."""
        self._deferred: list[tuple[int, str]] = []
        """(when it may be written, group), as a heap: groups that only committed, and were written a moment ago."""
        self._deferred_names: set[str] = set()
        self._late: dict[str, int] = {}
        """Group → since when it waits to be written."""
        self._monitor_ms = 0
        self._delivered = self._dropped = 0
        self._failure: str | None = None
        self._thread = Repeating("group-topic", CHECK_EVERY_SECONDS, self.check)

    def start(self) -> None:
        """Begin to look."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread; a restart writes what is missing."""
        self._thread.stop()
        self._writer.close()

    def state(self) -> SinkState:
        """How it is doing."""
        with self._lock:
            waiting, oldest_ms = len(self._late), min(self._late.values(), default=None)
        return SinkState(
            name=self._name,
            waiting=waiting,
            oldest_ms=oldest_ms,
            dropped=self._dropped,
            delivered=self._delivered,
            failure=self._failure,
        )

    def check(self) -> None:
        """Write what differs; what fails is shown, and tried again with the next look."""
        groups, now_ms = self._board.shown.groups, self._clock_ms()
        is_ready = self._board.health.ready()[0]
        changed, gone = self._differing(groups, now_ms) if is_ready else ([], [])
        with self._lock:
            self._late = {name: self._late.get(name, now_ms) for name in (*changed, *gone)}
        try:
            if self._found is None:
                self._found = self._in_topic()
                self._pending.update(self._found)
                return
            for start in range(0, len(changed), GROUPS_AT_ONCE):
                self._write(changed[start : start + GROUPS_AT_ONCE], groups, now_ms)
            self._bury(gone)
            self._write_monitor(now_ms, ready=is_ready)
        except Exception as error:  # noqa: BLE001 - whatever a client raises, the next try may succeed
            self._fail(error)
        else:
            if self._failure is not None:
                _log.info("delivers_again", sink=self._name)
            self._failure = None

    def _differing(self, groups: GroupMap[BoardGroup], now_ms: int) -> tuple[list[str], list[str]]:
        """Groups to be written now, and those that the topic still holds and the board does not; by name."""
        self._pending.update(name for name, _, _ in groups.since(self._seen))
        self._seen = groups
        while self._deferred and self._deferred[0][0] <= now_ms:
            _, name = heapq.heappop(self._deferred)
            self._deferred_names.discard(name)
            self._pending.add(name)
        changed, gone = [], []
        for name in sorted(self._pending):
            held, (former, written_ms) = groups.get(name), self._written.get(name, (None, 0))
            due_ms = written_ms + self._interval_ms
            if held is None and (former is not None or name in (self._found or {})):
                gone.append(name)
            elif held is None or held is former:
                self._pending.discard(name)
            elif former is None or not held.is_same(former) or now_ms >= due_ms:
                changed.append(name)
            else:
                self._pending.discard(name)
                if name not in self._deferred_names:
                    self._deferred_names.add(name)
                    heapq.heappush(self._deferred, (due_ms, name))
        return changed, gone

    def _write(self, names: Iterable[str], groups: Mapping[str, BoardGroup], now_ms: int) -> None:
        records = []
        found = self._found or {}
        for name in names:
            shot = topic_format.group_snapshot(groups[name])
            if found.get(name) != topic_format.digest(shot):
                value = topic_format.group_value(
                    self._cluster, groups[name], shot, self._board.ends.topic_names, now_ms
                )
                records.append(TopicRecord(self._topic, topic_format.group_key(self._cluster, name), value))
        self._deliver(records)
        for name in names:
            found.pop(name, None)
            self._written[name] = (groups[name], now_ms)
        self._arrived(names)

    def _bury(self, names: Iterable[str]) -> None:
        self._deliver([TopicRecord(self._topic, topic_format.group_key(self._cluster, name), None) for name in names])
        for name in names:
            (self._found or {}).pop(name, None)
            self._written.pop(name, None)
        self._arrived(names)

    def _write_monitor(self, now_ms: int, *, ready: bool) -> None:
        if now_ms - self._monitor_ms >= MONITOR_EVERY_MS:
            value = topic_format.monitor_value(self._cluster, self._board, now_ms, ready=ready)
            self._writer.write([TopicRecord(self._topic, topic_format.monitor_key(self._cluster), value)])
            self._monitor_ms = now_ms

    def _deliver(self, records: list[TopicRecord]) -> None:
        refused = self._writer.write(records) if records else 0
        self._dropped += refused
        self._delivered += len(records) - refused

    def _arrived(self, names: Iterable[str]) -> None:
        self._pending.difference_update(names)
        with self._lock:
            for name in names:
                self._late.pop(name, None)

    def _in_topic(self) -> dict[str, bytes]:
        """Group → digest of what the topic holds of it."""
        found: dict[str, bytes] = {}
        with closing(self._read()) as reader:
            while True:
                at_end = reader.at_first_end
                for _, key, value in reader.poll():
                    cluster, *group = topic_format.read_key(key) or ("",)
                    if cluster != self._cluster or not group:
                        continue
                    if value is None:
                        found.pop(group[0], None)
                    else:
                        found[group[0]] = _digest_of(value)
                if at_end:
                    return found

    def _fail(self, error: Exception) -> None:
        reason = first_line(error)
        if self._failure != reason:
            _log.warning("delivery_failed", sink=self._name, reason=reason)
        self._failure = reason


def _digest_of(value: bytes) -> bytes:
    """Of what cannot be read: one that no snapshot has, so that it is written again."""
    try:
        shot: dict[str, Any] = topic_format.read_value(value, topic_format.GROUP_FORMAT)["snapshot"]
        return topic_format.digest(shot)
    except (ValueError, KeyError, TypeError):
        return b""

"""Commits by the group coordinator, as clients make them, at an even rate: what monitors by the Admin API see too.

Groups have no members, so any client may commit for them. A request (OffsetCommit v2) has all partitions of a group;
a client library would want a consumer for each group, with some threads in each.
"""

import socket
import struct
import threading
import time
from collections.abc import Mapping, Sequence
from itertools import cycle
from typing import Final, Self

from bench.log import Expected, Plan
from streaming.base import kafka_frames

_OFFSET_COMMIT: Final = 8
_VERSION: Final = 2
_CONNECTIONS: Final = 4
"""A coordinator answers a connection's requests one after the other, each when its record is in the log."""
_ANSWER_SECONDS: Final = 30.0


class Committer:
    """Every request moves each partition of a group on by one; use as a context manager.

    Attributes:
        first: of each group, the sum of its offsets before.
        sent: of each group, when each of its requests was sent, as Unix seconds.
    """

    def __init__(self, bootstrap_servers: str, plan: Plan, groups: Sequence[str], expected: Expected) -> None:
        """Of these groups of a plan; `expected` is kept up."""
        host, _, port = bootstrap_servers.partition(":")
        self._address = (host, int(port))
        self._plan, self._groups, self._expected = plan, groups, expected
        self.first = {name: sum(expected.groups[name].offsets.values()) for name in groups}
        self.sent: dict[str, list[float]] = {name: [] for name in groups}
        self._stopping = threading.Event()
        self._failed: BaseException | None = None
        self._threads: list[threading.Thread] = []

    def partitions(self, name: str) -> int:
        """How many partitions a request of a group commits."""
        return len(self._expected.groups[name].offsets)

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        self.stop()

    def start(self, rate: float) -> None:
        """Commit so many partitions a second, of all groups together."""
        pause = self._plan.partitions / rate * _CONNECTIONS
        shares = [self._groups[number::_CONNECTIONS] for number in range(_CONNECTIONS)]
        self._threads = [
            threading.Thread(target=self._run, args=(share, pause), name="committer", daemon=True)
            for share in shares
            if share
        ]
        for thread in self._threads:
            thread.start()

    def stop(self) -> None:
        """End, all that was sent being acknowledged.

        Raises:
            RuntimeError, OSError: the coordinator refused a commit, or is gone.
        """
        self._stopping.set()
        for thread in self._threads:
            thread.join()
        if self._failed is not None:
            raise self._failed

    def _run(self, names: Sequence[str], pause: float) -> None:
        try:
            with socket.create_connection(self._address, timeout=_ANSWER_SECONDS) as connection:
                begun = time.monotonic()
                for number, name in enumerate(cycle(names)):
                    if self._stopping.wait(max(0.0, begun + number * pause - time.monotonic())):
                        return
                    self._commit(connection, name)
        except BaseException as error:  # noqa: BLE001 - raised by `stop`, which waits for the threads
            self._failed = error

    def _commit(self, connection: socket.socket, name: str) -> None:
        group = self._expected.groups[name]
        topic = self._plan.topic(name)
        offsets = {partition: at + 1 for (_, partition), at in group.offsets.items()}
        self.sent[name].append(time.time())
        _require_taken(kafka_frames.ask(connection, request(name, topic, offsets)), name)
        group.offsets = {(topic, partition): at for partition, at in offsets.items()}


def request(group: str, topic: str, offsets: Mapping[int, int]) -> bytes:
    """An OffsetCommit of one topic, for a group without members: no generation, no member id, retention as always."""
    places = b"".join(struct.pack(">iqh", partition, offset, -1) for partition, offset in offsets.items())
    return b"".join(
        (
            struct.pack(">hhih", _OFFSET_COMMIT, _VERSION, 0, -1),
            _text(group),
            struct.pack(">i", -1),
            _text(""),
            struct.pack(">q", -1),
            struct.pack(">i", 1),
            _text(topic),
            struct.pack(">i", len(offsets)),
            places,
        )
    )


def _text(text: str) -> bytes:
    encoded = text.encode()
    return struct.pack(">h", len(encoded)) + encoded


def _require_taken(response: bytes, group: str) -> None:
    """Every partition's error code is 0: correlation id, one topic with its name, (partition, error code) of each."""
    (length,) = struct.unpack_from(">h", response, 8)
    for _, error in struct.iter_unpack(">ih", response[14 + length :]):
        if error:
            raise RuntimeError(f"{group}: the coordinator refused a commit with error code {error}")

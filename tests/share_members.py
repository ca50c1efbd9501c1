"""Members of share groups on threads: real share consumers that decide of each record what becomes of it."""

import threading
from collections import Counter
from collections.abc import Callable
from types import TracebackType
from typing import Final, Self

from confluent_kafka import AcknowledgeType, Message, ShareConsumer

_POLL_SECONDS: Final = 0.2

Decide = Callable[[Message], AcknowledgeType]


class ShareMember:
    """A member that acknowledges each record as it is told to; use as a context manager.

    Args:
        servers: the cluster.
        group: of it.
        topic: it subscribes to.
        decide: what becomes of a record.

    Attributes:
        seen: (partition, offset) → how often the record was delivered to this member.
        rejected: (partition, offset) of each record that it rejected.
    """

    def __init__(self, servers: str, group: str, topic: str, decide: Decide) -> None:
        self.seen: Counter[tuple[int, int]] = Counter()
        self.rejected: set[tuple[int, int]] = set()
        self._decide = decide
        self._consumer = ShareConsumer(
            {
                "bootstrap.servers": servers,
                "group.id": group,
                "client.id": f"{group}-member",
                "share.acknowledgement.mode": "explicit",
                "log_level": 2,
            }
        )
        self._consumer.subscribe([topic])
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"share-member-{group}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Leave as an application does that is shut down; a second call does nothing."""
        self._stopping.set()
        self._thread.join()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def _run(self) -> None:
        while not self._stopping.is_set():
            for message in self._consumer.poll(_POLL_SECONDS):
                if message.error() is None:
                    self._acknowledge(message)
            self._consumer.commit_sync(10.0)
        self._consumer.close()

    def _acknowledge(self, message: Message) -> None:
        place = message.partition() or 0, message.offset() or 0
        self.seen[place] += 1
        becomes = self._decide(message)
        if becomes is AcknowledgeType.REJECT:
            self.rejected.add(place)
        self._consumer.acknowledge(message, becomes)

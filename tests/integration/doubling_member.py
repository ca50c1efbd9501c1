"""A real member with a broken assignor: as leader of a classic group it gives every partition to every member.

Brokers pass on what a leader assigns without looking into it, so two such members own the same partitions in the
coordinator's own log: the duplicate that a monitor has to find, with nothing simulated.
"""

import threading
from collections.abc import Sequence
from types import TracebackType
from typing import Any, Final, Self

from kafka import KafkaConsumer
from kafka.coordinator.assignors.roundrobin import RoundRobinPartitionAssignor

_POLL_MS: Final = 200


class _EverythingToEverybody(RoundRobinPartitionAssignor):  # type: ignore[misc]  # kafka-python has no types
    """Assigns as if each member were alone."""

    name = "doubling"

    @classmethod
    def assign(cls, cluster: Any, members: Sequence[Any]) -> dict[str, Any]:
        """Member id → assignment."""
        return {member.member_id: super(cls, cls).assign(cluster, [member])[member.member_id] for member in members}


class DoublingMember:
    """Reads a topic and commits nothing, for commits of two owners go back and forth; use as a context manager."""

    def __init__(self, bootstrap_servers: str, group: str, topic: str, client_id: str) -> None:
        """Join."""
        self._consumer = KafkaConsumer(
            topic,
            bootstrap_servers=bootstrap_servers,
            group_id=group,
            client_id=client_id,
            enable_auto_commit=False,
            heartbeat_interval_ms=500,
            partition_assignment_strategy=[_EverythingToEverybody],
        )
        self._stopping = threading.Event()
        self._thread = threading.Thread(target=self._run, name=f"member-{client_id}", daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Leave as an application does that is shut down; a second call does nothing."""
        self._stopping.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._stopping.is_set():
            self._consumer.poll(_POLL_MS)
        self._consumer.close()

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

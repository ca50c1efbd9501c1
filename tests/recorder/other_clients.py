"""A member that is not Kafka's own and speaks the classic protocol in its own way: kafka-python."""

import threading
from typing import Final

from kafka import KafkaConsumer

_POLL_MS: Final = 100


class PythonMember:
    """kafka-python's consumer on a thread."""

    def __init__(self, servers: str, group: str, name: str, topic: str) -> None:
        self._consumer = KafkaConsumer(
            topic,
            bootstrap_servers=servers,
            group_id=group,
            client_id=name,
            enable_auto_commit=False,
            heartbeat_interval_ms=500,
            session_timeout_ms=6000,
        )
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def close(self) -> None:
        """Leave as an application does that is shut down; a second call does nothing."""
        self._over.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._over.is_set():
            self._consumer.poll(_POLL_MS)
        self._consumer.close()

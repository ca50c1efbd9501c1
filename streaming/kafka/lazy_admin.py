"""A `KafkaAdminClient` for a thread of its own: it connects with the first question, and closing it ends that, too."""

import logging
from collections.abc import Mapping
from typing import Any, Final

from kafka.admin import KafkaAdminClient

from streaming.base.logging_setup import silence_clients

_BOOTSTRAP_TIMEOUT_MS: Final = 5_000
_REQUEST_TIMEOUT_MS: Final = 10_000


class LazyAdmin:
    """kafka-python's admin client, opened when it is first asked for.

    Args:
        settings: of `KafkaAdminClient`; time limits are tightened, because an answer that comes late is worth nothing.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        timeout_ms = min(_REQUEST_TIMEOUT_MS, settings.get("request_timeout_ms", _REQUEST_TIMEOUT_MS))
        self._settings = {
            **settings, "bootstrap_timeout_ms": _BOOTSTRAP_TIMEOUT_MS, "request_timeout_ms": timeout_ms
        }  # fmt: skip
        self._client = KafkaAdminClient.__new__(KafkaAdminClient)
        self._is_open = False

    @property
    def client(self) -> Any:  # noqa: ANN401 - kafka-python has no types
        """The client, connected. Raises KafkaError, OSError or RuntimeError."""
        if not self._is_open:
            if not logging.getLogger("kafka").isEnabledFor(logging.DEBUG):
                silence_clients()  # callers report an outage once, kafka-python with every try
            self._client.__init__(**self._settings)
            self._is_open = True
        return self._client

    def close(self) -> None:
        """Let go of all connections; a call under way in another thread ends with an error."""
        if hasattr(self._client, "_net"):
            # While its constructor runs, and after it failed, kafka-python takes the client for closed and would let
            # its I/O thread live on.
            self._client._closed = False  # noqa: SLF001 - as said above
            self._client.close()

"""A `KafkaAdminClient` for a thread of its own: it connects with the first question, and closing it ends that, too.

kafka-python keeps the brokers' addresses for five minutes, and of itself looks at them earlier only where a connection
breaks. By then the broker is away, so once it is back it stays unknown for five minutes. Errors that
say *not here* (`AWAY`) therefore have the brokers looked at again at once, here, for all who ask.
"""

import logging
import threading
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from time import monotonic
from typing import Any, Final, TypeVar

from kafka import errors
from kafka.errors import KafkaError

from streaming.base.logging_setup import silence_clients
from streaming.kafka.any_release import AdminClient, asking, name_of, with_question
from streaming.kafka.client_errors import Asked

_BOOTSTRAP_TIMEOUT_MS: Final = 5_000
_REQUEST_TIMEOUT_MS: Final = 10_000
_LONGEST_BACKOFF_MS: Final = 1_000
"""Before a broker that refused a connection is tried again: it may be back."""

LOOK_AGAIN_SECONDS: Final = 1.0
"""Between two looks at the brokers, and ten times as long between two new connections."""

AT_ONCE: Final = "at once"
NEXT_TIME: Final = "next time"
RECONNECT: Final = "reconnect"

AWAY: Final[Mapping[type[KafkaError], str]] = {
    # Another broker has it, or will have it in a moment.
    errors.UnknownBrokerIdError: AT_ONCE,
    errors.NotLeaderForPartitionError: AT_ONCE,
    errors.LeaderNotAvailableError: AT_ONCE,
    errors.ReplicaNotAvailableError: AT_ONCE,
    errors.FencedLeaderEpochError: AT_ONCE,
    errors.UnknownLeaderEpochError: AT_ONCE,
    errors.OffsetNotAvailableError: AT_ONCE,
    errors.KafkaStorageError: AT_ONCE,
    errors.ListenerNotFoundError: AT_ONCE,
    errors.UnknownTopicOrPartitionError: AT_ONCE,
    errors.UnknownTopicIdError: AT_ONCE,
    errors.NotControllerError: AT_ONCE,
    errors.NotCoordinatorError: AT_ONCE,
    errors.CoordinatorNotAvailableError: AT_ONCE,
    errors.CoordinatorLoadInProgressError: AT_ONCE,
    # The broker that was asked does not answer: to ask it again now takes as long, and says the same.
    errors.BrokerNotAvailableError: NEXT_TIME,
    errors.NetworkExceptionError: NEXT_TIME,
    errors.KafkaConnectionError: NEXT_TIME,
    errors.NodeNotReadyError: NEXT_TIME,
    errors.KafkaTimeoutError: NEXT_TIME,
    errors.RequestTimedOutError: NEXT_TIME,
    # kafka-python does not try a broker again that once refused the credentials.
    errors.SaslAuthenticationFailedError: RECONNECT,
}
"""Errors that say *not here* → when it is asked again, after a look at the brokers; `RECONNECT`: over new connections.

Which error it is decides, not what it is derived from. Any other is an answer.
"""

_BROKEN: Final = (errors.KafkaConnectionError, errors.NodeNotReadyError)

_Said = TypeVar("_Said")


class LazyAdmin:
    """kafka-python's admin client, opened when it is first asked for.

    Args:
        settings: of `KafkaAdminClient`; time limits are tightened, because an answer that comes late is worth nothing.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        timeout_ms = min(_REQUEST_TIMEOUT_MS, settings.get("request_timeout_ms", _REQUEST_TIMEOUT_MS))
        self._settings = {
            "reconnect_backoff_max_ms": _LONGEST_BACKOFF_MS,
            **settings,
            "bootstrap_timeout_ms": _BOOTSTRAP_TIMEOUT_MS,
            "request_timeout_ms": timeout_ms,
        }
        self._client: Any = AdminClient.__new__(AdminClient)
        self._is_open = False
        self._is_closed = False
        self._lock = threading.Lock()
        self._looked: float | None = None

    @property
    def client(self) -> Any:  # noqa: ANN401 - kafka-python has no types
        """The client, connected. Raises KafkaError."""
        if not self._is_open:
            if not logging.getLogger("kafka").isEnabledFor(logging.DEBUG):
                silence_clients()  # callers report an outage once, kafka-python with every try
            with asking(lambda: Asked("connection")):
                self._client.__init__(**self._settings)
            self._is_open = True
        return self._client

    def ask(self, question: Callable[[Any], _Said]) -> _Said:
        """What the client answers; asked twice where it says *not here*. Raises as `client`.

        A question that any broker may answer is asked of another, if the connection to the first one breaks.
        """
        client = self.client
        try:
            with self.asking():
                return question(client)
        except KafkaError as error:
            if self._look(AWAY.get(type(error))) != AT_ONCE and type(error) not in _BROKEN:
                raise
        with self.asking():
            return question(self.client)

    @contextmanager
    def asking(self, request: str = "brokers' answer") -> Iterator[None]:
        """Every error while brokers are asked, or their answers read, becomes a KafkaError that says so.

        `request` is what to say where the client does not know what it asked last.
        """
        with asking(lambda: getattr(self._client, "asked", None) or Asked(request)):
            yield

    def send(self, request: object, broker: int) -> Any:  # noqa: ANN401 - kafka-python has no types
        """A broker's answer to a request. Raises KafkaError."""
        answer = self.send_each({broker: request})[broker]
        if isinstance(answer, KafkaError):
            raise answer
        return answer

    def send_each(self, requests: Mapping[int, object]) -> dict[int, Any]:
        """Each broker's answer to its request, or the KafkaError instead; all are asked at the same time.

        Raises KafkaError where no connection was made at all.
        """
        found = self._sent(requests)
        remedies = {broker: AWAY.get(type(said)) for broker, said in found.items() if isinstance(said, KafkaError)}
        for remedy in (RECONNECT, AT_ONCE, NEXT_TIME):
            if remedy in remedies.values():
                if self._look(remedy) == AT_ONCE:
                    found |= self._sent({of: requests[of] for of, when in remedies.items() if when == AT_ONCE})
                break
        return found

    def asked_of(self, request: str, broker: int) -> Asked:
        """What to say was asked, with the broker's release where it is known."""
        asked: Asked = getattr(self._client, "asked_of", Asked)(request, broker)
        return asked

    def look_again(self) -> bool:
        """Look at the brokers again, unless that was done just now; whether it was done."""
        return self._look(AT_ONCE) is not None

    def close(self) -> None:
        """Let go of all connections; a call under way in another thread ends with an error."""
        with self._lock:
            self._is_closed = True
            client = self._client
        _close(client)

    def _look(self, remedy: str | None) -> str | None:
        """What `AWAY` says, as often as it may be done; returns what was done, None for nothing."""
        if remedy is None:
            return None
        now = monotonic()
        pause = LOOK_AGAIN_SECONDS * (10 if remedy == RECONNECT else 1)
        if self._is_closed or (self._looked is not None and now - self._looked < pause):
            return None
        self._looked = now
        if remedy == RECONNECT:
            self._reopen()
            return remedy
        manager = self.client._manager  # noqa: SLF001 - kafka-python has no method of the client for it
        try:
            with asking(lambda: Asked("Metadata")):
                manager.run(manager.cluster.refresh_metadata)
        except KafkaError:
            return None  # no broker is there to be asked: the question's own error says so
        return remedy

    def _sent(self, requests: Mapping[int, object]) -> dict[int, Any]:
        manager = self.client._manager  # noqa: SLF001 - as its own methods send theirs

        async def answered() -> dict[int, Any]:
            under_way, found = {}, dict[int, Any]()
            for broker, request in requests.items():
                try:
                    under_way[broker] = manager.send(request, node_id=broker)
                except Exception as error:  # noqa: BLE001 - any error is that broker's answer
                    found[broker] = with_question(error, self.asked_of(name_of(request), broker))
            for broker, sent in under_way.items():
                try:
                    found[broker] = await sent
                except Exception as error:  # noqa: BLE001 - as above
                    found[broker] = with_question(error, self.asked_of(name_of(requests[broker]), broker))
            return found

        with asking(lambda: Asked(name_of(next(iter(requests.values()), None)))):
            sent: dict[int, Any] = manager.run(answered)
        return sent

    def _reopen(self) -> None:
        with self._lock:
            if self._is_closed:
                return
            former, self._client = self._client, AdminClient.__new__(AdminClient)
            self._is_open = False
        _close(former)


class AdminConnection:
    """Who asks brokers by a `LazyAdmin` of its own. It connects with the first question.

    Args:
        settings: of `KafkaAdminClient`.
    """

    def __init__(self, settings: Mapping[str, Any]) -> None:
        self._settings = settings
        self._admin = LazyAdmin(settings)

    def close(self) -> None:
        """Let go of all connections; a call under way in another thread ends with an error."""
        self._admin.close()

    def _renew(self) -> None:
        """Let go of all connections; the next question is asked over new ones, after a look at the brokers."""
        self._admin.close()
        self._admin = LazyAdmin(self._settings)


def error_of(code: int) -> type[KafkaError] | None:
    """The error that a broker's code stands for; None for none."""
    found: type[KafkaError] = errors.for_code(code)
    return None if found is errors.NoError else found


def _close(client: Any) -> None:  # noqa: ANN401 - kafka-python has no types
    if hasattr(client, "_net"):
        # While its constructor runs, and after it failed, kafka-python takes the client for closed and would let
        # its I/O thread live on.
        client._closed = False  # noqa: SLF001 - as said above
        client.close()

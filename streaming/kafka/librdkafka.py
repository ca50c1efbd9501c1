"""librdkafka's clients, whose errors say what was asked of whom: the one door to it (`client_errors.py`).

A full queue stays BufferError, which asks for patience. What a message has for an error, or a
delivery, is no exception, and is for who looks at it.
"""

from collections.abc import Callable, Iterable
from functools import wraps
from typing import Any, Final, TypeVar

import confluent_kafka
from confluent_kafka import KafkaError, KafkaException
from confluent_kafka import admin as confluent_admin

from streaming.base.errors import MonitorError
from streaming.kafka.client_errors import Asked, ErrorKind, in_words

KINDS: Final[dict[int, ErrorKind]] = {
    **dict.fromkeys(
        (
            KafkaError.TOPIC_AUTHORIZATION_FAILED,
            KafkaError.GROUP_AUTHORIZATION_FAILED,
            KafkaError.CLUSTER_AUTHORIZATION_FAILED,
            KafkaError.TRANSACTIONAL_ID_AUTHORIZATION_FAILED,
            KafkaError.SASL_AUTHENTICATION_FAILED,
            KafkaError._AUTHENTICATION,  # noqa: SLF001 - the public name of each with an underscore
        ),
        "refused",
    ),
    **dict.fromkeys((KafkaError.UNSUPPORTED_VERSION, KafkaError._UNSUPPORTED_FEATURE), "unknown request"),  # noqa: SLF001 - as above
    **dict.fromkeys(
        (
            KafkaError._TRANSPORT,  # noqa: SLF001 - as above
            KafkaError._ALL_BROKERS_DOWN,  # noqa: SLF001 - as above
            KafkaError._TIMED_OUT,  # noqa: SLF001 - as above
            KafkaError._TIMED_OUT_QUEUE,  # noqa: SLF001 - as above
            KafkaError._MSG_TIMED_OUT,  # noqa: SLF001 - as above
            KafkaError._RESOLVE,  # noqa: SLF001 - as above
            KafkaError._WAIT_COORD,  # noqa: SLF001 - as above
            KafkaError.REQUEST_TIMED_OUT,
            KafkaError.NETWORK_EXCEPTION,
            KafkaError.BROKER_NOT_AVAILABLE,
            KafkaError.LEADER_NOT_AVAILABLE,
            KafkaError.NOT_LEADER_FOR_PARTITION,
            KafkaError.UNKNOWN_LEADER_EPOCH,
            KafkaError.FENCED_LEADER_EPOCH,
            KafkaError.COORDINATOR_NOT_AVAILABLE,
            KafkaError.COORDINATOR_LOAD_IN_PROGRESS,
            KafkaError.NOT_COORDINATOR,
        ),
        "away",
    ),
}
"""Code → which kind of no it is; any other is "other"."""

_Method = TypeVar("_Method", bound=Callable[..., Any])


def kind_of(error: KafkaException) -> ErrorKind:
    """Which kind of no an error is."""
    of = error.args[0] if error.args else None
    return KINDS.get(of.code(), "other") if isinstance(of, KafkaError) else "other"


def with_question(error: Exception, request: str) -> KafkaException:
    """An error of librdkafka with what was asked in its text, or another one as one of its own (`_FAIL`)."""
    asked, of = Asked(request), error.args[0] if isinstance(error, KafkaException) and error.args else None
    if not isinstance(of, KafkaError):
        text = f"{in_words(error)} {asked.with_kind('other')}"
        return KafkaException(KafkaError(KafkaError._FAIL, text))  # noqa: SLF001 - as above
    text = f"{' '.join(of.str().split())} {asked.with_kind(KINDS.get(of.code(), 'other'))}"
    return KafkaException(KafkaError(of.code(), text, fatal=of.fatal(), retriable=of.retriable()))


def _guarded(method: _Method, request: str) -> _Method:
    @wraps(method)
    def asked(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the method
        try:
            return method(*args, **kwargs)
        except (BufferError, MonitorError):
            raise
        except Exception as error:
            raise with_question(error, request) from error

    return asked  # type: ignore[return-value]  # takes and returns what the method does


def _guarded_futures(method: _Method, request: str) -> _Method:
    @wraps(method)
    def asked(*args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as above
        futures = method(*args, **kwargs)
        for future in futures.values():
            future.result = _guarded(future.result, request)
        return futures

    return asked  # type: ignore[return-value]  # as above


class Consumer(confluent_kafka.Consumer):
    """As confluent-kafka's; raises KafkaException, and nothing else."""


class Producer(confluent_kafka.Producer):
    """As confluent-kafka's; raises KafkaException, and BufferError where its queue is full."""


class AdminClient(confluent_admin.AdminClient):
    """As confluent-kafka's; raises KafkaException, and so do the futures that it returns."""


ASKED: Final[dict[type[Any], tuple[str, ...]]] = {
    Consumer: (
        *("__init__", "assign", "assignment", "close", "commit", "committed", "consume", "get_watermark_offsets"),
        *("incremental_assign", "incremental_unassign", "list_topics", "offsets_for_times", "pause", "poll"),
        *("position", "resume", "seek", "subscribe", "unassign", "unsubscribe"),
    ),
    Producer: ("__init__", "flush", "list_topics", "poll", "produce", "purge"),
    AdminClient: ("__init__", "create_topics", "delete_topics", "list_offsets", "list_topics", "poll"),
}
"""Client → its methods that may be called."""

FUTURES: Final = frozenset({"create_topics", "delete_topics", "list_offsets"})
"""Methods of `AdminClient` that return futures."""


def _that_are_there(method: _Method) -> _Method:
    @wraps(method)
    def asked(self: object, topic: str | None = None, timeout: float = -1) -> Any:  # noqa: ANN401 - as above
        listed = method(self, topic, timeout)
        if topic is not None and topic not in listed.topics:
            raise KafkaException(KafkaError(KafkaError.UNKNOWN_TOPIC_OR_PART, f"no word of {topic!r}"))
        return listed

    return asked  # type: ignore[return-value]  # as above


def through_the_door(client: type[Any], methods: Iterable[str]) -> None:
    """Have a class's methods raise what `with_question` says."""
    for name in methods:
        request = "connection" if name == "__init__" else name
        method = getattr(client, name)
        method = _guarded(_that_are_there(method) if name == "list_topics" else method, request)
        setattr(client, name, _guarded_futures(method, request) if name in FUTURES else method)


for _client, _methods in ASKED.items():
    through_the_door(_client, _methods)

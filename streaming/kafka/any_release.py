"""kafka-python's admin client for brokers of every release, whose errors say what was asked of whom.

The library's own methods take for granted what newer brokers answer. Which version of a request is sent depends on the
broker that gets it: a field from before the version that has it is not in the library's answer, and a request that the
broker does not have raises IncompatibleBrokerVersion.

It is the one door to kafka-python (`client_errors.py`): calls through it raise KafkaError, and nothing else.
"""

import time
import uuid
from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager, suppress
from functools import wraps
from typing import Any, Final

from kafka import errors
from kafka.admin import ConfigResourceType, KafkaAdminClient
from kafka.errors import KafkaError
from kafka.protocol.admin import DescribeClusterRequest, DescribeGroupsRequest, ListConfigResourcesRequest
from kafka.protocol.metadata import MetadataRequest

from streaming.base.errors import MonitorError
from streaming.kafka import bounded_reads
from streaming.kafka.client_errors import Asked, ErrorKind, in_words

bounded_reads.bound()

_BY_TOPIC_ID: Final = 12
"""Version of Metadata from which on topics are found by id (KIP-516, brokers from 3.1 on)."""

_EPOCHS_HOLD: Final = 9
"""Version of Metadata from which on the leader epochs in it are not those of a former leader (KAFKA-9212)."""

_BY_TYPE: Final = 1
"""Version of ListConfigResources from which on it lists more than client metrics (KIP-1142, brokers from 4.1 on)."""


AGAIN_SECONDS: Final = 0.3
"""Between two tries of one question."""

KINDS: Final[dict[ErrorKind, tuple[type[BaseException], ...]]] = {
    "refused": (
        errors.AuthorizationError,
        errors.SaslAuthenticationFailedError,
        errors.UnsupportedSaslMechanismError,
        errors.IllegalSaslStateError,
    ),
    "unknown request": (errors.IncompatibleBrokerVersion, errors.UnsupportedVersionError),
    "away": (
        errors.RetriableError,
        errors.UnknownBrokerIdError,
        errors.BrokerNotAvailableError,
        errors.ReplicaNotAvailableError,
        errors.OffsetNotAvailableError,
        errors.ListenerNotFoundError,
        errors.FencedLeaderEpochError,
        errors.UnknownLeaderEpochError,
        errors.KafkaStorageError,
        errors.UnknownTopicIdError,
        OSError,
    ),
}
"""Which kind of no an error is, in this order; any other is "other"."""


def name_of(request: Any) -> str:  # noqa: ANN401 - kafka-python has no types
    """Kafka's name of a request."""
    return str(getattr(request, "name", type(request).__name__)).removesuffix("Request")


class AnswerError(KafkaError):  # type: ignore[misc]  # kafka-python has no types
    """kafka-python, or who read its answer, fell over it; `__cause__` is how."""


def kind_of(error: BaseException) -> ErrorKind:
    """Which kind of no an error is."""
    return next((kind for kind, types in KINDS.items() if isinstance(error, types)), "other")


def with_question(error: Exception, asked: Asked) -> KafkaError:
    """The same error with what was asked in its text, said once; or another one as an error of the library."""
    known = error
    if not isinstance(error, KafkaError):
        # A connection that the system ended is one that may be made again.
        known = (errors.KafkaConnectionError if isinstance(error, OSError) else AnswerError)(in_words(error))
    if not hasattr(known, "asked"):
        known.asked = asked  # type: ignore[attr-defined]  # kept with it
        known.args = (" ".join(" ".join((*map(str, known.args), asked.with_kind(kind_of(known)))).split()),)
    return known


@contextmanager
def asking(asked: Callable[[], Asked]) -> Iterator[None]:
    """Every error of kafka-python, or of reading its answers, becomes a KafkaError that says what was asked.

    What is ours to end a command with (MonitorError) passes.
    """
    try:
        yield
    except MonitorError:
        raise
    except Exception as error:
        known = with_question(error, asked())
        if known is error:
            raise
        raise known from error


class AdminClient(KafkaAdminClient):  # type: ignore[misc]  # kafka-python has no types
    """As `KafkaAdminClient`, whose answers the methods below give for brokers from 2.0 on.

    Each may raise KafkaError; IncompatibleBrokerVersion is of a request the broker lacks.

    Args:
        patience_seconds: how long a question is asked again that met a broker which is away: another may answer.
        settings: as kafka-python has them.
    """

    _last: tuple[str, object] | None = None
    _patience_seconds = 0.0

    def __init__(self, *, patience_seconds: float = 0.0, **settings: Any) -> None:  # noqa: ANN401 - as said above
        self._patience_seconds = patience_seconds
        with asking(lambda: Asked("connection")):
            super().__init__(**settings)
        self._send, self._manager.send = self._manager.send, self._noted

    @property
    def asked(self) -> Asked | None:
        """What was asked last, of which broker; None if nothing was since a method was called."""
        return None if self._last is None else self.asked_of(*self._last)

    def asked_of(self, request: str, broker: object) -> Asked:
        """With the broker's release, as far as it is known."""
        manager = self._manager
        connection = getattr(manager, "_conns", {}).get(broker)
        version = getattr(connection, "broker_version", None) or getattr(manager, "broker_version", None)
        return Asked(request, broker, ".".join(map(str, version)) if version else None)

    def describe_cluster(self) -> dict[str, Any]:
        """`cluster_id` and `brokers`, each with its `broker_id`; `authorized_operations` (names) from 2.3 on."""
        described: dict[str, Any] = self._manager.run(self._cluster)
        return described

    def describe_topics(self, topics: Iterable[str | uuid.UUID] | None = None) -> list[dict[str, Any]]:
        """Topics by name and by id, or all of them.

        `topic_id` is None where the broker knows none: before 2.8, and until `inter.broker.protocol.version` is 2.8.
        By id brokers before 3.1 find nothing. Epochs of leaders that a broker may have outdated are -1: before 2.4.
        """
        wanted = None if topics is None else list(topics)
        names = [topic for topic in wanted or () if not isinstance(topic, uuid.UUID)]
        has_ids = wanted is not None and len(names) < len(wanted)
        try:
            described: list[dict[str, Any]] = self._manager.run(self._topics, wanted, _BY_TOPIC_ID if has_ids else 0)
        except errors.IncompatibleBrokerVersion:
            if not has_ids:
                raise
            described = self._manager.run(self._topics, names, 0)
        return described

    def describe_features(self, send_request_to_controller: bool = False) -> dict[str, dict[str, Any]]:
        """Feature → `supported` and `finalized` levels; none before 2.4, whose brokers have no features."""
        try:
            features: dict[str, dict[str, Any]] = super().describe_features(send_request_to_controller)
        except errors.IncompatibleBrokerVersion:
            return {}
        return features

    def describe_groups(self, group_ids: Iterable[str], group_coordinator_id: int) -> dict[str, dict[str, Any]]:
        """Group → `error` (None for none), `group_state` and `members`, whose metadata stay bytes.

        The library decodes those as consumers', and falls over others': Connect, Schema Registry.
        """
        request = DescribeGroupsRequest(groups=list(group_ids), include_authorized_operations=False)
        answer = self._manager.run(self._manager.send, request, group_coordinator_id)
        return {
            group.group_id: {
                **group.to_dict(json=False),
                "error": str(errors.for_code(group.error_code)()) if group.error_code else None,
            }
            for group in answer.groups
        }

    def list_config_resources(self, resource_types: Iterable[str] | None = None) -> dict[str, list[str]]:
        """Type of resource → names of those with a configuration of their own.

        Brokers before 4.1 always list client metrics: IncompatibleBrokerVersion, as before 3.7.
        """
        types = [ConfigResourceType.build_from(each).value for each in resource_types or ()]
        request = ListConfigResourcesRequest(resource_types=types, min_version=_BY_TYPE)
        answer = self._manager.run(self._manager.send, request)
        listed: dict[str, list[str]] = self._list_config_resources_process_response(answer)
        return listed

    def _noted(self, request: Any, node_id: Any = None, request_timeout_ms: Any = None) -> Any:  # noqa: ANN401 - kafka-python has no types
        """What its connection manager sends, of which the last is remembered for who has to say it."""
        broker = self._manager.least_loaded_node() if node_id is None else node_id
        # Metadata without operations is what the library asks for its own sake, at any time.
        if not isinstance(request, MetadataRequest) or request.include_topic_authorized_operations:
            self._last = name_of(request), broker
        return self._send(request, broker, request_timeout_ms)

    async def _cluster(self) -> dict[str, Any]:
        wanted = DescribeClusterRequest(include_cluster_authorized_operations=True, include_fenced_brokers=True)
        try:
            answer = await self._manager.send(wanted)
        except errors.IncompatibleBrokerVersion:  # before 2.8
            cluster = await self._metadata([], 0)
            brokers = [{**broker.to_dict(), "broker_id": broker.node_id} for broker in cluster.brokers]
            return self._with_operations({**cluster.to_dict(), "brokers": brokers})
        if answer.error_code:
            raise errors.for_code(answer.error_code)(answer.error_message)
        return self._with_operations(answer.to_dict())

    async def _topics(self, topics: Iterable[str | uuid.UUID] | None, min_version: int) -> list[dict[str, Any]]:
        metadata = await self._metadata(topics, min_version)
        described = [{"topic_id": None, **topic} for topic in metadata.to_dict()["topics"]]
        if metadata.API_VERSION < _EPOCHS_HOLD:
            for partition in (each for topic in described for each in topic["partitions"]):
                partition["leader_epoch"] = -1
        return [self._with_operations(topic) for topic in described]

    async def _metadata(self, topics: Iterable[str | uuid.UUID] | None, min_version: int) -> Any:  # noqa: ANN401 - kafka-python has no types
        named = MetadataRequest.MetadataRequestTopic
        asked = None
        if topics is not None:
            asked = [named(name=None, topic_id=of) if isinstance(of, uuid.UUID) else named(name=of) for of in topics]
        return await self._manager.send(
            MetadataRequest(
                topics=asked,
                allow_auto_topic_creation=False,
                include_cluster_authorized_operations=True,
                include_topic_authorized_operations=True,
                min_version=min_version,
            )
        )

    def _with_operations(self, described: dict[str, Any]) -> dict[str, Any]:
        """With `authorized_operations` by name, where the broker says them."""
        named: dict[str, Any] = self._process_acl_operations(described)
        return named


ASKED: Final = (
    *("create_topics", "describe_cluster", "describe_configs", "describe_features", "describe_groups"),
    *("describe_topics", "get_broker_version_data", "list_config_resources", "list_group_offsets", "list_groups"),
    "list_topics",
)
"""Methods of the client that may be called."""


def _guarded(method: Callable[..., Any]) -> Callable[..., Any]:
    def once(self: AdminClient, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the method
        self._last = None
        with asking(lambda: self.asked or Asked(method.__name__)):
            return method(self, *args, **kwargs)

    @wraps(method)
    def asked(self: AdminClient, *args: Any, **kwargs: Any) -> Any:  # noqa: ANN401 - as the method
        given_up = time.monotonic() + self._patience_seconds
        while True:
            try:
                return once(self, *args, **kwargs)
            except KafkaError as error:
                if kind_of(error) != "away" or time.monotonic() >= given_up:
                    raise
            time.sleep(AGAIN_SECONDS)
            with suppress(Exception):  # what the brokers do not say of themselves now, the question's own error says
                self._manager.run(self._manager.cluster.refresh_metadata)

    return asked


for _name in ASKED:
    setattr(AdminClient, _name, _guarded(getattr(AdminClient, _name)))

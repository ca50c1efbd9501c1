"""kafka-python's admin client, for brokers of every release: its own methods take for granted what newer ones answer.

Which version of a request is sent depends on the broker that gets it. A field from before the version that has it is
not in kafka-python's answer, and a request that the broker does not have raises IncompatibleBrokerVersion.
"""

import uuid
from collections.abc import Iterable
from typing import Any, Final

from kafka import errors
from kafka.admin import ConfigResourceType, KafkaAdminClient
from kafka.protocol.admin import DescribeClusterRequest, ListConfigResourcesRequest
from kafka.protocol.metadata import MetadataRequest

_BY_TOPIC_ID: Final = 12
"""Version of Metadata from which on topics are found by id (KIP-516, brokers from 3.1 on)."""

_EPOCHS_HOLD: Final = 9
"""Version of Metadata from which on the leader epochs in it are not those of a former leader (KAFKA-9212)."""

_BY_TYPE: Final = 1
"""Version of ListConfigResources from which on it lists more than client metrics (KIP-1142, brokers from 4.1 on)."""


class AdminClient(KafkaAdminClient):  # type: ignore[misc]  # kafka-python has no types
    """As `KafkaAdminClient`, whose answers the methods below give for brokers from 2.0 on.

    Each may raise KafkaError, OSError or RuntimeError; IncompatibleBrokerVersion is of a request the broker lacks.
    """

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

    def list_config_resources(self, resource_types: Iterable[str] | None = None) -> dict[str, list[str]]:
        """Type of resource → names of those with a configuration of their own.

        Brokers before 4.1 list client metrics whatever they are asked: IncompatibleBrokerVersion, as before 3.7.
        """
        types = [ConfigResourceType.build_from(each).value for each in resource_types or ()]
        request = ListConfigResourcesRequest(resource_types=types, min_version=_BY_TYPE)
        answer = self._manager.run(self._manager.send, request)
        listed: dict[str, list[str]] = self._list_config_resources_process_response(answer)
        return listed

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

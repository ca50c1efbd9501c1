"""A broker of some release behind our admin client: requests and answers go through bytes, at that release's versions.

What real brokers of these releases answer is shown by tests that have them; this shows which fields are not in it.
"""

import uuid
from collections.abc import Awaitable, Callable, Sequence
from types import SimpleNamespace
from typing import Any, Final

from kafka.protocol.admin import DescribeClusterResponse, DescribeGroupsResponse, ListConfigResourcesResponse
from kafka.protocol.broker_version_data import BROKER_API_VERSIONS, BrokerVersionData
from kafka.protocol.metadata import ApiVersionsResponse, MetadataResponse

from streaming.kafka.any_release import AdminClient

RELEASES: Final[Sequence[tuple[int, int]]] = sorted(of for of in BROKER_API_VERSIONS if (2, 0) <= of)
TOPIC_ID: Final = uuid.UUID(int=7)
EPOCH: Final = 5


class BrokerOfARelease:
    """What kafka-python's connection manager does, for a cluster of one broker and one topic."""

    def __init__(self, release: tuple[int, int], topic_id: uuid.UUID | None = TOPIC_ID) -> None:
        self.broker_version_data = BrokerVersionData(release)
        self.broker_version = release
        self.config = {"client_software_name": "us", "client_software_version": "1"}
        self.sent: list[tuple[str, int]] = []
        self.failing: Exception | None = None
        """What asking it ends with."""
        self._topic_id = topic_id

    def run(self, question: Callable[..., Awaitable[Any]], *args: object) -> object:
        under_way = question(*args).__await__()
        try:
            while True:
                next(under_way)
        except StopIteration as answered:
            return answered.value

    def least_loaded_node(self) -> int:
        return 1

    @property
    def cluster(self) -> Any:
        """What the client knows of it."""
        return SimpleNamespace(
            brokers=lambda: [SimpleNamespace(node_id=1)], get_coordinator=lambda *_: 1, add_coordinator=lambda *_: 1
        )

    async def get_connection(self, node_id: int) -> Any:
        if self.failing is not None:
            raise self.failing
        return SimpleNamespace(broker_version_data=self.broker_version_data)

    async def send(self, request: Any, node_id: int | None = None, request_timeout_ms: int | None = None) -> Any:
        if self.failing is not None:
            raise self.failing
        version = self.broker_version_data.api_version(request)
        self.sent.append((request.name, version))
        asked = type(request).decode(request.encode(version=version), version=version)
        answer = _ANSWERS[request.name](self, asked, version)
        return type(answer).decode(answer.encode(version=version), version=version)

    def metadata(self, asked: Any, version: int) -> Any:
        topic, broker = MetadataResponse.MetadataResponseTopic, MetadataResponse.MetadataResponseBroker
        partition = topic.MetadataResponsePartition(partition_index=0, leader_id=1, leader_epoch=EPOCH)
        by_id = [of.topic_id for of in asked.topics or () if of.name is None]
        names = ["t"] if asked.topics is None or self._topic_id in by_id else []
        names += [of.name for of in asked.topics or () if of.name is not None]
        return MetadataResponse(
            brokers=[broker(node_id=1, host="h", port=9092, rack=None)],
            cluster_id="c",
            controller_id=1,
            topics=[topic(error_code=0, name=name, topic_id=self._topic_id, partitions=[partition]) for name in names],
        )

    def described(self, _: object, version: int) -> Any:
        broker = DescribeClusterResponse.DescribeClusterBroker(broker_id=1, host="h", port=9092, is_fenced=False)
        return DescribeClusterResponse(cluster_id="c", controller_id=1, brokers=[broker])

    def groups(self, asked: Any, version: int) -> Any:
        group = DescribeGroupsResponse.DescribedGroup
        # Of a worker of Connect: a version and its URL.
        worker = group.DescribedGroupMember(member_id="m", member_metadata=b"\x00\x01\x00\x17http://10.0.0.1:8083/ab")
        said = [group(group_id=name, group_state="Stable", members=[worker]) for name in asked.groups if name != "r"]
        refused = [group(error_code=30, group_id="r", group_state="", members=[])] if "r" in asked.groups else []
        return DescribeGroupsResponse(groups=said + refused)

    def features(self, _: object, version: int) -> Any:
        of = ApiVersionsResponse.SupportedFeatureKey(name="metadata.version", min_version=1, max_version=7)
        return ApiVersionsResponse(error_code=0, api_keys=[], supported_features=[of])

    def config_resources(self, _: object, version: int) -> Any:
        of = ListConfigResourcesResponse.ConfigResource(resource_name="g", resource_type=32 if version else 16)
        return ListConfigResourcesResponse(error_code=0, config_resources=[of])


_ANSWERS: Final[dict[str, Callable[[BrokerOfARelease, Any, int], Any]]] = {
    "MetadataRequest": BrokerOfARelease.metadata,
    "DescribeClusterRequest": BrokerOfARelease.described,
    "DescribeGroupsRequest": BrokerOfARelease.groups,
    "ApiVersionsRequest": BrokerOfARelease.features,
    "ListConfigResourcesRequest": BrokerOfARelease.config_resources,
}


def client_of(broker: BrokerOfARelease) -> AdminClient:
    """Our client, connected to it."""
    client = AdminClient.__new__(AdminClient)
    client._manager = broker
    client.config = AdminClient.DEFAULT_CONFIG
    client._controller_id = None
    client._send, broker.send = broker.send, client._noted  # type: ignore[method-assign]  # as the client does
    return client

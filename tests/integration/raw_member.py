"""A classic member of which the test decides every request: what no well-behaved client can be made to do."""

from types import TracebackType
from typing import Any, Final, Self

from kafka.admin import KafkaAdminClient
from kafka.protocol.consumer import JoinGroupRequest, OffsetCommitRequest, SyncGroupRequest

from coordinator_model.records import consumer_protocol

PROTOCOL: Final = "range"
_MEMBER_ID_REQUIRED: Final = 79


class RawMember:
    """Speaks the classic protocol request by request; use as a context manager."""

    def __init__(self, bootstrap_servers: str, group: str, topic: str) -> None:
        """Connect; nothing is joined yet."""
        self._client = KafkaAdminClient(bootstrap_servers=[bootstrap_servers], client_id=f"raw-{group}")
        self._group = group
        self._topic = topic
        self._member_id = ""
        self._generation = -1

    def join(self, *, rebalance_timeout_ms: int, session_timeout_ms: int = 60_000) -> None:
        """Join, or join again; returns when the coordinator has completed the join phase."""
        subscription = consumer_protocol.encode_subscription(
            consumer_protocol.ConsumerProtocolSubscription(
                topics=(self._topic,), user_data=None, owned_partitions=(), generation_id=-1, rack_id=None, version=3
            )
        )
        answer = self._join(subscription, rebalance_timeout_ms, session_timeout_ms)
        if answer.error_code == _MEMBER_ID_REQUIRED:
            self._member_id = answer.member_id
            answer = self._join(subscription, rebalance_timeout_ms, session_timeout_ms)
        assert answer.error_code == 0, answer
        self._member_id, self._generation = answer.member_id, answer.generation_id

    def sync(self, *partitions: int) -> None:
        """Give the assignment of a group of one, as its leader."""
        assignment = consumer_protocol.encode_assignment(
            consumer_protocol.ConsumerProtocolAssignment(
                assigned_partitions=(consumer_protocol.TopicPartition(topic=self._topic, partitions=partitions),),
                user_data=None,
                version=3,
            )
        )
        of_member = SyncGroupRequest.SyncGroupRequestAssignment(member_id=self._member_id, assignment=assignment)
        request = SyncGroupRequest(
            group_id=self._group,
            generation_id=self._generation,
            member_id=self._member_id,
            group_instance_id=None,
            protocol_type="consumer",
            protocol_name=PROTOCOL,
            assignments=[of_member],
        )
        answer = self._send(request)
        assert answer.error_code == 0, answer

    def commit(self, partition: int, offset: int) -> None:
        """Commit one offset."""
        of_topic = OffsetCommitRequest.OffsetCommitRequestTopic
        request = OffsetCommitRequest(
            group_id=self._group,
            generation_id_or_member_epoch=self._generation,
            member_id=self._member_id,
            group_instance_id=None,
            topics=[
                of_topic(
                    name=self._topic,
                    partitions=[
                        of_topic.OffsetCommitRequestPartition(
                            partition_index=partition,
                            committed_offset=offset,
                            committed_leader_epoch=-1,
                            committed_metadata="",
                        )
                    ],
                )
            ],
            max_version=8,
        )
        answer = self._send(request)
        assert answer.topics[0].partitions[0].error_code == 0, answer

    def _join(self, subscription: bytes, rebalance_timeout_ms: int, session_timeout_ms: int) -> Any:
        return self._send(
            JoinGroupRequest(
                group_id=self._group,
                session_timeout_ms=session_timeout_ms,
                rebalance_timeout_ms=rebalance_timeout_ms,
                member_id=self._member_id,
                group_instance_id=None,
                protocol_type="consumer",
                protocols=[JoinGroupRequest.JoinGroupRequestProtocol(name=PROTOCOL, metadata=subscription)],
                max_version=7,
            )
        )

    def _send(self, request: Any) -> Any:
        manager = self._client._manager
        (broker,) = self._client.describe_cluster()["brokers"]

        async def sent() -> Any:
            return await manager.send(request, node_id=broker["broker_id"])

        return manager.run(sent)

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self._client.close()

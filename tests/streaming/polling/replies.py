"""Answers of brokers as kafka-python reads them: encoded by its own classes, and decoded again."""

import uuid
from base64 import urlsafe_b64decode
from collections.abc import Mapping, Sequence
from typing import Any

from kafka.protocol.admin import DescribeGroupsResponse
from kafka.protocol.consumer import OffsetFetchResponse

from coordinator_model.records.classic_group import MemberMetadata
from lab import builders
from streaming.polling.requests import (
    ConsumerGroupDescribeResponse,
    ShareGroupDescribeResponse,
    StreamsGroupDescribeResponse,
)

Parts = Mapping[str, Sequence[int]]


def read_again(message: Any, version: int) -> Any:
    """What a client gets of it."""
    return type(message).decode(message.encode(version=version), version=version)


def classic(
    group: str,
    *members: MemberMetadata,
    state: str = "Stable",
    protocol_type: str = "consumer",
    protocol: str = "range",
) -> Any:
    """A group of DescribeGroups."""
    described = DescribeGroupsResponse.DescribedGroup
    reply = DescribeGroupsResponse(
        throttle_time_ms=0,
        groups=[
            described(
                error_code=0,
                error_message=None,
                group_id=group,
                group_state=state,
                protocol_type=protocol_type,
                protocol_data=protocol,
                members=[
                    described.DescribedGroupMember(
                        member_id=of.member_id,
                        group_instance_id=of.group_instance_id,
                        client_id=of.client_id,
                        client_host=of.client_host,
                        member_metadata=of.subscription,
                        member_assignment=of.assignment,
                    )
                    for of in members
                ],
                authorized_operations=set(),
            )
        ],
    )
    (found,) = read_again(reply, 6).groups
    return found


def consumer_member(
    member_id: str,
    epoch: int,
    assigned: Parts,
    *,
    target: Parts | None = None,
    topics: Sequence[str] = ("t",),
    regex: str | None = None,
    instance_id: str | None = None,
    member_type: int = 1,
) -> Any:
    """A member of `consumer`."""
    member = ConsumerGroupDescribeResponse.DescribedGroup.Member
    return member(
        member_id=member_id,
        instance_id=instance_id,
        rack_id=None,
        member_epoch=epoch,
        client_id="client",
        client_host=builders.HOST,
        subscribed_topic_names=list(topics),
        subscribed_topic_regex=regex,
        assignment=_assignment(member.Assignment, assigned),
        target_assignment=_assignment(member.Assignment, assigned if target is None else target),
        member_type=member_type,
    )


def consumer(group: str, *members: Any, epoch: int = 5, state: str = "Stable", version: int = 1) -> Any:
    """A group of ConsumerGroupDescribe whose target is of its epoch."""
    reply = ConsumerGroupDescribeResponse(
        throttle_time_ms=0,
        groups=[
            ConsumerGroupDescribeResponse.DescribedGroup(
                error_code=0,
                error_message=None,
                group_id=group,
                group_state=state,
                group_epoch=epoch,
                assignment_epoch=epoch,
                assignor_name="uniform",
                members=list(members),
            )
        ],
    )
    (found,) = read_again(reply, version).groups
    return found


def share(group: str, member_id: str, assigned: Parts) -> Any:
    """A group of ShareGroupDescribe with one member."""
    described = ShareGroupDescribeResponse.DescribedGroup
    reply = ShareGroupDescribeResponse(
        throttle_time_ms=0,
        groups=[
            described(
                error_code=0,
                error_message=None,
                group_id=group,
                group_state="Stable",
                group_epoch=2,
                assignment_epoch=2,
                assignor_name="simple",
                members=[
                    described.Member(
                        member_id=member_id,
                        rack_id=None,
                        member_epoch=2,
                        client_id="client",
                        client_host=builders.HOST,
                        subscribed_topic_names=["t"],
                        assignment=_assignment(described.Member.Assignment, assigned),
                    )
                ],
            )
        ],
    )
    (found,) = read_again(reply, 1).groups
    return found


def streams_member(member_id: str, epoch: int, active: Parts, *, target: Parts | None = None) -> Any:
    """A member of `streams` with active tasks by subtopology, and a standby of task 1_0."""
    kind = StreamsGroupDescribeResponse.DescribedGroup.Member

    def tasks(of: Parts) -> Any:
        ids = kind.Assignment.TaskIds
        return kind.Assignment(
            active_tasks=[ids(subtopology_id=name, partitions=list(parts)) for name, parts in of.items()],
            standby_tasks=[ids(subtopology_id="1", partitions=[0])],
            warmup_tasks=[],
        )

    return kind(
        member_id=member_id,
        member_epoch=epoch,
        instance_id=None,
        rack_id=None,
        client_id="client",
        client_host=builders.HOST,
        topology_epoch=0,
        process_id="process",
        user_endpoint=kind.Endpoint(host="app", port=40_000),
        client_tags=[kind.KeyValue(key="zone", value="a")],
        task_offsets=[],
        task_end_offsets=[],
        assignment=tasks(active),
        target_assignment=tasks(active if target is None else target),
        is_classic=False,
    )


def streams(group: str, *members: Any, has_topology: bool = True, state: str = "Stable") -> Any:
    """A group of StreamsGroupDescribe: subtopology 0 reads t into r, 1 reads r and keeps a changelog."""
    described = StreamsGroupDescribeResponse.DescribedGroup
    part, topic = described.Topology.Subtopology, described.Topology.Subtopology.TopicInfo

    def made(name: str) -> list[Any]:
        return [topic(name=name, partitions=0, replication_factor=0, topic_configs=[])]

    topology = described.Topology(
        epoch=0,
        subtopologies=[
            part(
                subtopology_id="0",
                source_topics=["t"],
                repartition_sink_topics=["r"],
                state_changelog_topics=[],
                repartition_source_topics=[],
            ),
            part(
                subtopology_id="1",
                source_topics=[],
                repartition_sink_topics=[],
                state_changelog_topics=made("c"),
                repartition_source_topics=made("r"),
            ),
        ],
    )
    reply = StreamsGroupDescribeResponse(
        throttle_time_ms=0,
        groups=[
            described(
                error_code=0,
                error_message=None,
                group_id=group,
                group_state=state,
                group_epoch=3,
                assignment_epoch=3,
                topology=topology if has_topology else None,
                members=list(members),
            )
        ],
    )
    (found,) = read_again(reply, 0).groups
    return found


def offsets(committed: Mapping[str, Mapping[int, int]], errors: Mapping[str, int] | None = None) -> Any:
    """The topics of one group of OffsetFetch; an offset of -1 is none, `errors` are by topic."""
    group = OffsetFetchResponse.OffsetFetchResponseGroup
    topic = group.OffsetFetchResponseTopics
    reply = OffsetFetchResponse(
        throttle_time_ms=0,
        groups=[
            group(
                group_id="g",
                error_code=0,
                topics=[
                    topic(
                        name=name,
                        partitions=[
                            topic.OffsetFetchResponsePartitions(
                                partition_index=partition,
                                committed_offset=offset,
                                committed_leader_epoch=3,
                                metadata="",
                                error_code=(errors or {}).get(name, 0),
                            )
                            for partition, offset in of.items()
                        ],
                    )
                    for name, of in committed.items()
                ],
            )
        ],
    )
    (found,) = read_again(reply, 8).groups
    return found.topics


def _assignment(kind: Any, parts: Parts) -> Any:
    named = kind.TopicPartitions
    return kind(
        topic_partitions=[
            named(
                topic_id=uuid.UUID(bytes=urlsafe_b64decode(builders.topic_id(topic) + "==")),
                topic_name=topic,
                partitions=list(of),
            )
            for topic, of in parts.items()
        ]
    )

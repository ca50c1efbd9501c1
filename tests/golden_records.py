"""Records of a live Kafka 4.3.1 broker, byte for byte, and what they say.

The other two sources of truth for the codec are generated records (`record_strategies`) and Kafka's own decoder
(`kafka_oracle`).
"""

import json
from base64 import b64decode
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

from coordinator_model.records.classic_group import GroupMetadataKey, GroupMetadataValue, MemberMetadata
from coordinator_model.records.consumer_group import (
    AssignedTopicPartitions,
    ClassicMemberMetadata,
    ClassicProtocol,
    ConsumerGroupCurrentMemberAssignmentKey,
    ConsumerGroupCurrentMemberAssignmentValue,
    ConsumerGroupMemberMetadataKey,
    ConsumerGroupMemberMetadataValue,
    ConsumerGroupMetadataKey,
    ConsumerGroupMetadataValue,
    ConsumerGroupRegularExpressionKey,
    ConsumerGroupRegularExpressionValue,
    ConsumerGroupTargetAssignmentMetadataKey,
    ConsumerGroupTargetAssignmentMetadataValue,
)
from coordinator_model.records.offset_commit import OffsetCommitKey, OffsetCommitValue
from coordinator_model.records.record_types import RecordType
from coordinator_model.records.serde import Record
from coordinator_model.records.share_group import (
    ShareGroupStatePartitionMetadataKey,
    ShareGroupStatePartitionMetadataValue,
    TopicPartitionsInfo,
)
from coordinator_model.records.streams_group import KeyValue, StreamsGroupMetadataKey, StreamsGroupMetadataValue

RECORDING: Final = Path(__file__).parent / "recordings" / "scenarios.ndjson"
T1 = "qfldg-hETbqqm-sPvkJUZQ"


def recorded() -> list[tuple[bytes, bytes | None]]:
    """Keys and values of the recording, in the order of its lines."""
    lines = [json.loads(line) for line in RECORDING.read_text().splitlines()[1:]]
    return [(b64decode(line["key"]), None if line["value"] is None else b64decode(line["value"])) for line in lines]


@dataclass(frozen=True)
class GoldenRecord:
    """Bytes and their meaning."""

    name: str
    key: bytes
    value: bytes
    record: Record


def _golden(name: str, key: str, value: str, type_: RecordType, decoded_key: Any, decoded_value: Any) -> GoldenRecord:
    value_bytes = bytes.fromhex(value)
    version = int.from_bytes(value_bytes[:2], "big")
    return GoldenRecord(
        name, bytes.fromhex(key), value_bytes, Record(type_, decoded_key, decoded_value, value_version=version)
    )


GOLDEN_RECORDS = (
    _golden(
        "classic group without members",
        "00020009672d636c6173736963",
        "0003000000000000ffffffff000001a1fc6dce1a00000000",
        RecordType.GROUP_METADATA,
        GroupMetadataKey(group="g-classic"),
        GroupMetadataValue(
            protocol_type="",
            generation=0,
            protocol=None,
            leader=None,
            current_state_timestamp=1795236417050,
            members=(),
        ),
    ),
    _golden(
        "classic group with a member",
        "000200097265632d6561676572",
        "00030008636f6e73756d657200000001000572616e6765"
        "0039636f6e73756d65722d7265632d65616765722d312d38346336363639392d616236392d343565662d393330632d613666386333396562333033"
        "000001a1fc8a9bc200000001"
        "0039636f6e73756d65722d7265632d65616765722d312d38346336363639392d616236392d343565662d393330632d613666386333396562333033"
        "ffff0014636f6e73756d65722d7265632d65616765722d31000a2f3132372e302e302e31000493e000001770"
        "00000020000300000001000a7265632d6f7264657273ffffffff00000000ffffffffffff"
        "00000032000300000001000a7265632d6f726465727300000006000000000000000100000002000000030000000400000005ffffffff",
        RecordType.GROUP_METADATA,
        GroupMetadataKey(group="rec-eager"),
        GroupMetadataValue(
            protocol_type="consumer",
            generation=1,
            protocol="range",
            leader="consumer-rec-eager-1-84c66699-ab69-45ef-930c-a6f8c39eb303",
            current_state_timestamp=1795238304706,
            members=(
                MemberMetadata(
                    member_id="consumer-rec-eager-1-84c66699-ab69-45ef-930c-a6f8c39eb303",
                    client_id="consumer-rec-eager-1",
                    client_host="/127.0.0.1",
                    rebalance_timeout=300000,
                    session_timeout=6000,
                    subscription=bytes.fromhex("000300000001000a7265632d6f7264657273ffffffff00000000ffffffffffff"),
                    assignment=bytes.fromhex(
                        "000300000001000a7265632d6f7264657273"
                        "00000006000000000000000100000002000000030000000400000005ffffffff"
                    ),
                ),
            ),
        ),
    ),
    _golden(
        "offset with the topic's id",
        "00010009672d636c61737369630002743100000000",
        "0004000000000000000700000003036d64000001a1fc6dd13f010010a9f95d83e8444dbaaa9beb0fbe425465",
        RecordType.OFFSET_COMMIT,
        OffsetCommitKey(group="g-classic", topic="t1", partition=0),
        OffsetCommitValue(offset=7, leader_epoch=3, metadata="md", commit_timestamp=1795236417855, topic_id=T1),
    ),
    _golden(
        "group epoch with a hash",
        "00030005672d6d6967",
        "000000000002010008193be2c9afd81892",
        RecordType.CONSUMER_GROUP_METADATA,
        ConsumerGroupMetadataKey(group_id="g-mig"),
        ConsumerGroupMetadataValue(epoch=2, metadata_hash=0x193BE2C9AFD81892),
    ),
    _golden(
        "member of the consumer protocol",
        "000500077265632d6e657700166c2d584a4e766436522d756e344c747a3673735a5941",
        "0000000013636f6e73756d65722d7265632d6e65772d310b2f3132372e302e302e31020a7265632d617564697401000493e00001000100",
        RecordType.CONSUMER_GROUP_MEMBER_METADATA,
        ConsumerGroupMemberMetadataKey(group_id="rec-new", member_id="l-XJNvd6R-un4Ltz6ssZYA"),
        ConsumerGroupMemberMetadataValue(
            instance_id=None,
            rack_id=None,
            client_id="consumer-rec-new-1",
            client_host="/127.0.0.1",
            subscribed_topic_names=("rec-audit",),
            subscribed_topic_regex="",
            rebalance_timeout_ms=300000,
            server_assignor=None,
            classic_member_metadata=None,
        ),
    ),
    _golden(
        "classic member within a consumer group",
        "000500097265632d6d697865640039"
        "636f6e73756d65722d7265632d6d697865642d312d64646664313832362d616362382d343934312d623830312d656233656536356637386564",
        "0000000015636f6e73756d65722d7265632d6d697865642d310b2f3132372e302e302e31020b7265632d6f726465727301000493e000"
        "01005c010000afc80213636f6f70657261746976652d737469636b7941000300000001000a7265632d6f726465727300000004000000"
        "0300000001000a7265632d6f72646572730000000300000003000000040000000500000003ffff0000",
        RecordType.CONSUMER_GROUP_MEMBER_METADATA,
        ConsumerGroupMemberMetadataKey(
            group_id="rec-mixed", member_id="consumer-rec-mixed-1-ddfd1826-acb8-4941-b801-eb3ee65f78ed"
        ),
        ConsumerGroupMemberMetadataValue(
            instance_id=None,
            rack_id=None,
            client_id="consumer-rec-mixed-1",
            client_host="/127.0.0.1",
            subscribed_topic_names=("rec-orders",),
            subscribed_topic_regex="",
            rebalance_timeout_ms=300000,
            server_assignor=None,
            classic_member_metadata=ClassicMemberMetadata(
                session_timeout_ms=45000,
                supported_protocols=(
                    ClassicProtocol(
                        name="cooperative-sticky",
                        metadata=bytes.fromhex(
                            "000300000001000a7265632d6f7264657273000000040000000300000001000a7265632d6f7264657273"
                            "0000000300000003000000040000000500000003ffff"
                        ),
                    ),
                ),
            ),
        ),
    ),
    _golden(
        "assignment epoch whose timestamp is left out",
        "00060005672d6d6967",
        "00000000000100",
        RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA,
        ConsumerGroupTargetAssignmentMetadataKey(group_id="g-mig"),
        ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=1),
    ),
    _golden(
        "assignment epoch with a timestamp",
        "00060005672d6d6967",
        "000000000002010008000001a1fc6fe938",
        RecordType.CONSUMER_GROUP_TARGET_ASSIGNMENT_METADATA,
        ConsumerGroupTargetAssignmentMetadataKey(group_id="g-mig"),
        ConsumerGroupTargetAssignmentMetadataValue(assignment_epoch=2, assignment_timestamp=1795236555064),
    ),
    _golden(
        "static member that closed and may return",
        "00080006672d6d6967730016344169744a764c375133475f4c64674e6a4962456367",
        "0000fffffffe000000000002a9f95d83e8444dbaaa9beb0fbe425465050000000000000001000000020000000301001105"
        "000000000000000000000000000000000100",
        RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
        ConsumerGroupCurrentMemberAssignmentKey(group_id="g-migs", member_id="4AitJvL7Q3G_LdgNjIbEcg"),
        ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=-2,
            previous_member_epoch=0,
            state=0,
            assigned_partitions=(
                AssignedTopicPartitions(topic_id=T1, partitions=(0, 1, 2, 3), assignment_epochs=(0, 0, 0, 0)),
            ),
            partitions_pending_revocation=(),
        ),
    ),
    _golden(
        "member that keeps two partitions and revokes two",
        "00080005672d636f6e00165a545043796134675255656f584f6e7a487852477241",
        "000000000002000000020102a9f95d83e8444dbaaa9beb0fbe42546503000000000000000101000903000000020000000202"
        "a9f95d83e8444dbaaa9beb0fbe42546503000000020000000301000903000000020000000200",
        RecordType.CONSUMER_GROUP_CURRENT_MEMBER_ASSIGNMENT,
        ConsumerGroupCurrentMemberAssignmentKey(group_id="g-con", member_id="ZTPCya4gRUeoXOnzHxRGrA"),
        ConsumerGroupCurrentMemberAssignmentValue(
            member_epoch=2,
            previous_member_epoch=2,
            state=1,
            assigned_partitions=(AssignedTopicPartitions(topic_id=T1, partitions=(0, 1), assignment_epochs=(2, 2)),),
            partitions_pending_revocation=(
                AssignedTopicPartitions(topic_id=T1, partitions=(2, 3), assignment_epochs=(2, 2)),
            ),
        ),
    ),
    _golden(
        "regular expression and the topic it matched",
        "00100004672d7278000572782d2e2a",
        "0000020572782d6100000000000002f3000001a1fc71703600",
        RecordType.CONSUMER_GROUP_REGULAR_EXPRESSION,
        ConsumerGroupRegularExpressionKey(group_id="g-rx", regular_expression="rx-.*"),
        ConsumerGroupRegularExpressionValue(topics=("rx-a",), version=755, timestamp=1795236655158),
    ),
    _golden(
        "streams group with both tags",
        "00110009672d73747265616d73",
        "000000000003d342dedb21ec1edd02000400000000011902156e756d2e7374616e6462792e7265706c69636173023000",
        RecordType.STREAMS_GROUP_METADATA,
        StreamsGroupMetadataKey(group_id="g-streams"),
        StreamsGroupMetadataValue(
            epoch=3,
            metadata_hash=-0x2CBD2124DE13E123,
            validated_topology_epoch=0,
            last_assignment_configs=(KeyValue(key="num.standby.replicas", value="0"),),
        ),
    ),
    _golden(
        "share group about to keep delivery state",
        "000f0007672d7368617265",
        "000002a9f95d83e8444dbaaa9beb0fbe425465037431050000000000000001000000020000000300010100",
        RecordType.SHARE_GROUP_STATE_PARTITION_METADATA,
        ShareGroupStatePartitionMetadataKey(group_id="g-share"),
        ShareGroupStatePartitionMetadataValue(
            initializing_topics=(TopicPartitionsInfo(topic_id=T1, topic_name="t1", partitions=(0, 1, 2, 3)),),
            initialized_topics=(),
            deleting_topics=(),
        ),
    ),
)

"""What is asked of brokers about topics, groups and themselves."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from coordinator_model.gates.verdict import BrokerSettings
from coordinator_model.wire.primitives import uuid_text
from streaming.base.errors import MonitorError
from streaming.config.kafka_sections import KafkaSection
from streaming.kafka.client_settings import admin_client

_PROTOCOLS: Final = "group.coordinator.rebalance.protocols"


_IN_FILE: Final = "STATIC_BROKER_CONFIG"


_SETTINGS: Final = (
    _PROTOCOLS,
    "group.consumer.migration.policy",
    "group.consumer.max.size",
    "group.max.size",
)
"""Broker configurations about conversions, in the order of the fields of `BrokerSettings`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDescription:
    """A topic as the brokers describe it.

    Attributes:
        id: 22-character text form of the topic id; None where brokers have none (before 2.8).
        name: the topic's name.
        partitions: how many it has.
        operations: what this client may do with it, in Kafka's words; None if the broker does not say.
    """

    id: str | None
    name: str
    partitions: int
    operations: tuple[str, ...] | None = None


def describe_topics(admin: Any, names: list[str] | None = None) -> list[TopicDescription]:  # noqa: ANN401 - kafka-python has no types
    """Describe topics by name, or all that this client may see.

    Topics that do not exist or may not be described are left out.
    """
    return [
        TopicDescription(
            id=topic_id(topic["topic_id"]),
            name=topic["name"],
            partitions=len(topic["partitions"]),
            operations=_operations(topic.get("authorized_operations")),
        )
        for topic in admin.describe_topics(names)
        if topic["error_code"] == 0
    ]


def broker_release(admin: Any) -> str | None:  # noqa: ANN401 - kafka-python has no types
    """Release of a broker as far as the protocol shows it ("4.3"); None if it does not."""
    from kafka.errors import KafkaError  # see admin_client

    try:
        broker = admin.describe_cluster()["brokers"][0]
        version = admin.get_broker_version_data(broker["broker_id"]).broker_version
    except (KafkaError, LookupError, AttributeError):
        return None
    return ".".join(str(part) for part in version) if version else None


def cluster_id(admin: Any) -> str:  # noqa: ANN401 - kafka-python has no types
    """The id that the cluster gave itself when it was made."""
    return str(admin.describe_cluster()["cluster_id"])


def tombstone_retention_ms(admin: Any, topic: str) -> int | None:  # noqa: ANN401 - kafka-python has no types
    """The topic's delete.retention.ms; None without the permission DESCRIBE_CONFIGS, or where brokers do not say."""
    from kafka.admin import ConfigResource, ConfigResourceType  # see admin_client
    from kafka.errors import KafkaError

    name = "delete.retention.ms"
    try:
        asked = [ConfigResource(ConfigResourceType.TOPIC, topic, {name: None})]
        reported = admin.describe_configs(asked, config_filter="all").get("topic", {})
        return int(reported[topic][name]["value"])
    except (KafkaError, OSError, LookupError, TypeError, ValueError):
        return None


def group_configs(kafka: KafkaSection) -> list[str] | None:
    """Names of groups with dynamic GROUP configurations (KIP-915 has them removed before brokers are downgraded).

    None where the brokers do not say: older than 4.1, out of reach, or without the permission DESCRIBE_CONFIGS.
    """
    from kafka.errors import KafkaError  # see admin_client

    try:
        with admin_client(kafka, "gate") as admin:
            held = admin.list_config_resources(["GROUP"])
    except (MonitorError, KafkaError, OSError, ValueError):
        return None
    return sorted(held.get("group", ()))


def broker_settings(kafka: KafkaSection) -> BrokerSettings:
    """What the brokers allow of conversions, each as the strictest broker has it.

    Nothing is known where the brokers do not say: out of reach, or without the permission DESCRIBE_CONFIGS on the
    cluster, or from before there was such a configuration.
    """
    from kafka.admin import ConfigResource, ConfigResourceType  # see admin_client
    from kafka.errors import KafkaError

    try:
        with admin_client(kafka, "gate") as admin:
            brokers = [str(broker["broker_id"]) for broker in admin.describe_cluster()["brokers"]]
            asked = [ConfigResource(ConfigResourceType.BROKER, broker, dict.fromkeys(_SETTINGS)) for broker in brokers]
            held = admin.describe_configs(asked, config_filter="all").get("broker", {})
            features = admin.describe_features()
    except (MonitorError, KafkaError, OSError, ValueError):
        return BrokerSettings()
    found = {name: [of[name]["value"] for of in held.values() if name in of] for name in _SETTINGS}
    in_files = [of[_PROTOCOLS] for of in held.values() if of.get(_PROTOCOLS, {}).get("config_source") == _IN_FILE]
    # A broker that did not say could be the strictest.
    protocols, policies, consumer_sizes, classic_sizes = (
        values if len(values) == len(brokers) else [] for values in found.values()
    )
    levels = finalized_levels(features)
    return BrokerSettings(
        consumer_protocol=serves_consumers(protocols, {} if levels is None else features.get("group.version", {})),
        migration_policy=min(policies, key=strictness, default=None),
        consumer_max_size=min(map(int, consumer_sizes), default=None),
        classic_max_size=min(map(int, classic_sizes), default=None),
        features=levels,
        static_protocols=listed_protocols(each["value"] for each in in_files) if protocols else None,
    )


def finalized_levels(features: Mapping[str, Mapping[str, Any]]) -> dict[str, int] | None:
    """Feature → finalized level, of those beyond 0, from what `describe_features` answers; None where it is not said.

    A broker that has metadata.version has a level of it, too. One that has yet to hear from its controller, as after a
    start, names what it supports and no level at all (ApiVersionsResponse.json, FinalizedFeaturesEpoch -1).
    """
    asked = features.get("metadata.version")
    if asked is not None and "finalized" not in asked:
        return None
    levels = {name: int(of.get("finalized", (0, 0))[1]) for name, of in features.items()}
    return {name: level for name, level in sorted(levels.items()) if level > 0}


def listed_protocols(values: Iterable[str]) -> tuple[str, ...]:
    """The names in some values of `group.coordinator.rebalance.protocols`, each once."""
    return tuple(sorted({name.strip().lower() for value in values for name in value.split(",") if name.strip()}))


def serves_consumers(protocols: Sequence[str], group_version: Mapping[str, Any]) -> bool | None:
    """By `group.coordinator.rebalance.protocols` of each broker and the feature `group.version`; None if not said."""
    if any("consumer" not in {name.strip().lower() for name in each.split(",")} for each in protocols):
        return False
    _, supported = group_version.get("supported", (0, 0))
    _, level = group_version.get("finalized", (0, 0))
    if supported > 0 and level == 0:
        return False
    return True if protocols else None


def strictness(policy: str) -> int:
    """Of `group.consumer.migration.policy`, by what it allows consumers to be upgraded; unknown ones first."""
    order = ("disabled", "downgrade", "upgrade", "bidirectional")
    return order.index(policy.lower()) if policy.lower() in order else -1


def _operations(described: object) -> tuple[str, ...] | None:
    """Operations by name; None where the broker (before 2.3) does not say."""
    if not isinstance(described, list | tuple | set | frozenset):
        return None
    return tuple(sorted(str(getattr(operation, "name", operation)).upper() for operation in described))


def topic_id(described: object) -> str | None:
    """A topic id as kafka-python gives it, a UUID as object or text, as 22 characters; None for all zeros: no id."""
    value = uuid.UUID(str(described)) if described else None
    return uuid_text(value.bytes) if value is not None and value.int else None

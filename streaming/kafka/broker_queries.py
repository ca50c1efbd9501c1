"""What is asked of brokers about topics, groups and themselves."""

import uuid
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final

from coordinator_model.gates.broker_abilities import GROUP_CONFIGS, LISTS_GROUP_CONFIGS, lacking
from coordinator_model.gates.upgrade import UPGRADING_POLICIES
from coordinator_model.gates.verdict import BrokerSettings
from coordinator_model.wire.primitives import uuid_text
from streaming.base.errors import MonitorError
from streaming.config.kafka_sections import KafkaSection
from streaming.kafka.broker_apis import BrokerAnswer, Features, asked_each
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

OF_EVERY_RELEASE: Final = "offsets.topic.num.partitions"
"""A broker configuration that brokers of every release have: one that does not say it may not tell us any."""


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


def topic_numbers(admin: Any, topic: str, *names: str) -> list[int | None]:  # noqa: ANN401 - kafka-python has no types
    """Configurations of the topic; None without the permission DESCRIBE_CONFIGS, or where brokers do not say."""
    from kafka.admin import ConfigResource, ConfigResourceType  # see admin_client
    from kafka.errors import KafkaError

    try:
        asked = [ConfigResource(ConfigResourceType.TOPIC, topic, dict.fromkeys(names))]
        reported = admin.describe_configs(asked, config_filter="all").get("topic", {}).get(topic, {})
    except (KafkaError, OSError, LookupError, TypeError, ValueError):
        return [None] * len(names)
    return [_number(reported.get(name)) for name in names]


def _number(said: Any) -> int | None:  # noqa: ANN401 - as above
    try:
        return int(said["value"])
    except (LookupError, TypeError, ValueError):
        return None


def group_configs(kafka: KafkaSection) -> list[str] | None:
    """Names of groups with dynamic GROUP configurations (KIP-915 has them removed before brokers are downgraded).

    None of brokers that know no such configurations, before 4.0. None is known where the brokers do not say: of 4.0,
    which has them and does not list them, out of reach, or without the permission DESCRIBE_CONFIGS on the cluster.
    """
    from kafka.errors import KafkaError  # see admin_client

    try:
        with admin_client(kafka, "gate") as admin:
            brokers = [of.broker for of in asked_each(admin)]
            if not any(GROUP_CONFIGS in of.abilities for of in brokers):
                return []
            if lacking(brokers, LISTS_GROUP_CONFIGS):
                return None
            held = admin.list_config_resources(["GROUP"])
    except (MonitorError, KafkaError, OSError, ValueError):
        return None
    return sorted(held.get("group", ()))


_DELIVERY_COUNT_LIMIT: Final = "group.share.delivery.count.limit"
_OF_A_GROUP: Final = _DELIVERY_COUNT_LIMIT.removeprefix("group.")


def delivery_count_limits(kafka: KafkaSection) -> dict[str, int]:
    """After how many deliveries a record of a share group is given up: by group, and under "" the brokers' own.

    What brokers do not say is not in it: out of reach, or without the permission DESCRIBE_CONFIGS.
    """
    from kafka.admin import ConfigResource, ConfigResourceType  # see admin_client
    from kafka.errors import KafkaError

    names = group_configs(kafka) or []
    try:
        with admin_client(kafka, "record") as admin:
            broker = str(admin.describe_cluster()["brokers"][0]["broker_id"])
            asked = [ConfigResource(ConfigResourceType.BROKER, broker, {_DELIVERY_COUNT_LIMIT: None})]
            of_broker = admin.describe_configs(asked, config_filter="all").get("broker", {})
            asked = [ConfigResource(ConfigResourceType.GROUP, name, {_OF_A_GROUP: None}) for name in names]
            of_groups = admin.describe_configs(asked, config_filter="all").get("group", {}) if asked else {}
    except (MonitorError, KafkaError, OSError, LookupError, TypeError, ValueError):
        return {}
    limits = {"": [_number(of.get(_DELIVERY_COUNT_LIMIT)) for of in of_broker.values()]}
    limits |= {name: [_number(of.get(_OF_A_GROUP))] for name, of in of_groups.items()}
    return {name: least for name, of in limits.items() if (least := min((n for n in of if n), default=None))}


def topic_names(kafka: KafkaSection) -> dict[str, str]:
    """Topic id → name, of all topics that may be described; nothing where the brokers do not say."""
    from kafka.errors import KafkaError  # see admin_client

    try:
        with admin_client(kafka, "record") as admin:
            return {of.id: of.name for of in describe_topics(admin) if of.id is not None}
    except (MonitorError, KafkaError, OSError, LookupError, TypeError, ValueError):
        return {}


def broker_settings(kafka: KafkaSection) -> BrokerSettings:
    """What the brokers can do, have finalized and allow, each as the strictest broker has it.

    Nothing is known where they are out of reach; what they allow needs the permission DESCRIBE_CONFIGS on the cluster.
    """
    from kafka.errors import KafkaError  # see admin_client

    try:
        with admin_client(kafka, "gate") as admin:
            answers = asked_each(admin)
            held = configurations(admin, answers)
            found = cluster_id(admin)
    except (MonitorError, KafkaError, OSError, ValueError):
        return BrokerSettings(asked=True)
    return replace(settings_of(answers, held), cluster_id=found)


def configurations(admin: Any, answers: Iterable[BrokerAnswer]) -> list[Mapping[str, Any]]:  # noqa: ANN401 - kafka-python has no types
    """Of each broker that answered and says them: what `settings_of` takes. Raises KafkaError."""
    from kafka.admin import ConfigResource, ConfigResourceType  # see admin_client

    asked = [
        ConfigResource(ConfigResourceType.BROKER, str(of.broker.id), dict.fromkeys((*_SETTINGS, OF_EVERY_RELEASE)))
        for of in answers
    ]
    held = admin.describe_configs(asked, config_filter="all").get("broker", {})
    # A broker that refuses to tell answers with none at all.
    return [of for of in held.values() if OF_EVERY_RELEASE in of]


def settings_of(answers: Sequence[BrokerAnswer], held: Sequence[Mapping[str, Any]]) -> BrokerSettings:
    """From what brokers answer to ApiVersions, and the configurations of those that say them.

    A broker that does not say could be the strictest: what the others have is known only where that refuses already.
    """
    values = {name: [of[name]["value"] for of in held if name in of] for name in _SETTINGS}
    protocols, policies, consumer_sizes, classic_sizes = values.values()
    in_files = [of[_PROTOCOLS] for of in held if of.get(_PROTOCOLS, {}).get("config_source") == _IN_FILE]
    all_say = len(held) == len(answers)
    policy = min(policies, key=strictness, default=None)
    if policy is not None and len(policies) < len(answers) and policy.lower() in UPGRADING_POLICIES:
        policy = None
    levels = [of for of in (finalized_levels(answer.features) for answer in answers) if of is not None]
    return BrokerSettings(
        asked=True,
        brokers=tuple(answer.broker for answer in answers),
        consumer_protocol=serves_consumers(protocols, [of.features for of in answers], all_say=all_say),
        migration_policy=policy,
        consumer_max_size=_smallest(consumer_sizes, len(answers)),
        classic_max_size=_smallest(classic_sizes, len(answers)),
        features=_highest(levels) if levels else None,
        static_protocols=listed_protocols(each["value"] for each in in_files) if all_say else None,
    )


def _smallest(sizes: Sequence[str], brokers: int) -> int | None:
    return min(map(int, sizes), default=None) if len(sizes) == brokers else None


def _highest(levels: Iterable[Mapping[str, int]]) -> dict[str, int]:
    """Of brokers that have not heard of a change yet, the level that is the most in the way of a downgrade."""
    highest: dict[str, int] = {}
    for of in levels:
        for name, level in of.items():
            highest[name] = max(level, highest.get(name, 0))
    return dict(sorted(highest.items()))


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


def serves_consumers(protocols: Sequence[str], features: Sequence[Features], *, all_say: bool) -> bool | None:
    """Whether every broker serves consumer groups, as far as that is configured; None if it is not said.

    Args:
        protocols: `group.coordinator.rebalance.protocols` of each broker that has it, and says it.
        features: of each broker; from 4.0 on `group.version` has to be finalized as well.
        all_say: whether every broker says its configurations: one that says none of that name has no need of it.
    """
    if any("consumer" not in {name.strip().lower() for name in each.split(",")} for each in protocols):
        return False
    with_feature = [of for of in features if of.get("group.version", {}).get("supported", (0, 0))[1] > 0]
    needed = [of["group.version"] for of in with_feature if finalized_levels(of) is not None]
    if any(of.get("finalized", (0, 0))[1] == 0 for of in needed):
        return False
    if with_feature and not needed:
        return None
    said = len(protocols) == len(features) or (all_say and len(needed) == len(features))
    return True if features and said else None


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

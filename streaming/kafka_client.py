"""Settings of the three Kafka clients, derived from one section, and the look at the brokers before anything starts.

- kafka-python asks (log end offsets, topic ids) and records,
- confluent-kafka (librdkafka) reads the log, and is what the demo's traffic uses,
- Kafka's own tools (Java) describe groups, for the tests and for recordings.

Security options mean the same everywhere (`streaming.kafka_security`): certificates and keys are PEM, which all three
read.
"""

import uuid
from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any, Final, Literal

from coordinator_model.gate import BrokerSettings
from coordinator_model.wire import uuid_text
from streaming import permissions
from streaming.config_sections import Config, KafkaSection
from streaming.errors import CannotTellError, MonitorError
from streaming.kafka_probe import refuse_unreachable
from streaming.kafka_security import confluent_security_settings, python_security_settings, with_contents

IsolationLevel = Literal["read_committed", "read_uncommitted"]
Status = Literal["ok", "note", "fail", "cannot tell"]

# Long enough for a slow handshake, short enough for a person to wait for.
_BOOTSTRAP_TIMEOUT_MS: Final = 15_000

_SETTINGS: Final = (
    "group.coordinator.rebalance.protocols",
    "group.consumer.migration.policy",
    "group.consumer.max.size",
    "group.max.size",
)
"""Broker configurations about conversions, in the order of the fields of `BrokerSettings`."""


@dataclass(frozen=True, slots=True)
class Finding:
    """What one check found out.

    Attributes:
        name: what was checked.
        status: "ok", "note" (it does not hold, and can be done without), "fail" (it does not hold) or "cannot tell" (no
            access to the answer).
        detail: one line; for what is not ok it names the option, what was found and what is accepted.
    """

    name: str
    status: Status
    detail: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TopicDescription:
    """A topic as the brokers describe it.

    Attributes:
        id: 22-character text form of the topic id.
        name: the topic's name.
        partitions: how many it has.
        operations: what this client may do with it, in Kafka's words; None if the broker does not say.
    """

    id: str
    name: str
    partitions: int
    operations: tuple[str, ...] | None = None


DESCRIBE_GROUPS: Final = permissions.DESCRIBE_GROUPS.check
"""What `check` calls the permission to ask coordinators about groups that are suspected to hang."""
_NOBODYS_GROUP: Final = "some-group"
_NOBODYS_TOPIC: Final = "some-topic"

FIND_GROUPS: Final = permissions.FIND_GROUPS.check
"""What `check` calls the permission that Spark's consumers need although they join no group."""

# --- settings ---


def python_settings(kafka: KafkaSection, purpose: str) -> dict[str, Any]:
    """Settings that both `KafkaAdminClient` and `KafkaConsumer` of kafka-python take.

    Args:
        kafka: the section.
        purpose: ends the client id, so that brokers' logs tell our clients apart.
    """
    settings: dict[str, Any] = {
        "bootstrap_servers": kafka.bootstrap_servers.split(","),
        "client_id": f"{kafka.client_id}-{purpose}",
        "request_timeout_ms": kafka.request_timeout_ms,
        "bootstrap_timeout_ms": min(kafka.request_timeout_ms, _BOOTSTRAP_TIMEOUT_MS),
        **python_security_settings(kafka.security),
    }
    return {name: value for name, value in settings.items() if value is not None}


def portable_settings(kafka: KafkaSection, purpose: str) -> dict[str, str]:
    """Settings of confluent-kafka that hold on any machine: certificates and keys are in them as text.

    Raises:
        CannotTellError: a certificate or key file cannot be read.
    """
    return with_contents(confluent_settings(kafka, purpose))


def confluent_settings(kafka: KafkaSection, purpose: str) -> dict[str, str]:
    """Settings of confluent-kafka (librdkafka)."""
    settings: dict[str, str | None] = {
        "bootstrap.servers": kafka.bootstrap_servers,
        "client.id": f"{kafka.client_id}-{purpose}",
        **confluent_security_settings(kafka.security),
    }
    return {name: value for name, value in settings.items() if value is not None}


# --- asking the brokers ---


@contextmanager
def admin_client(kafka: KafkaSection, purpose: str = "admin") -> Iterator[Any]:
    """Open a `KafkaAdminClient` and close it at the end.

    Raises:
        CannotTellError: no broker answers, or it does not let us in.
    """
    from kafka.admin import KafkaAdminClient  # imported late: commands that need no broker start sooner
    from kafka.errors import KafkaError

    refuse_unreachable(kafka)
    try:
        admin = KafkaAdminClient(**python_settings(kafka, purpose))
    except (KafkaError, OSError, ValueError) as error:
        raise CannotTellError(
            f"kafka.bootstrap_servers: found {kafka.bootstrap_servers!r}, which accepts connections but does not "
            f"answer as a broker we may talk to with security.protocol {kafka.security.protocol} "
            f"({_reason(error)}), accepted: a listener of that protocol, and credentials it knows"
        ) from error
    try:
        yield admin
    finally:
        admin.close()


def describe_topics(admin: Any, names: list[str] | None = None) -> list[TopicDescription]:  # noqa: ANN401 - kafka-python has no types
    """Describe topics by name, or all that this client may see.

    Topics that do not exist or may not be described are left out.
    """
    return [
        TopicDescription(
            id=uuid_text(_uuid_bytes(topic["topic_id"])),
            name=topic["name"],
            partitions=len(topic["partitions"]),
            operations=_operations(topic.get("authorized_operations")),
        )
        for topic in admin.describe_topics(names)
        if topic["error_code"] == 0
    ]


def broker_release(admin: Any) -> str | None:  # noqa: ANN401 - kafka-python has no types
    """Release of a broker as far as the protocol tells it ("4.3"); None if it does not."""
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
        told = admin.describe_configs(asked, config_filter="all").get("topic", {})
        return int(told[topic][name]["value"])
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
    # A broker that did not say could be the strictest.
    protocols, policies, consumer_sizes, classic_sizes = (
        values if len(values) == len(brokers) else [] for values in found.values()
    )
    return BrokerSettings(
        consumer_protocol=serves_consumers(protocols, features.get("group.version", {})),
        migration_policy=min(policies, key=strictness, default=None),
        consumer_max_size=min(map(int, consumer_sizes), default=None),
        classic_max_size=min(map(int, classic_sizes), default=None),
    )


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


def broker_findings(kafka: KafkaSection) -> list[Finding]:
    """Look at everything the monitor needs of the brokers; what cannot be looked at is said to be so."""
    from kafka.errors import KafkaError  # see admin_client

    names = ("broker", "offsets topic", *(permission.check for permission in permissions.PERMISSIONS))
    try:
        with admin_client(kafka, "check") as admin:
            findings = [Finding("broker", "ok", f"{kafka.bootstrap_servers} answers")]
            findings.extend(_topic_findings(admin, kafka))
            findings.append(_group_finding(admin, kafka))
            findings.append(_lag_finding(admin))
            findings.append(_suspects_finding(admin))
            findings.extend(_configs_findings(admin, kafka))
            return findings
    except CannotTellError as error:
        first = Finding("broker", "cannot tell", str(error))
    except KafkaError as error:
        first = Finding("broker", "cannot tell", f"kafka.bootstrap_servers: {_reason(error)}")
    return [first, *(Finding(name, "cannot tell", "no broker to ask") for name in names[1:])]


def preflight(config: Config, *, by_spark: bool = False) -> None:
    """Look before starting: brokers reachable, the offsets topic there, and we may read it.

    Args:
        config: where to look.
        by_spark: whether Spark is to read it, whose consumers need a permission more.

    Raises:
        CannotTellError: the first thing that is not so.
    """
    for finding in broker_findings(config.kafka):
        # Whether groups can be found depends on more than permissions, and may be so again in a moment.
        needed = by_spark and finding.status == "fail" if finding.name == FIND_GROUPS else True
        if needed and finding.status in ("fail", "cannot tell"):
            raise CannotTellError(finding.detail)


def _group_finding(admin: Any, kafka: KafkaSection) -> Finding:  # noqa: ANN401 - kafka-python has no types
    from kafka.errors import GroupAuthorizationFailedError, KafkaError  # see admin_client

    try:
        admin.list_group_offsets([f"{kafka.client_id}-check"])
    except GroupAuthorizationFailedError:
        detail = (
            f"kafka.security: found no permission on groups that begin with {kafka.client_id!r}, accepted: DESCRIBE"
        )
        return Finding(FIND_GROUPS, "fail", detail)
    except KafkaError as error:
        return Finding(FIND_GROUPS, "cannot tell", f"no coordinator answers: {_reason(error)}")
    return Finding(FIND_GROUPS, "ok", f"groups that begin with {kafka.client_id} may be looked up")


def _topic_findings(admin: Any, kafka: KafkaSection) -> Iterator[Finding]:  # noqa: ANN401 - kafka-python has no types
    from kafka.errors import for_code  # see admin_client

    name = kafka.offsets_topic
    described = admin.describe_topics([name])[0]
    code = described["error_code"]
    if code != 0:
        problem = for_code(code).__name__.removesuffix("Error")
        detail = f"kafka.offsets_topic: found {name!r}, {problem} on this cluster, accepted: "
        missing = "an existing topic (Kafka makes __consumer_offsets when the first group joins or commits)"
        denied = "a topic this user has the DESCRIBE and READ permission on"
        yield Finding("offsets topic", "fail", detail + (denied if "Authorization" in problem else missing))
        yield Finding(permissions.READ_LOG.check, "cannot tell", f"{name} is not there to be read")
        return
    yield Finding("offsets topic", "ok", f"{name} has {len(described['partitions'])} partitions")
    operations = _operations(described.get("authorized_operations"))
    if operations is not None and "READ" not in operations:
        held = ", ".join(operations) or "nothing"
        yield Finding(
            permissions.READ_LOG.check, "fail", f"kafka.security: found the permission {held} on {name}, accepted: READ"
        )
        return
    yield Finding(permissions.READ_LOG.check, "ok", f"{name} may be read")


def _lag_finding(admin: Any) -> Finding:  # noqa: ANN401 - kafka-python has no types
    """Whether topics in general may be described: brokers say that we may not know before that there is none."""
    from kafka.errors import TopicAuthorizationFailedError  # see admin_client

    count = len(describe_topics(admin))
    (nobodys,) = admin.describe_topics([_NOBODYS_TOPIC])
    if nobodys["error_code"] != TopicAuthorizationFailedError.errno:
        return Finding(permissions.DESCRIBE_TOPICS.check, "ok", f"{count} topics can be described")
    return _note(permissions.DESCRIBE_TOPICS, "lag is shown for no others", f"; {count} topics can be described")


def _suspects_finding(admin: Any) -> Finding:  # noqa: ANN401 - kafka-python has no types
    """Whether coordinators would answer about groups that are suspected to hang (`suspect_sampler.py`).

    Any broker may be asked about any name: it says that we may not know before it says that it does not know.
    """
    broker = admin.describe_cluster()["brokers"][0]["broker_id"]
    told = admin.describe_groups([_NOBODYS_GROUP], broker).get(_NOBODYS_GROUP, {})
    if "GroupAuthorizationFailed" not in (told.get("error") or ""):
        return Finding(DESCRIBE_GROUPS, "ok", "groups may be described")
    return _note(permissions.DESCRIBE_GROUPS, "stuck rebalances of classic groups are found with it only")


def _configs_findings(admin: Any, kafka: KafkaSection) -> Iterator[Finding]:  # noqa: ANN401 - kafka-python has no types
    """Whether gates learn the brokers' settings, how long tombstones stay, and how long static members may be away."""
    from kafka.admin import ConfigResource, ConfigResourceType  # see admin_client

    broker = str(admin.describe_cluster()["brokers"][0]["broker_id"])
    # kafka-python passes over what a broker refuses to tell: there is no answer then.
    asked = (
        (permissions.READ_BROKER_CONFIGS, ConfigResourceType.BROKER, broker, "group.max.size"),
        (permissions.READ_TOPIC_CONFIGS, ConfigResourceType.TOPIC, kafka.offsets_topic, "delete.retention.ms"),
        (permissions.READ_GROUP_CONFIGS, ConfigResourceType.GROUP, _NOBODYS_GROUP, "consumer.session.timeout.ms"),
    )
    for permission, kind, name, config in asked:
        told = admin.describe_configs([ConfigResource(kind, name, {config: None})], config_filter="all")
        if told.get(kind.name.lower(), {}).get(name):
            yield Finding(permission.check, "ok", "configurations may be read")
        else:
            yield _note(permission, f"without it, {permission.without.replace('*', '')}")


def _note(permission: permissions.Permission, lost: str, more: str = "") -> Finding:
    things = "the cluster" if permission.resource == "cluster" else f"{permission.resource}s in general"
    if permission.name not in ("", "*"):
        things = permission.name
    lacks = f"kafka.security: found no permission {permission.operation} on {things}, accepted: with it, and without"
    return Finding(permission.check, "note", f"{lacks}; {lost}{more}")


def _operations(described: object) -> tuple[str, ...] | None:
    """Operations by name; None where the broker (before 2.3) does not say."""
    if not isinstance(described, list | tuple | set | frozenset):
        return None
    return tuple(sorted(str(getattr(operation, "name", operation)).upper() for operation in described))


def _uuid_bytes(value: object) -> bytes:
    """A topic id as kafka-python gives it, a UUID as object or text; zeros from brokers before 2.8, which have none."""
    return uuid.UUID(str(value)).bytes if value else bytes(16)


def _reason(error: BaseException) -> str:
    return (getattr(error, "strerror", None) or str(error) or type(error).__name__).splitlines()[0]

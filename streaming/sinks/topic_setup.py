"""The topics a monitor writes to: whether they are as they must be, and making them.

The topic of groups must be compacted: deletion by age would make groups vanish that did not change for a week. The
topic of events must not be: its keys are groups, of which only the newest event would stay.
"""

from dataclasses import dataclass
from typing import Any, Final

from streaming.base.errors import CannotTellError, MonitorError
from streaming.config.kafka_sections import KafkaSection
from streaming.config.sections import Config
from streaming.kafka import permissions
from streaming.kafka.broker_queries import describe_topics
from streaming.kafka.client_settings import admin_client
from streaming.kafka.preflight import Finding, Status

COMPACT: Final = "compact"
DELETE: Final = "delete"
_ASK: Final = "DESCRIBE_CONFIGS"
_PARTITIONS: Final = -1
"""As many, and as many replicas, as the brokers give a topic of which nothing is said."""


@dataclass(frozen=True, slots=True)
class SinkTopic:
    """A topic that is written to: the option that names it, its name, and the cleanup.policy it needs."""

    option: str
    name: str
    policy: str

    @property
    def command(self) -> str:
        """What makes it, with Kafka's own tool."""
        return f"kafka-topics.sh --create --topic {self.name} --config cleanup.policy={self.policy}"


def sink_topics(config: Config) -> list[SinkTopic]:
    """The topics that a configuration names."""
    sink = config.kafka_sink
    named = (
        (permissions.EVENTS_OPTION, sink.events_topic, DELETE),
        (permissions.GROUPS_OPTION, sink.groups_topic, COMPACT),
    )
    return [SinkTopic(option, name, policy) for option, name, policy in named if name is not None]


def refuse_unfit(kafka: KafkaSection, topic: SinkTopic) -> None:
    """Look at a topic before it is written to; a broker may otherwise make one as it sees fit.

    Raises:
        CannotTellError: it is not there, or not what is needed; or no broker answers.
    """
    for finding in _findings(kafka, [topic], create=False):
        if finding.status in ("fail", "cannot tell"):
            raise CannotTellError(finding.detail)


def sink_findings(config: Config, *, create: bool = False) -> list[Finding]:
    """Look at the topics a configuration names; with `create`, make those that are not there."""
    topics = sink_topics(config)
    kafka = config.kafka_sink.connection(config.kafka)
    return _findings(kafka, topics, create=create) if topics else []


def _findings(kafka: KafkaSection, topics: list[SinkTopic], *, create: bool) -> list[Finding]:
    from kafka.errors import KafkaError  # imported late: commands that need no broker start sooner

    try:
        with admin_client(kafka, "sink-check") as admin:
            return [_of_topic(admin, topic, create=create) for topic in topics]
    except (MonitorError, KafkaError, OSError, ValueError) as error:
        detail = str(error) if isinstance(error, MonitorError) else f"kafka_sink: {error or type(error).__name__}"
        return [Finding(topic.option, "cannot tell", detail) for topic in topics]


def _of_topic(admin: Any, topic: SinkTopic, *, create: bool) -> Finding:  # noqa: ANN401 - kafka-python has no types
    described = describe_topics(admin, [topic.name])
    made = ""
    if not described and create:
        if (hindrance := _make(admin, topic)) is not None:
            return hindrance
        described, made = describe_topics(admin, [topic.name]), ", made now"
    if not described:
        accepted = f"an existing topic ({topic.command}, or `check --create-topics`) that may be described"
        return Finding(topic.option, "fail", f"{topic.option}: found no {topic.name!r}, accepted: {accepted}")
    policy = _policy(admin, topic.name)
    allowed = _allowed(described[0].operations, policy)
    lacking = [each for each in permissions.of_topic(topic.option) if each.operation not in allowed]
    if needed := [each.operation for each in lacking if each.needed]:
        return _lacking(topic, "fail", needed)
    if policy is not None and policy != topic.policy:
        detail = f"{topic.option}: found {topic.name!r} with cleanup.policy {policy!r}, accepted: {topic.policy!r}"
        return Finding(topic.option, "fail", detail)
    if lacking:
        lost = "; ".join(dict.fromkeys(f"without {each.operation} {each.without}" for each in lacking))
        return _lacking(topic, "note", [each.operation for each in lacking], f"and without; {lost}")
    detail = f"{topic.name} has {described[0].partitions} partitions, cleanup.policy {topic.policy}{made}"
    return Finding(topic.option, "ok", detail)


def _allowed(operations: tuple[str, ...] | None, policy: str | None) -> set[str]:
    """What may be done with a topic that is there, as far as brokers tell; making it is no question any more."""
    reported = {"READ", "WRITE"} if operations is None else set(operations) - {_ASK}
    return reported | {"CREATE"} | ({_ASK} if policy is not None else set())


def _lacking(topic: SinkTopic, status: Status, operations: list[str], more: str = "") -> Finding:
    accepted = f"with {'it' if len(operations) == 1 else 'them'}{f', {more}' if more else ''}"
    found = f"no permission {', '.join(operations)} on {topic.name!r}"
    return Finding(topic.option, status, f"{topic.option}: found {found}, accepted: {accepted}")


def _make(admin: Any, topic: SinkTopic) -> Finding | None:  # noqa: ANN401 - kafka-python has no types
    """Make it; returns what is in the way, if anything."""
    from kafka.errors import (  # see _findings
        ClusterAuthorizationFailedError,
        IncompatibleBrokerVersion,
        TopicAuthorizationFailedError,
    )

    settings = {"cleanup.policy": topic.policy}
    wanted = {"num_partitions": _PARTITIONS, "replication_factor": _PARTITIONS, "configs": settings}
    try:
        admin.create_topics({topic.name: wanted}, wait_for_metadata=True)
    except (ClusterAuthorizationFailedError, TopicAuthorizationFailedError):
        return _lacking(topic, "fail", ["CREATE"], "or the topic, made by somebody else")
    except IncompatibleBrokerVersion:
        # They choose neither number.
        found = f"{topic.option}: found no {topic.name!r}, and brokers before 2.4, on which `check` makes none"
        accepted = f"an existing topic ({topic.command} --partitions N --replication-factor N)"
        return Finding(topic.option, "fail", f"{found}, accepted: {accepted}")
    return None


def _policy(admin: Any, name: str) -> str | None:  # noqa: ANN401 - kafka-python has no types
    """The topic's cleanup.policy; None where we may not know."""
    from kafka.admin import ConfigResource, ConfigResourceType  # see _findings
    from kafka.errors import TopicAuthorizationFailedError

    asked = ConfigResource(ConfigResourceType.TOPIC, name, {"cleanup.policy": None})
    try:
        held = admin.describe_configs([asked], config_filter="all")
    except TopicAuthorizationFailedError:
        return None
    found = held.get("topic", {}).get(name, {}).get("cleanup.policy")
    return None if found is None else str(found["value"])

"""The topics a monitor writes to: whether they are as they must be, and making them.

The topic of groups must be compacted: deletion by age would make groups vanish that nobody touched for a week. The
topic of events must not be: its keys are groups, of which only the newest event would stay.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final

from streaming.config_sections import Config, KafkaSection
from streaming.errors import CannotTellError, MonitorError
from streaming.kafka_client import Finding, admin_client, describe_topics

COMPACT: Final = "compact"
DELETE: Final = "delete"
_NEEDED: Final = frozenset({"WRITE", "READ", "DESCRIBE"})
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
    named = (("events_topic", sink.events_topic, DELETE), ("groups_topic", sink.groups_topic, COMPACT))
    return [SinkTopic(f"kafka_sink.{option}", name, policy) for option, name, policy in named if name is not None]


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
            return [finding for topic in topics for finding in _of_topic(admin, topic, create=create)]
    except (MonitorError, KafkaError, OSError, ValueError) as error:
        detail = str(error) if isinstance(error, MonitorError) else f"kafka_sink: {error or type(error).__name__}"
        return [Finding(topic.option, "cannot tell", detail) for topic in topics]


def _of_topic(admin: Any, topic: SinkTopic, *, create: bool) -> Iterator[Finding]:  # noqa: ANN401 - kafka-python has no types
    made = ""
    described = describe_topics(admin, [topic.name])
    if not described and create:
        settings = {"cleanup.policy": topic.policy}
        wanted = {"num_partitions": _PARTITIONS, "replication_factor": _PARTITIONS, "configs": settings}
        admin.create_topics({topic.name: wanted}, wait_for_metadata=True)
        described, made = describe_topics(admin, [topic.name]), ", made now"
    if not described:
        accepted = f"an existing topic ({topic.command}, or `check --create-topics`) that may be described"
        yield Finding(topic.option, "fail", f"{topic.option}: found no {topic.name!r}, accepted: {accepted}")
        return
    operations = described[0].operations
    lacking = sorted(_NEEDED - set(operations)) if operations is not None else []
    if lacking:
        detail = f"{topic.option}: found no permission {', '.join(lacking)} on {topic.name!r}, accepted: with them"
        yield Finding(topic.option, "fail", detail)
        return
    policy = _policy(admin, topic.name)
    if policy is None:
        detail = f"{topic.option}: {topic.name!r} may be written; its cleanup.policy may not be asked for "
        yield Finding(topic.option, "note", f"{detail}(DESCRIBE_CONFIGS), it has to be {topic.policy}")
    elif policy != topic.policy:
        detail = f"{topic.option}: found {topic.name!r} with cleanup.policy {policy!r}, accepted: {topic.policy!r}"
        yield Finding(topic.option, "fail", detail)
    else:
        count = described[0].partitions
        yield Finding(topic.option, "ok", f"{topic.name} has {count} partitions, cleanup.policy {policy}{made}")


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

"""The topic that is watched, as the brokers describe it at a start: which one it is, and where it ends."""

from contextlib import closing, suppress
from dataclasses import replace
from pathlib import Path

from kafka.errors import KafkaError

from streaming.base.errors import CannotTellError, first_line
from streaming.base.logging_setup import get_logger
from streaming.board.readiness import Offsets
from streaming.checkpoint import identity
from streaming.checkpoint.identity import Identity
from streaming.config.loading import Config
from streaming.end_offsets.client import KafkaOffsetsClient
from streaming.end_offsets.store import Topic
from streaming.kafka import broker_queries, client_settings

_log = get_logger("job")


class OffsetsTopic:
    """The offsets topic of a configuration; used by one thread."""

    def __init__(self, config: Config) -> None:
        self._config = config
        self._directory = Path(config.state.dir)
        self._identity: Identity | None = None
        self._at_start: Identity | None = None
        self.tombstone_retention_ms: int | None = None
        """The topic's delete.retention.ms; None where brokers do not say."""
        self.largest_batch_bytes: int | None = None
        """Its max.message.bytes."""

    @property
    def identity(self) -> Identity:
        """What `identify` found, with the partitions that came since."""
        assert self._identity is not None  # noqa: S101 - asked for first of all
        return self._identity

    def identify(self) -> Identity:
        """Learn what is to be read.

        Raises:
            CannotTellError: the brokers do not answer, or there is no such topic.
        """
        kafka = self._config.kafka
        with client_settings.admin_client(kafka, "start") as admin:
            described = broker_queries.describe_topics(admin, [kafka.offsets_topic])
            if not described:
                raise CannotTellError(
                    f"kafka.offsets_topic: found no {kafka.offsets_topic!r}, accepted: an existing topic"
                )
            cluster_id = broker_queries.cluster_id(admin)
            self.tombstone_retention_ms, self.largest_batch_bytes = broker_queries.topic_numbers(
                admin, kafka.offsets_topic, "delete.retention.ms", "max.message.bytes"
            )
        self._identity = self._at_start = Identity(
            cluster_id=cluster_id,
            offsets_topic=kafka.offsets_topic,
            topic_id=described[0].id,
            partitions=described[0].partitions,
            shuffle_partitions=identity.stateful_tasks(self._directory, self._config.spark.shuffle_partitions),
            isolation=self._config.source.isolation,
        )
        return self._identity

    def refuse_another(self, topic: Topic) -> None:
        """See that a topic is still the one that is read. One that was grown is: it is noted. Raises UsageError.

        So is one that brokers gave an id to, when they were upgraded. Fewer partitions than at the start are not; fewer
        than lately may be what a broker says that has yet to hear.
        """
        held = self._at_start or self.identity
        identity.same(self._directory, held, replace(held, topic_id=topic.id, partitions=topic.partitions))
        if (id_ := identity.known_id(topic.id)) is not None and identity.known_id(held.topic_id) is None:
            self._at_start = replace(held, topic_id=id_)
            self._identity = replace(self.identity, topic_id=id_)
            with suppress(OSError):
                identity.write(self._directory, self._identity)
            _log.info("offsets_topic_has_an_id", topic_id=id_)
        before = self.identity.partitions
        if topic.partitions > before:
            self._identity = replace(self.identity, partitions=topic.partitions)
            # Where it cannot be written, the next start finds the same.
            with suppress(OSError):
                identity.write(self._directory, self._identity)
            _log.info("offsets_topic_grown", partitions=topic.partitions, before=before)

    def ends(self) -> tuple[Offsets, Offsets]:
        """High watermark and last stable offset of every partition.

        Raises:
            CannotTellError: the brokers do not answer.
            UsageError: the topic was recreated.
        """
        kafka = self._config.kafka
        try:
            client = KafkaOffsetsClient(client_settings.python_settings(kafka, "start"))
        except (KafkaError, OSError) as error:
            raise CannotTellError(f"kafka.bootstrap_servers: {first_line(error)}") from error
        with closing(client):
            try:
                (topic,) = client.describe([kafka.offsets_topic], ())
                self.refuse_another(topic)
                leaders = {(topic.name, partition): broker for partition, broker in topic.leaders.items()}
                ends = [client.ends(leaders, committed=committed) for committed in (False, True)]
            except (KafkaError, OSError, RuntimeError, ValueError) as error:
                raise CannotTellError(f"kafka.offsets_topic: its end is not to be had: {first_line(error)}") from error
        high_watermarks, last_stable = ({partition: end for (_, partition), end in each.items()} for each in ends)
        return high_watermarks, last_stable

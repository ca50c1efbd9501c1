"""The sinks that write to Kafka, as a configuration asks for them."""

from collections.abc import Callable, Sequence
from typing import Final

from streaming.board.board import Board
from streaming.board.event_window import Event
from streaming.config.sections import Config
from streaming.kafka.client_settings import confluent_settings
from streaming.kafka.producer import KafkaWriter, TopicRecord
from streaming.kafka.topic_reader import TopicReader
from streaming.sinks import cloud_events, topic_format, topic_setup
from streaming.sinks.groups_topic import GroupsTopic
from streaming.sinks.outputs import SpoolReader
from streaming.sinks.queue import Spooled
from streaming.sinks.topic_setup import SinkTopic

EVENTS_SINK: Final = "kafka-events"
GROUPS_SINK: Final = "kafka-groups"


def readers(config: Config, board: Board) -> list[SpoolReader]:
    """Readers of the spool: the one that writes events, if there is a topic for them."""
    topic = config.kafka_sink.events_topic
    if topic is None:
        return []
    writer = _writer(config, topic, "events")

    cluster, how = config.cluster.name, config.kafka_sink.events_format

    def record(event: Event) -> TopicRecord:
        key, value = topic_format.event_record(cluster, event)
        value, headers = cloud_events.enveloped(cluster, event, value, how)
        return TopicRecord(topic, key, value, headers)

    def deliver(entries: Sequence[Spooled]) -> int:
        return writer.write(record(board.named(entry["event"])) for _, entry in entries if entry["kind"] == "event")

    return [SpoolReader(name=EVENTS_SINK, deliver=deliver, close=writer.close)]


def group_topics(config: Config, board: Board, clock_ms: Callable[[], int]) -> list[GroupsTopic]:
    """What keeps the topic of groups equal to the board, if there is one."""
    topic = config.kafka_sink.groups_topic
    if topic is None:
        return []
    settings = confluent_settings(config.kafka_sink.connection(config.kafka), "groups-read")
    return [
        GroupsTopic(
            GROUPS_SINK,
            cluster=config.cluster.name,
            topic=topic,
            board=board,
            writer=_writer(config, topic, "groups"),
            read=lambda: TopicReader(settings, {topic: None}),
            interval_ms=config.kafka_sink.groups_interval_ms,
            clock_ms=clock_ms,
        )
    ]


def _writer(config: Config, topic: str, purpose: str) -> KafkaWriter:
    kafka = config.kafka_sink.connection(config.kafka)
    (written,) = (of for of in topic_setup.sink_topics(config) if of.name == topic)
    return KafkaWriter(confluent_settings(kafka, purpose), lambda: _refuse_unfit(config, written))


def _refuse_unfit(config: Config, topic: SinkTopic) -> None:
    topic_setup.refuse_unfit(config.kafka_sink.connection(config.kafka), topic)

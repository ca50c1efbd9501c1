"""The sinks that write to Kafka, as a configuration asks for them."""

from collections.abc import Callable, Sequence
from typing import Final

from streaming import sink_topics, topic_records
from streaming.board import Board
from streaming.config_sections import Config
from streaming.group_topic import GroupTopic
from streaming.kafka_client import confluent_settings, python_settings
from streaming.kafka_writer import KafkaWriter, TopicRecord
from streaming.outlets import Reader
from streaming.sink_topics import SinkTopic
from streaming.spool import Spooled
from streaming.topic_reader import TopicReader

EVENTS_SINK: Final = "kafka-events"
GROUPS_SINK: Final = "kafka-groups"


def readers(config: Config, board: Board) -> list[Reader]:
    """Readers of the spool: the one that writes events, if there is a topic for them."""
    topic = config.kafka_sink.events_topic
    if topic is None:
        return []
    writer = _writer(config, topic, "events")

    def deliver(entries: Sequence[Spooled]) -> int:
        events = [board.named(entry["event"]) for _, entry in entries if entry["kind"] == "event"]
        return writer.write(TopicRecord(topic, *topic_records.event_record(config.cluster.name, of)) for of in events)

    return [Reader(name=EVENTS_SINK, deliver=deliver, close=writer.close)]


def group_topics(config: Config, board: Board, clock_ms: Callable[[], int]) -> list[GroupTopic]:
    """What keeps the topic of groups equal to the board, if there is one."""
    topic = config.kafka_sink.groups_topic
    if topic is None:
        return []
    settings = python_settings(config.kafka_sink.connection(config.kafka), "groups-read")
    return [
        GroupTopic(
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
    (written,) = (of for of in sink_topics.sink_topics(config) if of.name == topic)
    return KafkaWriter(confluent_settings(kafka, purpose), lambda: _refuse_unfit(config, written))


def _refuse_unfit(config: Config, topic: SinkTopic) -> None:
    sink_topics.refuse_unfit(config.kafka_sink.connection(config.kafka), topic)

"""Writing to a Kafka that is not there: reported with its cause, and tried again."""

from typing import Any

import pytest

from streaming.demo.embedded_broker import _free_ports
from streaming.kafka import producer
from streaming.kafka.producer import KafkaWriter, TopicRecord, WriteError


def test_what_nobody_acknowledges_is_reported_with_its_cause(monkeypatch: Any) -> None:
    """Each attempt is one with a client of its own, and fails on its own, in a time that is bounded."""
    monkeypatch.setattr(producer, "SETTINGS", {**producer.SETTINGS, "message.timeout.ms": 300})
    looks = []
    (port,) = _free_ports(1)
    writer = KafkaWriter({"bootstrap.servers": f"127.0.0.1:{port}"}, lambda: looks.append(1))
    for _ in range(2):
        with pytest.raises(WriteError, match=r"(?i)timed out.*(refused|down)"):
            writer.write([TopicRecord("topic", b"key", b"value")])

    assert [1, 1] == looks


def test_a_topic_that_is_unfit_is_not_written_to() -> None:
    """What keeps from writing is reported before there is a client, again each time until it is gone."""

    def unfit() -> None:
        raise LookupError("not compacted")

    writer = KafkaWriter({"bootstrap.servers": "127.0.0.1:1"}, unfit)
    for _ in range(2):
        with pytest.raises(LookupError, match="not compacted"):
            writer.write([])


def test_a_record_longer_than_any_topic_takes_is_refused() -> None:
    """For good: it is logged and counted, and not an error that another attempt could undo."""
    writer = KafkaWriter({"bootstrap.servers": "127.0.0.1:1"})

    assert 1 == writer.write([TopicRecord("topic", b"key", bytes(65 * 1024 * 1024))])
    writer.close()

"""A real broker says where times are: the age of a record is found without reading it."""

from pathlib import Path

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # exported, though not by name

from streaming.demo.embedded_broker import EmbeddedBroker
from streaming.end_offsets.bisection import PRECISION_MS, Bisection
from streaming.end_offsets.client import KafkaOffsetsClient
from streaming.kafka.cluster_client import ClusterClient
from streaming.kafka.leader_epochs import LeaderEpochs

pytestmark = pytest.mark.broker

NOW_MS = 1_700_000_000_000
HOUR_MS = 3_600_000


def test_times_of_records_are_found_by_asking_for_offsets(tmp_path: Path) -> None:
    """An hour apart, ten at a time; a partition that is not there answers nothing and holds up no other."""
    with EmbeddedBroker(tmp_path / "broker") as broker:
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
        admin.create_topics([NewTopic("t", 1)])["t"].result(30)
        producer = Producer({"bootstrap.servers": broker.bootstrap_servers})
        for number in range(100):
            producer.produce("t", b"x", timestamp=NOW_MS + number // 10 * HOUR_MS)
        producer.flush(30)
        client = ClusterClient({"bootstrap_servers": [broker.bootstrap_servers]})
        leaders = {("t", 0): 1, ("t", 7): 1}
        found = {}
        for offset in (0, 5, 10, 47, 99):
            search = Bisection(offset, NOW_MS + 100 * HOUR_MS)
            while not search.is_over:
                search.take(*client.first_since({("t", 0): search.question_ms}, leaders)[0]["t", 0])
            found[offset] = search.written_ms
        beyond, _ = client.first_since({("t", 0): NOW_MS + 200 * HOUR_MS}, leaders)
        missing, again = client.first_since({("t", 0): 0, ("t", 7): 0}, leaders)
        client.close()
        epochs = LeaderEpochs({"bootstrap_servers": [broker.bootstrap_servers]})
        topic = KafkaOffsetsClient({"bootstrap_servers": [broker.bootstrap_servers]}).describe(["t"], [])[0]
        ended = epochs.ends([("t", 0, topic.leader_epochs[0])], {("t", 0): topic.leaders[0]})
        epochs.close()

    assert {("t", 0, topic.leader_epochs[0]): 100} == {epoch: end.offset for epoch, end in ended.items()}
    for offset, written_ms in found.items():
        assert written_ms is not None
        assert abs(written_ms - (NOW_MS + offset // 10 * HOUR_MS)) <= PRECISION_MS
    assert -1 == beyond["t", 0][0]
    assert {("t", 0): (0, NOW_MS)} == missing
    assert [("t", 7)] == again

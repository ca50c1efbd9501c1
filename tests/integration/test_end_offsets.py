"""The sampler against a real broker: transactions, topics that come, go and come again, and an outage."""

import threading
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Self

import pytest
from confluent_kafka import Producer
from confluent_kafka.admin import AdminClient
from kafka.errors import KafkaError
from structlog.testing import capture_logs

from streaming.config.kafka_sections import KafkaSection
from streaming.demo.embedded_broker import EmbeddedBroker
from streaming.demo.verifiable_consumer import create_topics
from streaming.end_offsets import sampler
from streaming.end_offsets.client import KafkaOffsetsClient
from streaming.end_offsets.sampler import EndOffsetSampler
from streaming.end_offsets.store import EndOffsets, Wanted
from streaming.kafka.client_settings import python_settings
from streaming.kafka.list_offsets import LATEST, list_offsets
from tests.left_out import needs_kafka_jars

pytestmark = [
    pytest.mark.broker,
    # kafka-python reads its message schemas by a function that Python 3.11 calls deprecated (and 3.13 no longer).
    pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning"),
    needs_kafka_jars,
]

PATIENCE_SECONDS = 30
BROKER_SECONDS = 12
"""Less than a client waits for a broker that is not there, and more than a busy machine takes to end a thread."""


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    with EmbeddedBroker(tmp_path_factory.mktemp("broker"), offsets_partitions=5) as running:
        yield running


class Rig:
    """A running sampler; leaving it stops it."""

    def __init__(self, bootstrap_servers: str, *names: str) -> None:
        self.ends = EndOffsets()
        self.wanted = Wanted(frozenset(names))
        settings = python_settings(KafkaSection(bootstrap_servers=bootstrap_servers), "test")
        self.sampler = EndOffsetSampler(
            self.ends, lambda: KafkaOffsetsClient(settings), lambda: self.wanted, interval_ms=50
        )

    def __enter__(self) -> Self:
        self.sampler.start()
        return self

    def __exit__(self, *_: object) -> None:
        self.sampler.stop()

    def figures(self, topic: str) -> list[tuple[int | None, int | None, int | None]]:
        """(high watermark, last stable offset, first offset) by partition."""
        held = self.ends.of_topic(topic).values()
        return [(each.high_watermark, each.last_stable, each.earliest) for each in held]


def eventually(holds: Callable[[], bool]) -> bool:
    deadline = time.monotonic() + PATIENCE_SECONDS
    while not holds() and time.monotonic() < deadline:
        time.sleep(0.05)
    return holds()


def write(producer: Producer, topic: str, partition: int, count: int) -> None:
    for _ in range(count):
        producer.produce(topic, b"x", partition=partition)
    producer.flush(10)


def test_ends_are_sampled_as_they_move(broker: EmbeddedBroker) -> None:
    """High watermarks of all partitions, and the last stable offset behind an open transaction."""
    create_topics(broker.bootstrap_servers, {"orders": 2})
    plain = Producer({"bootstrap.servers": broker.bootstrap_servers})
    write(plain, "orders", 1, 7)
    transactional = Producer({"bootstrap.servers": broker.bootstrap_servers, "transactional.id": "t"})
    transactional.init_transactions(10)
    transactional.begin_transaction()
    write(transactional, "orders", 0, 3)
    with Rig(broker.bootstrap_servers, "orders") as rig:
        assert eventually(lambda: [(3, 0, 0), (7, 7, 0)] == rig.figures("orders")), rig.figures("orders")
        transactional.commit_transaction(10)
        write(plain, "orders", 1, 5)

        # The marker of the transaction takes an offset too.
        assert eventually(lambda: [(4, 4, 0), (12, 12, 0)] == rig.figures("orders")), rig.figures("orders")
        history = rig.ends.of_topic("orders")[1].history
        assert history.time_of(9) is not None
        assert 5 == len(rig.figures("__consumer_offsets"))


def test_a_topic_is_found_by_id_and_noticed_when_recreated(
    broker: EmbeddedBroker, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An unknown id is asked for; a topic deleted and made again has another id and no history."""
    monkeypatch.setattr(sampler, "DESCRIBE_EVERY_MS", 500)
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    create_topics(broker.bootstrap_servers, {"returning": 1})
    with Rig(broker.bootstrap_servers, "returning") as rig:
        assert eventually(lambda: rig.ends.topic("returning") is not None)
        (first,) = [id_ for id_, name in rig.ends.topic_names.items() if name == "returning"]
        admin.delete_topics(["returning"])["returning"].result(10)
        create_topics(broker.bootstrap_servers, {"returning": 3})

        assert eventually(lambda: 3 == len(rig.figures("returning")))
        (second,) = {id_ for id_, name in rig.ends.topic_names.items() if name == "returning"} - {first}

    with Rig(broker.bootstrap_servers) as by_id:
        by_id.wanted = Wanted(ids=frozenset({first, second}))

        assert first != second
        assert eventually(lambda: "returning" == by_id.ends.topic_names.get(second))
        assert first not in by_id.ends.topic_names


def test_a_topic_that_is_not_there_is_not_made(broker: EmbeddedBroker) -> None:
    """Asking for a deleted topic must not bring it back."""
    with Rig(broker.bootstrap_servers, "never") as rig:
        assert eventually(lambda: rig.ends.sampled_ms is not None)

    topics = AdminClient({"bootstrap.servers": broker.bootstrap_servers}).list_topics(timeout=10).topics
    assert "never" not in topics


def test_an_outage_is_survived_and_stopping_in_it_is_prompt(tmp_path: Path) -> None:
    """Samples stop, age grows, one line is logged, samples come again; a stop does not wait for a broker."""
    with EmbeddedBroker(tmp_path / "broker", offsets_partitions=2) as broker:
        rig = Rig(broker.bootstrap_servers)
        with rig, capture_logs() as lines:
            assert eventually(lambda: rig.ends.sampled_ms is not None)
            broker.stop()
            assert eventually(lambda: bool(lines))
            before = rig.ends.sampled_ms
            threads = threading.active_count()
            tried = rig.sampler._outage.failures
            assert eventually(lambda: rig.sampler._outage.failures >= tried + 3)

            assert before == rig.ends.sampled_ms
            assert ["end_offsets_unavailable"] == [line["event"] for line in lines]
            # A client that could not connect leaves no thread of its own behind.
            assert eventually(lambda: threading.active_count() <= threads + 1)

            broker.start()
            # A round may come in half: only one that is whole is an end of the outage.
            assert eventually(lambda: "end_offsets_available_again" == lines[-1]["event"])
            assert before != rig.ends.sampled_ms
            broker.stop()
            assert eventually(lambda: "end_offsets_unavailable" == lines[-1]["event"])
            begun = time.monotonic()
            rig.sampler.stop()

            assert eventually(lambda: not rig.sampler._thread.is_alive())
            assert time.monotonic() - begun < BROKER_SECONDS


def test_leaders_say_their_epoch_with_the_end_of_the_log(broker: EmbeddedBroker) -> None:
    """An election is noticed by it: without one nothing is described again, whatever the isolation level."""
    create_topics(broker.bootstrap_servers, {"elected": 1})
    client = KafkaOffsetsClient(python_settings(KafkaSection(bootstrap_servers=broker.bootstrap_servers), "test"))
    (topic,) = client.describe(["elected"], ())
    place = ("elected", 0)
    said = [
        list_offsets(client._admin, {place: LATEST}, {place: topic.leaders[0]}, committed=committed).found[place]
        for committed in (False, True)
    ]
    client.ends({place: topic.leaders[0]}, committed=True)
    outdated = client.outdated
    client.close()

    assert [topic.leader_epochs[0]] * 2 == [of.leader_epoch for of in said]
    assert not outdated


def test_a_broker_that_is_not_there_is_an_error_and_leaves_nothing() -> None:
    """The first question fails as kafka-python fails, and closing ends the I/O thread it left."""
    threads = threading.active_count()
    client = KafkaOffsetsClient(python_settings(KafkaSection(bootstrap_servers="127.0.0.1:1"), "test"))
    with pytest.raises(KafkaError):
        client.describe(["orders"], ())
    client.close()

    assert eventually(lambda: threading.active_count() <= threads)

"""What brokers are asked for the gates: dynamic configurations of groups (KIP-915), and what conversions they allow."""

import time
from collections.abc import Iterator

import pytest
from confluent_kafka import Consumer
from confluent_kafka.admin import AdminClient, NewTopic  # type: ignore[attr-defined]  # exported, though not by name
from kafka import KafkaAdminClient
from kafka.admin import ConfigResource, ConfigResourceType

from coordinator_model.gates.verdict import BrokerSettings
from streaming.config.kafka_sections import KafkaSection
from streaming.demo.embedded_broker import EmbeddedBroker
from streaming.kafka.broker_queries import broker_settings, group_configs
from streaming.kafka.client_settings import python_settings
from streaming.kafka.cluster_client import ClusterClient
from streaming.kafka.log_scan import scanned
from tests.brokers_by_release import broker as broker_of

pytestmark = pytest.mark.broker

PROPAGATION_SECONDS = 20


def kafka_at(bootstrap_servers: str) -> KafkaSection:
    return KafkaSection(bootstrap_servers=bootstrap_servers)


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedBroker]:
    properties = {"group.consumer.session.timeout.ms": "47000"}
    with EmbeddedBroker(tmp_path_factory.mktemp("broker"), properties=properties) as running:
        yield running


@pytest.fixture
def kafka(broker: EmbeddedBroker) -> KafkaSection:
    return kafka_at(broker.bootstrap_servers)


def test_configurations_of_a_group_s_own(broker: EmbeddedBroker, kafka: KafkaSection) -> None:
    """Which groups have some, and how long their members may be silent; the broker's default is for all others."""
    assert [] == group_configs(kafka)
    admin = KafkaAdminClient(bootstrap_servers=broker.bootstrap_servers)
    setting = ConfigResource(ConfigResourceType.GROUP, "orders", {"consumer.session.timeout.ms": "50000"})
    admin.alter_configs([setting], raise_on_unknown=False)
    admin.close()

    # The setting is the controller's at once, and the broker's once it has read the controller's log.
    client = ClusterClient(python_settings(kafka, "session-timeouts"))
    deadline = time.monotonic() + PROPAGATION_SECONDS
    while (timeouts := client.session_timeouts(["orders", "unconfigured"]))["orders"] == 47_000:
        assert time.monotonic() < deadline
        time.sleep(0.1)
    client.close()

    assert {"orders": 50_000, "unconfigured": 47_000} == timeouts
    assert ["orders"] == group_configs(kafka)


def test_brokers_say_what_they_allow_of_conversions(broker: EmbeddedBroker, kafka: KafkaSection) -> None:
    """Policy and sizes, its defaults included, features, what is in its file, and whose brokers they are."""
    unbounded = (1 << 31) - 1

    assert BrokerSettings(
        asked=True,
        brokers=(broker_of(1, "4.3"),),
        consumer_protocol=True,
        migration_policy="bidirectional",
        consumer_max_size=unbounded,
        classic_max_size=unbounded,
        features={
            "eligible.leader.replicas.version": 1,
            "group.version": 1,
            "kraft.version": 1,
            "metadata.version": 30,
            "share.version": 1,
            "streams.version": 1,
            "transaction.version": 2,
        },
        static_protocols=("classic", "consumer", "share", "streams"),
        cluster_id=broker.cluster_id,
    ) == broker_settings(kafka)


def test_a_broker_that_is_gone_says_nothing() -> None:
    """Which is not none, and not the defaults."""
    gone = kafka_at("127.0.0.1:1")

    assert group_configs(gone) is None
    assert BrokerSettings(asked=True) == broker_settings(gone)


def test_scan_finds_what_a_consumer_of_the_new_protocol_left(broker: EmbeddedBroker, kafka: KafkaSection) -> None:
    """A log that only has classic groups is clean; a member that came and went leaves records and tombstones."""
    admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers})
    admin.create_topics([NewTopic("t", 1)])["t"].result(PROPAGATION_SECONDS)
    joins_and_leaves(broker.bootstrap_servers, "classic")
    *_, before = scanned(kafka)
    joins_and_leaves(broker.bootstrap_servers, "consumer")
    *_, after = scanned(kafka)

    assert (True, {}, {}) == (before.complete, before.records, before.tombstones)
    assert after.complete
    assert {3, 5, 6, 7, 8} <= after.records.keys()
    assert {5, 7, 8} <= after.tombstones.keys()


def joins_and_leaves(servers: str, protocol: str) -> None:
    """A member of a group named as its protocol, until it has its partitions."""
    settings = {"bootstrap.servers": servers, "group.id": protocol, "group.protocol": protocol}
    consumer = Consumer(settings)
    consumer.subscribe(["t"])
    deadline = time.monotonic() + PROPAGATION_SECONDS + 30
    while not consumer.assignment():
        assert time.monotonic() < deadline
        consumer.poll(0.1)
    consumer.close()

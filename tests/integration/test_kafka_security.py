"""Every way into a cluster, for each of the two clients, and what is said when one is closed: against a real broker.

What must be allowed behind the door is `streaming.kafka.permissions`; each is taken away in turn.
"""

import json
import os
import socket
import ssl
import threading
from collections.abc import Iterator
from contextlib import closing, suppress
from pathlib import Path
from typing import Any, Final, Self

import pytest
from cloudevents.core.bindings.kafka import KafkaMessage, from_binary, from_structured
from cloudevents.core.formats.json import JSONFormat
from confluent_kafka import Consumer, Message, TopicPartition
from confluent_kafka.admin import AdminClient

from lab.monitor_process import until
from streaming.board.board import Board
from streaming.config.loading import Config, load
from streaming.demo.verifiable_consumer import create_topics
from streaming.end_offsets.store import EndOffsets
from streaming.kafka.client_settings import confluent_settings, portable_settings
from streaming.kafka.log_bounds import LogBounds
from streaming.kafka.msk_iam import connectable
from streaming.kafka.oauth_tokens import msk_tokens, tokens_of
from streaming.kafka.permissions import (
    EVENTS_TOPIC,
    GROUPS_TOPIC,
    PERMISSIONS,
    READ_SHARE_LOG,
    SINK_PERMISSIONS,
    Permission,
)
from streaming.kafka.preflight import Finding, broker_findings
from streaming.kafka.range_reader import RangeReader
from streaming.kafka.topic_reader import TopicReader
from streaming.loading import source
from streaming.recording.recorder import LogRecorder
from streaming.sinks import kafka_sinks
from streaming.sinks.cloud_events import EventsFormat
from streaming.sinks.queue import Spooled
from streaming.sinks.topic_setup import sink_findings
from tests.integration.secured_broker import (
    AWS_ENVIRONMENT,
    AWS_SECRET,
    CLIENT_SECRET,
    MSK,
    PASSWORD,
    THIRD_HOST,
    WAYS,
    SecuredBroker,
)
from tests.integration.test_permissions import somebody_s_group

pytestmark = [pytest.mark.broker, pytest.mark.timeout(300)]

SECRETS: Final = (PASSWORD, CLIENT_SECRET, AWS_SECRET)
WRONG: Final = "planted-wrong-password-Vk3"


@pytest.fixture(scope="module")
def broker(tmp_path_factory: pytest.TempPathFactory) -> Iterator[SecuredBroker]:
    with SecuredBroker(tmp_path_factory.mktemp("secured")) as broker:
        broker.allow([*PERMISSIONS, *SINK_PERMISSIONS])
        somebody_s_group(broker.open_servers)
        made = sink_findings(with_topics(broker), create=True)
        assert {"ok"} == {finding.status for finding in made}, made
        yield broker


@pytest.fixture(autouse=True)
def credentials(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """AWS credentials of an account that the broker knows, and none of the machine."""
    for name in [name for name in os.environ if name.startswith("AWS_")]:
        monkeypatch.delenv(name)
    for name in ("AWS_CONFIG_FILE", "AWS_SHARED_CREDENTIALS_FILE"):
        monkeypatch.setenv(name, str(tmp_path / name))
    monkeypatch.setenv("AWS_EC2_METADATA_DISABLED", "true")
    for name, value in AWS_ENVIRONMENT.items():
        monkeypatch.setenv(name, value)
    yield
    msk_tokens.cache_clear()
    tokens_of.cache_clear()


def findings(config: Config) -> dict[str, Finding]:
    return {finding.name: finding for finding in broker_findings(config.kafka)}


def not_ok(config: Config) -> dict[str, Finding]:
    return {name: finding for name, finding in findings(config).items() if finding.status != "ok"}


@pytest.mark.parametrize("way", WAYS)
def test_every_client_comes_in(broker: SecuredBroker, way: str) -> None:
    """kafka-python and librdkafka are let in with the same options."""
    config = broker.config(way)

    assert {} == not_ok(config)
    admin = AdminClient(connectable({**confluent_settings(config.kafka, "test"), "log_level": 2}))
    assert 1 == len(admin.list_topics(timeout=20).brokers)


class ThirdHost:
    """Speaks TLS where a broker says that it is, and notes what is sent; use as a context manager.

    Attributes:
        connections: how often it was connected to.
        received: what came through handshakes that were finished.
    """

    def __init__(self, address: tuple[str, int], files: tuple[Path, Path]) -> None:
        self._context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
        self._context.load_cert_chain(*files)
        self._listening = socket.create_server(address)
        self.connections, self.received = 0, b""

    def __enter__(self) -> Self:
        self._thread = threading.Thread(target=self._serve, daemon=True)
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        # One that waits for a connection would hold the address though it is closed.
        self._listening.shutdown(socket.SHUT_RDWR)
        self._thread.join()
        self._listening.close()

    def _serve(self) -> None:
        with suppress(OSError):
            while True:
                bare, _ = self._listening.accept()
                self.connections += 1
                with suppress(OSError), bare:
                    bare.settimeout(5)
                    with self._context.wrap_socket(bare, server_side=True) as connection:
                        self.received += connection.recv(65_536)


@pytest.mark.parametrize("whose", ["a stranger's", "another name's"])
def test_a_host_that_a_broker_names_gets_no_credentials(broker: SecuredBroker, whose: str) -> None:
    """Where the advertised listener points elsewhere: that host has to show a certificate for its name, too."""
    authority = broker.stranger if whose == "a stranger's" else broker.authority
    name = THIRD_HOST if whose == "a stranger's" else "third.test"
    config = broker.config("PLAIN", broker.servers["AWAY"])
    with ThirdHost(broker.third_host, authority.issue(f"third-{len(whose)}", name)) as third:
        found = not_ok(config)
        asked = third.connections
        consumer = Consumer({**confluent_settings(config.kafka, "test"), "group.id": "unused", "log_level": 0})
        consumer.assign([TopicPartition("__consumer_offsets", 0, 0)])
        assert [] == [message for message in consumer.consume(1, timeout=5) if message.error() is None]
        consumer.close()

        assert found
        assert 0 < asked < third.connections
        assert b"" == third.received


@pytest.mark.parametrize("way", WAYS)
def test_the_log_can_be_recorded(broker: SecuredBroker, way: str) -> None:
    """By whatever way the consumers come in, they read to the end of every partition."""
    log = LogRecorder(broker.config(way).kafka, [0, 1, 2, 3])
    try:
        assert 0 < sum(log.ends.values()) == len(list(log.records()))
    finally:
        log.close()


@pytest.mark.parametrize("way", WAYS)
def test_topics_can_be_followed(broker: SecuredBroker, way: str) -> None:
    """By the same ways, as `serve` does it."""
    settings = confluent_settings(broker.config(way).kafka, "test")
    with closing(TopicReader(settings, {"__consumer_offsets": None})) as reader:
        read = 0
        while not reader.at_first_end:
            read += len(reader.poll())
    assert read


@pytest.mark.parametrize("way", ["OAUTHBEARER", MSK])
def test_the_query_reads_the_log_with_tokens(broker: SecuredBroker, way: str) -> None:
    """Spark's workers ask where the log ends and read it; their settings are text that any machine can use."""
    settings = json.loads(json.dumps(portable_settings(broker.config(way).kafka, "log")))
    stable = LogBounds(settings, "__consumer_offsets", 20).ends().stable
    reader = RangeReader(settings, "__consumer_offsets", committed=True, timeout_seconds=20)
    try:
        read = reader.read({partition: (0, end) for partition, end in stable.items()})
        assert 0 < sum(stable.values()) == sum(len(columns.offsets) for columns in read)
    finally:
        reader.close()


@pytest.mark.parametrize("how", ["json", "cloudevents_binary", "cloudevents_structured"])
def test_events_are_written_with_a_signed_token(broker: SecuredBroker, how: EventsFormat) -> None:
    """The producer of the sinks is let in as the readers are; it writes a CloudEvent where one is asked for."""
    config = with_topics(broker, MSK, GROUP_MONITOR__KAFKA_SINK__EVENTS_FORMAT=how)
    event = {"id": f"1-{how}", "time": 1_700_000_000_000, "group": "g", "kind": "member_joined", "detail": {}}
    (reader,) = kafka_sinks.readers(config, Board(EndOffsets()))
    assert 0 == reader.deliver([Spooled(0, {"kind": "event", "event": event})])
    reader.close()
    written = newest(broker.open_servers, EVENTS_TOPIC)
    value = written.value() or b""
    headers: dict[str, Any] = dict(written.headers() or ())
    expected = {**event, "cluster": config.cluster.name}

    assert b"g" == written.key()
    if how == "json":
        assert (expected, {}) == (json.loads(value), headers)
        return
    message = KafkaMessage(headers=headers, key=None, value=value)
    envelope = (from_binary if how == "cloudevents_binary" else from_structured)(message, JSONFormat())
    assert (event["id"], expected) == (envelope.get_id(), envelope.get_data())


def newest(servers: str, topic: str) -> Message:
    """The newest record of a topic of one partition."""
    place = TopicPartition(topic, 0)
    settings = {"bootstrap.servers": servers, "group.id": "test", "enable.auto.commit": False, "log_level": 2}
    with closing(Consumer(settings)) as consumer:
        place.offset = consumer.get_watermark_offsets(place, timeout=20)[1] - 1
        consumer.assign([place])
        message = consumer.poll(20)
    assert message is not None
    assert message.error() is None
    return message


def test_a_token_is_fetched_once_for_all_connections(broker: SecuredBroker) -> None:
    """Looks at the brokers open several connections each, and ask the endpoint once."""
    before = len(broker.tokens.granted)
    for _ in range(2):
        assert "ok" == findings(broker.config("OAUTHBEARER", oauth_scope="another"))["broker"].status

    assert before + 1 == len(broker.tokens.granted)


def cases(broker: SecuredBroker) -> dict[str, tuple[Config, str]]:
    """What is wrong → a configuration that has it, and how the complaint begins."""
    sasl = broker.servers["SASL"]
    nobody = str(broker.stranger.file)
    wrong = {"password": WRONG}
    certificate_file, key_file = broker.stranger_files
    return {
        "password of PLAIN": (broker.config("PLAIN", **wrong), "kafka.security.username: found 'monitor', whom "),
        "password of SCRAM": (broker.config("SCRAM-SHA-512", **wrong), "kafka.security.username: found 'monitor', "),
        "client secret": (
            broker.config("OAUTHBEARER", oauth_client_secret=WRONG),
            "kafka.security.oauth_client_id: found 'monitor-client', which https://",
        ),
        "authority of the token endpoint": (
            broker.config("OAUTHBEARER", oauth_ca_file=nobody),
            f"kafka.security.oauth_ca_file: found {nobody!r} (",
        ),
        "token endpoint that is away": (
            broker.config("OAUTHBEARER", oauth_token_url="https://127.0.0.1:1/token"),  # noqa: S106 - where it is, no secret
            "kafka.security.oauth_token_url: found 'https://127.0.0.1:1/token' (Connection refused)",
        ),
        "authority": (broker.config("TLS", ca_file=nobody), f"kafka.security.ca_file: found {nobody!r}, which do not"),
        "no authority": (
            broker.config("TLS", ca_file=None),
            "kafka.security.ca_file: found the system's certificates, which do not prove",
        ),
        "host name": (
            broker.config("TLS", broker.servers["ELSEWHERE"]),
            f"kafka.security.check_hostname: found true, and {broker.servers['ELSEWHERE']} with a certificate that",
        ),
        "expired certificate": (
            broker.config("TLS", broker.servers["EXPIRED"]),
            f"kafka.bootstrap_servers: found {broker.servers['EXPIRED']}, whose certificate does not hold today",
        ),
        "no client certificate": (
            broker.config("TLS", broker.servers["MUTUAL"]),
            "kafka.security.certificate_file: found none, which ",
        ),
        "client certificate of a stranger": (
            broker.config("MUTUAL", certificate_file=certificate_file, key_file=key_file),
            f"kafka.security.certificate_file: found {str(broker.stranger_files[0])!r}, which ",
        ),
        "TLS to a plain listener": (
            broker.config("TLS", broker.open_servers),
            "kafka.security.protocol: found SSL, which ",
        ),
        "plain to a TLS listener": (
            Config(kafka={"bootstrap_servers": broker.servers["TLS"]}),  # type: ignore[arg-type]  # pydantic makes it a section
            "kafka.security.protocol: found PLAINTEXT, which ",
        ),
        "no SASL to a SASL listener": (
            broker.config("TLS", sasl),
            f"kafka.security.protocol: found SSL, which {sasl} does not speak (it wants SASL: OAUTHBEARER, PLAIN, ",
        ),
        "SASL to a listener without": (
            broker.config("PLAIN", broker.servers["TLS"]),
            f"kafka.security.protocol: found SASL_SSL, which {broker.servers['TLS']} does not speak (it has no SASL)",
        ),
    }


WRONGS: Final = (
    "password of PLAIN", "password of SCRAM", "client secret", "authority of the token endpoint",
    "token endpoint that is away", "authority", "no authority", "host name", "expired certificate",
    "no client certificate", "client certificate of a stranger", "TLS to a plain listener", "plain to a TLS listener",
    "no SASL to a SASL listener", "SASL to a listener without",
)  # fmt: skip


@pytest.mark.parametrize(
    ("gone", "says"),
    [
        ({"AWS_SECRET_ACCESS_KEY": WRONG}, "'eu-central-1', and AWS credentials that 127.0.0.1:"),
        ({"AWS_PROFILE": "nobody"}, "'eu-central-1' and no AWS credentials to sign with (The config profile (nobody)"),
        ({}, "'eu-central-1' and no AWS credentials to sign with (nothing in the environment, in a profile, or of "),
    ],
    ids=["another secret key", "a profile that is not there", "none"],
)
def test_wrong_aws_credentials_are_reported(
    broker: SecuredBroker, gone: dict[str, str], says: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Refused by the broker, or not there to sign with; in one line, without a secret."""
    if not gone:
        for name in AWS_ENVIRONMENT:
            monkeypatch.delenv(name)
    for name, value in gone.items():
        monkeypatch.setenv(name, value)
    reported = findings(broker.config(MSK))["broker"]

    assert "cannot tell" == reported.status
    assert reported.detail.startswith(f"kafka.security.aws_msk_region: found {says}"), reported.detail
    assert ", accepted: " in reported.detail
    assert 1 == len(reported.detail.splitlines())
    assert [] == [secret for secret in (*SECRETS, WRONG) if secret in reported.detail]


@pytest.mark.parametrize("wrong", WRONGS)
def test_what_is_wrong_is_named_by_its_option(broker: SecuredBroker, wrong: str) -> None:
    """One line that begins with the option, says what was found and what is accepted, and holds no secret."""
    config, begins = cases(broker)[wrong]
    reported = findings(config)["broker"]

    assert "cannot tell" == reported.status
    assert reported.detail.startswith(begins), reported.detail
    assert ", accepted: " in reported.detail
    assert 1 == len(reported.detail.splitlines())
    assert [] == [secret for secret in (*SECRETS, WRONG) if secret in reported.detail]


@pytest.mark.parametrize(
    "permission", [*PERMISSIONS, *SINK_PERMISSIONS], ids=lambda of: f"{of.operation} {of.resource} {of.name}"
)
def test_each_permission_is_missed_when_it_is_taken_away(broker: SecuredBroker, permission: Permission) -> None:
    """`check` reports the one that is missing, and those alone that go with it; what is needed fails."""
    config = with_topics(broker)
    gone = [
        other
        for other in (*PERMISSIONS, *SINK_PERMISSIONS)
        if (other.operation, other.resource) == (permission.operation, permission.resource)
        and other.name in ("*", permission.name)
    ]
    for each in gone:
        broker.forbid(each)
    if permission is READ_SHARE_LOG:
        # Kafka makes it with the first share group.
        create_topics(broker.open_servers, {permission.name: 1})
    making = permission.operation == "CREATE"
    if making:
        remove_topic(broker.open_servers, permission.name)
    try:
        missed = {
            finding.name: finding
            for finding in (*broker_findings(config.kafka), *sink_findings(config, create=making))
            if finding.status != "ok"
        }
    finally:
        broker.allow(gone)
        sink_findings(config, create=True)

    assert {each.check for each in gone} == missed.keys()
    found = missed[permission.check]
    # A monitor that is to make a topic and may not has no topic.
    assert ("fail" if permission.needed or making else "note") == found.status
    assert permission.operation in found.detail


def test_a_rehearsal_reads_the_log_with_read_on_it_alone(broker: SecuredBroker, tmp_path: Path) -> None:
    """Without any other permission the log, its groups and the cluster it is of are there."""
    kafka = broker.config("SCRAM-SHA-256").kafka
    others = [
        of for of in (*PERMISSIONS, *SINK_PERMISSIONS) if (of.operation, of.name) != ("READ", kafka.offsets_topic)
    ]
    for each in others:
        broker.forbid(each)
    try:
        found = source.of_brokers(kafka, tmp_path / "log.ndjson.gz", lambda _share: None)
    finally:
        broker.allow(others)

    assert broker.broker.cluster_id == found.cluster_id
    assert sum(found.records.values())
    assert found.groups


def with_topics(broker: SecuredBroker, way: str = "SCRAM-SHA-256", **more: str) -> Config:
    """A configuration of a monitor that writes topics, too."""
    topics = {"EVENTS_TOPIC": EVENTS_TOPIC, "GROUPS_TOPIC": GROUPS_TOPIC}
    options = {f"GROUP_MONITOR__KAFKA_SINK__{option}": name for option, name in topics.items()}
    return load(None, {**broker.environment(way), **options, **more})


def remove_topic(servers: str, name: str) -> None:
    """Return when it is gone."""
    admin = AdminClient({"bootstrap.servers": servers, "log_level": 2})
    admin.delete_topics([name], operation_timeout=30)[name].result(30)
    until(lambda: name not in admin.list_topics(timeout=20).topics, 90, f"{name} is still there")

"""`record`, `check` and the preflight against a real broker with transactions, users and permissions."""

import json
import os
import signal
import subprocess
import sys
import time
from collections.abc import Iterator
from contextlib import closing
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka import Consumer, Producer, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._acl import AclBinding, AclOperation, AclPermissionType
from confluent_kafka.admin._resource import ResourcePatternType, ResourceType

from coordinator_model.records.serde import decode_record
from coordinator_model.replica import Replica
from coordinator_model.state.findings import Position
from coordinator_model.state.shards import offsets_partition
from coordinator_model.views.group_view import group_view
from lab.monitor_process import until
from streaming.base.errors import CannotTellError
from streaming.config.kafka_sections import KafkaSection
from streaming.config.loading import Config, load
from streaming.demo.embedded_broker import HOST, EmbeddedBroker, _free_ports
from streaming.demo.verifiable_consumer import create_topics
from streaming.history.log_archive import RecordKeeper
from streaming.history.queries import History
from streaming.history.store import HistoryStore
from streaming.kafka.client_settings import confluent_settings, python_settings
from streaming.kafka.cluster_client import ClusterClient, ReportedGroup
from streaming.kafka.permissions import PERMISSIONS, READ_LOG
from streaming.kafka.preflight import DESCRIBE_GROUPS, broker_findings, preflight
from streaming.recording.file_format import RecordedRecord, RecordingReader, open_recording
from tests.group_tool import GroupTool
from tests.kafka_oracle import KAFKA_JARS
from tests.left_out import needs_kafka_jars

pytestmark = [
    pytest.mark.broker,
    # kafka-python reads its message schemas by a function that Python 3.11 calls deprecated (and 3.13 no longer).
    pytest.mark.filterwarnings("ignore:(read|open)_text is deprecated:DeprecationWarning"),
    needs_kafka_jars,
]

ROOT = Path(__file__).resolve().parents[2]
PARTITIONS = 4
PASSWORD = "battery-staple"  # noqa: S105 - of users that live as long as the test
WRONG_PASSWORD = "staple-battery"  # noqa: S105 - as above
USERS = ("monitor", "describer", "stranger")
OFFSETS_TOPIC = "__consumer_offsets"
_NEW_KEY = ("-newkey", "rsa:2048", "-nodes")


@dataclass(frozen=True)
class Cluster:
    """A broker with an open listener and one that asks who is there."""

    open_servers: str
    sasl_servers: str
    tls_servers: str
    certificates: Path
    truth: GroupTool

    def environment(self, user: str, password: str = PASSWORD) -> dict[str, str]:
        security = {"PROTOCOL": "SASL_PLAINTEXT", "SASL_MECHANISM": "PLAIN", "USERNAME": user, "PASSWORD": password}
        return {
            "GROUP_MONITOR__KAFKA__BOOTSTRAP_SERVERS": self.sasl_servers,
            "GROUP_MONITOR__KAFKA__REQUEST_TIMEOUT_MS": "4000",
            **{f"GROUP_MONITOR__KAFKA__SECURITY__{name}": value for name, value in security.items()},
        }

    def tls(self, **options: str) -> Config:
        """A configuration for the listener that wants a certificate of its clients."""
        files = {"ca_file": "ca.pem", "certificate_file": "client.pem", "key_file": "client.key"}
        security = {
            "protocol": "SSL",
            **{name: str(self.certificates / file) for name, file in files.items()},
            **options,
        }
        overrides = {f"kafka.security.{name}": value for name, value in security.items()}
        environment = {"GROUP_MONITOR__KAFKA__SECURITY__KEY_PASSWORD": PASSWORD}
        return load(None, environment, {"kafka.bootstrap_servers": self.tls_servers, **overrides})


@pytest.fixture(scope="module")
def cluster(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Cluster]:
    directory = tmp_path_factory.mktemp("broker")
    sasl, tls = (f"{HOST}:{port}" for port in _free_ports(2))
    make_certificates(directory)
    broker = EmbeddedBroker(directory, jars_dir=KAFKA_JARS, offsets_partitions=PARTITIONS, initial_rebalance_delay_ms=0)
    listeners = f"{broker._properties['listeners']},SASL_PLAINTEXT://{sasl},SSL://{tls}"
    users = " ".join(f'user_{user}="{PASSWORD}"' for user in USERS)
    broker._properties.update(
        {
            "listeners": listeners,
            "advertised.listeners": listeners,
            "listener.security.protocol.map": ",".join(
                ["CONTROLLER:PLAINTEXT", *(f"{name}:{name}" for name in ("PLAINTEXT", "SASL_PLAINTEXT", "SSL"))]
            ),
            "ssl.client.auth": "required",
            "ssl.keystore.type": "PEM",
            "ssl.keystore.location": str(directory / "broker-keystore.pem"),
            "ssl.truststore.type": "PEM",
            "ssl.truststore.location": str(directory / "ca.pem"),
            "sasl.enabled.mechanisms": "PLAIN",
            "listener.name.sasl_plaintext.plain.sasl.jaas.config": (
                f"org.apache.kafka.common.security.plain.PlainLoginModule required {users};"
            ),
            "authorizer.class.name": "org.apache.kafka.metadata.authorizer.StandardAuthorizer",
            "super.users": "User:ANONYMOUS;User:CN=client",
        }
    )
    with broker, GroupTool(broker.bootstrap_servers, log=directory / "tool.log", jars_dir=KAFKA_JARS) as truth:
        create_topics(broker.bootstrap_servers, {"orders": 3})
        _allow(broker.bootstrap_servers, "monitor", "orders", AclOperation.DESCRIBE)
        _allow(broker.bootstrap_servers, "monitor", OFFSETS_TOPIC, AclOperation.READ)
        _allow(broker.bootstrap_servers, "describer", OFFSETS_TOPIC, AclOperation.DESCRIBE)
        _traffic(broker.bootstrap_servers)
        yield Cluster(broker.bootstrap_servers, sasl, tls, directory, truth)


def make_certificates(directory: Path) -> None:
    """An authority, and what it signed: a broker for our address, a client whose key is encrypted."""

    def openssl(*arguments: str) -> None:
        subprocess.run(["openssl", *arguments], cwd=directory, capture_output=True, check=True)  # noqa: S603, S607 - see above

    openssl("req", "-x509", *_NEW_KEY, "-keyout", "ca.key", "-out", "ca.pem", "-subj", "/CN=authority")
    (directory / "names").write_text(f"subjectAltName=IP:{HOST}")
    for name in ("broker", "client"):
        openssl("req", *_NEW_KEY, "-keyout", f"{name}.plain", "-out", f"{name}.request", "-subj", f"/CN={name}")
        signing = ["-CA", "ca.pem", "-CAkey", "ca.key", "-CAcreateserial", "-days", "1", "-extfile", "names"]
        openssl("x509", "-req", "-in", f"{name}.request", "-out", f"{name}.pem", *signing)
    openssl("pkcs8", "-topk8", "-in", "client.plain", "-passout", f"pass:{PASSWORD}", "-out", "client.key")
    parts = [(directory / name).read_text() for name in ("broker.plain", "broker.pem")]
    (directory / "broker-keystore.pem").write_text("".join(parts))


class TestRecording:
    """What is recorded is what the cluster holds."""

    def test_replayed_it_is_what_kafka_s_tool_says(self, cluster: Cluster, tmp_path: Path) -> None:
        """Groups, states, epochs and committed offsets; the aborted transaction's offset is not among them."""
        path = tmp_path / "r.ndjson.gz"
        assert 0 == run("record", "--bootstrap-server", cluster.open_servers, "--out", str(path)).returncode
        groups = replayed(path)

        assert cluster.truth.list_groups() == sorted(groups)
        assert {row["group"]: (row["state"], row["members"]) for row in cluster.truth.states()} == {
            name: (group["state"], len(group["members"])) for name, group in groups.items()
        }
        assert {
            (row["group"], row["topic"], row["partition"]): row["offset"]
            for row in cluster.truth.offsets()
            if row["topic"] is not None and row["offset"] is not None
        } == {
            (name, offset["topic"], offset["partition"]): offset["offset"]
            for name, group in groups.items()
            for offset in group["offsets"]
        }
        assert 5 == groups["transactional"]["offsets"][0]["offset"]

    def test_header_says_what_the_cluster_is(self, cluster: Cluster, tmp_path: Path) -> None:
        """Partitions of the offsets topic, topics with real ids, and the release."""
        path = tmp_path / "r.ndjson"
        run("record", "--bootstrap-server", cluster.open_servers, "--out", str(path))
        with open_recording(path) as recording:
            header = recording.header

        assert (PARTITIONS, "4.3") == (header.offsets_topic_partitions, header.kafka_version)
        assert 3 == {topic.name: topic.partitions for topic in header.topics}["orders"]
        assert {"AAAAAAAAAAAAAAAAAAAAAA"}.isdisjoint(header.topic_names)

    def test_recording_leaves_no_trace(self, cluster: Cluster, tmp_path: Path) -> None:
        """Nothing is committed and no group joined: a second recording is the same."""
        for name in ("a.ndjson", "b.ndjson"):
            run("record", "--bootstrap-server", cluster.open_servers, "--out", str(tmp_path / name))

        assert (tmp_path / "a.ndjson").read_text() == (tmp_path / "b.ndjson").read_text()

    def test_one_group_is_found_in_its_partition(self, cluster: Cluster, tmp_path: Path) -> None:
        """With --group only its records are written, and they are all there."""
        run("record", "--bootstrap-server", cluster.open_servers, "--out", str(tmp_path / "all.ndjson"))
        path = tmp_path / "one.ndjson"
        run("record", "--bootstrap-server", cluster.open_servers, "--out", str(path), "--group", "modern")

        assert {"modern": replayed(tmp_path / "all.ndjson")["modern"]} == replayed(path)
        assert {offsets_partition("modern", PARTITIONS)} == {record.partition for record in records(path)}

    def test_open_transaction_holds_back_commits_but_not_membership(self, cluster: Cluster, tmp_path: Path) -> None:
        """It is said which partition waits; a group that joins behind the transaction is there all the same."""
        partition = offsets_partition("transactional", PARTITIONS)
        neighbour = next(name for name in map(str, range(99)) if offsets_partition(name, PARTITIONS) == partition)
        with_open = tmp_path / "open.ndjson"
        transaction = begun(cluster.open_servers, "left-open", 77)
        try:
            consume(cluster.open_servers, neighbour).close()
            result = run("record", "--bootstrap-server", cluster.open_servers, "--out", str(with_open))
        finally:
            transaction.abort_transaction()
        groups = replayed(with_open)

        assert f"warning: partition {partition}: an open transaction holds back offset commits" in result.stderr
        assert 5 == groups["transactional"]["offsets"][0]["offset"]
        assert ("Empty", []) == (groups[neighbour]["state"], groups[neighbour]["offsets"])
        cluster.truth.delete(neighbour)

    def test_history_keeps_what_a_recording_holds(self, cluster: Cluster, tmp_path: Path) -> None:
        """Looked at while a transaction was open and again after: all records of all groups, none that was aborted."""
        keeper = RecordKeeper(KafkaSection(bootstrap_servers=cluster.open_servers), HistoryStore(tmp_path))
        keeper.look()
        transaction = begun(cluster.open_servers, "watched", 78)
        try:
            consume(cluster.open_servers, "watched").close()
            keeper.look()
        finally:
            transaction.abort_transaction()
        consume(cluster.open_servers, "watched-after").close()
        path = tmp_path / "r.ndjson"
        run("record", "--bootstrap-server", cluster.open_servers, "--out", str(path))
        keeper.look()
        expected = records(path)
        history = History(tmp_path)
        groups = {getattr(decode_record(record.key, None), "group_name", "") for record in expected}

        assert {"watched", "watched-after", "transactional"} <= groups
        held = {record for group in groups for record in history.records(group)}
        # A member's leaving may have been written since it was recorded.
        ends = {record.partition: record.offset for record in expected}
        assert set(expected) == {record for record in held if record.offset <= ends[record.partition]}
        result = run("history", "watched", "--dir", str(tmp_path), "--record", str(tmp_path / "cut.ndjson"))
        assert 0 == result.returncode, result.stderr
        assert replayed(path)["watched"]["offsets"] == replayed(tmp_path / "cut.ndjson")["watched"]["offsets"]
        for group in ("watched", "watched-after"):
            cluster.truth.delete(group)

    def test_follow_goes_on_until_it_is_interrupted(self, cluster: Cluster, tmp_path: Path) -> None:
        """What happens meanwhile is recorded too, and Ctrl-C ends it with a complete file."""
        path = tmp_path / "r.ndjson"
        command = [sys.executable, "-m", "streaming", "record", "--bootstrap-server", cluster.open_servers]
        with subprocess.Popen(  # noqa: S603 - our own interpreter and module
            [*command, "--out", str(path), "--follow"], cwd=ROOT, stderr=subprocess.PIPE, text=True
        ) as following:
            partial = path.with_name("r.ndjson.partial")
            await_file(partial)
            consume(cluster.open_servers, "latecomer").close()
            with closing(Consumer({"bootstrap.servers": cluster.open_servers, "group.id": "behind-it"})) as behind_it:
                until(
                    lambda: push_out(behind_it) and 100 == committed_in(partial, "latecomer"),
                    60,
                    "what happened meanwhile is not recorded",
                )
            following.send_signal(signal.SIGINT)
            _, errors = following.communicate(timeout=30)

        assert (0, True) == (following.returncode, errors.endswith(f" records in {path}\n"))
        assert 100 == committed_in(path, "latecomer")
        for group in ("latecomer", "behind-it"):
            cluster.truth.delete(group)


class TestPermissions:
    """A refusal to read is reported in one line, before anything starts."""

    def test_reader_is_let_in(self, cluster: Cluster) -> None:
        """READ on the offsets topic is enough to record and to run."""
        config = load(None, cluster.environment("monitor"))
        preflight(config)

        beyond = {each.check: "note" for each in PERMISSIONS if each is not READ_LOG}
        assert beyond == {
            finding.name: finding.status for finding in broker_findings(config.kafka) if finding.status != "ok"
        }

    @pytest.mark.parametrize(
        ("user", "expected"),
        [
            ("describer", "kafka.security: found the permission DESCRIBE on __consumer_offsets, accepted: READ"),
            ("stranger", "kafka.offsets_topic: found '__consumer_offsets', TopicAuthorizationFailed on this cluster"),
        ],
    )
    def test_others_are_reported_what_they_lack(self, cluster: Cluster, user: str, expected: str) -> None:
        """Seeing the topic is not reading it, and not seeing it is distinguished from its absence."""
        with pytest.raises(CannotTellError) as refused:
            preflight(load(None, cluster.environment(user)))

        assert expected in str(refused.value)

    def test_wrong_password_is_reported_without_it(self, cluster: Cluster, tmp_path: Path) -> None:
        """A refused login ends with 3 and one line that holds no secret."""
        environment = cluster.environment("monitor", WRONG_PASSWORD)
        result = run("record", "--out", str(tmp_path / "r.ndjson"), **environment)

        assert (3, 1) == (result.returncode, len(result.stderr.splitlines()))
        assert result.stderr.startswith("error: kafka.security.username: found 'monitor', whom ")
        assert WRONG_PASSWORD not in result.stderr
        assert WRONG_PASSWORD not in run("--debug", "record", "--out", str(tmp_path / "r"), **environment).stderr

    def test_recording_as_a_reader(self, cluster: Cluster, tmp_path: Path) -> None:
        """A user who may read records the same groups."""
        result = run("record", "--out", str(tmp_path / "r.ndjson"), **cluster.environment("monitor"))

        assert 0 == result.returncode
        assert cluster.truth.list_groups() == sorted(replayed(tmp_path / "r.ndjson"))

    def test_topic_that_does_not_exist(self, cluster: Cluster) -> None:
        """The topic is named, with how it comes to be."""
        overrides = {"kafka.bootstrap_servers": cluster.open_servers, "kafka.offsets_topic": "nowhere"}
        with pytest.raises(CannotTellError, match=r"kafka\.offsets_topic: found 'nowhere', UnknownTopicOrPartition"):
            preflight(load(None, {}, overrides))


class TestTls:
    """One set of PEM files lets both clients in."""

    def test_kafka_python(self, cluster: Cluster) -> None:
        """The client that asks and records."""
        preflight(cluster.tls())

    def test_librdkafka(self, cluster: Cluster) -> None:
        """The client that reads the log, and the demo's."""
        admin = AdminClient({**confluent_settings(cluster.tls().kafka, "test")})

        assert "orders" in admin.list_topics(timeout=10).topics

    def test_certificate_of_another_authority(self, cluster: Cluster) -> None:
        """A broker that cannot be trusted is not talked to, and what it should be trusted by is named."""
        config = cluster.tls(ca_file=str(cluster.certificates / "client.pem"))
        with pytest.raises(
            CannotTellError, match=r"kafka\.security\.ca_file: found .*client\.pem', which do not prove "
        ):
            preflight(config)


class TestCheck:
    """`check` shows all of it in one list."""

    def test_all_is_well(self, cluster: Cluster, tmp_path: Path) -> None:
        """Everything in order ends with 0."""
        reported = check({"GROUP_MONITOR__KAFKA__BOOTSTRAP_SERVERS": cluster.open_servers}, tmp_path)

        assert {"ok"} == {found["status"] for found in reported["checks"]}
        assert 0 == reported["exit_status"]

    def test_what_can_be_done_without_is_noted(self, cluster: Cluster, tmp_path: Path) -> None:
        """With permission to read the log alone, what does not work is reported, and beside it what works less well."""
        reported = check(cluster.environment("monitor"), tmp_path)
        statuses = {found["check"]: found["status"] for found in reported["checks"]}

        assert "note" == statuses[DESCRIBE_GROUPS]
        optional = {each.check for each in PERMISSIONS if not each.needed}
        assert {"note"} == {statuses[name] for name in optional}
        assert {"ok"} == {status for name, status in statuses.items() if name not in optional}

    def test_group_that_may_not_be_described_is_no_suspect(self, cluster: Cluster) -> None:
        """The coordinator's refusal is distinguished from all other answers."""
        config = load(None, cluster.environment("monitor"), {})
        client = ClusterClient(python_settings(config.kafka, "suspects"))
        try:
            assert {"modern": ReportedGroup(refused=True)} == client.describe(["modern"], 1)
        finally:
            client.close()

    def test_missing_permission_does_not_hold(self, cluster: Cluster, tmp_path: Path) -> None:
        """What is refused fails, what cannot be looked at because of it is distinguished, and the rest is looked at."""
        reported = check(cluster.environment("stranger"), tmp_path)
        statuses = {found["check"]: found["status"] for found in reported["checks"]}

        assert 1 == reported["exit_status"]
        assert ("ok", "fail", "cannot tell", "ok") == tuple(
            statuses[name] for name in ("broker", "offsets topic", "permission to read", "http port")
        )


def run(*arguments: str, **environment: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run(  # noqa: S603 - our own interpreter and module
        [sys.executable, "-m", "streaming", *arguments],
        cwd=ROOT,
        env={**os.environ, **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def check(environment: dict[str, str], directory: Path) -> dict[str, Any]:
    """The list as JSON; the port is not what is tested here, so it is right."""
    settings = {"http.port": "0", "state.dir": str(directory / "state")}
    arguments = [word for name, value in settings.items() for word in ("--set", f"{name}={value}")]
    result = run("check", "--no-spark", "--json", *arguments, **environment)
    reported: dict[str, Any] = json.loads(result.stdout)
    assert reported["exit_status"] == result.returncode
    return reported


def records(path: Path) -> list[RecordedRecord]:
    with open_recording(path) as recording:
        return list(recording)


def replayed(path: Path) -> dict[str, dict[str, Any]]:
    """Groups by name, as a replay of the recording shows them."""
    replica = Replica()
    with open_recording(path) as recording:
        return _views(recording, replica)


def committed_in(path: Path, group: str) -> int:
    """The sum of a group's offsets, by the lines of a recording that are whole."""
    whole = path.with_name("whole.ndjson")
    whole.write_bytes(path.read_bytes().rpartition(b"\n")[0] + b"\n")
    if b"\n" == whole.read_bytes():
        return 0  # not even the header has been written out
    return sum(offset["offset"] for offset in replayed(whole).get(group, {"offsets": []})["offsets"])


def push_out(consumer: Consumer) -> bool:
    """Commit often enough that what a follower holds back to write it at once is written."""
    for offset in range(50):
        consumer.commit(offsets=[TopicPartition("orders", 0, offset)], asynchronous=False)
    return True


def _views(recording: RecordingReader, replica: Replica) -> dict[str, dict[str, Any]]:
    for record in recording:
        replica.replay(Position(record.partition, record.offset, record.timestamp_ms), record.key, record.value)
    replica.settle()
    names = recording.header.topic_names
    return {
        name: group_view(state, replica.offsets(name), names)
        for name, state in list(replica.groups.items())
        if state.exists
    }


def _allow(servers: str, user: str, topic: str, operation: AclOperation) -> None:
    binding = AclBinding(
        ResourceType.TOPIC,
        topic,
        ResourcePatternType.LITERAL,
        f"User:{user}",
        "*",
        operation,
        AclPermissionType.ALLOW,
    )
    admin = AdminClient({"bootstrap.servers": servers})
    for created in admin.create_acls([binding]).values():
        created.result(10)


def _traffic(servers: str) -> None:
    """A classic group that ended, a modern one that ended, simple commits, and three transactions."""
    producer = Producer({"bootstrap.servers": servers})
    for number in range(100):
        producer.produce("orders", str(number), partition=number % 3)
    producer.flush()
    consume(servers, "classic").close()
    consume(servers, "modern", **{"group.protocol": "consumer"}).close()
    simple = Consumer({"bootstrap.servers": servers, "group.id": "simple"})
    simple.commit(offsets=[TopicPartition("orders", 0, 7)], asynchronous=False)
    simple.close()
    begun(servers, "committed", 5).commit_transaction()
    # The last thing in its partition is then a control batch, which no reader ever sees as a record.
    begun(servers, "aborted", 6).abort_transaction()


def consume(servers: str, group: str, **settings: str) -> Consumer:
    """Read all of the topic as a group and commit."""
    consumer = Consumer(
        {
            "bootstrap.servers": servers,
            "group.id": group,
            "auto.offset.reset": "earliest",
            "enable.auto.commit": False,
            **settings,
        }
    )
    consumer.subscribe(["orders"])
    read = 0
    deadline = time.monotonic() + 30
    while read < 100 and time.monotonic() < deadline:
        message = consumer.poll(0.2)
        read += message is not None and message.error() is None
    consumer.commit(asynchronous=False)
    return consumer


def begun(servers: str, name: str, offset: int) -> Producer:
    """A transaction that has committed an offset of the group `transactional` and is still open."""
    producer = Producer({"bootstrap.servers": servers, "transactional.id": name, "log_level": 0})
    producer.init_transactions(30)
    producer.begin_transaction()
    owner = Consumer({"bootstrap.servers": servers, "group.id": "transactional"})
    producer.send_offsets_to_transaction([TopicPartition("orders", 0, offset)], owner.consumer_group_metadata(), 30)
    owner.close()
    return producer


def await_file(path: Path) -> None:
    deadline = time.monotonic() + 30
    while not path.exists():
        assert time.monotonic() < deadline
        time.sleep(0.05)

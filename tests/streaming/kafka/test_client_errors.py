"""Every error of a client library is one line, of a type that says which kind of no it is; no call goes around."""

import ast
import struct
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, Final

import confluent_kafka
import kafka
import pytest
from confluent_kafka import KafkaException
from confluent_kafka.admin import AdminClient as ConfluentAdmin
from kafka import errors
from kafka.admin import ConfigResource, ConfigResourceType
from kafka.errors import KafkaError

import streaming
from streaming.base.errors import CannotTellError, UsageError
from streaming.config.kafka_sections import KafkaSection
from streaming.kafka import any_release, client_settings, librdkafka
from streaming.kafka.any_release import kind_of
from streaming.kafka.client_errors import WORDS, ErrorKind
from streaming.kafka.lazy_admin import AWAY, LazyAdmin
from streaming.kafka.list_offsets import LATEST, list_offsets
from tests.streaming.kafka.brokers_of_a_release import BrokerOfARelease, client_of

Thrown = Callable[[], Exception]

NO_ERRORS_OF_ITS_OWN: Final[tuple[Thrown, ...]] = (
    lambda: KeyError("endpoint_type"),
    lambda: TypeError("found None"),
    lambda: AttributeError("no attribute"),
    lambda: IndexError("out of range"),
    lambda: ValueError("17 is not valid"),
    lambda: struct.error("unpack requires 4 bytes"),
    AssertionError,
    lambda: RuntimeError("NetworkSelector closed!"),
    lambda: UnicodeDecodeError("utf-8", b"\xff", 0, 1, "invalid start byte"),
    lambda: ExceptionGroup("two\nlines", [KeyError(1)]),
)
ITS_OWN: Final[tuple[tuple[Thrown, ErrorKind], ...]] = (
    (errors.TopicAuthorizationFailedError, "refused"),
    (lambda: errors.ClusterAuthorizationFailedError("no"), "refused"),
    (lambda: errors.SaslAuthenticationFailedError("wrong password"), "refused"),
    (lambda: errors.KafkaConnectionError("closed"), "away"),
    (lambda: errors.RequestTimedOutError("after 10000 ms"), "away"),
    (errors.NotControllerError, "away"),
    (lambda: errors.IncompatibleBrokerVersion("no such request"), "unknown request"),
    (errors.UnsupportedVersionError, "unknown request"),
    (errors.InvalidRequestError, "other"),
)
CALLS: Final[dict[str, tuple[Any, ...]]] = {
    "create_topics": ({"t": {"num_partitions": 1, "replication_factor": 1}},),
    "describe_cluster": (),
    "describe_configs": ([ConfigResource(ConfigResourceType.TOPIC, "t")],),
    "describe_features": (),
    "describe_groups": (["g"], 1),
    "describe_topics": (["t"],),
    "get_broker_version_data": (1,),
    "list_config_resources": (["GROUP"],),
    "list_group_offsets": (["g"],),
    "list_groups": ([1],),
    "list_topics": (),
}
REQUESTS: Final = {
    "describe_cluster": "DescribeCluster",
    "describe_configs": "DescribeConfigs",
    "describe_features": "ApiVersions",
    "describe_groups": "DescribeGroups",
    "describe_topics": "Metadata",
    "list_config_resources": "ListConfigResources",
    "list_group_offsets": "OffsetFetch",
    "list_groups": "ListGroups",
    "list_topics": "Metadata",
}
"""Method → what its error says was asked; of the others the client does not know it."""

each_call = pytest.mark.parametrize("method", CALLS)


def ended(method: str, error: Exception) -> KafkaError:
    broker = BrokerOfARelease((4, 1))
    broker.failing = error
    with pytest.raises(KafkaError) as raised:
        getattr(client_of(broker), method)(*CALLS[method])
    return raised.value


def test_each_method_that_may_be_called_is_tried_here() -> None:
    """The table of calls is the door's."""
    assert {*any_release.ASKED} == CALLS.keys()


@each_call
def test_what_is_no_error_of_the_library_becomes_one(method: str) -> None:
    """With its text and its type, what was asked, of which broker, of which release."""
    asked = f"{REQUESTS[method]} of broker 1, Kafka 4.1" if method in REQUESTS else f"{method} of brokers"
    for thrown in NO_ERRORS_OF_ITS_OWN:
        error = ended(method, thrown())

        assert any_release.AnswerError is type(error)
        assert str(error).startswith(f"AnswerError: {type(thrown()).__name__}")
        assert str(error).endswith(f"({asked}: failed)")
        assert "\n" not in str(error)


@each_call
def test_an_error_of_the_library_keeps_its_type(method: str) -> None:
    """By which it is caught: refused, away, not known to the release. It says what was asked, once."""
    asked = f"{REQUESTS[method]} of broker 1, Kafka 4.1" if method in REQUESTS else f"{method} of brokers"
    for thrown, kind in ITS_OWN:
        old = isinstance(thrown(), errors.IncompatibleBrokerVersion)
        if old and method == "describe_features":
            continue  # brokers that do not know the request have no features
        error = ended(method, thrown())

        assert type(thrown()) is type(error)
        assert kind == kind_of(error)
        assert str(error).startswith(str(thrown()).split(":", maxsplit=1)[0])
        last = asked.replace("DescribeCluster", "Metadata") if old else asked
        assert str(error).endswith(f"({last}: {WORDS[kind]})")
        assert 1 == str(ended(method, error)).count(WORDS[kind])


def test_a_connection_that_the_system_ended_is_away() -> None:
    """It is a KafkaError that may be tried again."""
    assert errors.KafkaConnectionError is type(ended("describe_cluster", ConnectionResetError(104, "reset by peer")))


def test_the_kinds_agree_with_what_is_asked_again() -> None:
    """What has brokers looked at again is away; wrong credentials are refused, and tried again."""
    assert {"away", "refused"} == {kind_of(error()) for error in AWAY}
    assert {errors.SaslAuthenticationFailedError} == {error for error in AWAY if kind_of(error()) == "refused"}


@pytest.mark.parametrize("thrown", NO_ERRORS_OF_ITS_OWN, ids=lambda of: type(of()).__name__)
def test_a_request_of_our_own_fails_for_its_broker_alone(thrown: Thrown, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the library falls over one broker's answer the others' are not lost."""
    broker = BrokerOfARelease((3, 6))
    broker.failing = thrown()
    admin = lazy(broker, monkeypatch)
    listed = list_offsets(admin, {("t", 0): LATEST}, {("t", 0): 1})

    (error,) = listed.refused.values()
    assert "(ListOffsets of broker 1, Kafka 3.6: failed)" in str(error)
    with pytest.raises(KafkaError, match=r"\(Metadata of broker 1, Kafka 3\.6: failed\)"):
        admin.ask(lambda client: client.describe_topics(["t"]))


def test_who_falls_over_an_answer_says_what_was_asked(monkeypatch: pytest.MonkeyPatch) -> None:
    """A field that the answer of an old broker lacks, read by us, ends as if the library had."""
    admin = lazy(BrokerOfARelease((2, 0)), monkeypatch)

    with pytest.raises(
        any_release.AnswerError, match=r"KeyError: 'rack_id' \(Metadata of broker 1, Kafka 2\.0: failed"
    ):
        admin.ask(lambda client: client.describe_topics(["t"])[0]["rack_id"])


def lazy(broker: BrokerOfARelease, monkeypatch: pytest.MonkeyPatch) -> LazyAdmin:
    """A client that is connected to it already."""
    admin = LazyAdmin({})
    monkeypatch.setattr(admin, "_client", client_of(broker))
    monkeypatch.setattr(admin, "_is_open", True)
    return admin


class TestWithinACommand:
    """What a command asks within `admin_client`."""

    @pytest.fixture(autouse=True)
    def connected(self, monkeypatch: pytest.MonkeyPatch) -> None:
        """To a broker of 2.0."""
        client = client_of(BrokerOfARelease((2, 0)))
        monkeypatch.setattr(client, "close", lambda: None)
        monkeypatch.setattr(any_release, "AdminClient", lambda **_: client)
        monkeypatch.setattr(client_settings, "refuse_unreachable", lambda _: None)

    @pytest.mark.parametrize("thrown", NO_ERRORS_OF_ITS_OWN, ids=lambda of: type(of()).__name__)
    def test_whatever_is_thrown_ends_it_in_one_line(self, thrown: Thrown) -> None:
        """With exit status 3: the answer is out of reach."""

        def command() -> None:
            with client_settings.admin_client(KafkaSection()) as admin:
                admin.describe_topics(["t"])
                raise thrown()

        with pytest.raises(CannotTellError) as ended:
            command()

        assert str(ended.value).startswith("kafka.bootstrap_servers: AnswerError")
        assert str(ended.value).endswith("(Metadata of broker 1, Kafka 2.0: failed)")
        assert 3 == ended.value.exit_status

    def test_what_ends_it_already_passes(self) -> None:
        """Our own words stay."""
        with pytest.raises(UsageError, match=r"^as it is$"), client_settings.admin_client(KafkaSection()):
            raise UsageError("as it is")


RD_ERRORS: Final[tuple[tuple[int, ErrorKind], ...]] = (
    (confluent_kafka.KafkaError.TOPIC_AUTHORIZATION_FAILED, "refused"),
    (confluent_kafka.KafkaError._TRANSPORT, "away"),
    (confluent_kafka.KafkaError.UNSUPPORTED_VERSION, "unknown request"),
    (confluent_kafka.KafkaError.INVALID_REQUEST, "other"),
)
each_rd_call = pytest.mark.parametrize(
    ("client", "method"), [(of, name) for of, names in librdkafka.ASKED.items() for name in names]
)


def rd_ended(client: type[Any], method: str, error: Exception) -> KafkaException:
    """What a class of the same methods, each of which ends so, raises behind the door."""

    class Future:
        def result(self) -> None:
            raise error

    def ends(*_: object) -> Any:
        if method in librdkafka.FUTURES:
            return {"t": Future()}
        raise error

    fake = type(client.__name__, (), {method: ends})
    librdkafka.through_the_door(fake, [method])
    try:
        getattr(fake, method)(object.__new__(fake))["t"].result()
    except KafkaException as raised:
        return raised
    pytest.fail("nothing was raised")


@each_rd_call
def test_what_is_no_error_of_librdkafka_becomes_one(client: type[Any], method: str) -> None:
    """With its text and type, and what was asked."""
    for thrown in NO_ERRORS_OF_ITS_OWN:
        (of,) = rd_ended(client, method, thrown()).args

        assert confluent_kafka.KafkaError._FAIL == of.code()
        assert of.str().startswith(type(thrown()).__name__)
        assert of.str().endswith(f"({'connection' if method == '__init__' else method} of brokers: failed)")
        assert "\n" not in of.str()


@each_rd_call
def test_an_error_of_librdkafka_keeps_its_code(client: type[Any], method: str) -> None:
    """By which callers tell errors apart; and what it says."""
    for code, kind in RD_ERRORS:
        error = rd_ended(client, method, KafkaException(confluent_kafka.KafkaError(code, "why", fatal=True)))

        (of,) = error.args
        assert (code, True, kind) == (of.code(), of.fatal(), librdkafka.kind_of(error))
        assert of.str().startswith("why (")
        assert of.str().endswith(f" of brokers: {WORDS[kind]})")


@each_rd_call
def test_each_client_of_librdkafka_goes_through_the_door(client: type[Any], method: str) -> None:
    """Not only the fakes of these tests."""
    assert hasattr(vars(client)[method], "__wrapped__")


def test_a_topic_of_which_no_broker_speaks_is_no_key_error() -> None:
    """Metadata that lack the topic that was asked for say that there is none."""

    class Metadata:
        topics: Final[dict[str, object]] = {}

        def list_topics(self, topic: str | None = None, timeout: float = -1) -> Any:
            return self

    librdkafka.through_the_door(Metadata, ["list_topics"])
    with pytest.raises(KafkaException) as raised:
        Metadata().list_topics("gone", timeout=1)

    assert confluent_kafka.KafkaError.UNKNOWN_TOPIC_OR_PART == raised.value.args[0].code()


def test_a_full_queue_asks_for_patience() -> None:
    """Who produces waits and goes on: it is no error."""

    class Full:
        def produce(self) -> None:
            raise BufferError("Local: Queue full")

    librdkafka.through_the_door(Full, ["produce"])
    with pytest.raises(BufferError):
        Full().produce()


DOORS: Final = frozenset({"kafka/any_release.py", "kafka/librdkafka.py"})
OF_OUR_OWN_BROKER: Final = frozenset({"demo/traffic.py", "demo/verifiable_consumer.py", "rehearsal/member_process.py"})
"""Clients that stand for applications, at a broker of our own: their errors are what they are to show."""

CLIENTS: Final = frozenset(
    {"KafkaAdminClient", "KafkaConsumer", "KafkaProducer", "Consumer", "Producer", "AdminClient"}
)
RECEIVERS: Final[dict[str, frozenset[str]]] = {
    **dict.fromkeys(("consumer", "_consumer"), frozenset(librdkafka.ASKED[librdkafka.Consumer])),
    **dict.fromkeys(("producer", "_producer"), frozenset(librdkafka.ASKED[librdkafka.Producer])),
    **dict.fromkeys(("admin", "client"), frozenset(any_release.ASKED) | {*librdkafka.ASKED[librdkafka.AdminClient]}),
}
"""What a client is called → the methods that may be called of it."""

METHODS: Final = frozenset(
    name
    for client in (kafka.KafkaAdminClient, confluent_kafka.Consumer, confluent_kafka.Producer, ConfluentAdmin)
    for name in dir(client)
    if not name.startswith("_")
) - {"close"}


def modules() -> Iterator[tuple[str, ast.Module]]:
    """Those that reach brokers."""
    root = Path(streaming.__file__).parent
    for path in sorted(root.rglob("*.py")):
        name = path.relative_to(root).as_posix()
        if name not in DOORS | OF_OUR_OWN_BROKER:
            yield name, ast.parse(path.read_text("utf-8"))


def test_clients_are_made_of_the_doors_classes_alone() -> None:
    """No module takes a client from its library."""
    taken = [
        f"{name}:{node.lineno} {alias.name}"
        for name, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.ImportFrom) and (node.module or "").split(".")[0] in ("kafka", "confluent_kafka")
        for alias in node.names
        if alias.name in CLIENTS
    ]

    assert [] == taken


def test_no_method_is_called_that_the_door_does_not_have() -> None:
    """One more is a name more in the door's table, and so in these tests."""
    called = [
        f"{name}:{node.lineno} {receiver}.{node.func.attr}"
        for name, tree in modules()
        for node in ast.walk(tree)
        if isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in METHODS
        for receiver in [getattr(node.func.value, "id", getattr(node.func.value, "attr", ""))]
        if receiver in RECEIVERS and node.func.attr not in RECEIVERS[receiver]
    ]

    assert [] == called

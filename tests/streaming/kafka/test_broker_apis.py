"""What is made of the answers of every broker: their abilities, features and configurations."""

from collections.abc import Callable, Coroutine, Mapping
from types import SimpleNamespace
from typing import Any, Final

import pytest
from kafka.errors import KafkaConnectionError, KafkaError, UnsupportedVersionError

from streaming.kafka import broker_queries
from streaming.kafka.broker_apis import BrokerAnswer, asked_each
from streaming.kafka.broker_queries import settings_of
from tests.brokers_by_release import api_versions, broker, brokers
from tests.streaming.kafka.fake_brokers import driven

KRAFT: Final = {"metadata.version": {"supported": (1, 30), "finalized": (25, 25)}}
ON: Final = {**KRAFT, "group.version": {"supported": (0, 1), "finalized": (1, 1)}}
SUPPORTED: Final = {"supported": (0, 1)}
OFF: Final = {**KRAFT, "group.version": SUPPORTED}


class ReleasedBrokers:
    """A client whose brokers each answer ApiVersions as a release does, or with an error."""

    def __init__(self, releases: Mapping[int, str | Exception], error_code: int = 0, features: Any = None) -> None:
        self.releases = releases
        self.error_code = error_code
        self.features = features
        self._manager = self
        self.cluster = SimpleNamespace(brokers=lambda: [SimpleNamespace(node_id=of) for of in releases])
        self.listed = 0

    def run(self, question: Callable[[], Coroutine[Any, Any, Any]]) -> Any:
        return driven(question())

    async def send(self, _: object, node_id: int) -> Any:
        release = self.releases[node_id]
        if isinstance(release, Exception):
            raise release
        keys = [
            SimpleNamespace(api_key=key, min_version=low, max_version=high)
            for key, (low, high) in api_versions(release).items()
        ]
        features = self.features or SimpleNamespace(supported=[], finalized=[])
        return SimpleNamespace(
            error_code=self.error_code,
            api_keys=keys,
            supported_features=features.supported,
            finalized_features=features.finalized,
        )

    def list_config_resources(self, _: list[str]) -> dict[str, list[str]]:
        self.listed += 1
        return {"group": ["orders"]}


def test_every_broker_is_asked() -> None:
    """Not any one: in a roll they differ."""
    found = asked_each(ReleasedBrokers({3: "4.3", 1: "3.6", 2: "2.0"}))

    assert [broker(1, "3.6"), broker(2, "2.0"), broker(3, "4.3")] == [of.broker for of in found]
    assert [{}, {}, {}] == [of.features for of in found]


def test_features_are_read_as_each_broker_has_them() -> None:
    """Those that are finalized and those that are only supported."""
    features = SimpleNamespace(
        supported=[SimpleNamespace(name="group.version", min_version=0, max_version=1)],
        finalized=[SimpleNamespace(name="metadata.version", min_version_level=29, max_version_level=29)],
    )
    (found,) = asked_each(ReleasedBrokers({1: "4.3"}, features=features))

    assert {"group.version": {"supported": (0, 1)}, "metadata.version": {"finalized": (29, 29)}} == found.features


def test_one_broker_that_does_not_answer_leaves_it_unknown() -> None:
    """It could be the lowest."""
    with pytest.raises(KafkaConnectionError):
        asked_each(ReleasedBrokers({1: "4.3", 2: KafkaConnectionError("refused")}))
    with pytest.raises(UnsupportedVersionError):
        asked_each(ReleasedBrokers({1: "4.3"}, error_code=UnsupportedVersionError.errno))


@pytest.mark.parametrize("thrown", [KeyError("api_keys"), TypeError("found None"), AssertionError(), OSError("reset")])
def test_whatever_a_broker_makes_of_the_client_is_one_error_that_names_it(thrown: Exception) -> None:
    """`check` then does without its answer, and a gate cannot tell: neither knows another type."""
    with pytest.raises(KafkaError, match=r"ApiVersions of broker 2: "):
        asked_each(ReleasedBrokers({1: "4.3", 2: thrown}))


def said(policy: str | None = "bidirectional", protocols: str | None = "classic,consumer") -> dict[str, Any]:
    """The configurations of a broker, as it says them."""
    known = {
        "offsets.topic.num.partitions": "50",
        "group.coordinator.rebalance.protocols": protocols,
        "group.consumer.migration.policy": policy,
        "group.consumer.max.size": "100",
        "group.max.size": "200",
    }
    return {
        name: {"value": value, "config_source": "DEFAULT_CONFIG"} for name, value in known.items() if value is not None
    }


def answers(*releases: str, features: Mapping[str, Any] = ON) -> list[BrokerAnswer]:
    return [BrokerAnswer(of, features) for of in brokers(releases)]


def test_brokers_that_say_everything() -> None:
    """Each setting as the strictest has it."""
    found = settings_of(answers("4.3", "4.3"), [said("upgrade"), said()])

    assert (True, "upgrade", 100, 200) == (
        found.consumer_protocol,
        found.migration_policy,
        found.consumer_max_size,
        found.classic_max_size,
    )
    assert ({"group.version": 1, "metadata.version": 25}, ()) == (found.features, found.static_protocols)


def test_a_broker_without_permission_leaves_unknown_what_it_may_refuse() -> None:
    """What another one refuses is known already."""
    allowing = settings_of(answers("4.3", "4.3"), [said()])
    refusing = settings_of(answers("4.3", "4.3"), [said("disabled", "classic")])

    assert (None, None, None, None) == (
        allowing.consumer_protocol,
        allowing.migration_policy,
        allowing.consumer_max_size,
        allowing.static_protocols,
    )
    assert (False, "disabled") == (refusing.consumer_protocol, refusing.migration_policy)


def test_nothing_is_asked_of_configurations_that_a_release_does_not_have() -> None:
    """Brokers of 2.0 say theirs: nothing about protocols stands in their files, and nothing is finalized."""
    found = settings_of(answers("2.0", features={}), [said(policy=None, protocols=None)])

    assert ((), {}) == (found.static_protocols, found.features)


@pytest.mark.parametrize(
    ("features", "protocols", "expected"),
    [(ON, "classic,consumer", True), (OFF, "classic,consumer", False), (ON, None, True), (KRAFT, None, None)],
)
def test_protocol_is_on_by_feature_where_it_is_not_configured(
    features: Mapping[str, Any], protocols: str | None, expected: bool | None
) -> None:
    """The setting is deprecated: a release without it has the feature alone."""
    found = settings_of(answers("4.3", features=features), [said(protocols=protocols)])

    assert expected is found.consumer_protocol


def test_broker_that_has_yet_to_hear_from_its_controller_says_no_levels() -> None:
    """The others do."""
    starting = BrokerAnswer(broker(9, "4.3"), {"metadata.version": {"supported": (1, 30)}, "group.version": {}})
    found = settings_of([*answers("4.3"), starting], [said(), said()])

    assert ({"group.version": 1, "metadata.version": 25}, True) == (found.features, found.consumer_protocol)
    unheard = BrokerAnswer(broker(9, "4.3"), {"metadata.version": {"supported": (1, 30)}, "group.version": SUPPORTED})
    assert settings_of([unheard], [said()]).features is None


def test_nobody_knows_whether_the_protocol_is_on_while_no_broker_has_heard_from_its_controller() -> None:
    """That it is configured is not enough from 4.0 on: it waits for the feature, and the gate does."""
    unheard = {"metadata.version": {"supported": (1, 30)}, "group.version": SUPPORTED}
    old = BrokerAnswer(broker(1, "3.9"), KRAFT)
    for others in ([], [old]):
        found = settings_of([BrokerAnswer(broker(9, "4.3"), unheard), *others], [said() for _ in (0, *others)])

        assert found.consumer_protocol is None


@pytest.mark.parametrize(
    ("releases", "expected", "listed"),
    [
        # The one who could go: there is no such thing.
        (["2.0"], [], 0),
        (["3.9", "3.9"], [], 0),
        (["4.1", "4.3"], ["orders"], 1),
        # The one who might fail: 4.0 has them, and always lists client metrics.
        (["4.0"], None, 0),
        (["3.9", "4.0"], None, 0),
        (["4.0", "4.3"], None, 0),
    ],
)
def test_groups_have_configurations_only_where_brokers_know_such(
    monkeypatch: pytest.MonkeyPatch, releases: list[str], expected: list[str] | None, listed: int
) -> None:
    """None is an answer; unknown is another."""
    cluster = ReleasedBrokers(dict(enumerate(releases)))

    class Opened:
        def __enter__(self) -> ReleasedBrokers:
            return cluster

        def __exit__(self, *_: object) -> None: ...

    monkeypatch.setattr(broker_queries, "admin_client", lambda *_: Opened())

    assert (expected, listed) == (broker_queries.group_configs(None), cluster.listed)  # type: ignore[arg-type]  # not asked

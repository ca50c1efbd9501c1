"""What brokers answer, as watchers see it."""

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any

import pytest

from streaming.kafka import cluster_client
from streaming.kafka.broker_apis import BrokerAnswer
from streaming.kafka.cluster_client import ClusterClient, ReportedGroup
from tests.brokers_by_release import brokers


@pytest.mark.parametrize(
    ("error", "answer"),
    [
        ("[Error 16] NotCoordinatorError", {"a": ReportedGroup(away=True, not_loaded="NOT_COORDINATOR")}),
        (
            "[Error 14] CoordinatorLoadInProgressError",
            {"a": ReportedGroup(away=True, not_loaded="COORDINATOR_LOAD_IN_PROGRESS")},
        ),
        ("[Error 15] CoordinatorNotAvailableError", {"a": ReportedGroup(away=True)}),
        ("[Error 30] GroupAuthorizationFailedError", {"a": ReportedGroup(refused=True)}),
        ("[Error 69] GroupIdNotFoundError", {}),
        (None, {"a": ReportedGroup("Stable", 1)}),
    ],
)
def test_what_kafka_python_reports(
    error: str | None, answer: Mapping[str, ReportedGroup], monkeypatch: pytest.MonkeyPatch
) -> None:
    """A broker that does not coordinate the group is no answer about it."""
    client = ClusterClient({})
    said: dict[str, object] = {"a": {"error": error, "group_state": "Stable", "members": [{}]}}
    asked = SimpleNamespace(describe_groups=lambda *_: said)
    monkeypatch.setattr(client, "_admin", SimpleNamespace(ask=lambda question: question(asked)))

    assert answer == client.describe(["a"], 1)


class FakeAdmin:
    """Brokers that say their abilities and, unless they refuse, their configurations."""

    def __init__(self, held: Sequence[Mapping[str, Any]]) -> None:
        self.held = held
        self.configurations = 0

    def ask(self, question: Callable[[Any], Any]) -> Any:
        return question(self)


@pytest.mark.parametrize(
    ("held", "expected"), [([], 1), ([{"offsets.topic.num.partitions": {"value": "50"}}], 3)], ids=["refused", "said"]
)
def test_configurations_that_are_refused_are_asked_for_once_an_hour(
    held: Sequence[Mapping[str, Any]], expected: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Brokers log each refusal, and somebody reads that; what they can do is asked all the same."""
    admin: Any = FakeAdmin(held)

    def configurations(admin: FakeAdmin, _: object) -> Sequence[Mapping[str, Any]]:
        admin.configurations += 1
        return admin.held

    monkeypatch.setattr(cluster_client, "asked_each", lambda _: [BrokerAnswer(brokers(["4.3"])[0], {})])
    monkeypatch.setattr(cluster_client, "configurations", configurations)
    client = ClusterClient({})
    monkeypatch.setattr(client, "_admin", admin)
    found = [client.brokers() for _ in range(3)]

    assert expected == admin.configurations
    assert [brokers(["4.3"])] * 3 == [of.brokers for of in found]

"""A group that no broker lists is gone only when its coordinator says so."""

from collections.abc import Callable, Mapping, Sequence
from types import SimpleNamespace
from typing import Any, cast

import pytest
from kafka.errors import KafkaConnectionError
from kafka.protocol.metadata import FindCoordinatorRequest, FindCoordinatorResponse

from coordinator_model.state.membership import CLASSIC, CONSUMER
from streaming.kafka.lazy_admin import LazyAdmin
from streaming.polling.missing import GROUP_REFUSED, NOT_FOUND, Missing
from tests.streaming.polling.replies import read_again

ASKED = 1
COORDINATOR = 2
NOT_COORDINATOR = 16
NOT_AVAILABLE = 15
LOADING = 14

Said = tuple[int, str]
"""Error code and state."""


class Brokers:
    """Brokers of one release; what they say of a group is by its name."""

    def __init__(self, places: Mapping[str, int], said: Mapping[str, Said | Exception], version: int) -> None:
        self.places, self.said, self.version = places, said, version
        self.asked: list[tuple[str, tuple[str, ...], int]] = []

    def ask(self, question: Callable[[Any], Any]) -> Any:
        versions = SimpleNamespace(api_version=lambda _: self.version)
        return question(SimpleNamespace(get_broker_version_data=lambda _: versions))

    def send(self, request: FindCoordinatorRequest, broker: int) -> Any:
        assert ASKED == broker
        of = FindCoordinatorResponse.Coordinator
        if self.version < 4:
            code = self.places[request.key]
            reply = FindCoordinatorResponse(error_code=code, node_id=COORDINATOR, host="b", port=9092)
        else:
            rows = [
                of(key=name, error_code=self.places[name], node_id=COORDINATOR, host="b", port=9092)
                for name in request.coordinator_keys
            ]
            reply = FindCoordinatorResponse(coordinators=rows)
        return read_again(reply, self.version)

    def describe(self, type_: str, names: Sequence[str], broker: int) -> list[Any]:
        self.asked.append((type_, tuple(names), broker))
        found = []
        for name in names:
            said = self.said[name]
            if isinstance(said, Exception):
                raise said
            found.append(SimpleNamespace(group_id=name, error_code=said[0], group_state=said[1]))
        return found


def asked(brokers: Brokers, groups: Mapping[str, str]) -> Missing:
    missing = Missing(cast(LazyAdmin, brokers), brokers.describe)
    missing.ask(groups, ASKED)
    return missing


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize(
    ("said", "gone"),
    [
        ((NOT_FOUND, "Dead"), True),
        ((0, "Dead"), True),
        ((0, "Empty"), False),
        ((0, "Stable"), False),
    ],
)
def test_the_coordinator_says_whether_a_group_is_gone(version: int, said: Said, gone: bool) -> None:
    """By an error, or before version 6 of DescribeGroups by its state; one that is there is listed the next time."""
    missing = asked(Brokers({"g": 0}, {"g": said}, version), {"g": CLASSIC})

    assert ({"g"} if gone else set(), {}, None) == (missing.gone, missing.refused, missing.failure())


@pytest.mark.parametrize("version", [3, 4])
@pytest.mark.parametrize(
    ("place", "said"),
    [
        (NOT_AVAILABLE, (0, "Dead")),
        (0, (NOT_COORDINATOR, "")),
        (0, (LOADING, "")),
        (0, KafkaConnectionError("broker 2 is away")),
    ],
    ids=["partition without leader", "moved on", "loading", "broker away"],
)
def test_without_its_coordinators_word_a_group_is_not_gone(version: int, place: int, said: Said | Exception) -> None:
    """A broker that shuts down lists none of its groups; the round says that it is not whole, and names one."""
    missing = asked(Brokers({"g": place}, {"g": said}, version), {"g": CLASSIC})

    assert set() == missing.gone
    assert "without an answer of their coordinator: 1" in (missing.failure() or "")
    assert "'g'" in (missing.failure() or "")


def test_what_one_coordinator_does_not_say_is_asked_of_the_others() -> None:
    """Groups are asked for by their type, many at once; one error is that group's alone."""
    said = {"a": (NOT_FOUND, ""), "b": (LOADING, ""), "c": (GROUP_REFUSED, ""), "d": (0, "Dead")}
    brokers = Brokers(dict.fromkeys(said, 0), said, 4)
    missing = asked(brokers, {"a": CONSUMER, "b": CONSUMER, "c": CLASSIC, "d": CLASSIC})

    assert [(CONSUMER, ("a", "b"), COORDINATOR), (CLASSIC, ("c", "d"), COORDINATOR)] == brokers.asked
    assert ({"a", "d"}, {"c": GROUP_REFUSED}, {"b"}) == (missing.gone, missing.refused, {*missing.unanswered})


def test_a_group_that_may_not_be_looked_for_is_refused() -> None:
    """FindCoordinator asks for DESCRIBE on the group as well."""
    missing = asked(Brokers({"g": GROUP_REFUSED}, {}, 4), {"g": CLASSIC})

    assert (set(), {"g": GROUP_REFUSED}, None) == (missing.gone, missing.refused, missing.failure())


def test_nothing_is_asked_where_nothing_is_missing() -> None:
    """A round costs what it did."""
    brokers = Brokers({}, {}, 4)

    assert (set(), None, []) == (asked(brokers, {}).gone, asked(brokers, {}).failure(), brokers.asked)

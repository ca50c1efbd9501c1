"""After an error that says *not here*, kafka-python's admin client looks at the brokers again at once."""

import inspect
from typing import Any

import pytest
from kafka import errors
from kafka.errors import (
    BrokerResponseError,
    KafkaConnectionError,
    KafkaError,
    NotCoordinatorError,
    NotLeaderForPartitionError,
    SaslAuthenticationFailedError,
    UnknownBrokerIdError,
    UnsupportedVersionError,
)

from streaming.kafka.lazy_admin import AT_ONCE, AWAY, LOOK_AGAIN_SECONDS, LazyAdmin
from streaming.kafka.list_offsets import LATEST, list_offsets
from tests.streaming.kafka.fake_brokers import FakeBrokers, brokers

__all__ = ["brokers"]


def listed(admin: LazyAdmin, leaders: dict[tuple[str, int], int]) -> dict[tuple[str, int], int]:
    return {
        place: of.offset for place, of in list_offsets(admin, dict.fromkeys(leaders, LATEST), leaders).found.items()
    }


def test_broker_that_came_back_is_found_at_once(brokers: FakeBrokers) -> None:
    """Its address was forgotten while it was away: one look, and all its partitions have their ends."""
    leaders = brokers.lead("orders", 1, 2, 1, 2)
    admin = LazyAdmin({})
    brokers.restart(2)
    found = listed(admin, leaders)

    assert brokers.ends == found
    assert 1 == brokers.looks


def test_brokers_are_looked_at_once_a_second_at_most(brokers: FakeBrokers) -> None:
    """One that is unknown costs its own partitions, and no flood of questions."""
    leaders = brokers.lead("orders", 1, 7)
    admin = LazyAdmin({})
    found = [listed(admin, leaders) for _ in range(20)]

    assert [{("orders", 0): 0}] * 20 == found
    assert 1 == brokers.looks

    brokers.seconds += LOOK_AGAIN_SECONDS
    listed(admin, leaders)

    assert 2 == brokers.looks


def test_broker_that_is_away_costs_its_partitions_only(brokers: FakeBrokers) -> None:
    """It is not asked twice: that takes as long, and says the same."""
    leaders = brokers.lead("orders", 1, 2, 1)
    brokers.running.discard(2)
    admin = LazyAdmin({})
    answer = list_offsets(admin, dict.fromkeys(leaders, LATEST), leaders)

    assert {("orders", 0): 0, ("orders", 2): 20} == {place: of.offset for place, of in answer.found.items()}
    assert [("orders", 1)] == answer.away
    assert [(1, 2)] == brokers.asked


def test_partition_that_is_led_elsewhere_costs_itself_only(brokers: FakeBrokers) -> None:
    """The others of the same request are answered."""
    leaders = brokers.lead("orders", 1, 1, 1) | {("orders", 1): 1}
    brokers.leaders["orders", 1] = 2
    answer = list_offsets(LazyAdmin({}), dict.fromkeys(leaders, LATEST), leaders)

    assert {("orders", 0), ("orders", 2)} == answer.found.keys()
    assert NotLeaderForPartitionError is type(answer.refused["orders", 1])


def test_no_broker_is_an_error(brokers: FakeBrokers) -> None:
    """With no answer at all there is nothing to take for one."""
    leaders = brokers.lead("orders", 1, 2)
    brokers.running.clear()
    answer = list_offsets(LazyAdmin({}), dict.fromkeys(leaders, LATEST), leaders)

    with pytest.raises(KafkaConnectionError):
        answer.raise_if_none()


@pytest.mark.parametrize(
    ("error", "asked"),
    [(NotCoordinatorError, 2), (KafkaConnectionError, 2), (UnsupportedVersionError, 1)],
    ids=["not here", "of another broker", "an answer"],
)
def test_question_that_fails_elsewhere_is_asked_again(
    brokers: FakeBrokers, error: type[KafkaError], asked: int
) -> None:
    """Any other error is an answer, and asking again would not change it."""
    times: list[int] = []

    def question(_: object) -> str:
        times.append(1)
        if len(times) == 1:
            raise error
        return "here"

    admin = LazyAdmin({})
    if asked == 1:
        with pytest.raises(error):
            admin.ask(question)
    else:
        assert "here" == admin.ask(question)

    assert asked == len(times)
    assert asked - 1 == brokers.looks


def test_refused_credentials_are_tried_again_over_a_new_client(brokers: FakeBrokers) -> None:
    """kafka-python would hold one refusal against a broker for good."""
    leaders = brokers.lead("orders", 1, 2)
    brokers.failing[2] = SaslAuthenticationFailedError()
    admin = LazyAdmin({})
    listed(admin, leaders)
    del brokers.failing[2]

    assert brokers.ends == listed(admin, leaders)
    assert (2, 1) == (brokers.clients, brokers.closed)


def test_closed_client_looks_no_more(brokers: FakeBrokers) -> None:
    """Closing ends a question under way with an error that says *not here*, too."""
    admin = LazyAdmin({})
    _ = admin.client
    admin.close()

    assert not admin.look_again()
    assert (0, 1) == (brokers.looks, brokers.closed)


def test_every_error_of_stale_metadata_is_in_the_table() -> None:
    """kafka-python marks them, and those of elections, which nobody here asks for, and of fetches by topic id."""
    known: list[tuple[str, Any]] = inspect.getmembers(errors, inspect.isclass)
    marked = {
        name
        for name, error in known
        if issubclass(error, BrokerResponseError) and error not in AWAY and error.invalid_metadata
    }

    assert {
        "ElectionNotNeededError",
        "EligibleLeadersNotAvailableError",
        "InconsistentTopicIdError",
        "PreferredLeaderNotAvailableError",
    } == marked
    assert AT_ONCE == AWAY[UnknownBrokerIdError]


def test_client_that_cannot_connect_is_made_once_a_question(brokers: FakeBrokers) -> None:
    """One that failed to be made has brokers to look at no more than it had to ask."""
    brokers.down = KafkaConnectionError("refused")
    with pytest.raises(KafkaConnectionError):
        LazyAdmin({}).ask(lambda _: None)

    assert (1, 0) == (brokers.clients, brokers.looks)

"""What a round asks about partitions of the log that have no leader, and what it does not take for gone."""

from collections.abc import Callable, Iterable
from contextlib import AbstractContextManager, nullcontext
from typing import Any, cast

import pytest
from kafka.errors import TopicAuthorizationFailedError

from coordinator_model.state.membership import CLASSIC
from coordinator_model.state.shards import offsets_partition
from streaming.kafka.lazy_admin import LazyAdmin
from streaming.polling.client import KafkaGroupsClient, Round

PARTITIONS = 50
LOG = "__consumer_offsets"
WITHOUT = offsets_partition("g", PARTITIONS)


class Brokers:
    """One broker that lists no group; which partitions of the log have no leader is said look by look."""

    def __init__(self, *looks: Iterable[int] | Exception) -> None:
        self.looks = list(looks)

    def ask(self, question: Callable[[Any], Any]) -> Any:
        return question(self)

    def asking(self) -> AbstractContextManager[None]:
        return nullcontext()

    def describe_cluster(self) -> dict[str, Any]:
        return {"brokers": [{"broker_id": 1}]}

    def list_groups(self, brokers: list[int]) -> list[dict[str, Any]]:
        return []

    def describe_topics(self, topics: list[str]) -> list[dict[str, Any]]:
        assert [LOG] == topics
        look = self.looks.pop(0)
        if isinstance(look, Exception):
            raise look
        partitions = [{"partition_index": of, "leader_id": -1 if of in look else 1} for of in range(PARTITIONS)]
        return [{"partitions": partitions}]


def round_of(brokers: Brokers, topic: str = LOG, **shown: str) -> Round:
    client = KafkaGroupsClient({}, topic)
    client._admin = cast(LazyAdmin, brokers)
    return client.ask(shown)


@pytest.mark.parametrize("looks", [([WITHOUT], [WITHOUT]), ([WITHOUT], []), ([], [WITHOUT])])
def test_a_group_of_a_partition_without_leader_is_asked_for_of_nobody(looks: tuple[list[int], list[int]]) -> None:
    """Before the groups are listed, or afterwards: meanwhile it may have had none. The round is whole all the same."""
    found = round_of(Brokers(*looks), g=CLASSIC)

    assert (PARTITIONS, frozenset({WITHOUT})) == (found.partitions, found.without_leader)
    assert (frozenset(), None) == (found.gone, found.failure)


@pytest.mark.parametrize(
    ("brokers", "topic"), [(Brokers(*[TopicAuthorizationFailedError()] * 2), LOG), (Brokers(), "")]
)
def test_where_the_log_may_not_be_described_its_leaders_are_not_known(brokers: Brokers, topic: str) -> None:
    """Which is not to say that each partition has one."""
    found = round_of(brokers, topic)

    assert (None, frozenset(), None) == (found.partitions, found.without_leader, found.failure)

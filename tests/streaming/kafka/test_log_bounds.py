"""Where the log ends, while leaders go and come: each partition separately."""

from collections.abc import Callable
from concurrent.futures import Future
from types import SimpleNamespace

import pytest
from confluent_kafka import KafkaError, KafkaException, TopicPartition

from streaming.kafka.log_bounds import AWAY, LOOK_AGAIN_SECONDS, LOOK_EVERY_SECONDS, LogBounds

EPOCH = 3


class Cluster:
    """Brokers of a log: who leads each partition, and what a client is answered; counts clients and looks."""

    def __init__(self, leaders: dict[int, int]) -> None:
        self.leaders = leaders
        self.offset: Callable[[int, int], int] = lambda _client, _partition: 7
        self.clients = self.looks = 0
        self.now = 0.0

    def bounds(self, monkeypatch: pytest.MonkeyPatch) -> LogBounds:
        cluster = self

        class Admin:
            def __init__(self, _: object) -> None:
                cluster.clients += 1
                self.number = cluster.clients

            def list_topics(self, topic: str, *, timeout: float) -> object:
                cluster.looks += 1
                partitions = {p: SimpleNamespace(id=p, leader=leader) for p, leader in cluster.leaders.items()}
                return SimpleNamespace(topics={topic: SimpleNamespace(error=None, partitions=partitions)})

            def list_offsets(
                self, asked: dict[TopicPartition, object], **_: object
            ) -> dict[TopicPartition, Future[object]]:
                answers: dict[TopicPartition, Future[object]] = {of: Future() for of in asked}
                for of, future in answers.items():
                    try:
                        offset = cluster.offset(self.number, of.partition)
                        future.set_result(SimpleNamespace(offset=offset, leader_epoch=EPOCH))
                    except KafkaException as error:
                        future.set_exception(error)
                return answers

        monkeypatch.setattr("streaming.kafka.log_bounds.AdminClient", Admin)
        return LogBounds({}, "log", 1.0, lambda: self.now)


def failing(code: int) -> KafkaException:
    """What librdkafka raises."""
    return KafkaException(KafkaError(code))


def test_each_partition_says_where_it_ends_and_who_said_so(monkeypatch: pytest.MonkeyPatch) -> None:
    """With the leader epoch in which it was said."""
    found = Cluster({0: 1, 1: 2}).bounds(monkeypatch).ends()

    assert ({0: 7, 1: 7}, {0: 7, 1: 7}) == (found.stable, found.high)
    assert ({0: EPOCH, 1: EPOCH}, {0: 1, 1: 2}, {}, 2) == (found.epochs, found.leaders, found.away, found.partitions)


def test_a_partition_without_a_leader_holds_back_no_other(monkeypatch: pytest.MonkeyPatch) -> None:
    """It is named; and who leads is looked at again after a second, not with every micro-batch."""
    cluster = Cluster({0: 1, 1: -1})
    bounds = cluster.bounds(monkeypatch)

    assert ({0: 7}, {1: "LEADER_NOT_AVAILABLE"}) == (bounds.ends().high, bounds.ends().away)
    assert (1, 1) == (cluster.clients, cluster.looks)

    cluster.leaders[1] = 2
    cluster.now += LOOK_AGAIN_SECONDS

    assert {0: 7, 1: 7} == bounds.ends().high
    assert (1, 2) == (cluster.clients, cluster.looks)


@pytest.mark.parametrize("code", [*sorted(AWAY), KafkaError.UNKNOWN_TOPIC_OR_PART, KafkaError._NOENT])
def test_who_says_not_here_is_asked_no_more(monkeypatch: pytest.MonkeyPatch, code: int) -> None:
    """A client asks for minutes whom it took for the leader: the next look is another one's, a second later."""
    cluster = Cluster({0: 1, 1: 2})
    bounds = cluster.bounds(monkeypatch)

    def offset(client: int, partition: int) -> int:
        if partition == 1 and client == 1:
            raise failing(code)
        return 7

    cluster.offset = offset

    assert {0: 7} == bounds.ends().high
    assert {0: 7} == bounds.ends().high, "a client a second"
    cluster.now += LOOK_AGAIN_SECONDS
    assert {0: 7, 1: 7} == bounds.ends().high
    assert 2 == cluster.clients


def test_an_end_that_is_no_offset_is_a_leader_that_is_away(monkeypatch: pytest.MonkeyPatch) -> None:
    """Librdkafka says -1001 of a partition whose leader was killed: nothing is lost, and another client asks again."""
    cluster = Cluster({0: 1, 1: 2})
    cluster.offset = lambda client, partition: -1001 if partition == 1 and client == 1 else 7
    bounds = cluster.bounds(monkeypatch)

    assert ({0: 7}, {1: "LEADER_NOT_AVAILABLE"}) == ((found := bounds.ends()).high, found.away)
    cluster.now += LOOK_AGAIN_SECONDS
    assert {0: 7, 1: 7} == bounds.ends().high


def test_what_is_refused_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    """No other leader would say anything else."""
    cluster = Cluster({0: 1})
    bounds = cluster.bounds(monkeypatch)

    def offset(_: int, __: int) -> int:
        raise failing(KafkaError.TOPIC_AUTHORIZATION_FAILED)

    cluster.offset = offset

    with pytest.raises(KafkaException) as raised:
        bounds.ends()
    assert KafkaError.TOPIC_AUTHORIZATION_FAILED == raised.value.args[0].code()


def test_a_topic_that_grows_is_noticed(monkeypatch: pytest.MonkeyPatch) -> None:
    """Within half a minute."""
    cluster = Cluster({0: 1})
    bounds = cluster.bounds(monkeypatch)
    assert 1 == bounds.ends().partitions

    cluster.leaders[1] = 2
    cluster.now += LOOK_EVERY_SECONDS

    assert (2, {0: 7, 1: 7}) == ((found := bounds.ends()).partitions, found.high)


def test_first_offsets_are_of_those_that_are_asked_for(monkeypatch: pytest.MonkeyPatch) -> None:
    """And have a leader."""
    bounds = Cluster({0: 1, 1: 2, 2: -1}).bounds(monkeypatch)

    assert ({0: 7, 1: 7}, {1: 7}) == (bounds.first(), bounds.first([1, 2]))

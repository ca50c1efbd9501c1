"""Where epochs of leaders end, as the present leaders have it (OffsetForLeaderEpoch, KIP-101, KIP-320).

A record is of the epoch of the leader that wrote it. A leader answers an epoch with the last one it has that is no
later, and the offset after its last record: a reader that got further in that epoch has read records that were lost.
"""

from collections.abc import Collection, Mapping
from typing import Any, Final, NamedTuple

from kafka.errors import IncompatibleBrokerVersion, KafkaError, UnsupportedVersionError
from kafka.protocol.consumer import OffsetForLeaderEpochRequest

from streaming.kafka.lazy_admin import AWAY, AdminConnection, error_of

_AS_A_CONSUMER: Final = -1
_ANY_EPOCH: Final = -1

AskedEpoch = tuple[str, int, int]
"""Topic, partition, leader epoch that was asked about."""


class LeaderEpochEnd(NamedTuple):
    """The last epoch that is no later, -1 where the leader knows none; and the offset after its last record."""

    epoch: int
    offset: int


NOT_KNOWN: Final = LeaderEpochEnd(-1, -1)


class LeaderEpochs(AdminConnection):
    """kafka-python's connections: it has no method for this request."""

    def ends(
        self, asked: Collection[AskedEpoch], leaders: Mapping[tuple[str, int], int]
    ) -> dict[AskedEpoch, LeaderEpochEnd]:
        """Of those that are answered, `NOT_KNOWN` where a leader knows none or may not tell us.

        `leaders` has the broker of each topic and partition. What another broker has to answer, or this one in a
        moment, is left out. Raises KafkaError.
        """
        with self._admin.asking("OffsetForLeaderEpoch"):
            return self._answered(asked, leaders)

    def _answered(
        self, asked: Collection[AskedEpoch], leaders: Mapping[tuple[str, int], int]
    ) -> dict[AskedEpoch, LeaderEpochEnd]:
        # A request holds a partition once: further epochs of it are for further requests.
        requests: dict[tuple[int, int], dict[str, dict[int, int]]] = {}
        for topic, partition, epoch in sorted(asked):
            leader, number = leaders[topic, partition], 0
            while partition in requests.get((leader, number), {}).get(topic, {}):
                number += 1
            requests.setdefault((leader, number), {}).setdefault(topic, {})[partition] = epoch
        found: dict[AskedEpoch, LeaderEpochEnd] = {}
        failed: KafkaError | None = None
        for number in range(1 + max((number for _, number in requests), default=-1)):
            asked_now = {leader: topics for (leader, which), topics in requests.items() if which == number}
            said = self._admin.send_each({leader: _request(topics) for leader, topics in asked_now.items()})
            for leader, topics in asked_now.items():
                if isinstance(said[leader], KafkaError):
                    failed = failed or said[leader]
                else:
                    found |= _ends(said[leader], topics)
        if failed is not None and not found:
            raise failed
        return found

    def ends_if_answered(
        self, asked: Collection[AskedEpoch], leaders: Mapping[tuple[str, int], int]
    ) -> dict[AskedEpoch, LeaderEpochEnd]:
        """As `ends`; nothing where brokers do not answer, and `NOT_KNOWN` of those that have no such request."""
        try:
            return self.ends(asked, leaders)
        except (IncompatibleBrokerVersion, UnsupportedVersionError):
            return dict.fromkeys(asked, NOT_KNOWN)
        except (KafkaError, OSError, RuntimeError):
            self._renew()
            return {}


def _ends(answer: Any, asked: Mapping[str, Mapping[int, int]]) -> dict[AskedEpoch, LeaderEpochEnd]:  # noqa: ANN401 - kafka-python has no types
    found: dict[AskedEpoch, LeaderEpochEnd] = {}
    for topic in answer.topics:
        for of in topic.partitions:
            error = error_of(of.error_code)
            if error not in AWAY:
                place = topic.topic, of.partition, asked[topic.topic][of.partition]
                found[place] = LeaderEpochEnd(of.leader_epoch, of.end_offset) if error is None else NOT_KNOWN
    return found


def _request(topics: Mapping[str, Mapping[int, int]]) -> object:
    named = OffsetForLeaderEpochRequest.OffsetForLeaderTopic
    return OffsetForLeaderEpochRequest(
        replica_id=_AS_A_CONSUMER,
        topics=[
            named(
                topic=topic,
                partitions=[
                    named.OffsetForLeaderPartition(
                        partition=partition, current_leader_epoch=_ANY_EPOCH, leader_epoch=epoch
                    )
                    for partition, epoch in epochs.items()
                ],
            )
            for topic, epochs in topics.items()
        ],
    )

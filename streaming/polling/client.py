"""What the poller asks of a cluster, and kafka-python behind it.

Every broker lists the groups that it coordinates, and answers about them: one listing a broker, then one description
and one request for offsets for `GROUPS_AT_ONCE` groups. They are requests of our own: the client's methods fail all
groups for the sake of one, and describe classic groups alone. Brokers leave out of the listing what this client may not
describe, unless it may describe the cluster: `lists_all` says which.
"""

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Final, Protocol

from kafka.errors import KafkaError
from kafka.protocol.admin import DescribeGroupsRequest
from kafka.protocol.consumer import OffsetFetchRequest

from coordinator_model.state.membership import CLASSIC, CONSUMER, SHARE, STREAMS
from coordinator_model.state.shards import offsets_partition
from streaming.base.errors import first_line
from streaming.kafka.lazy_admin import AdminConnection
from streaming.polling import answers
from streaming.polling.answers import DescribedGroup, PolledOffsets
from streaming.polling.missing import GROUP_REFUSED, TOPIC_REFUSED, Missing, lots
from streaming.polling.requests import (
    ConsumerGroupDescribeRequest,
    ShareGroupDescribeRequest,
    StreamsGroupDescribeRequest,
)

_MANY_GROUPS: Final = 8
"""Version of OffsetFetch from which on one request may be about several groups (KIP-709, brokers from 3.0 on)."""

REFUSALS: Final[Mapping[int, str]] = {
    GROUP_REFUSED: "not authorised: DESCRIBE on the group",
    TOPIC_REFUSED: "not authorised: DESCRIBE on each topic that its members read",
}
"""Kafka's error code → why a group that is listed is not described."""

NO_REQUEST: Final = "groups of type {type} are not described: the client library has no request for them"


@dataclass(frozen=True, slots=True)
class Answered:
    """A group as of one round; `offsets` is None where they are not to be had for now."""

    described: DescribedGroup
    offsets: PolledOffsets | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Round:
    """What brokers answered in one round.

    Attributes:
        listed: names of all groups that were listed; of some of them there may be no answer for now.
        gone: of those that were shown and are not listed, the ones whose coordinator says that they are not there; none
            while a broker is silent.
        answered: those that were described.
        left_out: those that are not: group → why.
        lists_all: whether groups that may not be described would be listed; None where brokers do not say.
        failure: the first broker or coordinator that did not answer and why; None where all did.
        partitions: how many the coordinator's log has; None where that may not be asked.
        without_leader: those of them that have no leader: no broker lists their groups, nor can they be asked for.
    """

    listed: frozenset[str] = frozenset()
    gone: frozenset[str] = frozenset()
    answered: Mapping[str, Answered] = field(default_factory=dict)
    left_out: Mapping[str, str] = field(default_factory=dict)
    lists_all: bool | None = None
    failure: str | None = None
    partitions: int | None = None
    without_leader: frozenset[int] = frozenset()


class GroupsClient(Protocol):
    """What the poller asks of a cluster."""

    def ask(self, shown: Mapping[str, str]) -> Round:
        """One round; `shown` are the groups that are shown → their types. Raises KafkaError where no broker answers."""
        ...

    def close(self) -> None:
        """Let go of all connections; a call under way in another thread ends with an error."""
        ...


@dataclass(slots=True)
class _Found:
    """A round as it comes in."""

    listed: set[str] = field(default_factory=set)
    answered: dict[str, Answered] = field(default_factory=dict)
    left_out: dict[str, str] = field(default_factory=dict)


class KafkaGroupsClient(AdminConnection):
    """kafka-python behind the protocol.

    Args:
        settings: of `KafkaAdminClient`.
        offsets_topic: the coordinator's log, whose leaders are looked at; empty where they are not.
    """

    def __init__(self, settings: Mapping[str, Any], offsets_topic: str = "") -> None:
        super().__init__(settings)
        self._offsets_topic = offsets_topic

    def ask(self, shown: Mapping[str, str], wanted: Callable[[str], bool] = lambda _: True) -> Round:
        """See `GroupsClient`; of the groups that are listed the `wanted` alone."""
        with self._admin.asking():
            return self._round(shown, wanted)

    def _round(self, shown: Mapping[str, str], wanted: Callable[[str], bool]) -> Round:
        cluster = self._admin.ask(lambda client: client.describe_cluster())
        operations = cluster.get("authorized_operations")
        found, failure, errors = _Found(), None, []
        leaders = self._leaders()
        for broker in cluster["brokers"]:
            try:
                with self._admin.asking():
                    self._ask_broker(broker["broker_id"], found, wanted)
            except KafkaError as error:
                errors.append(error)
                failure = failure or f"broker {broker['broker_id']}: {first_line(error)}"
        if len(errors) == len(cluster["brokers"]) and errors:
            raise errors[0]
        # Which one was without a leader while the groups were listed is not known, so: before or afterwards.
        without = frozenset(of for led in (leaders, self._leaders()) for of, leader in led.items() if leader < 0)
        missing = Missing(self._admin, self._groups)
        if failure is None:
            # Else they may be the silent broker's, and each question to it would wait in vain.
            unlisted = {
                name: shown[name]
                for name in sorted(shown.keys() - found.listed)
                if not without or offsets_partition(name, len(leaders)) not in without
            }
            missing.ask(unlisted, cluster["brokers"][0]["broker_id"])
        found.left_out.update((name, REFUSALS[code]) for name, code in missing.refused.items())
        return Round(
            listed=frozenset(found.listed),
            gone=frozenset(missing.gone),
            answered=found.answered,
            left_out={name: why for name, why in found.left_out.items() if name not in found.answered},
            lists_all=None if operations is None else "DESCRIBE" in operations,
            failure=failure or missing.failure(),
            partitions=len(leaders) or None,
            without_leader=without,
        )

    def _leaders(self) -> dict[int, int]:
        """Partition of the coordinator's log → its leader, below 0 for none; nothing where it may not be described."""
        if not self._offsets_topic:
            return {}
        try:
            (described,) = self._admin.ask(lambda client: client.describe_topics([self._offsets_topic]))
        except (KafkaError, ValueError):
            return {}
        return {of["partition_index"]: of["leader_id"] for of in described["partitions"]}

    def _ask_broker(self, broker: int, found: _Found, wanted: Callable[[str], bool]) -> None:
        by_type: dict[str, list[str]] = {}
        for group in self._admin.ask(lambda client: client.list_groups([broker])):
            if not wanted(group["group_id"]):
                continue
            # Brokers before 3.8 do not say the type: there is but one. A group of two brokers is being handed over.
            by_type.setdefault((group.get("group_type") or CLASSIC).lower(), []).append(group["group_id"])
        found.listed.update(name for names in by_type.values() for name in names)
        for type_, names in by_type.items():
            if type_ not in DESCRIBED:
                found.left_out.update(dict.fromkeys(names, NO_REQUEST.format(type=type_)))
                continue
            for lot in lots(sorted(names)):
                described = self._described(type_, lot, broker, found)
                offsets = {} if type_ == SHARE else self._offsets(list(described), broker)
                for name, of in described.items():
                    found.answered[name] = Answered(of, {} if type_ == SHARE else offsets.get(name))

    def _described(self, type_: str, names: Sequence[str], broker: int, found: _Found) -> dict[str, DescribedGroup]:
        _, read = DESCRIBED[type_]
        described = {}
        for group in self._groups(type_, names, broker):
            if group.error_code in REFUSALS:
                found.left_out[group.group_id] = REFUSALS[group.error_code]
            elif group.error_code == 0 and group.group_state != answers.DEAD:
                described[group.group_id] = read(group)
            # Any other is not answered for now: of another type, or handed over, since it was listed.
        return described

    def _groups(self, type_: str, names: Sequence[str], broker: int) -> Sequence[Any]:
        """A broker's answer about groups of one type, one of each."""
        request, _ = DESCRIBED[type_]
        groups: Sequence[Any] = self._admin.send(request(names), broker).groups
        return groups

    def _offsets(self, names: Sequence[str], broker: int) -> dict[str, PolledOffsets]:
        """Committed offsets of groups that answer; topics that may not be described are not among them."""
        if not names:
            return {}
        fetched: Iterable[tuple[str, Any]]
        if self._version(OffsetFetchRequest, broker) >= _MANY_GROUPS:
            groups = [OffsetFetchRequest.OffsetFetchRequestGroup(group_id=name, topics=None) for name in names]
            request = OffsetFetchRequest(groups=groups, min_version=_MANY_GROUPS, max_version=_MANY_GROUPS)
            fetched = [(group.group_id, group) for group in self._admin.send(request, broker).groups]
        else:
            fetched = ((name, self._admin.send(_of_one(name), broker)) for name in names)
        read = {name: answers.offsets(answer.topics) for name, answer in fetched if answer.error_code == 0}
        return {name: of for name, of in read.items() if of is not None}

    def _version(self, request: object, broker: int) -> int:
        """The one that a request to this broker has: in a cluster that is rolled brokers differ."""
        version: int = self._admin.ask(lambda client: client.get_broker_version_data(broker)).api_version(request)
        return version


def _classic_request(names: Sequence[str]) -> object:
    return DescribeGroupsRequest(groups=list(names), include_authorized_operations=False)


def _consumer_request(names: Sequence[str]) -> object:
    return ConsumerGroupDescribeRequest(group_ids=list(names), include_authorized_operations=False)


def _share_request(names: Sequence[str]) -> object:
    return ShareGroupDescribeRequest(group_ids=list(names), include_authorized_operations=False)


def _streams_request(names: Sequence[str]) -> object:
    return StreamsGroupDescribeRequest(group_ids=list(names), include_authorized_operations=False)


DESCRIBED: Final[Mapping[str, tuple[Callable[[Sequence[str]], object], Callable[[Any], DescribedGroup]]]] = {
    CLASSIC: (_classic_request, answers.classic_group),
    CONSUMER: (_consumer_request, answers.consumer_group),
    SHARE: (_share_request, answers.share_group),
    STREAMS: (_streams_request, answers.streams_group),
}
"""Type of group → what it is described by, and how the answer is read."""


def _of_one(name: str) -> object:
    return OffsetFetchRequest(group_id=name, topics=None, min_version=2, max_version=_MANY_GROUPS - 1)

"""All groups as Kafka's Admin client says them, and as a monitor does, in one form; and how they differ.

What brokers do not write down is left out: the lag is worked out of what they say, the state is compared where a group
is at rest, and a lag is unknown by right where an offset is beyond the end, or of the topic that had the name before.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from confluent_kafka import ConsumerGroupTopicPartitions, KafkaError, KafkaException, TopicPartition
from confluent_kafka.admin import AdminClient
from confluent_kafka.admin._group import MemberAssignment
from confluent_kafka.admin._listoffsets import OffsetSpec

from coordinator_model.lag import AHEAD_OF_END, BEYOND_END, TOPIC_RECREATED, TRUNCATED

ANSWER_SECONDS: Final = 10
AT_REST: Final = ("Stable", "Empty")
UNKNOWN_BY_RIGHT: Final = (BEYOND_END, TOPIC_RECREATED)
AHEAD: Final = (AHEAD_OF_END, TRUNCATED)
"""How the monitor comes by a lag where the offset is beyond the end: for half a minute, or counted from where the log
was cut off."""

Place = str
"""`TOPIC-PARTITION`."""


@dataclass
class Said:
    """Of one group.

    Attributes:
        facts: what both say in the same words: its type and state, and of each member what it is and owns.
        offsets: place → committed offset.
        lags: place → records behind the end; None where that is not known.
        methods: place → how the monitor came by a lag.
    """

    facts: dict[str, Any] = field(default_factory=dict)
    offsets: dict[Place, int] = field(default_factory=dict)
    lags: dict[Place, int | None] = field(default_factory=dict)
    methods: dict[Place, str] = field(default_factory=dict)

    @property
    def is_at_rest(self) -> bool:
        return self.facts["state"] in AT_REST


Groups = dict[str, Said]


def of_kafka(admin: AdminClient) -> Groups:
    """What brokers say now.

    Raises:
        KafkaException: some of it they do not say now, or no group is listed.
    """
    listed = admin.list_consumer_groups(request_timeout=ANSWER_SECONDS).result()
    if listed.errors:
        raise KafkaException(listed.errors[0])
    names = sorted(of.group_id for of in listed.valid)
    if not names:
        # A scene has groups at all times; for a minute none was listed, and all were there before and after it.
        raise KafkaException(KafkaError(KafkaError._ALL_BROKERS_DOWN))
    described = admin.describe_consumer_groups(names, request_timeout=ANSWER_SECONDS)
    committed = {
        name: admin.list_consumer_group_offsets(
            [ConsumerGroupTopicPartitions(name)], request_timeout=ANSWER_SECONDS, require_stable=False
        )[name]
        for name in names
    }
    groups: Groups = {}
    for name in names:
        description = described[name].result()
        groups[name] = Said(
            {
                "type": description.type.name.lower(),
                "state": _words(description.state.name),
                **{
                    f"member {member.member_id}": {
                        "client_id": member.client_id,
                        "client_host": member.host.removeprefix("/"),
                        "instance_id": member.group_instance_id,
                        "owned": _owned(member.assignment),
                    }
                    for member in description.members
                },
            }
        )
        for of in committed[name].result().topic_partitions or []:
            if of.error is not None:
                raise KafkaException(of.error)
            groups[name].offsets[f"{of.topic}-{of.partition}"] = of.offset
    ends = _ends(admin, groups)
    for said in groups.values():
        for place, offset in said.offsets.items():
            end = ends.get(place)
            said.lags[place] = None if end is None or offset > end else end - offset
    return groups


def of_monitor(answer: Mapping[str, Any]) -> Groups:
    """The same of what `/api/v1/groups` answers."""
    groups: Groups = {}
    for group in answer["groups"]:
        said = groups[group["group"]] = Said(
            {
                "type": group["type"],
                "state": group["state"],
                **{
                    f"member {member['member_id']}": {
                        "client_id": member["client_id"],
                        "client_host": (member["client_host"] or "").removeprefix("/"),
                        "instance_id": member["instance_id"],
                        "owned": {topic: sorted(of) for topic, of in sorted(member["assigned"].items()) if of},
                    }
                    for member in group["members"]
                },
            }
        )
        for offset in group["offsets"]:
            if offset["offset"] is not None:
                place = f"{offset['topic']}-{offset['partition']}"
                said.offsets[place] = offset["offset"]
                said.lags[place], said.methods[place] = offset["lag"], str(offset.get("lag_method"))
    return groups


def differences(kafka: Groups, monitor: Groups) -> list[str]:
    """What the monitor says otherwise than Kafka, one thing a line."""
    return [*_differences(kafka, monitor)]


def _differences(kafka: Groups, monitor: Groups) -> Iterator[str]:
    for name in sorted(kafka.keys() - monitor.keys()):
        yield f"{name}: not shown, Kafka says {kafka[name].facts}"
    for name in sorted(monitor.keys() - kafka.keys()):
        yield f"{name}: shown as {monitor[name].facts}, Kafka has no such group"
    for name in sorted(kafka.keys() & monitor.keys()):
        said, shown = kafka[name], monitor[name]
        if said.is_at_rest:
            yield from _unlike(name, "", said.facts, shown.facts)
        yield from _unlike(name, "offset of ", said.offsets, shown.offsets)
        for place in sorted(said.offsets.keys() & shown.offsets.keys()):
            lag, behind = said.lags[place], shown.lags[place]
            by_right = UNKNOWN_BY_RIGHT if behind is None else AHEAD if lag is None else ()
            if lag != behind and shown.methods[place] not in by_right:
                yield f"{name}: lag of {place} shown {behind} ({shown.methods[place]}), is {lag}"


def _unlike(name: str, what: str, said: Mapping[str, Any], shown: Mapping[str, Any]) -> Iterator[str]:
    for key in sorted(said.keys() | shown.keys()):
        if said.get(key) != shown.get(key):
            yield f"{name}: {what}{key} shown {shown.get(key)}, is {said.get(key)}"


def _owned(assignment: MemberAssignment | None) -> dict[str, list[int]]:
    owned: dict[str, list[int]] = {}
    for of in assignment.topic_partitions if assignment is not None else []:
        owned.setdefault(of.topic, []).append(of.partition)
    return {topic: sorted(owned[topic]) for topic in sorted(owned)}


def _ends(admin: AdminClient, groups: Groups) -> dict[Place, int]:
    """Where the partitions end that are committed, of those that there are."""
    there = {
        f"{topic}-{partition}": TopicPartition(topic, partition)
        for topic, of in admin.list_topics(timeout=ANSWER_SECONDS).topics.items()
        for partition in of.partitions
    }
    wanted = {place for said in groups.values() for place in said.offsets} & there.keys()
    if not wanted:
        return {}
    asked = {there[place]: OffsetSpec.latest() for place in sorted(wanted)}  # type: ignore[no-untyped-call]  # theirs
    found = admin.list_offsets(asked, request_timeout=ANSWER_SECONDS)
    return {f"{of.topic}-{of.partition}": answer.result().offset for of, answer in found.items()}


def _words(state: str) -> str:
    """`PREPARING_REBALANCING` as Kafka's tools print it."""
    return "".join(word.capitalize() for word in state.split("_"))

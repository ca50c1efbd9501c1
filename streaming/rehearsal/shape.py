"""What a rehearsal has to set up: a group's topics and members, as the replica or a running monitor knows them.

Names are replaced unless they are to be kept: a report then shows nothing of whose group it was. What was not to be
known is said in `notes`.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Collection, Container, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import count
from pathlib import Path
from typing import Any, Final

from coordinator_model.groups.classic import CONSUMER_PROTOCOL_TYPE
from coordinator_model.log_replica import LogReplica
from coordinator_model.migration import upgrade_blockers
from coordinator_model.records import consumer_protocol
from coordinator_model.records.classic_group import GroupMetadataValue
from coordinator_model.records.record_types import RecordType
from coordinator_model.records.serde import Record, decode_record
from coordinator_model.replica import OFFSET_TYPES
from coordinator_model.rules.rebalances import DEFAULT_REBALANCE_TIMEOUT_MS
from coordinator_model.state.findings import Position
from coordinator_model.state.membership import (
    CLASSIC,
    CONSUMER,
    Claim,
    ClassicGroup,
    ClassicMember,
    Membership,
    ModernGroup,
)
from streaming.base.errors import CannotTellError, CheckFailed, NoSuchGroupError
from streaming.base.times import time_text
from streaming.recording.file_format import open_recording

MOST_MEMBERS: Final = 50
DEFAULT_SESSION_TIMEOUT_MS: Final = 45_000
OF_TWO_KINDS: Final = (
    "members of librdkafka are run by librdkafka, the others as Java's; where the leader is upgraded first, one of "
    "librdkafka may lead, and the coordinator refuses the group: --order says which goes first"
)
FROM_A_MONITOR: Final = (
    "a running monitor does not know how many partitions a topic has: as many as are assigned, wanted or committed"
)
LIBRDKAFKA_ASSIGNORS: Final = ("range", "roundrobin")
"""What the rehearsal's own clients do as Java's; the rest is sent request by request (`wire_member.py`)."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MemberShape:
    """One member. `subscription` and `assignment` are the bytes that were logged of a classic one, where they were.

    `name` is its client id, and no other member's: see `distinct`. `librdkafka` is whether it is run by librdkafka
    with any assignor, by what that does; `leads` whether it led the group.
    """

    name: str
    topics: tuple[str, ...] = ()
    instance_id: str | None = None
    session_timeout_ms: int = DEFAULT_SESSION_TIMEOUT_MS
    rebalance_timeout_ms: int = DEFAULT_REBALANCE_TIMEOUT_MS
    subscription: bytes | None = None
    assignment: bytes | None = None
    librdkafka: bool = False
    leads: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Shape:
    """A group to be rehearsed; `type` is its members' type, `topics` are partition counts by name."""

    group: str
    type: str
    protocol_type: str = CONSUMER_PROTOCOL_TYPE
    assignor: str | None = None
    topics: Mapping[str, int] = field(default_factory=dict)
    members: tuple[MemberShape, ...] = ()
    notes: tuple[str, ...] = ()

    @property
    def sent_as_logged(self) -> bool:
        """Whether classic members are such as librdkafka cannot be: of another assignor or protocol type."""
        foreign = self.protocol_type != CONSUMER_PROTOCOL_TYPE or self.assignor not in LIBRDKAFKA_ASSIGNORS
        return self.type == CLASSIC and foreign

    @property
    def has_librdkafka(self) -> bool:
        """Whether members are such as brokers may refuse once they have rejoined (`upgrade_blockers.LIBRDKAFKA`)."""
        return self.type == CLASSIC and any(member.librdkafka for member in self.members)


def of_recording(file: Path, group: str, before: str) -> Shape:
    """The shape of a group of a recording, with members of the protocol `before`.

    It is the shape at the end; where the group has no such members there, at the last moment with the most of them.

    Raises:
        UsageError: the file is no recording.
        NoSuchGroupError: there is no such group in it.
        CheckFailed: it never had such members.
    """
    best, best_ms = None, -1
    logged: GroupMetadataValue | None = None
    known = False
    with open_recording(file, "--from") as recording:
        replica = LogReplica(recording.header.offsets_topic_partitions)
        counts = {topic.name: topic.partitions for topic in recording.header.topics}
        for record in recording:
            decoded = decode_record(record.key, record.value)
            if not isinstance(decoded, Record) or decoded.group_name != group:
                continue
            known = True
            replica.replay(Position(record.partition, record.offset, record.timestamp_ms), record.key, record.value)
            replica.settle()
            if decoded.type in OFFSET_TYPES:
                continue
            if decoded.type is RecordType.GROUP_METADATA:
                logged = decoded.value
            state = replica.living_copy(group)
            found = None if state is None else _of_membership(group, state.membership, counts, logged, before)
            if found is None:
                continue
            if best is None or len(found.members) >= len(best.members):
                best, best_ms = found, record.timestamp_ms
        state = replica.living_copy(group)
        at_end = None if state is None else _of_membership(group, state.membership, counts, None, before)
    if not known:
        raise NoSuchGroupError(f"--group: found {group!r}, accepted: a group of {file.name}")
    if best is None:
        which = f"{group!r} without members of the {before} protocol in {file.name}"
        raise CheckFailed(f"--group: found {which}, accepted: one with such")
    if at_end is not None and len(at_end.members) == len(best.members):
        return best
    note = f"as the group was at {time_text(best_ms)}, with the most {before} members: it is another at the end"
    return replace(best, notes=(*best.notes, note))


def of_view(view: Mapping[str, Any], before: str) -> Shape:
    """The shape of a GROUP that a running monitor answers.

    Raises:
        CheckFailed: it has no members of the protocol to be rolled.
    """
    members = [each for each in view["members"] if each["protocol"] == before]
    if not members:
        which = f"{view['group']!r} without members of the {before} protocol"
        raise CheckFailed(f"--group: found {which}, accepted: one with such")
    if len(members) < len(view["members"]):
        rolled = f"{len(view['members']) - len(members)} of {len(view['members'])} members rolled"
        raise CheckFailed(f"--group: found {view['group']!r} with {rolled}, accepted: a group before its roll")
    unsaid = _without_librdkafka(view["migration"]["blockers"])
    protocol_type = view.get("protocol_type") or CONSUMER_PROTOCOL_TYPE
    if protocol_type != CONSUMER_PROTOCOL_TYPE:
        unsaid.append(f"protocol type {protocol_type}")
    if unsaid:
        raise CannotTellError(
            f"--group: found {view['group']!r} with {', '.join(unsaid)}, whose bytes a running monitor does not show, "
            "accepted: --from RECORDING"
        )
    light, leader = _clients_of(view)
    found = tuple(
        MemberShape(
            librdkafka=each["member_id"] in light,
            leads=each["member_id"] == leader,
            name=each["client_id"] or each["member_id"],
            instance_id=each["instance_id"],
            topics=_subscribed(each),
            session_timeout_ms=each.get("session_timeout_ms") or DEFAULT_SESSION_TIMEOUT_MS,
            rebalance_timeout_ms=each.get("rebalance_timeout_ms") or DEFAULT_REBALANCE_TIMEOUT_MS,
        )
        for each in members
    )
    held = [each[part] for each in view["members"] for part in ("assigned", "target")]
    held += [{offset["topic"]: [offset["partition"]]} for offset in view["offsets"]]
    topics = _sized({topic for member in found for topic in member.topics}, {}, held)
    return Shape(
        group=view["group"],
        type=before,
        assignor=view["protocol"],
        topics=topics,
        members=found,
        notes=(FROM_A_MONITOR, *_two_kinds(found)),
    )


def _without_librdkafka(blockers: Iterable[str]) -> list[str]:
    """What blocks an upgrade and needs the logged bytes to be rehearsed: real members of librdkafka make their own."""
    found = list(blockers)
    own = (upgrade_blockers.LIBRDKAFKA, upgrade_blockers.ASSIGNMENT_USER_DATA)
    return [code for code in found if code not in own] if upgrade_blockers.LIBRDKAFKA in found else found


def _clients_of(view: Mapping[str, Any]) -> tuple[set[str], str | None]:
    """Ids of the members that are librdkafka's, and the leader's."""
    user_data = upgrade_blockers.ASSIGNMENT_USER_DATA in view["migration"]["blockers"]
    members = {
        each["member_id"]: ClassicMember(
            member_id=each["member_id"],
            instance_id=each["instance_id"],
            claim=next(
                (
                    Claim(version=of["version"], user_data_bytes=of.get("user_data_bytes"))
                    for of in each.get("claims") or ()
                ),
                None,
            ),
            assignment_user_data=user_data,
        )
        for each in view["members"]
    }
    leader = next((each["member_id"] for each in view["members"] if each.get("leader")), None)
    group = ClassicGroup(generation=0, protocol=view["protocol"], leader=leader, members=members)
    return {member.member_id for member in upgrade_blockers.of_librdkafka(group)}, leader


def _two_kinds(members: Collection[MemberShape]) -> tuple[str, ...]:
    count = sum(member.librdkafka for member in members)
    return (OF_TWO_KINDS,) if 0 < count < len(members) else ()


def _subscribed(member: Mapping[str, Any]) -> tuple[str, ...]:
    """Topics of a member as a monitor shows it; of an expression those that it matched."""
    said = member.get("subscription") or {}
    return tuple(sorted({*said.get("topics", ()), *(said.get("regex_topics") or ()), *member["assigned"]}))


def scaled(shape: Shape, most: int = MOST_MEMBERS) -> Shape:
    """With no more members than can be run here; a note says so."""
    found = len(shape.members)
    if found <= most:
        return shape
    note = f"{most} of {found} members: more are not run on one machine; each has more partitions than in reality"
    return replace(shape, members=shape.members[:most], notes=(*shape.notes, note))


def distinct(shape: Shape) -> Shape:
    """With a name of its own for each member where several share a client id, as Java's default has it; noted."""
    times = Counter(member.name for member in shape.members)
    free = {name: _numbered(name, times) for name, shared in times.items() if shared > 1}
    if not free:
        return shape
    members = tuple(
        replace(member, name=next(free[member.name])) if member.name in free else member for member in shape.members
    )
    note = f"members share the client id {', '.join(sorted(free))}: their names here have a number, as in app#1"
    return replace(shape, members=members, notes=(*shape.notes, note))


def _numbered(name: str, taken: Container[str]) -> Iterator[str]:
    return (each for number in count(1) if (each := f"{name}#{number}") not in taken)


def renamed(shape: Shape) -> Shape:
    """With names that say nothing: group, topics, client and instance ids are numbered."""
    topics = {name: f"topic-{number}" for number, name in enumerate(shape.topics, 1)}
    members = tuple(
        replace(
            member,
            name=f"member-{number}",
            instance_id=None if member.instance_id is None else f"instance-{number}",
            topics=tuple(topics[topic] for topic in member.topics),
            subscription=_resubscribed(member.subscription, topics, shape.protocol_type),
            assignment=_reassigned(member.assignment, topics, shape.protocol_type),
        )
        for number, member in enumerate(shape.members, 1)
    )
    counts = {topics[name]: count for name, count in shape.topics.items()}
    return replace(shape, group="group-1", topics=counts, members=members)


def _of_membership(
    group: str, membership: Membership, counts: Mapping[str, int], logged: GroupMetadataValue | None, before: str
) -> Shape | None:
    classic, modern = membership.classic_group, membership.modern_group
    if before == CLASSIC and classic is not None and classic.members:
        return _of_classic(group, membership, counts, logged)
    if before == CONSUMER and modern is not None and modern.family == CONSUMER:
        return _of_consumer(group, modern, counts)
    return None


def _of_classic(
    group: str, membership: Membership, counts: Mapping[str, int], logged: GroupMetadataValue | None
) -> Shape:
    classic = membership.classic_group
    assert classic is not None  # noqa: S101 - the caller has looked
    raw = {} if logged is None else {member.member_id: member for member in logged.members}
    members = []
    light = {member.member_id for member in upgrade_blockers.of_librdkafka(classic)}
    for member in classic.members.values():
        bytes_of = raw.get(member.member_id)
        topics = member.claim.topics if member.claim is not None else tuple(member.assigned)
        members.append(
            MemberShape(
                name=member.client_id or member.member_id,
                topics=topics,
                instance_id=member.instance_id,
                session_timeout_ms=member.session_timeout_ms,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
                subscription=None if bytes_of is None else bytes_of.subscription,
                assignment=None if bytes_of is None else bytes_of.assignment,
                librdkafka=member.member_id in light,
                leads=member.member_id == classic.leader,
            )
        )
    held = [member.assigned for member in classic.members.values()]
    return Shape(
        group=group,
        type=CLASSIC,
        protocol_type=classic.protocol_type,
        assignor=classic.protocol,
        topics=_sized({topic for member in members for topic in member.topics}, counts, held),
        members=tuple(members),
        notes=("of a classic member's assignors the log has only the one the group chose", *_two_kinds(members)),
    )


def _of_consumer(group: str, modern: ModernGroup, counts: Mapping[str, int]) -> Shape | None:
    found = [
        member
        for member in modern.members.values()
        if member.metadata_live and not member.uses_classic_protocol and not member.is_absent_static
    ]
    if not found:
        return None
    matched = modern.regexes
    notes: tuple[str, ...] = ()
    members = []
    for member in found:
        topics = {*member.subscribed_topics, *matched.get(member.subscribed_regex or "", ())}
        if member.subscribed_regex:
            notes = ("an expression is replaced by the topics that it matched",)
        members.append(
            MemberShape(
                name=member.client_id or member.member_id,
                topics=tuple(sorted(topics)),
                instance_id=member.instance_id,
                rebalance_timeout_ms=member.rebalance_timeout_ms,
            )
        )
    assignors = {member.server_assignor for member in found}
    return Shape(
        group=group,
        type=CONSUMER,
        assignor=assignors.pop() if len(assignors) == 1 else None,
        topics=_sized({topic for member in members for topic in member.topics}, counts, []),
        members=tuple(members),
        notes=notes,
    )


def _sized(topics: set[str], counts: Mapping[str, int], held: Sequence[Mapping[str, Sequence[int]]]) -> dict[str, int]:
    def least(topic: str) -> int:
        return 1 + max((number for parts in held for number in parts.get(topic, ())), default=0)

    return {topic: counts.get(topic) or least(topic) for topic in sorted(topics)}


def _resubscribed(blob: bytes | None, topics: Mapping[str, str], protocol_type: str) -> bytes | None:
    found = None if blob is None else consumer_protocol.decode_subscription(blob)
    if blob is None or found is None or protocol_type != CONSUMER_PROTOCOL_TYPE:
        return blob
    renamed_topics = tuple(topics.get(topic, topic) for topic in found.topics)
    return consumer_protocol.encode_subscription(replace(found, topics=renamed_topics))


def _reassigned(blob: bytes | None, topics: Mapping[str, str], protocol_type: str) -> bytes | None:
    found = consumer_protocol.decode_assignment(blob) if blob else None
    if found is None or protocol_type != CONSUMER_PROTOCOL_TYPE:
        return blob
    parts = tuple(replace(part, topic=topics.get(part.topic, part.topic)) for part in found.assigned_partitions)
    return consumer_protocol.encode_assignment(replace(found, assigned_partitions=parts))

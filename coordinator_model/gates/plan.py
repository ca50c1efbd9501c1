"""Which groups can move to the consumer protocol, in what order, and what to do before (KIP-848, "Migration Plan").

A group's readiness is the worst effect among its reasons:

    readiness     means
    done          all members use the consumer protocol
    out_of_scope  it is no group of plain consumers, or nothing of it can be rolled
    unknown       the log does not say enough: there is no member to roll
    blocked       a broker would refuse the roll, or it would hide a fault that is there
    care          the roll works, and something is to be done or decided before
    ready         it can be rolled

    reason                       effect        holds when
    converted                    done          every member uses the consumer protocol
    share_group, streams_group   out_of_scope  the group has a protocol of its own
    commits_only                 out_of_scope  there are committed offsets and no membership: assign(), or a tool
    protocol_type                out_of_scope  the members are no consumers: Connect, schema registries
    kafka_streams                out_of_scope  a Kafka Streams application on the classic protocol
    no_members                   unknown       a classic group that is empty now
    partition_unread             unknown       the partition of the log that the group may be in cannot be read
    not_caught_up                unknown       the monitor has not read the log to its end: it may be otherwise by now
    brokers_first                blocked       a broker knows no consumer groups, converts none that has members, or has
                                               the protocol as a preview that is off (`broker_abilities.py`)
    consumer_protocol            blocked       the brokers do not serve the consumer protocol
    migration_policy             blocked       the brokers convert no group that has members
    assignment_user_data         blocked       an assignor's data is in the assignment (`upgrade_blockers.py`)
    malformed_embedded_protocol  blocked       likewise, a subscription or an assignment that does not decode
    librdkafka_cooperative_sticky  blocked     likewise, once members rejoin: the leader is librdkafka's
    group_size                   blocked       more members than a consumer group may have
    duplicate_assignment         blocked       a partition has two owners now
    broker_configuration         unknown       brokers were asked, and do not say what decides
    preview                      care          a broker has the consumer protocol as a preview, and on
    mixed                        care          a roll is under way
    librdkafka_members           care          the same would be so if librdkafka's member led the group
    custom_assignor              care          the assignor is none of Kafka's own: the brokers have no such assignor
    range_assignor               care          several topics by range: the broker's default parts their partitions
    embedded_version             care          a client is older than KIP-792
    rebalancing                  care          a rebalance is under way
    a kind of `ALARMS`           care          an alarm of this kind is open, which a roll would hide
    members_not_back             care          the last roll left fewer members than there were, however long ago: so
                                               of a group that is converted or empty, which is done only without it
    static_members               note          members have a group.instance.id
    client_library               note          what the log does not hold: libraries and their settings

Of a recording, and of topics that are served, there are no brokers to ask: what they would say is left out here, and
the gate asks it before each roll. A group without members is blocked by brokers that refuse every new member.

Waves: groups that are ready come before those that need care, small and quiet ones before large and busy ones. The
weight of a group is its members, plus ten for each rebalance a day, plus one for each ten partitions. A wave holds
groups of one owner, so that one team watches at a time, and at most twice as many groups as the wave before it, from
one to `LARGEST_WAVE`.

Kinds: classic groups that a roll treats alike, so that one rehearsal stands for all: the same assignor, static ids or
none, one topic or several, about as many members.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any, Final

from coordinator_model.gates.broker_abilities import CONSUMER_PROTOCOL_GA, lacking
from coordinator_model.gates.upgrade import (
    EMBEDDED_VERSION,
    KAFKAS_ASSIGNORS,
    UPGRADING_POLICIES,
    brokers_first,
    refuses_all,
    unsaid,
)
from coordinator_model.gates.verdict import BrokerSettings, unsettled
from coordinator_model.groups import consumer
from coordinator_model.groups.classic import CONSUMER_PROTOCOL_TYPE
from coordinator_model.kinds import table as kinds
from coordinator_model.migration import phases, upgrade_blockers
from coordinator_model.rules import partition_holders, rebalances, subscriptions
from coordinator_model.rules.members import members_of
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.membership import CONSUMER, ClassicGroup, ClassicMember, ModernMember

READY: Final = "ready"
CARE: Final = "care"
BLOCKED: Final = "blocked"
DONE: Final = "done"
OUT_OF_SCOPE: Final = "out_of_scope"
UNKNOWN: Final = "unknown"
_NOTE: Final = "note"

READINESS: Final = (READY, CARE, BLOCKED, UNKNOWN, DONE, OUT_OF_SCOPE)
"""In the order in which a plan lists groups."""

_WORST_FIRST: Final = (DONE, OUT_OF_SCOPE, BLOCKED, UNKNOWN, CARE)
_RANK: Final = {effect: number for number, effect in enumerate((*_WORST_FIRST, _NOTE))}

SIZES: Final = (1, 5, 20, 50)
"""Largest group of each size that a kind may have; beyond the last one a rehearsal is scaled down."""

LARGEST_WAVE: Final = 20
"""Groups that one team can watch at a time."""

DEFAULT_SERVER_ASSIGNOR: Final = "uniform"
"""The first of `group.consumer.assignors` by default (KIP-848); `range` is the other."""

ALARMS: Final[Mapping[str, str]] = {kind: row.before_a_roll for kind, row in kinds.ALARMS.items() if row.before_a_roll}
"""Kind of alarm that is a reason for care → what to do before a roll. Of overlapping owners and leftovers there are
reasons of other names."""

NOT_BACK: Final = "members_not_back"
_ENDS_A_PLAN: Final = frozenset({"converted", "no_members"})
"""Reasons for which a group is not rolled any more, unless a roll of it has lost members."""

_DAY_MS: Final = 86_400_000

_BY_HAND: Final = (
    "check by hand, as the log does not hold it: the client library speaks the consumer protocol, and its settings no "
    "longer have partition.assignment.strategy, session.timeout.ms and heartbeat.interval.ms; a pattern for "
    "brokers to match (SubscriptionPattern) is RE2/J, not java.util.regex"
)

_OFFLINE: Final = (
    "stop all its members, then start them with group.protocol=consumer: an empty group converts and keeps its offsets"
)
_NOT_THE_LEADER: Final = (
    "upgrade first a member that is not the leader (the gate names it), or a static one, back within its session "
    "timeout: brokers refuse the group once a member of librdkafka leads it and others rejoin"
)

_BROKERS_FIRST: Final = (
    "the brokers first: upgrade every one to 4.0 or later, those with ZooKeeper to KRaft before; the upgrade gate "
    "names them"
)

_SWITCH_ON: Final = (
    "the brokers first: set the feature group.version to 1 (kafka-features.sh upgrade --feature group.version=1), "
    "and have consumer in group.coordinator.rebalance.protocols where that is set"
)

_SET_POLICY: Final = (
    f"the brokers first: set group.consumer.migration.policy to {' or '.join(UPGRADING_POLICIES)} in their files, "
    "and restart them one by one"
)

_STATIC: Final = (
    "keep each group.instance.id, close a member before it is started again, and have it back within the session "
    "timeout. Once on the consumer protocol, one that was killed is refused until its session is over "
    "(UNRELEASED_INSTANCE_ID), and its client may end with that: start it again then"
)

_MAY_READ: Final = (
    "let the monitor read the brokers' configurations (DESCRIBE_CONFIGS on the cluster), and plan again: they may "
    "refuse every roll"
)

# Reason → (effect, remedy); a remedy is what the operator does next.
REASONS: Final[Mapping[str, tuple[str, str]]] = {
    "converted": (DONE, "nothing: every member uses the consumer protocol"),
    "share_group": (OUT_OF_SCOPE, "nothing: share groups have a protocol of their own (KIP-932)"),
    "streams_group": (OUT_OF_SCOPE, "nothing: streams groups have a protocol of their own (KIP-1071)"),
    "commits_only": (
        OUT_OF_SCOPE,
        "nothing: its clients assign partitions themselves and take part in no group protocol",
    ),
    "protocol_type": (OUT_OF_SCOPE, "nothing: its members are no consumers"),
    "kafka_streams": (
        OUT_OF_SCOPE,
        "stop it, then start it with group.protocol=streams (KIP-1071), on brokers from 4.2 on",
    ),
    "no_members": (
        UNKNOWN,
        "start its consumers and plan again; started with the new protocol, an empty group converts at once",
    ),
    "not_caught_up": (UNKNOWN, "wait until the monitor is ready, and plan again"),
    "partition_unread": (UNKNOWN, "wait until its partition of the offsets topic is read again, and plan again"),
    "brokers_first": (
        BLOCKED,
        _BROKERS_FIRST,
    ),
    "consumer_protocol": (
        BLOCKED,
        _SWITCH_ON,
    ),
    "migration_policy": (
        BLOCKED,
        _SET_POLICY,
    ),
    "broker_configuration": (
        UNKNOWN,
        _MAY_READ,
    ),
    "preview": (CARE, "upgrade the brokers to 4.0 first: before it the consumer protocol is a preview"),
    "assignment_user_data": (
        BLOCKED,
        f"{_OFFLINE}; or, as Java's clients can, roll to an assignor without such data first, e.g. range",
    ),
    "malformed_embedded_protocol": (BLOCKED, "find the client whose subscription or assignment does not decode"),
    "librdkafka_cooperative_sticky": (
        BLOCKED,
        f"{_OFFLINE}. librdkafka cannot be rolled from cooperative-sticky to an assignor of the other kind",
    ),
    "group_size": (BLOCKED, "raise group.consumer.max.size on the brokers, or run fewer members"),
    "duplicate_assignment": (BLOCKED, "find out why a partition has two owners before anything else"),
    "mixed": (CARE, "finish the roll that is under way"),
    "librdkafka_members": (CARE, _NOT_THE_LEADER),
    "custom_assignor": (CARE, "decide on uniform or range: the brokers do not have this assignor"),
    "range_assignor": (CARE, "set group.remote.assignor=range where partitions of several topics must stay together"),
    "embedded_version": (
        CARE,
        f"upgrade clients whose embedded protocol is below version {EMBEDDED_VERSION} (KIP-792)",
    ),
    "rebalancing": (CARE, "wait until the group is at rest, and plan again: members may be away"),
    **{kind: (CARE, remedy) for kind, remedy in ALARMS.items()},
    "static_members": (_NOTE, _STATIC),
    "client_library": (_NOTE, _BY_HAND),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class PlannedGroup:
    """A group of the plan.

    Attributes:
        readiness: one of `READINESS`.
        reasons: codes of `REASONS`, the decisive ones first.
        members, partitions, static_ids: how many there are; partitions are those that members hold.
        protocol: type of the group now.
        assignor: of the classic group, or the server assignor that members ask for; None for the broker's default.
        assignor_after: the server assignor after the roll; None for a group that is not rolled.
        rebalances_a_day: completed rebalances, None where less than an hour is known.
        lag: records of all partitions, None where it is not known.
        wave: its number from 1, None for a group that is not to be rolled.
        owner, note: as the configuration says, None where it does not.
        kind: what a rehearsal of it stands for, None for a group that is not to be rolled from the classic protocol.
    """

    group: str
    readiness: str
    reasons: tuple[str, ...]
    members: int
    partitions: int
    protocol: str
    assignor: str | None
    assignor_after: str | None
    rebalances_a_day: float | None = None
    lag: int | None = None
    wave: int | None = None
    owner: str | None = None
    static_ids: int = 0
    note: str | None = None
    kind: str | None = None

    @property
    def is_to_roll(self) -> bool:
        """Whether it belongs in a wave; one that is converted, and lacks members since, does not."""
        return self.readiness in (READY, CARE) and self.reasons != (NOT_BACK,)

    @property
    def weight(self) -> float:
        """How much can go wrong at once: what orders the waves."""
        return self.members + 10 * (self.rebalances_a_day or 0) + self.partitions / 10


def planned(  # noqa: PLR0913 - what is known of a group beside its state, each with its default
    state: GroupState,
    settings: BrokerSettings,
    *,
    now_ms: int | None = None,
    observed_ms: int | None = None,
    rebalances: int | None = None,
    lag: int | None = None,
    owner: str | None = None,
    note: str | None = None,
    caught_up: bool = True,
    unread: bool = False,
    alarms: Collection[str] = (),
) -> PlannedGroup:
    """Readiness of one group.

    Args:
        state: of the group.
        settings: what brokers allow, as far as they say.
        now_ms: the clock, for groups that are being rolled.
        observed_ms: how long its rebalances were counted, for those a day.
        rebalances: how many completed meanwhile; without it, all that its state has counted.
        lag: records that it lags, if known.
        owner: who owns it, if known.
        note: what is to be said of it, if anything is.
        caught_up: whether the end of the log was reached, and is followed.
        unread: whether it may be in a partition of the log that cannot be read: then it is as it was, and may be so no
            more.
        alarms: kinds of alarms that are open of it, whether a plan speaks of them or not.
    """
    membership = state.membership
    modern, classic = membership.modern_group, membership.classic_group
    held = partition_holders.held(membership)
    topics = subscriptions.subscribed_topics(membership) | held.keys()
    if unread:
        codes = ["partition_unread"]
    elif not caught_up:
        codes = ["not_caught_up"]
    else:
        codes = _reasons(state, settings, now_ms, upgrade_blockers.blockers(membership), topics)
    if NOT_BACK in alarms and not _ENDS_A_PLAN.isdisjoint(codes):
        codes = [NOT_BACK]
    elif _worst(codes) in (READY, CARE, BLOCKED):
        codes += [kind for kind in ALARMS if kind in alarms]
    readiness = _worst(codes)
    days = None if observed_ms is None or observed_ms < _DAY_MS / 24 else observed_ms / _DAY_MS
    is_rolled = readiness in (READY, CARE, BLOCKED)
    completed = state.counters.rebalances if rebalances is None else rebalances
    members = members_of(membership)
    static_ids = len(_static_ids(members.values()))
    return PlannedGroup(
        group=state.name,
        readiness=readiness,
        reasons=tuple(sorted(codes, key=lambda code: _RANK[REASONS[code][0]])),
        members=len(members),
        partitions=sum(map(len, held.values())),
        protocol=state.type,
        assignor=(classic.protocol if classic is not None else None) if modern is None else _asked(state),
        assignor_after=DEFAULT_SERVER_ASSIGNOR if is_rolled and modern is None else _asked(state) if modern else None,
        rebalances_a_day=None if days is None else round(completed / days, 2),
        lag=lag,
        owner=owner,
        static_ids=static_ids,
        note=note,
        kind=None if classic is None or not is_rolled else _kind(classic, static_ids, len(topics)),
    )


def _kind(group: ClassicGroup, static_ids: int, topics: int) -> str:
    count = len(group.members)
    largest = next((size for size in SIZES if count <= size), None)
    smallest = max((size for size in SIZES if count > size), default=0) + 1
    members = f"{smallest} or more" if largest is None else f"{smallest} to {largest}" if largest > 1 else "1"
    parts = [
        group.protocol or "no assignor",
        "static ids" if static_ids else "no static ids",
        "several topics" if topics > 1 else "one topic",
        f"{members} member{'' if largest == 1 else 's'}",
    ]
    return ", ".join(parts)


def readiness_of(state: GroupState, blockers: Iterable[str], topics: Collection[str]) -> str:
    """One of `READINESS`, as the log alone has it: without what brokers allow, and without a clock.

    Args:
        state: of the group.
        blockers: as `upgrade_blockers.blockers`.
        topics: those that members subscribe to or hold partitions of.
    """
    return _worst(_reasons(state, _UNKNOWN_SETTINGS, None, blockers, topics))


_UNKNOWN_SETTINGS: Final = BrokerSettings()


def _worst(codes: Iterable[str]) -> str:
    worst = min([REASONS[code][0] for code in codes], key=_RANK.__getitem__, default=_NOTE)
    return READY if worst == _NOTE else worst


def _asked(state: GroupState) -> str | None:
    """The server assignor most members of a consumer group ask for."""
    modern = state.membership.modern_group
    return consumer.preferred_assignor(modern) if modern is not None and modern.family == CONSUMER else None


def _reasons(
    state: GroupState,
    settings: BrokerSettings,
    now_ms: int | None,
    blockers: Iterable[str],
    topics: Collection[str],
) -> list[str]:
    ends = _not_to_be_rolled(state)
    if ends == "no_members" and refuses_all(settings):
        return [*_of_brokers(settings)]
    if ends is not None:
        return [ends]
    membership = state.membership
    modern, classic = membership.modern_group, membership.classic_group
    codes = []
    if modern is not None:
        codes.append("mixed")
    elif classic is not None:
        codes += [*blockers, *_of_classic(classic, settings, topics)]
    # When the last member to be rolled down leaves, the group is a classic one of the others.
    rolled = state.migration.mixed or state.migration.was_downgraded
    if unsettled(now_ms, state.last_step_ms, mixed=rolled) or (modern is not None and rebalances.under_way(modern)):
        codes.append("rebalancing")
    if state.duplicates:
        codes.append("duplicate_assignment")
    if _static_ids(members_of(membership).values()):
        codes.append("static_members")
    return [*codes, *_of_brokers(settings), "client_library"]


def _static_ids(members: Iterable[ClassicMember | ModernMember]) -> set[str]:
    return {member.instance_id for member in members if member.instance_id is not None}


def _not_to_be_rolled(state: GroupState) -> str | None:
    """The one reason that a group has which is done, out of scope, or empty."""
    membership = state.membership
    modern, classic = membership.modern_group, membership.classic_group
    if modern is not None:
        if modern.family != CONSUMER:
            return f"{modern.family}_group"
        old, new = phases.members_by_protocol(membership)
        return None if old else "converted" if new else "no_members"
    if classic is None or state.simple:
        return "commits_only"
    if classic.members and classic.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return "protocol_type"
    if upgrade_blockers.is_kafka_streams(classic):
        return "kafka_streams"
    return None if classic.members else "no_members"


def _of_brokers(settings: BrokerSettings) -> Iterator[str]:
    if brokers_first(settings):
        yield "brokers_first"
        return
    if settings.consumer_protocol is False:
        yield "consumer_protocol"
    policy = settings.migration_policy
    if policy is not None and policy.lower() not in UPGRADING_POLICIES:
        yield "migration_policy"
    if settings.asked and unsaid(settings):
        yield "broker_configuration"
    if settings.consumer_protocol and lacking(settings.brokers or (), CONSUMER_PROTOCOL_GA):
        yield "preview"


def _of_classic(group: ClassicGroup, settings: BrokerSettings, topics: Collection[str]) -> Iterator[str]:
    if settings.consumer_max_size is not None and len(group.members) > settings.consumer_max_size:
        yield "group_size"
    if upgrade_blockers.may_lead(group):
        yield upgrade_blockers.MAY_LEAD
    if group.protocol is not None and group.protocol not in KAFKAS_ASSIGNORS:
        yield "custom_assignor"
    elif group.protocol == "range" and len(topics) > 1:
        yield "range_assignor"
    versions = upgrade_blockers.embedded_versions(group)
    if min(versions.values(), default=EMBEDDED_VERSION) < EMBEDDED_VERSION:
        yield "embedded_version"


def in_waves(groups: Iterable[PlannedGroup]) -> list[PlannedGroup]:
    """The groups with their waves: those to be rolled first, by wave; then the others, by readiness and name."""
    found = list(groups)
    to_roll = [each for each in found if each.is_to_roll]
    numbered: list[PlannedGroup] = []
    wave, size = 0, 1
    for part in (READY, CARE):
        by_owner: dict[str | None, list[PlannedGroup]] = {}
        for each in sorted(to_roll, key=lambda each: (each.weight, each.group)):
            if each.readiness == part:
                by_owner.setdefault(each.owner, []).append(each)
        for owned in by_owner.values():
            rest = owned
            while rest:
                wave += 1
                now, rest = rest[:size], rest[size:]
                numbered += [replace(each, wave=wave) for each in now]
                size = min(2 * size, LARGEST_WAVE)
    others = [each for each in found if not each.is_to_roll]
    return numbered + sorted(others, key=lambda each: (READINESS.index(each.readiness), each.group))


def plan_view(groups: Iterable[PlannedGroup], chosen: Callable[[str], bool] = lambda _: True) -> dict[str, Any]:
    """The plan as JSON: `{"groups": […], "waves": n, "counts": {readiness: n}, "kinds": […]}`.

    Groups are in the order of `in_waves`. Of each kind there is how many groups it has, and which to rehearse: the
    first.

    Args:
        groups: all groups. A group has its place among all of them, and the waves are those of all.
        chosen: whether a group of this name is shown and counted.
    """
    every = in_waves(groups)
    ordered = [each for each in every if chosen(each.group)]
    counts = {readiness: sum(each.readiness == readiness for each in ordered) for readiness in READINESS}
    return {
        "groups": [_view(each) for each in ordered],
        "waves": max((each.wave or 0 for each in every), default=0),
        "counts": counts,
        "kinds": _kinds(ordered),
    }


def _kinds(ordered: Iterable[PlannedGroup]) -> list[dict[str, Any]]:
    found: dict[str, dict[str, Any]] = {}
    for each in ordered:
        if each.kind is not None:
            of = found.setdefault(each.kind, {"kind": each.kind, "groups": 0, "rehearse": each.group})
            of["groups"] += 1
    return list(found.values())


def remedies(plan: Mapping[str, Any]) -> list[tuple[str, str]]:
    """Each reason of a `plan_view` once, with its remedy, in the order in which they first come."""
    return list({reason["code"]: reason["remedy"] for each in plan["groups"] for reason in each["reasons"]}.items())


def _view(each: PlannedGroup) -> dict[str, Any]:
    return {
        "group": each.group,
        "readiness": each.readiness,
        "reasons": [{"code": code, "remedy": REASONS[code][1]} for code in each.reasons],
        "members": each.members,
        "partitions": each.partitions,
        "protocol": each.protocol,
        "assignor": each.assignor,
        "assignor_after": each.assignor_after,
        "rebalances_a_day": each.rebalances_a_day,
        "lag": each.lag,
        "wave": each.wave,
        "owner": each.owner,
        "static_ids": each.static_ids,
        "note": each.note,
        "kind": each.kind,
    }

"""`gate upgrade`: may consumers be rolled to the consumer protocol now (KIP-848, "Migration Plan")?

    reason                       effect             holds when
    not_caught_up                unknown            the replica is not at the end of the log
    partition_unread             unknown            a partition of the log that the group may be in cannot be read
    polled                       note               groups are polled: this is as of the last poll
    brokers_first                stop               a broker knows no consumer groups, or converts no group that has
                                                    members in any configuration, or has the protocol as a
                                                    preview that is off (`broker_abilities.py`)
    consumer_protocol            stop               the consumer protocol is not enabled on the brokers
    migration_policy             stop               brokers convert no group that has members
    broker_configuration         unknown            the brokers do not say what they can do or allow
    preview                      unknown            a broker has the consumer protocol as a preview, and on: it serves
                                                    Java's consumers, and gives those of librdkafka nothing
    assignment_user_data         stop, see below    a broker would refuse the group (`upgrade_blockers.py`)
    malformed_embedded_protocol  stop               likewise
    librdkafka_cooperative_sticky  stop           likewise, once members rejoin
    protocol_type                stop, see below    likewise
    group_size                   stop               more members than a consumer group may have
    duplicate_assignment         stop               a partition is assigned twice: find out why before anything else
    rebalancing                  stop               a consumer group is between two targets, or was just now and is
                                                    being rolled; or, of a group named, its last member to be rolled
                                                    has just left and is not back
    rebalance_stuck              stop               that rebalance is stuck: waiting does not end it
    members_not_back             stop               a roll left a group with fewer members than before; a note where
                                                    others are asked about, of another owner
    member_away                  note               of a group named: a member left, and none came in its place yet
    mixed                        note               a roll of the group is under way
    librdkafka_members           note               a broker would refuse the group if librdkafka's member led it
    custom_assignor              note               the assignor is none of Kafka's: the broker's takes its place
    embedded_version             note               a member joined with less than version 3 of the embedded protocol

Kafka Streams applications, Connect workers and whatever else is no plain consumer cannot be rolled to the consumer
protocol and need not be: asked about the whole cluster, the gate notes them and passes on; asked about such a group by
name, it stops.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator
from typing import Any, Final

from coordinator_model.gates.broker_abilities import (
    CONSUMER_PROTOCOL,
    CONSUMER_PROTOCOL_GA,
    ONLINE_UPGRADE,
    lacking,
    names_of,
)
from coordinator_model.gates.verdict import (
    NOTE,
    STOP,
    UNKNOWN,
    BrokerSettings,
    Cluster,
    NamedMember,
    Reason,
    answer,
    as_polled,
    caught_up,
    moving,
    with_alarms,
)
from coordinator_model.groups.classic import CONSUMER_PROTOCOL_TYPE
from coordinator_model.migration import phases, upgrade_blockers
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.membership import CONSUMER, ClassicGroup, ClassicMember

EMBEDDED_VERSION: Final = 3
"""Version of the embedded consumer protocol that KIP-848 asks for before an online upgrade (KIP-792)."""

KAFKAS_ASSIGNORS: Final = frozenset({"range", "roundrobin", "sticky", "cooperative-sticky"})
"""Names of the assignors that come with Kafka's clients, librdkafka's among them."""

UPGRADING_POLICIES: Final = ("bidirectional", "upgrade")
"""Values of `group.consumer.migration.policy` with which a classic group that has members is converted."""


ALLOWING: Final = BrokerSettings(
    consumer_protocol=True, migration_policy="bidirectional", consumer_max_size=(1 << 31) - 1, brokers=()
)
"""Brokers that allow every roll: Kafka's defaults from 4.0 on."""


def upgrade_gate(groups: Iterable[GroupState], cluster: Cluster, named: Collection[str] = ()) -> dict[str, Any]:
    """Verdict on rolling the consumers of these groups; `named` are those that were asked about by name.

    Beside the reasons: `groups`, how many there are by type.
    """
    states = list(groups)
    reasons = [*caught_up(cluster), *as_polled(cluster, NOTE)]
    if any(map(to_convert, states)):
        reasons += of_brokers(cluster.settings)
    elif refuses_all(cluster.settings):
        reasons += _refusing(cluster.settings)
    for state in states:
        blockers = upgrade_blockers.blockers(state.membership)
        reasons += of_group(state, cluster.settings, blockers, asked=state.name in named, now_ms=cluster.now_ms)
    reasons = with_alarms(reasons, cluster)
    return answer(phases.UPGRADE, reasons, groups=phases.groups_by_type(states))


def to_convert(state: GroupState) -> bool:
    """Whether the group has members that could be rolled: then `of_brokers` is asked as well."""
    group = state.membership.classic_group
    return group is not None and _plain_consumers(group)


def refuses_all(settings: BrokerSettings) -> bool:
    """Whether members of the consumer protocol are refused by some broker, in empty groups too."""
    return settings.consumer_protocol is False or bool(lacking(settings.brokers or (), CONSUMER_PROTOCOL))


def converts_none(settings: BrokerSettings) -> bool:
    """Whether brokers are known to convert no group that has members, for what they can do or how they are set up."""
    return any(reason.effect == STOP for reason in of_brokers(settings))


def of_brokers(settings: BrokerSettings) -> Iterator[Reason]:
    """Reasons that are the brokers', where there are groups to convert: any of them may be asked to."""
    yield from _refusing(settings)
    if brokers_first(settings):
        return
    policy = settings.migration_policy
    if policy is not None and policy.lower() not in UPGRADING_POLICIES:
        text = (
            f"the brokers' group.consumer.migration.policy is {policy}: the first upgraded member of a group with "
            f"classic members is refused; accepted: {' or '.join(UPGRADING_POLICIES)}"
        )
        yield Reason(STOP, "migration_policy", text)
    if missing := unsaid(settings):
        yield Reason(UNKNOWN, "broker_configuration", _unsaid(settings, missing))
    preview = lacking(settings.brokers or (), CONSUMER_PROTOCOL_GA)
    if preview and settings.consumer_protocol:
        # Tried with librdkafka 2.16 on 3.9.2; which client a member is, the log does not say.
        text = (
            f"{names_of(preview)}: before 4.0 the consumer protocol is a preview, which serves Java's consumers; those "
            "of librdkafka wait for ever. Upgrade every broker to 4.0 or later"
        )
        yield Reason(UNKNOWN, "preview", text)


def _refusing(settings: BrokerSettings) -> Iterator[Reason]:
    if brokers_first(settings):
        yield Reason(STOP, "brokers_first", _first(settings))
    elif settings.consumer_protocol is False:
        text = (
            "the brokers do not serve the consumer protocol: group.coordinator.rebalance.protocols lacks consumer, or "
            "the feature group.version is at level 0 (kafka-features.sh upgrade --feature group.version=1)"
        )
        yield Reason(STOP, "consumer_protocol", text)


def brokers_first(settings: BrokerSettings) -> bool:
    """Whether no group that has members can be upgraded before the brokers are.

    Where a preview of the protocol is off, it could be switched on; that is not advised.
    """
    brokers = settings.brokers or ()
    preview_is_off = settings.consumer_protocol is False and bool(lacking(brokers, CONSUMER_PROTOCOL_GA))
    return preview_is_off or bool(lacking(brokers, ONLINE_UPGRADE))


def unsaid(settings: BrokerSettings) -> list[str]:
    """What is not known of the brokers, and may forbid an upgrade."""
    asked = {
        "whether they serve the consumer protocol": settings.consumer_protocol,
        "group.consumer.migration.policy": settings.migration_policy,
        "group.consumer.max.size": settings.consumer_max_size,
    }
    return [name for name, value in asked.items() if value is None]


def _first(settings: BrokerSettings) -> str:
    brokers = settings.brokers or ()
    without, unable = lacking(brokers, CONSUMER_PROTOCOL), lacking(brokers, ONLINE_UPGRADE)
    if without:
        why = f"{names_of(without)} without the consumer protocol (ConsumerGroupHeartbeat), refusing its members"
    elif unable:
        why = (
            f"{names_of(unable)} from before group.consumer.migration.policy (3.8): no group with members is converted"
        )
    else:
        preview = names_of(lacking(brokers, CONSUMER_PROTOCOL_GA))
        why = f"{preview} with the consumer protocol as a preview, which is off, refusing its members"
    return f"the brokers first: found {why}. Upgrade every broker to 4.0 or later, those with ZooKeeper to KRaft before"


def _unsaid(settings: BrokerSettings, missing: Iterable[str]) -> str:
    text = f"the brokers do not say {', '.join(missing)}, which may forbid an upgrade: "
    if not settings.asked:
        return text + "here are none to ask; ask a monitor that has them"
    if settings.brokers is None:
        return text + "they do not answer"
    return text + "let the monitor read their configurations (DESCRIBE_CONFIGS on the cluster)"


def of_group(
    state: GroupState,
    settings: BrokerSettings,
    blockers: Collection[str],
    *,
    asked: bool,
    now_ms: int | None = None,
) -> Iterator[Reason]:
    """Reasons that are one group's, at a moment or at any.

    Args:
        state: of the group.
        settings: what brokers allow, as far as they say.
        blockers: as `upgrade_blockers.blockers`.
        asked: whether it was asked about by name.
        now_ms: the moment.
    """
    name, membership = state.name, state.membership
    group = membership.classic_group
    if group is not None:
        if upgrade_blockers.out_of_scope(group) is not None:
            text = f"its members are no consumers (protocol type {group.protocol_type!r}): there is nothing to upgrade"
            yield Reason(STOP if asked else NOTE, upgrade_blockers.PROTOCOL_TYPE, text, name)
        yield from _refused(name, group, blockers, asked=asked)
    if state.duplicates:
        places = ", ".join(state.duplicates)
        yield Reason(STOP, "duplicate_assignment", f"partitions are assigned twice: {places}", name)
    if group is not None and _plain_consumers(group):
        most = settings.consumer_max_size
        if most is not None and len(group.members) > most:
            text = f"{len(group.members)} members are more than the brokers' group.consumer.max.size allows, {most}"
            yield Reason(STOP, "group_size", text, name)
        yield from _librdkafka(name, group)
        yield from _assignor(name, group, blockers)
        yield from _versions(name, group)
    modern = membership.modern_group
    if modern is None or modern.family == CONSUMER:
        yield from moving(state, now_ms, asked=asked)
    if modern is not None and modern.family == CONSUMER:
        classic, upgraded = phases.members_by_protocol(membership)
        if classic and upgraded:
            way = phases.phase(state)
            text = f"{upgraded} of {classic + upgraded} members use the consumer protocol: "
            text += "which way it goes is not known" if way is None else f"the group is {way}"
            yield Reason(NOTE, "mixed", text, name)


def _refused(name: str, group: ClassicGroup, blockers: Iterable[str], *, asked: bool) -> Iterator[Reason]:
    for code in blockers:
        of_members = tuple(_named(member) for member in upgrade_blockers.members_with(group, code))
        if code == upgrade_blockers.ASSIGNMENT_USER_DATA and upgrade_blockers.is_kafka_streams(group):
            effect = STOP if asked else NOTE
            text = (
                "a Kafka Streams application does not move to the consumer protocol, but, while down, to streams "
                "(brokers from 4.2 on)"
            )
        else:
            effect, text = STOP, f"a broker would refuse the group: {upgrade_blockers.BLOCKERS[code]}"
        if code == upgrade_blockers.LIBRDKAFKA:
            text += ". Stop all its members, then start them with group.protocol=consumer: an empty group converts"
        yield Reason(effect, code, text, name, of_members)


def _librdkafka(name: str, group: ClassicGroup) -> Iterator[Reason]:
    found = upgrade_blockers.may_lead(group)
    if not found:
        return
    leader = group.members.get(group.leader or "")
    text = "members are of librdkafka on cooperative-sticky: a broker refuses the group once one of them leads it and "
    if leader in found:
        text += (
            "others rejoin, as the leader is. Have each member back within its session timeout: no other rejoins then"
        )
    else:
        whose = "" if leader is None else f", {leader.client_id} at {leader.client_host}"
        text += f"others rejoin. Upgrade first a member that is not the leader{whose}"
    yield Reason(NOTE, upgrade_blockers.MAY_LEAD, text, name, tuple(map(_named, found)))


def _assignor(name: str, group: ClassicGroup, blockers: Collection[str]) -> Iterator[Reason]:
    """A broker converts a group whatever its assignor, unless that put user data into the assignment."""
    of = group.protocol
    if of is None or of in KAFKAS_ASSIGNORS or blockers:
        return
    text = (
        f"its assignor is {of}, none of Kafka's own. The broker converts the group, since its assignments carry no "
        "user data, and assigns from then on by its own (range or uniform): what this one does by design is lost"
    )
    yield Reason(NOTE, "custom_assignor", text, name)


def _versions(name: str, group: ClassicGroup) -> Iterator[Reason]:
    found = upgrade_blockers.embedded_versions(group)
    if min(found.values(), default=EMBEDDED_VERSION) >= EMBEDDED_VERSION:
        return
    text = (
        f"members joined with embedded consumer protocol version {min(found.values())}; KIP-848 asks for "
        f"{EMBEDDED_VERSION}. Brokers up to 4.3 do not check it: the group converts, but members below 2 do not say "
        "their generation, and below 1 not what they own"
    )
    members = tuple({**_named(group.members[of]), "embedded_version": version} for of, version in found.items())
    yield Reason(NOTE, "embedded_version", text, name, members)


def _plain_consumers(group: ClassicGroup) -> bool:
    """Whether there are members, and they are consumers that could be rolled."""
    is_consumer = group.protocol_type == CONSUMER_PROTOCOL_TYPE
    return bool(group.members) and is_consumer and not upgrade_blockers.is_kafka_streams(group)


def _named(member: ClassicMember) -> NamedMember:
    return {"member_id": member.member_id, "client_id": member.client_id, "client_host": member.client_host}

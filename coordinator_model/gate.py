"""May it be rolled now? The manual verification of KIP-848 and KIP-915 as a list of reasons.

    gate upgrade     may consumers be rolled to the consumer protocol
    gate downgrade   may brokers be rolled to a release that knows only the classic protocol

Every reason found is told, each with what it does to the verdict:

    effect     meaning
    stop       going on would fail, or lose something
    unknown    what would decide it is out of reach
    note       worth knowing before; no reason to wait

A gate is open when nothing stops it and nothing is unknown.
"""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from typing import Any, Final

from coordinator_model import migration, rebalances
from coordinator_model.group_state import CONSUMER, GroupState
from coordinator_model.groups.classic import CONSUMER_PROTOCOL_TYPE

UPGRADE: Final = migration.UPGRADE
DOWNGRADE: Final = migration.DOWNGRADE

STOP: Final = "stop"
UNKNOWN: Final = "unknown"
NOTE: Final = "note"

OPEN: Final = "open"
CLOSED: Final = "closed"
CANNOT_TELL: Final = "cannot_tell"

EMBEDDED_VERSION: Final = 3
"""Version of the embedded consumer protocol that KIP-848 asks for before an online upgrade (KIP-792)."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing to know before rolling. `group` is None for what concerns the cluster."""

    effect: str
    code: str
    text: str
    group: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """What the gates ask about besides the groups.

    `not_caught_up` says what is missing, empty when the replica is at the end of the log. `unknown_records` counts
    records by type. `group_configs` names groups with dynamic GROUP configurations, None where brokers did not say.
    """

    not_caught_up: Collection[str] = ()
    unknown_records: Mapping[str, int] = field(default_factory=dict)
    group_configs: Collection[str] | None = None


def upgrade_gate(groups: Iterable[GroupState], cluster: Cluster) -> dict[str, Any]:
    """Verdict on rolling the consumers of these groups to the consumer protocol."""
    reasons = [*_caught_up(cluster)]
    for state in groups:
        reasons += _upgrade_reasons(state)
    return _verdict(UPGRADE, reasons)


def downgrade_gate(groups: Iterable[GroupState], cluster: Cluster) -> dict[str, Any]:
    """Verdict on rolling the brokers back, all their groups being these."""
    reasons = [*_caught_up(cluster)]
    for state in groups:
        reasons += _downgrade_reasons(state)
    if cluster.group_configs is None:
        reasons.append(
            Reason(UNKNOWN, "group_configs", "the brokers do not say whether dynamic GROUP configurations exist")
        )
    for name in sorted(cluster.group_configs or ()):
        text = "dynamic GROUP configurations are set, which an older controller does not know: remove them"
        reasons.append(Reason(STOP, "group_configs", text, name))
    for record_type, count in sorted(cluster.unknown_records.items()):
        text = (
            f"{count} records of type {record_type}, unknown to this monitor, were read: older brokers may fail on them"
        )
        reasons.append(Reason(STOP, "unknown_records", text))
    return _verdict(DOWNGRADE, reasons)


def _verdict(gate: str, reasons: list[Reason]) -> dict[str, Any]:
    effects = {reason.effect for reason in reasons}
    verdict = CLOSED if STOP in effects else CANNOT_TELL if UNKNOWN in effects else OPEN
    listed = [
        {"effect": reason.effect, "code": reason.code, "group": reason.group, "text": reason.text} for reason in reasons
    ]
    return {"gate": gate, "verdict": verdict, "reasons": listed}


def _caught_up(cluster: Cluster) -> Iterator[Reason]:
    for missing in cluster.not_caught_up:
        yield Reason(UNKNOWN, "not_caught_up", f"the replica is not at the end of the log: {missing}")


def _upgrade_reasons(state: GroupState) -> Iterator[Reason]:
    name, membership = state.name, state.membership
    for code in migration.blockers(membership):
        yield Reason(STOP, code, f"a broker would refuse the group: {migration.BLOCKERS[code]}", name)
    if state.duplicates:
        places = ", ".join(state.duplicates)
        yield Reason(STOP, "duplicate_assignment", f"partitions are assigned twice: {places}", name)
    yield from _moving(state)
    group = membership.classic_group
    if group is None or group.protocol_type != CONSUMER_PROTOCOL_TYPE:
        return
    claims = [member.claim for member in group.members.values() if member.claim is not None]
    lowest = min((claim.version for claim in claims), default=EMBEDDED_VERSION)
    if lowest < EMBEDDED_VERSION:
        text = (
            f"a member's embedded consumer protocol has version {lowest}; KIP-848 asks for {EMBEDDED_VERSION}, "
            "brokers of today accept it: clients this old do not tell their generation"
        )
        yield Reason(NOTE, "embedded_version", text, name)
    if group.members:
        text = "the broker's group.consumer.migration.policy and group.consumer.max.size are not in the log: check them"
        yield Reason(NOTE, "broker_configuration", text, name)


def _downgrade_reasons(state: GroupState) -> Iterator[Reason]:
    name, membership = state.name, state.membership
    modern = membership.modern_group
    if modern is not None:
        classic, other = migration.members_by_protocol(membership)
        what = f"{other} of {classic + other} members use the new protocol" if modern.members else "it has no members"
        remedy = "roll its consumers back" if modern.family == CONSUMER and modern.members else "delete it"
        yield Reason(STOP, "group_type", f"the group is of type {modern.family} ({what}): {remedy}", name)
    leftovers = membership.leftovers()
    if leftovers:
        text = f"{leftovers} records of a new protocol are left over from before its downgrade"
        yield Reason(STOP, "leftover_records", text, name)
    yield from _moving(state)


def _moving(state: GroupState) -> Iterator[Reason]:
    modern = state.membership.modern_group
    if modern is not None and rebalances.under_way(modern):
        yield Reason(STOP, "rebalancing", "a rebalance is under way: wait for its end", state.name)

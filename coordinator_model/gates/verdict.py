"""May it be rolled now? What a gate knows and how it answers; the questions are `upgrade.py`, `downgrade.py`.

The manual verification of KIP-848 and KIP-915 as a list of reasons. Every reason found is listed, each with what it
does to the verdict:

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

from coordinator_model.gates.broker_abilities import Broker
from coordinator_model.migration import phases
from coordinator_model.rules import rebalances
from coordinator_model.state.group_state import GroupState

STOP: Final = "stop"
UNKNOWN: Final = "unknown"
NOTE: Final = "note"

OPEN: Final = "open"
CLOSED: Final = "closed"
CANNOT_TELL: Final = "cannot_tell"

SETTLED_MS: Final = 15_000
"""How long nothing must have been written of a group that is being rolled: between one restart and the next it rests
for a few seconds, and a gate that opened each time would say nothing."""

NamedMember = Mapping[str, Any]
"""What a reason says of one member: `member_id`, `client_id`, `client_host`, and what is found of it."""


@dataclass(frozen=True, slots=True)
class Reason:
    """One thing to know before rolling. `group` is None for what concerns the cluster, `members` empty likewise."""

    effect: str
    code: str
    text: str
    group: str | None = None
    members: tuple[NamedMember, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerSettings:
    """What brokers can do and how they are configured, as far as it decides; each None where they do not say.

    Of brokers that differ, the one that allows least: which broker leads a group is not for the gate to know.
    """

    cluster_id: str | None = None
    """Of the cluster that was asked; what was rehearsed of another one says nothing of it."""
    asked: bool = False
    """Whether there were brokers to ask: a recording and topics have none."""
    brokers: Collection[Broker] | None = None
    """Every broker that is up, with its abilities."""
    consumer_protocol: bool | None = None
    """Whether brokers serve it: `group.coordinator.rebalance.protocols` and the feature `group.version`."""
    migration_policy: str | None = None
    """`group.consumer.migration.policy`: bidirectional, upgrade, downgrade or disabled."""
    consumer_max_size: int | None = None
    """`group.consumer.max.size`, of consumer groups."""
    classic_max_size: int | None = None
    """`group.max.size`, of classic groups."""
    features: Mapping[str, int] | None = None
    """Finalized level by feature, as `metadata.version`; those at 0 are absent."""
    static_protocols: Collection[str] | None = None
    """What `group.coordinator.rebalance.protocols` lists in the file of some broker; empty where it is in none."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LogScan:
    """What is physically in the log, live or not, that brokers before 3.4.1 fail on.

    `records` and `tombstones` count by record type, `value_versions` committed offsets and classic groups by value
    version where it is beyond 3. `unreadable` counts batches and values that could not be read and were stepped over.
    `share` is how much of the log was read, 1 for all of it, `seconds` how long it took.
    """

    records: Mapping[int, int] = field(default_factory=dict)
    tombstones: Mapping[int, int] = field(default_factory=dict)
    value_versions: Mapping[int, int] = field(default_factory=dict)
    unreadable: int = 0
    share: float = 1.0
    seconds: float = 0.0
    under_way: bool = False

    @property
    def thousandths(self) -> int:
        """How much of the log was read, rounded down: 1,000 only for all of it."""
        return int(1_000 * self.share + 1e-6)  # a thousand times 0.29 is a little less than 290

    @property
    def complete(self) -> bool:
        """Whether all of the log was read."""
        return self.share >= 1.0 and not (self.under_way or self.unreadable)

    @property
    def clean(self) -> bool:
        """Whether nothing was found."""
        return not (self.records or self.tombstones or self.value_versions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Cluster:
    """What the gates ask about besides the groups.

    `not_caught_up` says what is missing, empty when the replica is at the end of the log. `unread` says which
    partitions cannot be read that a group asked about may be in: of all groups, any. `unknown_records` counts records
    read, by type. `group_configs` names groups with dynamic GROUP configurations, None where brokers did not
    say. `offset_versions` counts live committed offsets of each group by the value version they were written in.
    `log_scan` is None where the log was not scanned. `polled` is whether groups are asked of their coordinators every
    few seconds instead of read from the log.
    """

    not_caught_up: Collection[str] = ()
    unread: Collection[str] = ()
    unknown_records: Mapping[str, int] = field(default_factory=dict)
    group_configs: Collection[str] | None = None
    settings: BrokerSettings = BrokerSettings()
    offset_versions: Mapping[str, Mapping[int, int]] = field(default_factory=dict)
    log_scan: LogScan | None = None
    polled: bool = False
    alarms: Collection[Reason] = ()
    """What is alarmed of groups, be they asked about or not, and decides: who knows the clock says it."""
    now_ms: int | None = None
    """The moment of the question; None where only the log's own time is known."""


def answer(gate: str, reasons: Iterable[Reason], **facts: object) -> dict[str, Any]:
    """`{"gate", "verdict", "reasons", …facts}`; a reason about members has the key `members`."""
    found = list(reasons)
    comes_to = verdict(reason.effect for reason in found)
    return {"gate": gate, "verdict": comes_to, "reasons": [_shown(reason) for reason in found], **facts}


def with_reasons(answered: Mapping[str, Any], reasons: Iterable[Reason]) -> dict[str, Any]:
    """A gate's answer with more reasons, and the verdict that all of them come to."""
    found = [*answered["reasons"], *map(_shown, reasons)]
    return {**answered, "verdict": verdict(of["effect"] for of in found), "reasons": found}


def verdict(effects: Iterable[str]) -> str:
    """What reasons of these effects come to."""
    found = set(effects)
    return CLOSED if STOP in found else CANNOT_TELL if UNKNOWN in found else OPEN


def with_alarms(reasons: Iterable[Reason], cluster: Cluster) -> list[Reason]:
    """The reasons with what is alarmed: of a rebalance that is stuck it is not said that its end is near."""
    stuck = {of.group for of in cluster.alarms if of.code == STUCK}
    return [*(of for of in reasons if not (of.code == "rebalancing" and of.group in stuck)), *cluster.alarms]


STUCK: Final = "rebalance_stuck"


def caught_up(cluster: Cluster) -> Iterator[Reason]:
    """A reason for each thing the replica lacks."""
    for missing in cluster.not_caught_up:
        yield Reason(UNKNOWN, "not_caught_up", f"the monitor is not ready: {missing}")
    for unread in cluster.unread:
        yield Reason(UNKNOWN, "partition_unread", f"a group asked about may be in it: {unread}")


def as_polled(cluster: Cluster, effect: str) -> Iterator[Reason]:
    """What it does to a verdict that groups are polled, where they are."""
    if cluster.polled:
        text = (
            "groups are polled by the Admin API (source.kind: admin): this is as of the last poll, and nothing is "
            "known of what only the coordinator's log has"
        )
        yield Reason(effect, "polled", text)


def moving(state: GroupState, now_ms: int | None, *, asked: bool) -> Iterator[Reason]:
    """Why to wait for a group: between two targets, between two restarts of its roll, or a member is away.

    `asked` is whether the group was asked about by name: of all others, members that left are no news.
    """
    modern = state.membership.modern_group
    if modern is not None and rebalances.under_way(modern):
        yield Reason(STOP, "rebalancing", "a rebalance is under way: wait for its end", state.name)
    elif modern is not None and unsettled(now_ms, state.last_step_ms, mixed=state.migration.mixed):
        text = f"a roll of it is under way, and it has not been at rest for {SETTLED_MS // 1000} s: wait"
        yield Reason(STOP, "rebalancing", text, state.name)
    elif asked and now_ms is not None and (free := phases.places_free(state, now_ms)):
        # A group is done when its last member to be rolled leaves, and that one is not back yet.
        wait = unsettled(now_ms, state.last_step_ms, mixed=phases.just_converted(state, now_ms))
        left = f"{free} member{'s' if free > 1 else ''} left less than {phases.REPLACEMENT_MS // 60_000} min ago"
        text = f"{left}, and none has come in the place: if one is being restarted, wait until it is back"
        yield Reason(STOP if wait else NOTE, "rebalancing" if wait else "member_away", text, state.name)


def unsettled(now_ms: int | None, last_step_ms: int, *, mixed: bool) -> bool:
    """Whether a group between the protocols was last written of just now."""
    return mixed and now_ms is not None and abs(now_ms - last_step_ms) < SETTLED_MS


def _sentence(text: str) -> str:
    """With a capital, unless it begins with the name of a setting or a feature, which has dots in it."""
    return text if "." in text.partition(" ")[0] else text[:1].upper() + text[1:]


def _shown(reason: Reason) -> dict[str, Any]:
    shown = {"effect": reason.effect, "code": reason.code, "group": reason.group, "text": _sentence(reason.text)}
    return {**shown, "members": [dict(member) for member in reason.members]} if reason.members else shown

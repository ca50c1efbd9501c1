"""What of a group wants a look, the worst first: one table for the page and the terminal.

    code                     severity   holds while
    duplicate_assignment     critical   a partition is owned by two members
    rebalance_stuck          critical   a rebalance is overdue (`coordinator_model.overdue`, `suspects`)
    static_member_contended  critical   two processes take turns at one instance id
    records_lost             warning    a group with members has not committed records that are deleted by now
    unassigned_partitions    warning    nobody holds partitions of its topics, for longer than is legal
    leftover_records         warning    records of a new protocol outlived the group's downgrade
    rebalance_storm          warning    more rebalances in five minutes than a rolling restart takes
    migration_stalled        warning    both protocols for half an hour, and nobody came or went
    epoch_anomaly            warning    an epoch that no coordinator writes
    static_member_absent     info       a static member said it would be back
    rebalancing              info       a rebalance is under way
    upgrading, downgrading   info       members of both protocols are in the group

Info is what happens in any restart: shown, and no reason to get up. A group that would be refused an upgrade is not
here: one of Kafka Connect is refused for ever, and only a roll asks (`gate`).
"""

from collections.abc import Iterable, Iterator
from dataclasses import asdict, dataclass
from typing import Any, Final

from coordinator_model import involved, migration, overdue
from coordinator_model.events import CRITICAL, INFO, WARNING
from coordinator_model.roster import is_absent, members_of
from streaming.held_group import HeldGroup, TopicLag

SEVERITIES: Final = {
    "duplicate_assignment": CRITICAL,
    "rebalance_stuck": CRITICAL,
    "static_member_contended": CRITICAL,
    "records_lost": WARNING,
    "unassigned_partitions": WARNING,
    "leftover_records": WARNING,
    "rebalance_storm": WARNING,
    "migration_stalled": WARNING,
    "epoch_anomaly": WARNING,
    "static_member_absent": INFO,
    "rebalancing": INFO,
    "upgrading": INFO,
    "downgrading": INFO,
}
"""Code → severity, the worst first."""

_RANKS: Final = {code: rank for rank, code in enumerate(SEVERITIES)}


@dataclass(frozen=True, slots=True)
class Look:
    """One reason to look. `since_ms` is when it began, None where that is not known or not told."""

    code: str
    text: str
    since_ms: int | None = None

    @property
    def severity(self) -> str:
        """`critical`, `warning` or `info`."""
        return SEVERITIES[self.code]

    def as_json(self) -> dict[str, Any]:
        """`code`, `severity`, `text`, `since` (ms or null)."""
        shown = asdict(self)
        return {"code": self.code, "severity": self.severity, "text": self.text, "since": shown["since_ms"]}


@dataclass(frozen=True, slots=True)
class Watched:
    """What those who look with a clock in hand have found of a group.

    Attributes:
        stuck: whether its rebalance is overdue.
        unassigned: partitions of its topics that nobody has held for too long, None for none.
        read_ms: when its last step was read, where its records say another time (`record_clocks`).
    """

    stuck: bool = False
    unassigned: int | None = None
    read_ms: int | None = None


def looks(held: HeldGroup, lags: Iterable[TopicLag], now_ms: int, watched: Watched) -> list[Look]:
    """Reasons to look at a group now, the worst first.

    Args:
        held: the group.
        lags: lag of its committed offsets.
        now_ms: the wall clock.
        watched: what was found with a clock.
    """
    found = [] if held.summary.steady else [*_of_state(held, now_ms, watched.read_ms)]
    found += _of_offsets(held, lags)
    if watched.stuck:
        found = [look for look in found if look.code != "rebalancing"]
        found.append(Look("rebalance_stuck", "rebalance stuck", _since(held)))
    if watched.unassigned:
        found.append(Look("unassigned_partitions", f"{_count(watched.unassigned, 'partition')} unassigned"))
    return sorted(found, key=lambda look: _RANKS[look.code]) if len(found) > 1 else found


def _of_state(held: HeldGroup, now_ms: int, read_ms: int | None) -> Iterator[Look]:
    state = held.state
    if state.duplicates:
        yield Look("duplicate_assignment", f"{_count(len(state.duplicates), 'partition')} owned twice")
    if state.rebalance is not None:
        yield Look("rebalancing", "rebalancing", _since(held))
    contended = sum(involved.is_contended(history, now_ms) for history in state.instances.values())
    if contended:
        yield Look("static_member_contended", f"{_count(contended, 'instance id')} contended")
    if state.storm:
        yield Look("rebalance_storm", "rebalance storm")
    leftovers = state.membership.leftovers()
    if leftovers:
        yield Look("leftover_records", f"{_count(leftovers, 'record')} left over from a downgrade")
    if state.anomalies:
        yield Look("epoch_anomaly", _count(len(state.anomalies), "epoch anomaly", "epoch anomalies"))
    absent = sum(map(is_absent, members_of(state.membership).values()))
    if absent:
        yield Look("static_member_absent", f"{_count(absent, 'static member')} away")
    yield from _of_migration(held, now_ms, read_ms)


def _of_migration(held: HeldGroup, now_ms: int, read_ms: int | None) -> Iterator[Look]:
    state = held.state
    mixed_ms = state.migration.mixed_since_ms
    if mixed_ms is None:
        return
    if any(event.kind == "migration_stalled" for event in overdue.events(state, now_ms, read_ms=read_ms)):
        yield Look("migration_stalled", "roll stalled", mixed_ms)
    else:
        yield Look(
            "downgrading" if migration.phase(state) == "downgrading" else "upgrading", "both protocols", mixed_ms
        )


def _of_offsets(held: HeldGroup, lags: Iterable[TopicLag]) -> Iterator[Look]:
    if not held.summary.members:
        # Nobody is there to read: what is deleted then is nobody's loss today.
        return
    lost = sum(each.lost for each in lags if not held.is_unsubscribed(each.topic))
    if lost:
        yield Look("records_lost", f"records deleted before they were read in {_count(lost, 'partition')}")


def _since(held: HeldGroup) -> int | None:
    return held.summary.rebalancing_since_ms


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"

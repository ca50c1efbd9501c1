"""Reasons to look at a group, most severe first: one table for the page and the terminal.

    code                     severity   holds while
    duplicate_assignment     critical   a partition is owned by two members
    rebalance_stuck          critical   a rebalance is overdue (`coordinator_model.clocked.stuck`, `suspects`)
    static_member_contended  critical   two processes take turns at one instance id
    lag_without_commits      critical   members, and lag that grows, but no commit for twenty minutes
    consumers_stopped        warning    no member for ten minutes, and lag that grows; within six hours of the last
    records_lost             warning    a group with members has not committed records that are deleted by now
    unassigned_partitions    warning    no member holds partitions of its topics, for longer than is legal
    leftover_records         warning    records of a new protocol outlived the group's downgrade
    static_member_restarting warning    one process takes an instance id again and again
    group_unsettled          warning    it does not come to rest, epochs going by
    rebalance_storm          warning    more rebalances in five minutes than a rolling restart takes
    upgrade_unclean          warning    on the way up, and it did not begin as the classic group was
    newer_value_versions     warning    records of it have values newer than this release knows
    migration_stalled        warning    both protocols for half an hour, and no member came or went
    epoch_anomaly            warning    an epoch that no coordinator writes
    static_member_absent     info       a static member said it would be back
    unread                   info       no member, and records that wait, for longer than that
    rebalancing              info       a rebalance is under way
    upgrading, downgrading   info       members of both protocols are in the group
    mixed                    info       the same, and which way it goes is not known

Lag counts as the alerts of `dashboards/alerts.py` count it, by the same limits; growth that is not known, as right
after a start, counts as growth.

Info is what happens in any restart: shown, and no reason to get up. A group that would be refused an upgrade is not
here: one of Kafka Connect is refused for ever, and only a roll asks (`gate`).
"""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from typing import Any, Final

from coordinator_model.clocked import endings, stuck
from coordinator_model.clocked.moment import Moment
from coordinator_model.migration import phases
from coordinator_model.rules import static_members
from coordinator_model.rules.members import is_absent, members_of
from coordinator_model.state.events import CRITICAL, INFO, WARNING
from streaming.board.board_group import BoardGroup
from streaming.board.lag_columns import ReadLag

SEVERITIES: Final = {
    "duplicate_assignment": CRITICAL,
    "rebalance_stuck": CRITICAL,
    "static_member_contended": CRITICAL,
    "lag_without_commits": CRITICAL,
    "consumers_stopped": WARNING,
    "records_lost": WARNING,
    "unassigned_partitions": WARNING,
    "leftover_records": WARNING,
    "static_member_restarting": WARNING,
    "group_unsettled": WARNING,
    "rebalance_storm": WARNING,
    "upgrade_unclean": WARNING,
    "newer_value_versions": WARNING,
    "migration_stalled": WARNING,
    "epoch_anomaly": WARNING,
    "static_member_absent": INFO,
    "unread": INFO,
    "rebalancing": INFO,
    "upgrading": INFO,
    "downgrading": INFO,
    "mixed": INFO,
}
"""Code → severity, the worst first."""

COMMIT_WINDOW_MS: Final = 900_000
"""Three times max.poll.interval.ms by default."""
NO_COMMIT_MS: Final = 300_000
STOPPED_MS: Final = 600_000
STOPPED_RECENTLY_MS: Final = 21_600_000
"""A group not missed for six hours was given up."""

_RANKS: Final = {code: rank for rank, code in enumerate(SEVERITIES)}


@dataclass(frozen=True, slots=True)
class Reason:
    """One reason to look. `since_ms` is when it began, None where that is not known."""

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


def as_expected(reason: Reason, expected: Mapping[str, Mapping[str, Any]]) -> dict[str, Any]:
    """What is shown otherwise of a reason that the configuration expects; its code is the kind of the event."""
    why = expected.get(reason.code)
    if why is None or reason.severity == INFO:
        return {}
    return {"severity": INFO, "text": f"{reason.text} (expected: {why['reason']})", "expected": dict(why)}


@dataclass(frozen=True, slots=True)
class Watched:
    """What those who look with a clock in hand have found of a group.

    Attributes:
        stuck: whether its rebalance is overdue.
        unsettled: whether it does not come to rest.
        unassigned: partitions of its topics that no member has held for too long, None for none.
        lag_grew: whether its lag is larger than it was fifteen minutes ago, None where that is not known.
        read_ms: when its last step was read, where its records say another time (`clock_doubt`).
    """

    stuck: bool = False
    unsettled: bool = False
    unassigned: int | None = None
    lag_grew: bool | None = None
    read_ms: int | None = None


def reasons(held: BoardGroup, lag: ReadLag, now_ms: int, watched: Watched) -> list[Reason]:
    """Reasons to look at a group now, the worst first.

    Args:
        held: the group.
        lag: of its committed offsets in topics that its members read.
        now_ms: the wall clock.
        watched: what was found with a clock.
    """
    found = [] if held.words.steady else [*_of_state(held, now_ms, watched.read_ms)]
    # Without a member that reads, what is deleted is no loss today.
    if lag.lost and held.summary.members:
        lost = _count(lag.lost, "partition")
        found.append(Reason("records_lost", f"records deleted before they were read in {lost}"))
    found += _of_lag(held, lag, now_ms, lag_grew=watched.lag_grew is not False)
    if watched.stuck:
        found = [look for look in found if look.code != "rebalancing"]
        found.append(Reason("rebalance_stuck", "rebalance stuck", _since(held)))
    if watched.unsettled:
        found.append(Reason("group_unsettled", "does not settle", held.summary.unsettled_since_ms))
    if watched.unassigned:
        found.append(Reason("unassigned_partitions", f"{_count(watched.unassigned, 'partition')} unassigned"))
    return sorted(found, key=lambda look: _RANKS[look.code]) if len(found) > 1 else found


def _of_state(held: BoardGroup, now_ms: int, read_ms: int | None) -> Iterator[Reason]:
    state = held.state
    if state.duplicates:
        yield Reason("duplicate_assignment", f"{_count(len(state.duplicates), 'partition')} owned twice")
    if state.rebalance is not None:
        yield Reason("rebalancing", "rebalancing", _since(held))
    contended = sum(static_members.is_contended(history, now_ms) for history in state.instances.values())
    if contended:
        yield Reason("static_member_contended", f"{_count(contended, 'instance id')} contended")
    restarting = sum(static_members.is_restarting(history, now_ms) for history in state.instances.values())
    if restarting:
        yield Reason("static_member_restarting", f"{_count(restarting, 'instance id')} restarting")
    if endings.is_storm(state, now_ms):
        yield Reason("rebalance_storm", "rebalance storm")
    leftovers = state.membership.leftovers()
    if leftovers:
        yield Reason("leftover_records", f"{_count(leftovers, 'record')} left over from a downgrade")
    if state.anomalies:
        yield Reason("epoch_anomaly", _count(len(state.anomalies), "epoch anomaly", "epoch anomalies"))
    if state.newer_versions:
        versions = ", ".join(f"type {type_} v{version}" for type_, version in sorted(state.newer_versions.items()))
        yield Reason("newer_value_versions", f"read from records newer than this release knows: {versions}")
    absent = sum(map(is_absent, members_of(state.membership).values()))
    if absent:
        yield Reason("static_member_absent", f"{_count(absent, 'static member')} away")
    yield from _of_migration(held, now_ms, read_ms)


def _of_migration(held: BoardGroup, now_ms: int, read_ms: int | None) -> Iterator[Reason]:
    state = held.state
    mixed_ms = state.migration.mixed_since_ms
    if not state.migration.mixed:
        return
    upgrade = state.migration.upgrade
    if upgrade is not None and upgrade.wrong and not upgrade.may_have_left:
        yield Reason("upgrade_unclean", f"upgrade did not keep {', '.join(upgrade.wrong)}", upgrade.begun_ms)
    if any(stuck.migration_stalled(Moment(state=state, now_ms=now_ms, read_ms=read_ms))):
        yield Reason("migration_stalled", "roll stalled", mixed_ms)
    else:
        yield Reason(phases.phase(state) or "mixed", "both protocols", mixed_ms)


def _of_lag(held: BoardGroup, lag: ReadLag, now_ms: int, *, lag_grew: bool) -> Iterator[Reason]:
    of, committed_ms = held.summary, lag.committed_ms
    if of.words.simple or not lag.waits:
        return
    silent_ms, empty_ms = now_ms - committed_ms, now_ms - of.last_step_ms
    if of.members:
        # A time that is not known, as of polled groups, makes no alarm.
        if committed_ms >= 0 and lag_grew and silent_ms >= COMMIT_WINDOW_MS + NO_COMMIT_MS:
            yield Reason("lag_without_commits", "lag grows and nothing is committed", committed_ms)
    elif empty_ms >= STOPPED_MS:
        since_ms = of.last_step_ms if of.last_step_ms >= 0 else None
        if lag_grew and empty_ms <= STOPPED_RECENTLY_MS:
            yield Reason("consumers_stopped", "no members, and lag grows", since_ms)
        else:
            yield Reason("unread", "no members, and records wait", since_ms)


def _since(held: BoardGroup) -> int | None:
    return held.summary.rebalancing_since_ms


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"

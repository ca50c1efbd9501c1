"""Reasons to look at a group, most severe first: one table for the page and the terminal.

Lag counts as the alerts of `dashboards/alerts.py` count it, by the same limits; growth that is not known, as right
after a start, counts as growth. While the lag of a part is not known, what it was when it last was counts.

Info is what happens in any restart: shown, and no reason to get up. A group that would be refused an upgrade is not
here: one of Kafka Connect is refused for ever, and only a roll asks (`gate`). One that became so in a roll is.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final

from coordinator_model.clocked import not_back, stuck
from coordinator_model.clocked.alarms import still_open
from coordinator_model.clocked.moment import Moment
from coordinator_model.kinds.table import ALARMS
from coordinator_model.migration import phases
from coordinator_model.migration.upgrade_blockers import BLOCKERS
from coordinator_model.rules import static_members
from coordinator_model.state.events import CRITICAL, INFO, WARNING
from streaming.base.answers import AttentionAnswer
from streaming.board.board import Board
from streaming.board.board_group import BoardGroup
from streaming.board.lag_columns import ReadLag

_OTHERS: Final = {
    "lag_without_commits": (CRITICAL, 40),  # members, and lag that grows, but no commit for twenty minutes
    "consumers_stopped": (WARNING, 50),  # no member for ten minutes, no commit since, lag that grows; for six hours
    "records_lost": (WARNING, 60),  # a group with members has not committed records that are deleted by now
    "leftover_records": (WARNING, 80),  # records of a new protocol outlived the group's downgrade
    "upgrade_unclean": (WARNING, 120),  # on the way up, and it did not begin as the classic group was
    "upgrade_blocked": (WARNING, 130),  # became one that a broker refuses, with a member away: as in a roll's middle
    "newer_value_versions": (WARNING, 140),  # records of it have values newer than this release knows
    "members_missing": (INFO, 175),  # fewer than before a roll for more than a day: they are no longer waited for
    "lag_unknown": (INFO, 180),  # of some partitions that its members read; an alert, if it stays so
    "unread": (INFO, 200),  # no member for ten minutes, and records wait, otherwise
    "rebalancing": (INFO, 210),  # a rebalance is under way
    "upgrading": (INFO, 220),  # members of both protocols are in the group
    "downgrading": (INFO, 230),  # the same
    "mixed": (INFO, 240),  # both protocols, and which way it goes is not known
}
"""Code of a reason that is no alarm → severity and rank, as an `Alarm` has them."""

_WORST_FIRST: Final = (CRITICAL, WARNING, INFO)
_RANKED: Final = _OTHERS | {of.code: (of.look or of.severity, of.rank) for of in ALARMS.values() if of.code is not None}

SEVERITIES: Final[Mapping[str, str]] = {
    code: severity
    for code, (severity, _) in sorted(_RANKED.items(), key=lambda of: (_WORST_FIRST.index(of[1][0]), of[1][1]))
}
"""Code → severity, the worst first; each holds while that is so."""

COMMIT_WINDOW_MS: Final = 900_000
"""Three times max.poll.interval.ms by default."""
NO_COMMIT_MS: Final = 300_000
TREND_MS: Final = 300_000
"""Of so long the page has a trend (`trends.js`)."""
LAG_GROWS: Final = "lag grows"
"""By these words the page knows that its trend has to say so."""
STOPPED_MS: Final = 600_000
STOPPED_RECENTLY_MS: Final = 21_600_000
"""A group not missed for six hours was given up."""

STALLED: Final = "migration_stalled"
"""Asked of the state each time: a roll goes on with the next record, and not with the next look."""
UNASSIGNED: Final = "partition_unassigned"
"""What no member holds now is counted, whether or not it was reported."""

_RANKS: Final = {code: rank for rank, code in enumerate(SEVERITIES)}


@dataclass(frozen=True, slots=True)
class AttentionReason:
    """One reason to look. `since_ms` is when it began, None where that is not known.

    One that is `doubted` has too little evidence for its severity, and is a warning.
    """

    code: str
    text: str
    since_ms: int | None = None
    doubted: bool = False

    @property
    def severity(self) -> str:
        """`critical`, `warning` or `info`."""
        return WARNING if self.doubted else SEVERITIES[self.code]

    def as_json(self, expected: Mapping[str, Mapping[str, Any]]) -> AttentionAnswer:
        """`code`, `severity`, `text`, `since` (ms or null); as information where the configuration expects it.

        What is expected stands under its code, which is the kind of the event.
        """
        shown: AttentionAnswer = {
            "code": self.code,
            "severity": self.severity,
            "text": self.text,
            "since": self.since_ms,
        }
        why = expected.get(self.code)
        if why is None or self.severity == INFO:
            return shown
        return {**shown, "severity": INFO, "text": f"{self.text} (expected: {why['reason']})", "expected": dict(why)}


def reasons(board: Board, held: BoardGroup, lag: ReadLag, now_ms: int) -> list[AttentionAnswer]:
    """Reasons to look at a group now, the worst first, as `AttentionReason.as_json`.

    Args:
        board: with what those who look with a clock in hand have found.
        held: the group.
        lag: of its committed offsets in topics that its members read.
        now_ms: the wall clock.
    """
    name = held.name
    found = [] if held.words.steady else [*_of_state(held, now_ms, board.findings.read_ms.get(name))]
    if board.findings.converts_no_group:
        found = [look for look in found if look.code != "upgrade_blocked"]
    # Without a member that reads, what is deleted is no loss today.
    if lag.lost and held.summary.members:
        lost = _count(lag.lost, "partition")
        found.append(AttentionReason("records_lost", f"records deleted before they were read in {lost}"))
    if lag.unknown:
        found.append(AttentionReason("lag_unknown", f"lag not known in {_count(lag.unknown, 'partition')}"))
        # Where records waited when it was last known, they do until it is known again.
        lag = lag._replace(waits=lag.waits or bool(board.lag_history.last_known(name)))
    found += _of_lag(board, held, lag, now_ms)
    for kind, groups in board.findings.overdue.items():
        if name in groups and kind != STALLED:
            found = [look for look in found if look.code != ALARMS[kind].instead_of]
            found += _by_clock(board, held, kind)
    expected = board.expectations.kinds(name)
    if (of := board.findings.not_back.get(name)) is not None and not of.is_open and not_back.KIND not in expected:
        found.append(
            AttentionReason("members_missing", f"{_count(of.missing, 'member')} fewer since the roll", of.since_ms)
        )
    return [look.as_json(expected) for look in sorted(found, key=_rank)]


def _rank(reason: AttentionReason) -> tuple[int, int]:
    return _WORST_FIRST.index(reason.severity), _RANKS[reason.code]


def _of_state(held: BoardGroup, now_ms: int, read_ms: int | None) -> Iterator[AttentionReason]:
    state = held.state
    for kind in state.alarms:
        row, alarms = ALARMS[kind], still_open(state, kind, now_ms)
        if alarms and row.code is not None:
            doubted = all(of.detail == static_members.DOUBTED for of in alarms.values())
            yield AttentionReason(row.code, row.text(len(alarms), [*alarms]), doubted=doubted)
    if state.rebalance is not None:
        yield AttentionReason("rebalancing", "rebalancing", held.summary.rebalancing_since_ms)
    leftovers = state.membership.leftovers()
    if leftovers:
        yield AttentionReason("leftover_records", f"{_count(leftovers, 'record')} left over from a downgrade")
    if state.newer_versions:
        versions = ", ".join(f"type {type_} v{version}" for type_, version in sorted(state.newer_versions.items()))
        yield AttentionReason("newer_value_versions", f"read from records newer than this release knows: {versions}")
    yield from _of_migration(held, now_ms, read_ms)


def _of_migration(held: BoardGroup, now_ms: int, read_ms: int | None) -> Iterator[AttentionReason]:
    state = held.state
    blocked_ms = state.migration.blocked_since_ms
    if blocked_ms is not None and now_ms - blocked_ms <= STOPPED_RECENTLY_MS:
        why = ", ".join(BLOCKERS[code] for code in held.words.blockers)
        yield AttentionReason(
            "upgrade_blocked", f"a broker refuses a member in the place of one that left: {why}", blocked_ms
        )
    mixed_ms = state.migration.mixed_since_ms
    if not state.migration.mixed:
        return
    upgrade = state.migration.upgrade
    if upgrade is not None and upgrade.wrong and not upgrade.may_have_left:
        yield AttentionReason("upgrade_unclean", f"upgrade did not keep {', '.join(upgrade.wrong)}", upgrade.begun_ms)
    if any(stuck.migration_stalled(Moment(state=state, now_ms=now_ms, read_ms=read_ms))):
        yield AttentionReason(STALLED, ALARMS[STALLED].text(1), mixed_ms)
    else:
        yield AttentionReason(phases.phase(state) or "mixed", "both protocols", mixed_ms)


def _of_lag(board: Board, held: BoardGroup, lag: ReadLag, now_ms: int) -> Iterator[AttentionReason]:
    of, committed_ms = held.summary, lag.committed_ms
    if of.words.simple or not lag.waits:
        return
    lag_grew = board.lag_history.grew(held.name, now_ms - COMMIT_WINDOW_MS) is not False
    # What is said stands beside the trend of the page.
    waits = LAG_GROWS if board.lag_history.grew(held.name, now_ms - TREND_MS) else "records wait"
    silent_ms, empty_ms = now_ms - committed_ms, now_ms - of.last_step_ms
    if of.members:
        # A time that is not known, as of polled groups, makes no alarm.
        if committed_ms >= 0 and lag_grew and silent_ms >= COMMIT_WINDOW_MS + NO_COMMIT_MS:
            yield AttentionReason("lag_without_commits", f"{waits} and nothing is committed", committed_ms)
    elif committed_ms > of.last_step_ms >= 0 and silent_ms < 2 * STOPPED_MS:
        return  # a consumer that joins no group, as Flink's
    elif empty_ms >= STOPPED_MS:
        since_ms = of.last_step_ms if of.last_step_ms >= 0 else None
        if lag_grew and empty_ms <= STOPPED_RECENTLY_MS:
            yield AttentionReason("consumers_stopped", f"no members, and {waits}", since_ms)
        else:
            yield AttentionReason("unread", "no members, and records wait", since_ms)


def _by_clock(board: Board, held: BoardGroup, kind: str) -> Iterator[AttentionReason]:
    """What is said of an alarm that a look with a clock has found."""
    row, lost = ALARMS[kind], board.findings.not_back.get(held.name)
    if kind == not_back.KIND and lost is not None:
        yield AttentionReason(kind, row.text(lost.missing), lost.since_ms)
        return
    count = held.unassigned_partitions(board.ends.sizes) if kind == UNASSIGNED else 1
    if row.code is not None and count:
        yield AttentionReason(row.code, row.text(count), getattr(held.summary, row.since) if row.since else None)


def _count(number: int, one: str, many: str = "") -> str:
    return f"{number:,} {one if number == 1 else many or one + 's'}"

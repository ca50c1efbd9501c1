"""Every figure of a group, one row each: its name, how it is worked out of a state, and how it is packed.

`GroupWords` are what many groups have in common, `GroupNumbers` what each has of its own. Nothing else lists them:
what is worked out, packed, stored, read, and put side by side for all groups follows the rows and their order. Topics
(`topics.py`), and times and durations (`summary.py`), are no single values and stand beside them.

What is stored carries the number of the rules it was worked out by: `FORMAT` of `stored.py`, which grows with any
change of a row.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from coordinator_model.clocked import alarms
from coordinator_model.figures.rows import NONE, Number, NumberOrNone, number_rows, packing, word, word_rows, words
from coordinator_model.figures.workings import Workings
from coordinator_model.gates import downgrade, plan, upgrade
from coordinator_model.gates.verdict import BrokerSettings, Reason
from coordinator_model.groups.consumer import preferred_assignor
from coordinator_model.migration import leftover_records, phases, upgrade_blockers
from coordinator_model.records.record_types import RecordType
from coordinator_model.rules import settling, subscriptions
from coordinator_model.rules.members import is_absent, session_timeout_ms
from coordinator_model.views import group_view

Counts = tuple[tuple[str, str], ...]


def _protocol(of: Workings) -> str | None:
    """The assignor: chosen by a classic group, preferred by another; None for the broker's default."""
    if of.modern is not None:
        return preferred_assignor(of.modern)
    return None if of.membership.classic is None else of.membership.classic.protocol


def _is_steady(of: Workings) -> bool:
    state, moved = of.state, of.migration
    return not (
        alarms.asks_for_a_look(state)
        or state.rebalance
        or state.endings
        or state.awaited_rewinds
        or state.absences is not None
        or (of.restless is not None and settling.too_many_epochs(of.restless))
        or of.leftovers
        or of.absent
        or moved.mixed
        or (moved.roll is not None and moved.roll.since_ms is not None)
        or moved.blocked_since_ms is not None
        or state.newer_versions
    )


def _awaits_static(of: Workings) -> bool:
    return (
        of.absent > 0
        and any(history.absent_since_ms is not None for history in of.state.instances.values())
        and any(is_absent(member) and session_timeout_ms(member) is None for member in of.members)
    )


def _live_records(stored: Any) -> tuple[tuple[RecordType, int], ...]:  # noqa: ANN401 - what JSON holds
    return tuple((RecordType(type_), count) for type_, count in stored)


def _pairs(reasons: Iterable[Reason]) -> Counts:
    return tuple([(reason.effect, reason.code) for reason in reasons])


_UNKNOWN_SETTINGS: Final = BrokerSettings()


@words
class GroupWords:
    """What there is to say of a group besides numbers and topics: many groups share one object."""

    type: str = word(lambda of: of.state.type)
    # Whether a broker would list it.
    exists: bool = word(lambda of: of.state.exists)
    is_modern: bool = word(lambda of: of.modern is not None)
    group_state: str = word(lambda of: group_view.group_state(of.state))
    simple: bool = word(lambda of: of.state.simple)
    # Whether it is not of the log: what only that has is not known.
    polled: bool = word(lambda of: bool(of.state.polled_state))
    protocol: str | None = word(_protocol)
    phase: str | None = word(lambda of: phases.phase_of(of.state, of.blockers))
    blockers: tuple[str, ...] = word(lambda of: of.blockers)
    out_of_scope: str | None = word(lambda of: upgrade_blockers.out_of_scope(of.membership.classic_group))
    in_step: bool = word(lambda of: of.state.step is not None)
    # Whether a topic that is not among the subscribed ones is one that no member reads.
    all_topics_known: bool = word(lambda of: subscriptions.all_known(of.membership))
    # Live records of the new protocols, by type.
    new_protocol_records: tuple[tuple[RecordType, int], ...] = word(
        lambda of: tuple(leftover_records.live_records(of.membership).items()), _live_records
    )
    # Whether the state is one that asks for no look: nothing overlaps, is under way, away or left over.
    steady: bool = word(_is_steady)
    # Whether a member is away of which the log does not say how long it may be.
    awaits_static: bool = word(_awaits_static)
    # Whether members could be rolled to the consumer protocol.
    to_upgrade: bool = word(lambda of: upgrade.to_convert(of.state))
    # For that protocol (`gates/plan.py`), as the log alone has it.
    readiness: str = word(lambda of: plan.readiness_of(of.state, of.blockers, {*of.subscribed, *of.assigned}))
    # (effect, code) of the upgrade gate's reasons, asked without the brokers; then those of the downgrade gate.
    upgrade_reasons: Counts = word(
        lambda of: _pairs(upgrade.of_group(of.state, _UNKNOWN_SETTINGS, of.blockers, asked=False))
    )
    downgrade_reasons: Counts = word(lambda of: _pairs(downgrade.of_group(of.state, None, asked=False)))


class GroupNumbers:
    """What each group has of its own, an int64 each, named as in GROUP (`coordinator_model/views`) and in the state."""

    __slots__ = ("numbers",)

    numbers: bytes

    partition = Number(lambda of: of.state.partition)
    epoch = Number(lambda of: of.state.epoch)
    assignment_epoch = NumberOrNone(lambda of: None if of.modern is None else of.modern.assignment_epoch)
    classic_members = Number(lambda of: len(of.members) - of.consumers)
    consumer_members = Number(lambda of: of.consumers)
    static_members = Number(lambda of: sum(member.instance_id is not None for member in of.members))
    absent_members = Number(lambda of: of.absent)
    duplicates = Number(lambda of: len(of.state.open("duplicate_assignment")))
    upgraded_members = Number(lambda of: phases.members_by_protocol(of.membership)[1])
    mixed_since_ms = NumberOrNone(lambda of: of.migration.mixed_since_ms)
    leftovers = Number(lambda of: of.leftovers)
    rebalancing_since_ms = NumberOrNone(lambda of: None if of.state.rebalance is None else of.state.rebalance.since_ms)
    last_step_ms = Number(lambda of: of.state.last_step_ms)
    rounds_lost_ms = NumberOrNone(lambda of: of.state.rounds_lost_ms)
    unsettled_since_ms = NumberOrNone(lambda of: None if of.restless is None else of.restless.since_ms)
    unsettled_last_ms = NumberOrNone(lambda of: None if of.restless is None else of.restless.last_ms)
    unsettled_epochs = NumberOrNone(lambda of: None if of.restless is None else of.restless.counted)
    unsettled_under_way = NumberOrNone(lambda of: None if of.restless is None else of.restless.under_way)
    # The last of the recent ones.
    last_rebalance_ms = NumberOrNone(lambda of: max(of.state.recent_rebalances_ms, default=None))
    rebalances = Number(lambda of: of.counters.rebalances)
    rounds_lost = Number(lambda of: of.counters.rounds_lost)
    rebalances_avoidable = Number(lambda of: of.counters.rebalances_avoidable)
    partitions_moved = Number(lambda of: of.counters.partitions_moved)
    partitions_kept = Number(lambda of: of.counters.partitions_kept)
    stale_claims = Number(lambda of: of.counters.stale_claims)
    static_replacements = Number(lambda of: of.counters.static_replacements)
    static_returns = Number(lambda of: of.counters.static_returns)
    rebalances_saved = Number(lambda of: of.counters.rebalances_saved)
    offset_resets = Number(lambda of: of.counters.offset_resets)
    upgrades = Number(lambda of: of.counters.upgrades)
    downgrades = Number(lambda of: of.counters.downgrades)


WORDS: Final = word_rows(GroupWords)
"""Name → row, of `GroupWords`."""

_ROWS: Final = number_rows(GroupNumbers)
NUMBERS: Final = tuple(_ROWS)
"""The names of `GroupNumbers`, in the order in which they are packed."""

_PACKING: Final = packing(len(NUMBERS))
NUMBER_BYTES: Final = _PACKING.size
"""How long the numbers of a group are, packed."""

_EACH: Final = tuple(_ROWS.values())


def packed_numbers(of: Workings) -> bytes:
    """`GroupNumbers.numbers`, worked out."""
    return _PACKING.pack(*[NONE if (number := row(of)) is None else number for row in _EACH])

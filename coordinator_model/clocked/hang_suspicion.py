"""Classic groups whose silence is worth a question, and what the coordinator's answer to it means.

While a classic group rebalances nothing is written, so a rebalance that hangs looks like an idle group. But idle groups
have no lag, and busy ones commit; who does neither is suspected, and only then is the coordinator asked for the state
that it holds in memory:

    suspicion          of a group                                         when
    commits_stopped    with members, that commits and now lags            nothing was written of it for a while
    rounds_lost        with members, of which a generation was lost       just now
    forming            without members since lately                       members may be joining

    answer                                    for longer than a rebalance may take    is
    PreparingRebalance, CompletingRebalance   yes                                     `rebalance_stuck`
    PreparingRebalance, CompletingRebalance   no                                      to be asked for again
    any other                                                                         an idle or slow group: nothing

A rebalance may take the longest rebalance timeout of the members; then the coordinator removes whom it waited for. One
that lasts longer goes from one lost round to the next, or its coordinator is at fault. What counts is the time between
the first and the last answer of an unbroken row without a new generation: more is not known.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final

from coordinator_model.clocked.described import COMPLETING, PREPARING, Described
from coordinator_model.clocked.moment import Moment
from coordinator_model.clocked.stuck import GRACE_MS
from coordinator_model.rules.rebalances import DEFAULT_REBALANCE_TIMEOUT_MS
from coordinator_model.state.events import Event
from coordinator_model.state.findings import Finding, Position, events_of
from coordinator_model.state.membership import ClassicGroup

COMMITS_STOPPED: Final = "commits_stopped"
ROUNDS_LOST: Final = "rounds_lost"
FORMING: Final = "forming"

SILENT_MS: Final = 15_000
"""Three times auto.commit.interval.ms by default."""

RECENT_MS: Final = 900_000
"""How long a lost round, or the last member's departure, is a reason to ask. Beyond it no member is expected back."""

FRESH_MS: Final = 60_000
"""How old an answer may be to say something of now, and how far apart two answers of one row may be."""


def why(  # noqa: PLR0913 - what is known of a group, each by its name
    *,
    members: int,
    last_step_ms: int,
    rounds_lost_ms: int | None,
    newest_commit_ms: int | None,
    lags: bool,
    now_ms: int,
) -> str | None:
    """Why the coordinator of a classic group should be asked about it, of which no step is open; None for no reason.

    Args:
        members: how many it has.
        last_step_ms: when anything was last written about it.
        rounds_lost_ms: when a generation was last found to be lost; None for never.
        newest_commit_ms: when any of its offsets was last committed; None where none was.
        lags: whether records wait for it in some partition.
        now_ms: the time, by the brokers' clocks.
    """
    if not members:
        return FORMING if SILENT_MS < now_ms - last_step_ms <= RECENT_MS else None
    if rounds_lost_ms is not None and SILENT_MS < now_ms - rounds_lost_ms <= RECENT_MS:
        return ROUNDS_LOST
    if newest_commit_ms is None or not lags:
        return None
    return COMMITS_STOPPED if now_ms - max(newest_commit_ms, last_step_ms) > SILENT_MS else None


def described(former: Described | None, answer: str, members: int, step_offset: int, now_ms: int) -> Described:
    """An answer in a row with the former one."""
    alone = Described(state=answer, members=members, asked_ms=now_ms, since_ms=now_ms, step_offset=step_offset)
    in_a_row = (
        former is not None
        and former.rebalancing
        and alone.rebalancing
        and former.step_offset == step_offset
        and now_ms - former.asked_ms <= FRESH_MS
    )
    if former is None or not in_a_row:
        return alone
    return Described(state=answer, members=members, asked_ms=now_ms, since_ms=former.since_ms, step_offset=step_offset)


def rebalance_hangs(moment: Moment) -> Iterable[Event]:
    """The stuck rebalance of a classic group, as of the last record of it."""
    state, answer, now_ms, moved_ms = moment.state, moment.described, moment.now_ms, moment.moved_ms
    group = state.membership.classic_group
    if group is None or answer is None or not answer.rebalancing or answer.step_offset != state.last_step_offset:
        return ()
    lasting_ms = answer.asked_ms - max(answer.since_ms, moved_ms or 0)
    timeout_ms = rebalance_timeout_ms(group)
    if now_ms - answer.asked_ms > FRESH_MS or lasting_ms <= timeout_ms + GRACE_MS:
        return ()
    detail: dict[str, Any] = {
        "generation": group.generation,
        "state": answer.state,
        "waiting_for": "members" if answer.state == PREPARING else "assignor",
        "described_members": answer.members,
        "rebalancing_ms": lasting_ms,
        "timeout_ms": timeout_ms,
        "silent_ms": now_ms - state.last_step_ms,
    }
    if answer.state == COMPLETING:
        detail["former_leader"] = group.leader
    position = Position(state.partition, state.last_step_offset, state.last_step_ms)
    return events_of(state.name, position, [Finding("rebalance_stuck", detail, inferred=True)])


def rebalance_timeout_ms(group: ClassicGroup) -> int:
    """How long a rebalance may take: the longest time of a member, Kafka's default where none says."""
    longest_ms = max((member.rebalance_timeout_ms for member in group.members.values()), default=-1)
    return longest_ms if longest_ms > 0 else DEFAULT_REBALANCE_TIMEOUT_MS

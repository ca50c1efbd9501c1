"""Members that exceed `max.poll.interval.ms` again and again: the commonest trouble there is, and no record names it.

A client whose application does not poll in time leaves the group, and joins again with the next poll. It asks for its
poll interval as its rebalance timeout, so that the log has it:

    joins      has polled, and gets partitions
    leaves     one poll interval later: the records it got take longer
    joins      with the next poll, once it is through with them; or in the step in which it left, where others were slow
               to rejoin, too

One process after another of the same client id and host, each in the place of the one before, is a run. A leave is
counted in it if it comes 0.8 to 1.5 rebalance timeouts after the leave before, and who leaves was a member for at least
half a timeout. Three in a row, and a fourth process that joins: it is reported. Five in a row are asked for where it is
a guess: others of the same client id and host were there at a leave or a join of the run, so that it is not known who
came in whose place; or one left before it had been a member for a poll interval, so that it left for another reason.
It is over when a timeout and a half have gone by without a leave that counts (`clocked/endings.py`).

    looks alike                                          and differs
    a rolling restart, one process each five minutes     who comes in a process's place stays
    a job that runs each five minutes                    it is a member for a small part of them
    a crash loop                                         it dies soon after it joined; a static member's has a kind of
                                                         its own (`static_members.py`)

A static member of the classic protocol does not leave: its session ends, and it is gone. One of the consumer protocol
is away until it polls.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Mapping
from dataclasses import replace
from typing import Final

from coordinator_model.rules import endings, lasting
from coordinator_model.rules.members import Member, is_absent, members_of, replacements
from coordinator_model.rules.transition import Transition
from coordinator_model.state.clocks import elapsed_ms, within
from coordinator_model.state.findings import Finding
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.membership import Membership
from coordinator_model.state.rule_memory import Ending, PollRun

EXCEEDED: Final = "poll_interval_exceeded"

IN_A_ROW: Final = 3
IN_A_ROW_OF_A_GUESS: Final = 5
"""By chance three are not rare, five are."""

SHORTEST: Final = 0.8
LONGEST: Final = 1.5
MEMBER_FOR: Final = 0.5
"""In rebalance timeouts: between two leaves, and between a join and the leave after it."""

WHOLE: Final = 0.9
"""As much of one is a poll interval: a member that polls as it joins cannot exceed it sooner. Records of both come a
little later than what they tell of."""

MOST_KEPT: Final = 100
"""So many runs are remembered of a group, those with most leaves; one that loses more members at once is restarted."""


def exceeded(transition: Transition) -> Iterator[Finding]:
    """Advance `state.poll_runs` over one step; yields a run of leaves that becomes one."""
    state, before = transition.state, transition.before
    was, now = _present(before), _present(transition.after)
    if was.keys() == now.keys() and not state.poll_runs and not state.open(EXCEEDED):
        return
    known = state.poll_runs
    replaced = {of.member_id for pair in replacements(was, now) for of in pair}
    runs = [run for run in known if _may_go_on(run, transition.time_ms)]
    alike_before, alike_now = Counter(map(_process, was.values())), Counter(map(_process, now.values()))
    for member_id, member in was.items():
        if member_id not in now and member_id not in replaced and member.rebalance_timeout_ms > 0:
            _left(runs, member, transition, is_guess=alike_before[_process(member)] > 1)
    joined: list[PollRun] = []
    for member_id, member in now.items():
        if member_id not in was and member_id not in replaced:
            joined += _joined(runs, member, transition.time_ms, is_guess=alike_now[_process(member)] > 1)
    runs.sort(key=lambda run: -run.leaves)  # stable, so that of as many the earlier one stays
    state.poll_runs = tuple(runs[:MOST_KEPT])
    yield from _reported(transition, joined)
    _end(state, known, transition.time_ms)


def last_of(runs: tuple[PollRun, ...], name: str) -> PollRun | None:
    """The run of a process that was or may be reported, with the latest leave; None for none."""
    found = [run for run in runs if run.name == name and run.leaves >= IN_A_ROW]
    return max(found, key=lambda run: run.left_ms, default=None)


def is_open(state: GroupState, kind: str, name: str, now_ms: int) -> bool:
    """Whether a run was reported, and a leave may yet be counted in it."""
    run = last_of(state.poll_runs, name)
    return name in state.open(kind) and run is not None and _may_go_on(run, now_ms)


def ending(name: str, run: PollRun) -> Ending:
    """The end of a reported run: when no other leave would have been counted in it."""
    return Ending(kind=EXCEEDED, name=name, offset=run.offset, time_ms=run.left_ms + _longest_ms(run))


def process_of(name: str) -> dict[str, str]:
    """Client id and host of an alarm's name, as its events have them; a host has no blank in it."""
    client_id, _, client_host = name.rpartition(" ")
    return {"client_id": client_id, "client_host": client_host}


def _present(membership: Membership) -> Mapping[str, Member]:
    members = members_of(membership)
    if not any(is_absent(member) for member in members.values()):
        return members
    return {member_id: member for member_id, member in members.items() if not is_absent(member)}


def _may_go_on(run: PollRun, now_ms: int) -> bool:
    return within(_longest_ms(run), run.left_ms, now_ms)


def _longest_ms(run: PollRun) -> int:
    return int(LONGEST * run.timeout_ms)


def _left(runs: list[PollRun], member: Member, transition: Transition, *, is_guess: bool) -> None:
    """A member left: the run in which it had joined goes on, or another begins."""
    time_ms, timeout_ms = transition.time_ms, member.rebalance_timeout_ms
    known = next((run for run in runs if run.member_id == member.member_id), None)
    leaves, since_ms = 1, time_ms
    if known is not None:
        runs.remove(known)
        span_ms, stayed_ms = elapsed_ms(known.left_ms, time_ms), elapsed_ms(known.joined_ms, time_ms)
        if SHORTEST * timeout_ms <= span_ms <= LONGEST * timeout_ms and stayed_ms >= MEMBER_FOR * timeout_ms:
            leaves, since_ms = known.leaves + 1, known.since_ms
            is_guess |= known.is_guess or stayed_ms < WHOLE * timeout_ms
    runs.append(
        PollRun(
            name=_process(member),
            since_ms=since_ms,
            left_ms=time_ms,
            offset=transition.position.offset,
            timeout_ms=timeout_ms,
            leaves=leaves,
            is_guess=is_guess,
        )
    )


def _joined(runs: list[PollRun], member: Member, time_ms: int, *, is_guess: bool) -> Iterator[PollRun]:
    """A member joined: in the place of the first of its client id and host in whose place none is yet."""
    name = _process(member)
    for at, run in enumerate(runs):
        if run.name == name and not run.member_id:
            runs[at] = replace(run, member_id=member.member_id, joined_ms=time_ms, is_guess=is_guess or run.is_guess)
            yield runs[at]
            return


def _reported(transition: Transition, joined: list[PollRun]) -> Iterator[Finding]:
    state = transition.state
    if not transition.live:
        return
    members = members_of(transition.after)
    for run in joined:
        if run.leaves < (IN_A_ROW_OF_A_GUESS if run.is_guess else IN_A_ROW):
            continue
        is_new = run.name not in state.open(EXCEEDED)
        lasting.opened(state, EXCEEDED, transition.position, run.name, (run.member_id,))
        if is_new:
            detail = {
                **process_of(run.name),
                "member_id": run.member_id,
                "instance_id": members[run.member_id].instance_id,
                "leaves": run.leaves,
                "since": run.since_ms,
                "every_ms": elapsed_ms(run.since_ms, run.left_ms) // (run.leaves - 1),
                "rebalance_timeout_ms": run.timeout_ms,
            }
            yield Finding(EXCEEDED, detail, inferred=True)


def _end(state: GroupState, known: tuple[PollRun, ...], now_ms: int) -> None:
    """What was reported, and goes on no longer: the clock reports its end."""
    for name in [*state.open(EXCEEDED)]:
        if is_open(state, EXCEEDED, name, now_ms):
            continue
        run, alarm = last_of(known, name), state.open(EXCEEDED)[name]
        # A leave that does not count ends it sooner; of what was read again it is known that it was not later.
        over = (
            Ending(kind=EXCEEDED, name=name, offset=alarm.offset, time_ms=now_ms) if run is None else ending(name, run)
        )
        endings.remember(state, replace(over, time_ms=min(over.time_ms, now_ms)))
        lasting.closed(state, EXCEEDED, name)


def _process(member: Member) -> str:
    return f"{member.client_id} {member.client_host}"

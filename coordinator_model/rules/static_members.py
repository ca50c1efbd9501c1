"""Static members over time: who stands for an instance id, who is away, and two that fight over it (KIP-345).

An instance id is one process's identity; the member id under it changes with every restart. What is written of it:

    protocol   a process that                 writes
    classic    stops                          nothing, until its session expires; then it is gone like any other
               is started again in time       the same generation with another member id: no rebalance
               ... while the group moves      the next generation with another member id
    consumer   stops                          epoch -2: away, its partitions kept (nothing if it dies)
               is started again in time       tombstones and the new id's records in one step, no new epoch
               comes while the other lives    nothing: it is refused (UNRELEASED_INSTANCE_ID)

So a member that goes in the step in which another of its instance id comes is reported as one and the same:

    the former one was away               static_member_returned
    it was not                            static_member_replaced: a restart, or another process of the same id

Take-overs less than ten minutes apart are a run, and a member that expired and joins again belongs to it. A process is
known by client id and host. In a run

    a process that the id was taken from has it again, twice    static_member_contended: two of them, each fencing
                                                                the other (A, B, A, B)
    the same, once                                              static_member_contended as a warning: a node that is
                                                                drained and back looks so, too (A, B, A)
    the id was taken over five times, and none of these         static_member_restarting: one process in a loop, or two
                                                                that look alike
    fewer                                                       nothing: a roll, done twice or three times
    again within two seconds, by the same process               not counted: the process retries its join, whose answer
                                                                was lost with a connection or a broker

A coordinator keeps the client id and host of a classic member whose successor joins while the group is Stable
(docs/coordinator-log.md, "Classic groups"), so that two processes of different hosts may look alike there. The consumer
protocol refuses the second process and writes nothing: it has neither but where members use the classic protocol. Who
was away had released the id, so that no member lost it. When ten minutes have passed without another take-over
it is over, which the clock reports (`clocked/endings.py`).

Coming back without a new epoch is a rebalance saved, and is counted. How long a member may be away is its session
timeout. The log has a classic member's only; a consumer-protocol member's is configuration (of the group,
`consumer.session.timeout.ms`, or of the broker, `group.consumer.session.timeout.ms`), and shown as unknown.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from coordinator_model.rules import endings, lasting
from coordinator_model.rules.members import Member, is_absent, members_of, named, replacements, speaks
from coordinator_model.rules.transition import Transition
from coordinator_model.state.clocks import elapsed_ms, within
from coordinator_model.state.events import INFO, WARNING
from coordinator_model.state.findings import Finding, Position
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.rule_memory import Ending, FormerMember, InstanceHistory

RUN_GAP_MS: Final = 600_000
"""A process that was fenced is started again by its supervisor, which waits for five minutes at most; twice that ends a
run."""

RESTARTS: Final = 5
"""So many take-overs in a run are no roll: it restarts each process once, and may be done three times."""

RETRY_MS: Final = 2_000
"""A join without an answer is sent again after retry.backoff.max.ms, one second, and gets another member id. No process
is up again so soon."""

RETRIES_MS: Final = 60_000
"""What retries for longer is counted once a minute: it may be a loop after all."""

PROVEN: Final = 2
"""So often an id is taken back in a run only by processes that fight: a node is drained, and is back, once."""

DOUBTED: Final = "taken back once"
"""What is remembered of a contention that was reported as a warning."""

CONTENDED: Final = "static_member_contended"
RESTARTING: Final = "static_member_restarting"

FORMER_KEPT: Final = 8
"""Former member ids that are remembered of an instance id."""


def succession(transition: Transition) -> Iterator[Finding]:
    """Advance `state.instances` over one step; yields who is back or was replaced."""
    state, before, after = transition.state, transition.before, transition.after
    was, now = members_of(before), members_of(after)
    saved = before.type == after.type and before.epoch == after.epoch
    for former, member in replacements(was, now):
        yield _back(state, former, member, transition.time_ms, saved=saved)
    standing = {member.instance_id: member for member in now.values() if member.instance_id is not None}
    of_before = {member.instance_id: member for member in was.values() if member.instance_id is not None}
    # In the order they came, and not that of a set: the same log makes the same state, to the byte.
    for instance_id in [of for of in state.instances if of not in standing]:
        state.departed[instance_id] = state.instances.pop(instance_id)
    for instance_id, member in standing.items():
        history = state.instances.get(instance_id) or state.departed.pop(instance_id, None)
        if history is None:
            history = InstanceHistory(member_id=member.member_id, since_ms=transition.time_ms, process=_process(member))
        state.instances[instance_id] = history
        history.absent_since_ms = (history.absent_since_ms or transition.time_ms) if is_absent(member) else None
        if history.member_id != member.member_id:
            history.bounces += saved
            _end_of_run(state, instance_id, history, transition.time_ms)
            _take_over(history, of_before.get(instance_id), member, transition.position)
    _forget(state, transition.time_ms)


def contention(transition: Transition) -> Iterator[Finding]:
    """Instance ids that processes begin to take from each other, or one takes again and again.

    The clock reports that it is over. What began before the live tail is reported with the next take-over.
    """
    state, members, position = transition.state, members_of(transition.after), transition.position
    if not transition.live:
        return
    for instance_id, history in state.instances.items():
        if history.since_ms != transition.time_ms:
            continue  # no member took it in this step
        about = (history.member_id,)
        reported = [*open_alarms(state, instance_id)]
        for kind in reported:
            lasting.opened(state, kind, position, instance_id, about)
        fought = history.process in history.displaced
        restarted = history.restarts >= RESTARTS and not fought and CONTENDED not in reported
        proven = fought and history.taken_back >= PROVEN
        known = CONTENDED in reported and not (proven and is_doubted(state, instance_id))
        if not (fought and not known) and not (restarted and RESTARTING not in reported):
            continue
        doubt = DOUBTED if fought and not proven else ""
        lasting.opened(state, CONTENDED if fought else RESTARTING, position, instance_id, about, doubt)
        if fought and RESTARTING in reported:
            lasting.closed(state, RESTARTING, instance_id)
            cleared = {"instance_id": instance_id, "member_ids": [history.member_id], "cleared": True}
            yield Finding(RESTARTING, cleared, severity=INFO, inferred=True)
        member = members[history.member_id]
        processes = sorted({*history.displaced, history.process})
        detail = {
            "instance_id": instance_id,
            "member_ids": sorted((*(former.member_id for former in history.former[-1:]), member.member_id)),
            "client_ids": sorted({process.rpartition(" ")[0] for process in processes}),
            "client_hosts": sorted({process.rpartition(" ")[2] for process in processes}),
            "partitions": _held(member),
            "replacements": history.takeovers,
            "since": history.replaced_ms[0],
        }
        if not fought:
            alike = "two_processes" if speaks(member) == "classic" else "two_processes_on_one_host"
            detail["may_be"] = ["one_process", *([alike] if len(processes) == 1 else [])]
        severity = WARNING if doubt else None
        yield Finding(CONTENDED if fought else RESTARTING, detail, severity=severity, inferred=True)


def is_doubted(state: GroupState, instance_id: str) -> bool:
    """Whether a contention was reported on too little evidence to wake anybody: the id was taken back once."""
    return DOUBTED in {of.detail for name, of in state.open(CONTENDED).items() if name == instance_id}


def last_take_over_ms(history: InstanceHistory) -> int:
    """When the instance id was last taken over in the run at hand."""
    return history.replaced_ms[-1] if history.replaced_ms else history.since_ms


def end_ms(history: InstanceHistory) -> int:
    """When a run is over that no other take-over follows."""
    return last_take_over_ms(history) + RUN_GAP_MS


def is_open(state: GroupState, kind: str, instance_id: str, now_ms: int) -> bool:
    """Whether one of the two kinds was reported of an instance id, and neither a record nor time has ended it."""
    # It is closed with the next take-over only, and there may be none.
    history = state.instances.get(instance_id)
    return instance_id in state.open(kind) and history is not None and is_going_on(history, now_ms)


def is_going_on(history: InstanceHistory, now_ms: int) -> bool:
    """Whether another take-over would belong to the same run."""
    return within(RUN_GAP_MS, last_take_over_ms(history), now_ms)


def open_alarms(state: GroupState, instance_id: str) -> Iterator[str]:
    """Kinds that were reported of an instance id, and not yet their end."""
    return (kind for kind in (CONTENDED, RESTARTING) if instance_id in state.open(kind))


def _back(state: GroupState, former: Member, member: Member, time_ms: int, *, saved: bool) -> Finding:
    counters = state.counters
    counters.rebalances_saved += saved
    detail = {
        **named(member),
        "former_member_id": former.member_id,
        "partitions": _held(member),
        "rebalance_saved": saved,
    }
    if not is_absent(former):
        counters.static_replacements += 1
        return Finding("static_member_replaced", detail)
    counters.static_returns += 1
    history = state.instances.get(member.instance_id or "")
    if history is not None and history.absent_since_ms is not None:
        detail["absent_ms"] = elapsed_ms(history.absent_since_ms, time_ms)
    return Finding("static_member_returned", detail)


def _take_over(history: InstanceHistory, former: Member | None, member: Member, position: Position) -> None:
    """Another member id stands for the instance. `former` is the one before in the step before; None if it was gone."""
    time_ms, process = position.timestamp_ms, _process(member)
    predecessor = FormerMember(member_id=history.member_id, since_ms=history.since_ms)
    history.former = (*history.former, predecessor)[-FORMER_KEPT:]
    history.member_id, history.since_ms = member.member_id, time_ms
    history.takeovers += 1
    there = former is not None and not is_absent(former)
    soon = any(within(RETRY_MS, ms, time_ms) for ms in history.replaced_ms[-1:])
    retried = there and soon and history.process == process
    if not (retried and within(RETRIES_MS, history.restarted_ms, time_ms)):
        history.restarts, history.restarted_ms = history.restarts + 1, time_ms
    history.replaced_ms, history.replaced_offset = (*history.replaced_ms, time_ms)[-FORMER_KEPT:], position.offset
    if not there:
        history.displaced.clear()
        history.taken_back = 0
    elif history.process and history.process != process:
        history.displaced[history.process] = time_ms
        history.taken_back += process in history.displaced
    history.process = process


def _end_of_run(state: GroupState, instance_id: str, history: InstanceHistory, time_ms: int) -> None:
    """Begin another run if the last take-over is long ago."""
    if is_going_on(history, time_ms):
        return
    for kind in [*open_alarms(state, instance_id)]:
        over_ms = end_ms(history)
        endings.remember(state, Ending(kind=kind, name=instance_id, offset=history.replaced_offset, time_ms=over_ms))
        lasting.closed(state, kind, instance_id)
    history.takeovers, history.restarts, history.replaced_ms, history.displaced = 0, 0, (), {}
    history.taken_back = 0


def _forget(state: GroupState, time_ms: int) -> None:
    """Those that left long ago: who comes under their name then begins afresh."""
    for instance_id, history in list(state.departed.items()):
        if not within(endings.TELLABLE_MS, last_take_over_ms(history), time_ms) or (
            not any(open_alarms(state, instance_id)) and not within(RUN_GAP_MS, last_take_over_ms(history), time_ms)
        ):
            del state.departed[instance_id]
            for kind in [*open_alarms(state, instance_id)]:
                lasting.closed(state, kind, instance_id)


def _process(member: Member) -> str:
    return f"{member.client_id} {member.client_host}"


def _held(member: Member) -> dict[str, Any]:
    return {topic: list(partitions) for topic, partitions in sorted(member.assigned.items())}

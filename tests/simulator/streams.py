"""Streams groups (docs/coordinator-log.md; KIP-1071): like consumer groups, but of tasks, and for a topology.

A task is a subtopology and a number; there are as many as the largest source topic has partitions. An active task has
one owner at a time, and comes to a process only when no member of it runs the same one in another role. A group that
had no members waits for more before its first target. Where a source topic is missing no member has tasks.
"""

from collections.abc import Iterable
from copy import deepcopy
from typing import Final

from lab import builders
from lab.builders import RecordBytes
from tests.simulator.assignors import sticky
from tests.simulator.cluster import Place, metadata_hash
from tests.simulator.consumer import answered, with_answer
from tests.simulator.memory import (
    STABLE,
    SUBTOPOLOGIES,
    UNRELEASED,
    UNREVOKED,
    Group,
    Member,
    by_topic,
    with_epochs,
)

INITIAL_DELAY_MS: Final = 3_000
"""group.streams.initial.rebalance.delay.ms."""
CONFIG: Final = "num.standby.replicas"


def joined(group: Group, member: Member, now_ms: int) -> list[RecordBytes]:
    """A member joins; the first one brings the topology, and a target comes only after a while."""
    if not group.members and group.cluster.release.validates_topology:
        group.delayed_until_ms = now_ms + INITIAL_DELAY_MS
    group.members[member.member_id] = member
    records = [_described(group, member)]
    if not group.topology:
        group.topology = True
        sources = {name: list(topics) for name, topics in SUBTOPOLOGIES.items()}
        records.append(builders.streams_group_topology(group.name, 0, sources))
    group.epoch += 1
    records += [_epoch(group), *_retargeted(group, now_ms)]
    if group.assignment_epoch < group.epoch:
        member.epoch = group.assignment_epoch
    else:
        _moved(group, member, let_go=True)
    member.previous_epoch = 0
    return [*records, current(group, member)]


def delay_over(group: Group, now_ms: int) -> list[RecordBytes]:
    """The timer of the initial delay: the target comes alone."""
    if group.delayed_until_ms is None or now_ms < group.delayed_until_ms:
        return []
    group.delayed_until_ms = None
    return _retargeted(group, now_ms)


def beat(group: Group, member: Member, now_ms: int, *, let_go: bool = True) -> list[RecordBytes]:
    """A heartbeat: topics that changed, a target that is due, and a member that moves."""
    records: list[RecordBytes] = []
    if group.topics_changed():
        group.epoch += 1
        records.append(_epoch(group))
    records += _retargeted(group, now_ms)
    before = deepcopy(member)
    _moved(group, member, let_go=let_go)
    return records if member == before else [*records, current(group, member)]


def changed(group: Group, member: Member, now_ms: int) -> list[RecordBytes]:
    """Any change of what a member says of itself is a new epoch."""
    group.epoch += 1
    return [_described(group, member), _epoch(group), *beat(group, member, now_ms)]


def left(group: Group, leavers: Iterable[Member]) -> list[RecordBytes]:
    """Members leave or expire."""
    records = []
    for member in leavers:
        del group.members[member.member_id]
        for targets in (group.targets, group.standby_targets, group.warmup_targets):
            targets.pop(member.member_id, None)
        records += [
            builders.streams_group_current_assignment_tombstone(group.name, member.member_id),
            builders.streams_group_target_assignment_tombstone(group.name, member.member_id),
            builders.streams_group_member_tombstone(group.name, member.member_id),
        ]
    if not group.members:
        group.delayed_until_ms = None
    group.epoch += 1
    return [*records, _epoch(group)]


def ended(group: Group) -> list[RecordBytes]:
    """Tombstones of an empty group; the topology's comes after the epoch's."""
    name, group.topology, group.validated = group.name, False, -1
    return [
        builders.streams_group_target_assignment_epoch_tombstone(name),
        builders.streams_group_epoch_tombstone(name),
        builders.streams_group_topology_tombstone(name),
    ]


def current(group: Group, member: Member) -> RecordBytes:
    """What tasks a member runs, and which it has yet to give up."""
    return builders.streams_group_current_assignment(
        group.name,
        member.member_id,
        epoch=member.epoch,
        previous_epoch=member.previous_epoch,
        state=member.state + 1,
        active=with_epochs(member.assigned),
        standby=by_topic(member.standby),
        warmup=by_topic(member.warmup),
        active_pending_revocation=with_epochs(member.pending),
        standby_pending_revocation=by_topic(member.pending_standby),
        warmup_pending_revocation=by_topic(member.pending_warmup),
        epochs=group.cluster.release.validates_topology,
    )


def _described(group: Group, member: Member) -> RecordBytes:
    return builders.streams_group_member(
        group.name,
        member.member_id,
        process_id=member.process_id,
        client_id=member.client_id,
        client_host=member.client_host,
    )


def _epoch(group: Group) -> RecordBytes:
    group.metadata = group.known_metadata()
    ready = group.topology and len(group.metadata) == sum(len(sources) for sources in SUBTOPOLOGIES.values())
    release, group.validated = group.cluster.release, 0 if ready else -1
    group.validation_reported = release.validates_topology
    return builders.streams_group_epoch(
        group.name,
        group.epoch,
        metadata_hash=metadata_hash(group.metadata),
        validated_topology_epoch=group.validated if release.validates_topology else -1,
        configs={CONFIG: str(group.standbys)} if release.validates_topology else None,
    )


def _retargeted(group: Group, now_ms: int) -> list[RecordBytes]:
    release = group.cluster.release
    too_fresh = bool(group.assignment_ms) and now_ms - group.assignment_ms < release.throttle_ms
    if group.epoch == group.assignment_epoch or too_fresh or group.delayed_until_ms is not None:
        return []
    before = {of: _target(group, of) for of in group.members if of in group.targets}
    tasks = _tasks(group) if group.validated == 0 else []
    group.targets = answered(group) or sticky(dict.fromkeys(group.members, tasks), group.targets)
    copies = _replicas(group, tasks, copies=group.standbys)
    group.standby_targets = with_answer(group, group.answer_standby, group.standby_targets) or copies
    warm = _replicas(group, tasks[:1], copies=1, besides=True) if group.epoch % 3 == 0 else {}
    group.warmup_targets = with_answer(group, group.answer_warmup, group.warmup_targets) or warm
    group.assignment_epoch, group.assignment_ms = group.epoch, now_ms
    records = [
        builders.streams_group_target_assignment(
            group.name, of, active=by_topic(active), standby=by_topic(standby), warmup=by_topic(warmup)
        )
        for of in group.members
        for active, standby, warmup in [_target(group, of)]
        if before.get(of) != _target(group, of)
    ]
    timestamp = now_ms if release.partition_epochs else 0
    return [*records, builders.streams_group_target_assignment_epoch(group.name, group.epoch, timestamp=timestamp)]


def _target(group: Group, member_id: str) -> tuple[set[Place], set[Place], set[Place]]:
    return (
        group.targets.get(member_id, set()),
        group.standby_targets.get(member_id, set()),
        group.warmup_targets.get(member_id, set()),
    )


def _tasks(group: Group) -> list[Place]:
    counts = {of: max(group.cluster.partitions.get(topic, 0) for topic in SUBTOPOLOGIES[of]) for of in SUBTOPOLOGIES}
    return [(subtopology, number) for subtopology, count in counts.items() for number in range(count)]


def _replicas(group: Group, tasks: list[Place], *, copies: int, besides: bool = False) -> dict[str, set[Place]]:
    """Copies of tasks on processes that do not run them; `besides` standby ones."""
    found: dict[str, set[Place]] = {member_id: set() for member_id in group.members}
    for turn, task in enumerate(tasks):
        running = {of.process_id for of in group.members.values() if task in group.targets[of.member_id]}
        if besides:
            running |= {of.process_id for of in group.members.values() if task in group.standby_targets[of.member_id]}
        for _ in range(copies):
            others = [of for of in group.members.values() if of.process_id not in running]
            if others:
                taker = others[turn % len(others)]
                found[taker.member_id].add(task)
                running.add(taker.process_id)
    return found


def _moved(group: Group, member: Member, *, let_go: bool) -> None:
    """One step of a member towards the target (upstream's CurrentAssignmentBuilder of streams groups)."""
    if member.state == STABLE and member.epoch == group.assignment_epoch:
        return
    if member.state == UNREVOKED and not let_go:
        return
    active, standby, warmup = _target(group, member.member_id)
    member.previous_epoch = member.epoch
    revoked = {task: epoch for task, epoch in member.assigned.items() if task not in active}
    revoked_standby, revoked_warmup = member.standby - standby, member.warmup - warmup
    if revoked or revoked_standby or revoked_warmup:
        member.state = UNREVOKED
        member.assigned = {task: epoch for task, epoch in member.assigned.items() if task in active}
        member.standby, member.warmup = member.standby & standby, member.warmup & warmup
        member.pending, member.pending_standby, member.pending_warmup = revoked, revoked_standby, revoked_warmup
        return
    # What is given up in this very step is still held as the coordinator sees it.
    siblings = [of for of in group.members.values() if of.process_id == member.process_id]
    run = {task for of in group.others(member) for task in of.holds} | member.pending.keys()
    run_here = {task for of in siblings for task in of.holds}
    copied_here = {
        task for of in siblings for task in (*of.standby, *of.warmup, *of.pending_standby, *of.pending_warmup)
    }
    member.pending, member.pending_standby, member.pending_warmup = {}, set(), set()
    wanted, epoch = active - member.assigned.keys(), group.assignment_epoch
    free = wanted - run - copied_here
    copies, warm = standby - member.standby, warmup - member.warmup
    free_copies, free_warm = copies - run_here - copied_here, warm - run_here - copied_here
    member.epoch = epoch
    member.assigned = {**member.assigned, **dict.fromkeys(sorted(free), epoch)}
    member.standby, member.warmup = member.standby | free_copies, member.warmup | free_warm
    waits = wanted != free or copies != free_copies or warm != free_warm
    member.state = UNRELEASED if waits else STABLE

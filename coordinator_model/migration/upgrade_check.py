"""Whether an online upgrade kept what it should: the classic group and the consumer group that is made of it, compared.

The coordinator converts a group with members in one batch (ConsumerGroup.fromClassicGroup, KIP-848), of which both
sides are in the log: the last generation before, and what is written of it first.

    compared       before                             after
    epoch          the generation                     the first group epoch, and each member's
    members        those of the last generation       each has its metadata and its current assignment
    assignments    what each was assigned             its first target, and what it holds
    offsets        committed when the upgrade began   none went back or went in the same event

The log lags behind the coordinator's memory while members rejoin: who left is not written, nor a generation that is not
complete, and assignments are void until the leader has sent new ones. That a round is under way shows

    a subscription     names the generation itself, or an older one than before: a fenced member joins as if it were new
    a member           was not in the generation
    the generation     was written by a downgrade, which itself begins a round

Then a later epoch, fewer members and members without partitions are lawful. Of a topic that is nowhere in the consumer
group, where others are, nothing is said: it was deleted.

A member that left in the seconds before, so that no other had rejoined yet, looks as if it was lost. A roll whose
members restart faster than a classic round takes does so each time, and so does a static member that is away for longer
than its session: it is removed, and nothing is written. So where nothing is wrong but that members are missing, of whom
the records have nothing, the event is inferred, and information. So it is where the others have rejoined without a
subscription that names a generation, as eager members do: the epoch is the next one then. A static member does not
leave when it stops: one whose session cannot have ended since the last generation was lost.

    under the instance id of a static member
    without records there is                   it was
    a classic member                           carried over: it restarted in a round that is not written yet
    a consumer-protocol member                 removed before: who comes is new, and may get other partitions
    no member                                  removed before

A group without members begins with a first epoch, and is not compared. Assignors are compared with nothing: who
rolls may mean to change it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import replace
from typing import Any, Final

from coordinator_model.groups import consumer
from coordinator_model.migration.downgrade_check import differing
from coordinator_model.state.events import INFO
from coordinator_model.state.findings import Finding, Position
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.membership import CONSUMER, ClassicGroup, ClassicMember, Membership, ModernMember
from coordinator_model.state.rule_memory import CarriedMember, Downgrade, Step, Upgrade

MOST_OFFSETS: Final = 1_000
"""So many offsets that went back are remembered of one moment: more are no better than these."""


def note(step: Step, membership: Membership, member_id: str | None) -> None:
    """Remember of a conversion what its records say first: the join in the same step writes over some of them."""
    group = membership.modern
    if step.before.classic is None or not step.before.classic.members:
        return
    if group is None or group.family != CONSUMER or group.closed or step.before.modern_group is not None:
        return
    if step.carried_epoch is None and group.epoch_live:
        step.carried_epoch = group.epoch
    member = None if member_id is None else group.members.get(member_id)
    if member_id is None or (member is None and member_id not in group.targets):
        return
    known = step.carried.get(member_id, CarriedMember())
    if member is not None and member.metadata_live and not known.described:
        known = replace(
            known,
            described=True,
            classic=member.uses_classic_protocol,
            instance_id=member.instance_id,
            claimed_generation=_claimed_generation(member),
        )
    if member is not None and member.current_live and known.epoch is None:
        known = replace(known, epoch=member.epoch, assigned=member.assigned)
    if known.target is None and member_id in group.targets:
        known = replace(known, target=group.targets[member_id])
    step.carried[member_id] = known


def offset_went(state: GroupState, position: Position, topic: str, partition: int, offset: int) -> None:
    """A committed offset went back or was deleted; `offset` is where it was."""
    migration = state.migration
    if migration.offsets_back_ms != position.timestamp_ms:
        migration.offsets_back, migration.offsets_back_ms = {}, position.timestamp_ms
    if len(migration.offsets_back) < MOST_OFFSETS:
        migration.offsets_back.setdefault(f"{topic}/{partition}", offset)


def compare(state: GroupState, step: Step, former: Downgrade | None) -> dict[str, Any]:
    """Compare the consumer group that a step made of a classic one with members; returns it as parts of a detail.

    `former` is the downgrade that the classic group came of, None for none.
    """
    was, group = step.before.classic, state.membership.modern_group
    if was is None or not was.members or group is None:
        return {}
    carried = {_who(member): _carried(step, member) for member in was.members.values()}
    found = {who: of for who, of in carried.items() if of is not None and of.described and of.epoch is not None}
    # A downgrade itself begins a round, of which nothing is written before it is over.
    under_way = (former is not None and former.watching) or _round_under_way(was, step)
    migration = state.migration
    upgrade = migration.upgrade = Upgrade(
        begun_ms=step.timestamp_ms,
        generation=was.generation,
        epoch=step.carried_epoch,
        assignor_before=was.protocol,
        assignor_after=consumer.preferred_assignor(group),
        round_under_way=under_way,
        missing=() if under_way else tuple(sorted(carried.keys() - found.keys())),
        moved=_moved(state, was, found, under_way=under_way),
        offsets_back=dict(migration.offsets_back) if migration.offsets_back_ms == step.timestamp_ms else {},
    )
    return {
        **_from_to(upgrade),
        "assignments_kept": not upgrade.moved and not upgrade.missing,
        "offsets": state.offset_count,
    }


def unclean(state: GroupState, step: Step) -> Iterator[Finding]:
    """Of an upgrade within the step that was not clean, in what."""
    upgrade, was = state.migration.upgrade, step.before.classic
    if upgrade is None or was is None or upgrade.begun_ms != step.timestamp_ms or not step.carried:
        return
    asked = {
        "epoch": _epoch_is_wrong(upgrade, was, step),
        "members": bool(upgrade.missing),
        "assignments": bool(upgrade.moved),
        "offsets": bool(upgrade.offsets_back),
    }
    upgrade.wrong = tuple(what for what, wrong in asked.items() if wrong)
    if not upgrade.wrong:
        return
    of_one_that_left = upgrade.wrong == ("members",) or (
        upgrade.wrong == ("epoch", "members") and _is_of_next_round(upgrade, was, step)
    )
    upgrade.may_have_left = of_one_that_left and all(
        _carried(step, member) is None and _may_be_gone(was, member, step.timestamp_ms)
        for member in was.members.values()
        if _who(member) in upgrade.missing
    )
    detail = {**_from_to(upgrade), **_not_kept(upgrade)}
    severity = INFO if upgrade.may_have_left else None
    yield Finding("upgrade_unclean", detail, severity=severity, inferred=upgrade.may_have_left)


def view(upgrade: Upgrade | None) -> dict[str, Any] | None:
    """The upgrade as it is shown; times in milliseconds."""
    if upgrade is None:
        return None
    return {"begun": upgrade.begun_ms, **_from_to(upgrade), **_not_kept(upgrade)}


def _from_to(upgrade: Upgrade) -> dict[str, Any]:
    return {
        "generation": upgrade.generation,
        "first_epoch": upgrade.epoch,
        "assignor_before": upgrade.assignor_before,
        "assignor_after": upgrade.assignor_after,
    }


def _not_kept(upgrade: Upgrade) -> dict[str, Any]:
    return {
        "wrong": list(upgrade.wrong),
        "members_not_carried_over": list(upgrade.missing),
        "members_with_other_partitions": list(upgrade.moved),
        "offsets_back": dict(sorted(upgrade.offsets_back.items())),
    }


def _who(member: ClassicMember) -> str:
    return member.instance_id or member.member_id


def _carried(step: Step, member: ClassicMember) -> CarriedMember | None:
    """The member under its own id; a static one that restarted while the group rebalanced has another.

    One of the consumer protocol takes the place of a member that has records of its own, or is new.
    """
    found = step.carried.get(member.member_id)
    if found is None and member.instance_id is not None:
        same = (of for of in step.carried.values() if of.instance_id == member.instance_id)
        found = next((of for of in same if of.classic), None)
    return found


def _may_be_gone(was: ClassicGroup, member: ClassicMember, now_ms: int) -> bool:
    """Whether a member may have been removed since its generation was written, of which there is no record.

    Its session begins when all had joined, which is the time of the group's state, and with each heartbeat again.
    """
    if member.instance_id is None or member.session_timeout_ms <= 0 or was.state_timestamp_ms < 0:
        return True
    return now_ms - was.state_timestamp_ms >= member.session_timeout_ms


def _round_under_way(was: ClassicGroup, step: Step) -> bool:
    """Whether members had begun to rejoin since the last generation was written."""
    instances = {member.instance_id for member in was.members.values()} - {None}
    for member_id, of in step.carried.items():
        known = was.members.get(member_id)
        claimed = -1 if known is None or known.claim is None else known.claim.generation
        if of.claimed_generation >= max(was.generation, claimed + 1):
            return True
        if of.classic and of.claimed_generation < claimed:
            return True
        if of.classic and known is None and of.instance_id not in instances:
            return True
    return False


def _is_of_next_round(upgrade: Upgrade, was: ClassicGroup, step: Step) -> bool:
    """Whether all records have the next epoch: that of a round which the leader had yet to assign."""
    return upgrade.epoch == upgrade.generation + 1 and not _some_at_other_epochs(upgrade, was, step)


def _epoch_is_wrong(upgrade: Upgrade, was: ClassicGroup, step: Step) -> bool:
    if upgrade.epoch is None:
        return False
    late = upgrade.epoch > upgrade.generation and not upgrade.round_under_way
    return late or upgrade.epoch < upgrade.generation or _some_at_other_epochs(upgrade, was, step)


def _some_at_other_epochs(upgrade: Upgrade, was: ClassicGroup, step: Step) -> bool:
    carried = was.members.keys() & step.carried.keys()
    return any(step.carried[member_id].epoch not in (None, upgrade.epoch) for member_id in carried)


def _moved(
    state: GroupState, was: ClassicGroup, found: dict[str, CarriedMember], *, under_way: bool
) -> tuple[str, ...]:
    """Who does not have, or is not to have, what it had in the classic group."""
    given = {_who(member): member.assigned for member in was.members.values() if _who(member) in found}
    void = {who for who, of in found.items() if under_way and not of.assigned and not of.target}
    names = state.topics_by_id()
    moved: set[str] = set()
    for parts in ({who: of.assigned for who, of in found.items()}, {who: of.target or {} for who, of in found.items()}):
        kept = {who: given[who] for who in given.keys() - void}
        had, has = _topics(kept.values()), _topics(parts.values())
        if has and len(has) < len(had):
            kept = _without_topics(kept, _lost_topics(had, has, names, parts, kept))
        moved.update(differing({who: parts[who] for who in kept}, kept, names))
    return tuple(sorted(moved))


def _topics(assigned: Iterable[Any]) -> set[str]:
    return {topic for parts in assigned for topic in parts}


def _lost_topics(
    had: set[str], has: set[str], names: dict[str, str], parts: dict[str, Any], kept: dict[str, Any]
) -> set[str]:
    """Topics by name that no id of `has` stands for; as many as there are ids too few."""
    named = {names[topic_id] for topic_id in has if topic_id in names}
    unknown = [topic_id for topic_id in has if topic_id not in names]
    layouts = [{who: of[topic_id] for who, of in parts.items() if topic_id in of} for topic_id in unknown]
    free = [
        name for name in sorted(had - named) if {w: of[name] for w, of in kept.items() if name in of} not in layouts
    ]
    return set(free[: len(had) - len(has)])


def _without_topics(assigned: dict[str, Any], topics: set[str]) -> dict[str, Any]:
    return {who: {of: parts for of, parts in given.items() if of not in topics} for who, given in assigned.items()}


def _claimed_generation(member: ModernMember) -> int:
    return max((claim.generation for claim in member.claims.values() if claim is not None), default=-1)

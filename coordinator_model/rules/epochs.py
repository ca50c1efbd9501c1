"""Epochs run one way: what a group, its target and its members are at, judged by what no coordinator writes (KIP-848).

    rule                  holds                                        judged
    group_epoch           + 1 from one record to the next              record by record
    generation            a classic group's never goes back            record by record
    assignment_epoch      never goes back                              record by record
    member_epoch          a member's never goes back, but to -2        record by record
    conversion_epoch      online, the other type goes on from it       record by record
    one_kind              records of one type only under one name      at the end of a step, and where one ousts another
    assignment_bound      assignment epoch <= group epoch              at the end of a step
    member_bound          -2, or 0 to assignment epoch                 at the end of a step

Record by record because two events of one millisecond are one step. Whatever a compacted log may lack is not judged:
the first epoch seen, a jump of generations (rounds that were lost), a member or target without the other's epoch.
A record written again with the epoch it had says nothing new. Epoch 0 stands in a static member's return, and in the
upgrade of a group that never completed a generation.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from coordinator_model.state.membership import CLASSIC, CONSUMER, STATIC_MEMBER_ABSENT_EPOCH, Membership, ModernGroup
from coordinator_model.state.rule_memory import EpochAnomaly


class Epochs(NamedTuple):
    """Epochs of a membership between two records; None where no record of it is live."""

    generation: int | None = None
    family: str | None = None
    group: int | None = None
    assignment: int | None = None
    member: int | None = None
    has_members: bool = False

    def rewrote(self, earlier: Epochs) -> bool:
        """Whether one record was written over by another of its key, which no cleaned part of a log holds both of."""
        pairs = [(earlier.generation, self.generation)]
        if earlier.family == self.family:
            pairs += [
                (earlier.group, self.group),
                (earlier.assignment, self.assignment),
                (earlier.member, self.member),
            ]
        return any(was is not None and now is not None and was != now for was, now in pairs)

    def began(self, earlier: Epochs) -> tuple[str, int] | None:
        """(type, epoch) of a group that has an epoch now and had none earlier."""
        if self.group is not None and (earlier.group is None or earlier.family != self.family):
            return str(self.family), self.group
        if self.generation is not None and earlier.generation is None:
            return CLASSIC, self.generation
        return None


def epochs_of(membership: Membership, member_id: str | None) -> Epochs:
    """What is to be remembered before a record is applied; `member_id` is the one the record is about."""
    classic, modern = membership.classic, membership.modern
    if modern is not None and (modern.closed or not modern.holds_anything()):
        modern = None
    member = None if modern is None or member_id is None else modern.members.get(member_id)
    return Epochs(
        generation=None if classic is None else classic.generation,
        family=None if modern is None else modern.family,
        group=modern.epoch if modern is not None and modern.epoch_live else None,
        assignment=modern.assignment_epoch if modern is not None and modern.assignment_epoch_live else None,
        member=member.epoch if member is not None and member.current_live else None,
        has_members=bool((classic is not None and classic.members) or (modern is not None and modern.members)),
    )


def odd_moves(was: Epochs, now: Epochs, member_id: str | None) -> Iterator[EpochAnomaly]:
    """What one record did to epochs that none does."""
    if was.family is not None and now.family not in (None, was.family):
        yield EpochAnomaly(rule="one_kind", expected=was.family, found=str(now.family))
        return
    if was.group is not None and now.group is not None and now.group not in (was.group, was.group + 1):
        yield EpochAnomaly(rule="group_epoch", expected=str(was.group + 1), found=str(now.group))
    backwards = (
        ("generation", was.generation, now.generation, None),
        ("assignment_epoch", was.assignment, now.assignment, None),
        ("member_epoch", was.member, now.member, member_id),
    )
    for rule, before, after, whose in backwards:
        gone = rule == "member_epoch" and after == STATIC_MEMBER_ABSENT_EPOCH
        if before is not None and after is not None and after < before and not gone:
            yield EpochAnomaly(rule=rule, expected=f"at least {before}", found=str(after), member_id=whose)


def odd_conversion(ended_type: str | None, ended_epoch: int, type_: str, epoch: int) -> Iterator[EpochAnomaly]:
    """A group with members that ended and began again with members as another type in one step, at a lower epoch.

    Of a classic group that became a consumer group, `upgrade_check.py` reports this and more.
    """
    if (ended_type, type_) == (CLASSIC, CONSUMER):
        return
    if ended_type not in (None, type_) and epoch < ended_epoch:
        yield EpochAnomaly(rule="conversion_epoch", expected=f"at least {ended_epoch}", found=str(epoch))


def odd_epochs(membership: Membership) -> Iterator[EpochAnomaly]:
    """What does not go together at the end of a step."""
    modern = membership.modern_group
    if modern is None:
        return
    if membership.classic is not None:
        yield EpochAnomaly(rule="one_kind", expected=CLASSIC, found=modern.family)
    if modern.assignment_epoch_live:
        yield from _out_of_bounds(modern)


def _out_of_bounds(group: ModernGroup) -> Iterator[EpochAnomaly]:
    target = group.assignment_epoch
    if group.epoch_live and target > group.epoch:
        yield EpochAnomaly(rule="assignment_bound", expected=f"at most {group.epoch}", found=str(target))
    for member in group.members.values():
        if member.current_live and not (member.is_absent_static or 0 <= member.epoch <= target):
            yield EpochAnomaly(
                rule="member_bound",
                expected=f"-2 or 0 to {target}",
                found=str(member.epoch),
                member_id=member.member_id,
            )

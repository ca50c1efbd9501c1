"""What consumer, share and streams groups have in common: an epoch, an assignment epoch, members with both.

Whatever arrives creates what it belongs to, and a tombstone for something unknown is nothing: a cleaned log may
begin anywhere (KAFKA-17306). The tombstone of the epoch ends the group; records of its family that are still live
then are left over, and a later value begins a new incarnation without them.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from dataclasses import replace
from typing import Any, Final, Protocol

from coordinator_model.state.membership import FIRST_EPOCH, Membership, ModernGroup, ModernMember, Partitions
from coordinator_model.state.partitions import merged

Handler = Callable[[Membership, Any, Any], None]
"""What a record does to a membership: (membership, key, value), a value of None being the tombstone."""


class _Assigned(Protocol):
    @property
    def topic_id(self) -> str: ...
    @property
    def partitions(self) -> tuple[int, ...]: ...


class _AssignedIn(Protocol):
    @property
    def partitions(self) -> tuple[int, ...]: ...
    @property
    def assignment_epochs(self) -> tuple[int, ...] | None: ...


class _AssignedWithEpochs(_Assigned, _AssignedIn, Protocol):
    pass


class _Epoch(Protocol):
    @property
    def epoch(self) -> int: ...
    @property
    def metadata_hash(self) -> int: ...


class _AssignmentEpoch(Protocol):
    @property
    def assignment_epoch(self) -> int: ...


class _OfMember(Protocol):
    @property
    def member_id(self) -> str: ...


class _Target(Protocol):
    @property
    def topic_partitions(self) -> Iterable[_Assigned]: ...


def by_topic_id(parts: Iterable[_Assigned]) -> Partitions:
    """Topic id → partitions ascending; the records hold them unsorted."""
    return merged((part.topic_id, part.partitions) for part in parts)


def newest_epoch(parts: Iterable[_AssignedIn]) -> int:
    """Highest epoch in which a partition was assigned; -1 where the record has none, or not one a partition."""
    newest = -1
    for part in parts:
        if part.assignment_epochs and len(part.assignment_epochs) == len(part.partitions):
            newest = max(newest, *part.assignment_epochs)
    return newest


def epochs_by_topic_id(parts: Iterable[_AssignedWithEpochs]) -> Partitions:
    """Topic id → the epoch of each partition, ascending by partition; no topic without epochs."""
    found: dict[str, dict[int, int]] = {}
    for part in parts:
        epochs = part.assignment_epochs or ()
        if len(epochs) == len(part.partitions):
            found.setdefault(part.topic_id, {}).update(zip(part.partitions, epochs, strict=True))
    return {topic: tuple(epoch for _, epoch in sorted(epochs.items())) for topic, epochs in found.items() if epochs}


def of_family(membership: Membership, family: str) -> ModernGroup:
    """The group that a value record of this family belongs to, a new one where there is none."""
    modern = membership.modern
    if modern is None or modern.closed or modern.family != family:
        modern = membership.modern = ModernGroup(family=family)
    membership.family = family
    return modern


def known(membership: Membership, family: str) -> ModernGroup | None:
    """The group that a tombstone of this family touches, if there is one."""
    modern = membership.modern
    return modern if modern is not None and modern.family == family else None


def replay_epoch(membership: Membership, family: str, value: _Epoch | None) -> None:
    """Group epoch; None is its tombstone, which ends the group."""
    if value is not None:
        group = of_family(membership, family)
        group.epoch, group.epoch_live, group.metadata_hash = value.epoch, True, value.metadata_hash
        if value.epoch == FIRST_EPOCH and not group.assignment_epoch_live:
            group.assignment_epoch = 0  # a broker up to 4.2, whose memory starts there: the first epoch of 4.3 is 2
        return
    ended = known(membership, family)
    if ended is not None:
        ended.closed, ended.epoch_live = True, False
        if not ended.live_records():
            membership.modern = None


def replay_assignment_epoch(membership: Membership, family: str, epoch: int | None) -> None:
    """Epoch of the target assignment; its tombstone puts back what memory starts with."""
    group = of_family(membership, family) if epoch is not None else known(membership, family)
    if group is not None:
        group.assignment_epoch = FIRST_EPOCH if epoch is None else epoch
        group.assignment_epoch_live = epoch is not None
        forget_if_gone(membership, group)


def replays_epoch(family: str) -> Handler:
    """Handler of a family's group epoch records."""

    def handler(membership: Membership, _key: object, value: _Epoch | None) -> None:
        """The group epoch; its tombstone ends the group."""
        replay_epoch(membership, family, value)

    return handler


def replays_assignment_epoch(family: str) -> Handler:
    """Handler of a family's records of the epoch the target was computed for."""

    def handler(membership: Membership, _key: object, value: _AssignmentEpoch | None) -> None:
        """The group epoch that the target assignment is for."""
        replay_assignment_epoch(membership, family, None if value is None else value.assignment_epoch)

    return handler


def replays_target(family: str) -> Handler:
    """Handler of a family's records of what a member is to own, where that is partitions."""

    def handler(membership: Membership, key: _OfMember, value: _Target | None) -> None:
        """The partitions that a member is to own."""
        if value is None:
            drop_target(membership, family, key.member_id)
        else:
            of_family(membership, family).targets[key.member_id] = by_topic_id(value.topic_partitions)

    return handler


def put_member(group: ModernGroup, member: ModernMember) -> None:
    """Keep the member, or drop it when neither of its records is live."""
    if member.metadata_live or member.current_live:
        group.members[member.member_id] = member
    else:
        group.members.pop(member.member_id, None)


def member_of(group: ModernGroup, member_id: str) -> ModernMember:
    """The member as known so far; a new one knows nothing but its id."""
    return group.members.get(member_id) or ModernMember(member_id=member_id)


_CURRENT: Final = (
    *("current_live", "epoch", "previous_epoch", "state", "assigned", "pending_revocation"),
    *("newest_partition_epoch", "partition_epochs"),
    *("standby_tasks", "warmup_tasks", "standby_pending_revocation", "warmup_pending_revocation"),
)
"""Fields of a member that its current assignment holds; the others are its metadata's."""


def _with_current(member: ModernMember, of: ModernMember) -> ModernMember:
    return replace(member, **{name: getattr(of, name) for name in _CURRENT})


def drop_metadata(membership: Membership, family: str, member_id: str) -> None:
    """Tombstone of a member's metadata: who it is and what it subscribes to is not known any more."""
    group = known(membership, family)
    if group is not None and member_id in group.members:
        put_member(group, _with_current(ModernMember(member_id=member_id), group.members[member_id]))
        forget_if_gone(membership, group)


def drop_current(membership: Membership, family: str, member_id: str) -> None:
    """Tombstone of a member's current assignment: it owns nothing and is at no epoch."""
    group = known(membership, family)
    if group is not None and member_id in group.members:
        put_member(group, _with_current(group.members[member_id], ModernMember(member_id=member_id)))
        forget_if_gone(membership, group)


def drop_target(membership: Membership, family: str, member_id: str) -> None:
    """Tombstone of a member's target assignment."""
    group = known(membership, family)
    if group is not None:
        group.targets.pop(member_id, None)
        group.task_targets.pop(member_id, None)
        forget_if_gone(membership, group)


def forget_if_gone(membership: Membership, group: ModernGroup) -> None:
    """An ended group is forgotten with the last of its records."""
    if group.closed and not group.live_records():
        membership.modern = None


def unsettled_members(group: ModernGroup, stable_state: int) -> list[ModernMember]:
    """Members not yet at the target: another epoch, or still giving up or awaiting partitions."""
    return [
        member
        for member in group.members.values()
        if member.state != stable_state or member.epoch != group.assignment_epoch
    ]

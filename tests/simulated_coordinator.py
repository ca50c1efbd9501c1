"""A small group coordinator that writes the log a broker would: lawful histories, and the state they end in.

It follows coordinator-records, 4.1 to 4.6, for classic and consumer groups over one topic of six partitions, with
conversions and static members, and keeps its own idea of the groups in its own words: what the replica concludes from
the log is held against that. Every choice comes from the numbers it is given, which are Hypothesis's.
"""

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any, Final

from tests import builders
from tests import coordinator_events as written
from tests.builders import RecordBytes
from tests.histories import Moment, at

PARTITIONS: Final = 6
MOST_MEMBERS: Final = 4


@dataclass(slots=True)
class Member:
    """A member as the coordinator holds it in memory."""

    member_id: str
    classic: bool
    instance_id: str | None = None
    epoch: int = 0
    state: int = 0
    assigned: set[int] = field(default_factory=set)
    pending: set[int] = field(default_factory=set)

    @property
    def away(self) -> bool:
        return self.epoch == -2


@dataclass(slots=True)
class Group:
    """A group as the coordinator holds it; `kind` None does not exist or only commits."""

    name: str
    kind: str | None = None
    epoch: int = 0
    assignment_epoch: int = 0
    members: dict[str, Member] = field(default_factory=dict)
    targets: dict[str, set[int]] = field(default_factory=dict)
    offsets: dict[int, int] = field(default_factory=dict)
    born: int = 0

    @property
    def exists(self) -> bool:
        return self.kind is not None or bool(self.offsets)


class SimulatedCoordinator:
    """Does what its numbers say, one coordinator event after another; `moments` is the log so far."""

    def __init__(self, *names: str) -> None:
        self.groups = {name: Group(name) for name in names}
        self.moments: list[Moment] = []
        self.now_ms = 0

    def act(self, number: int) -> None:
        """One event, or none where the number asks for something that cannot happen now."""
        deeds: list[Callable[[Group, int], list[RecordBytes]]] = [
            lambda group, _: self._join(group, classic=True, static=False),
            lambda group, _: self._join(group, classic=False, static=False),
            lambda group, _: self._join(group, classic=False, static=True),
            self._heartbeat,
            self._heartbeat,
            self._heartbeat,
            self._leave,
            self._go_away_or_return,
            self._commit,
            lambda group, _: self._delete(group),
        ]
        number, deed = divmod(number, len(deeds))
        number, name = divmod(number, len(self.groups))
        number, gap = divmod(number, 3)
        group = list(self.groups.values())[name]
        records = deeds[deed](group, number)
        if records:
            self.now_ms += (1, 700, 40_000)[gap]
            self.moments.append(at(self.now_ms, *records))

    # -- joining ------------------------------------------------------------------------------------------------------

    def _join(self, group: Group, *, classic: bool, static: bool) -> list[RecordBytes]:
        if len(group.members) >= MOST_MEMBERS:
            return []
        group.born += 1
        prefix = "c" if classic else "n"
        member = Member(f"{prefix}{group.born}", classic, f"i{group.born}" if static else None)
        if classic and group.kind != "consumer":
            group.members[member.member_id] = member
            first = [] if group.kind else [builders.new_group_metadata(group.name)]
            return [*first, *self._next_generation(group)]
        if classic and not group.members:
            group.kind, group.epoch, group.assignment_epoch, group.targets = "classic", 0, 0, {}
            ended = written.consumer_group_deleted(group.name)
            group.members[member.member_id] = member
            return [*ended, builders.new_group_metadata(group.name), *self._next_generation(group)]
        converted = self._converted_to_consumer(group) if group.kind != "consumer" else []
        return [*converted, *self._joined(group, member)]

    def _next_generation(self, group: Group) -> list[RecordBytes]:
        group.kind, group.epoch = "classic", group.epoch + 1
        self._compute_targets(group)
        for member in group.members.values():
            member.assigned = set(group.targets[member.member_id])
        members = [
            builders.member(member.member_id, topic(member.assigned), instance_id=member.instance_id)
            for member in group.members.values()
        ]
        return [builders.group_metadata(group.name, generation=group.epoch, members=members)]

    def _converted_to_consumer(self, group: Group) -> list[RecordBytes]:
        if not group.members:
            ended = [builders.group_metadata_tombstone(group.name)] if group.kind == "classic" else []
            group.kind, group.epoch, group.assignment_epoch = "consumer", 1, 1
            return ended
        group.kind, group.assignment_epoch = "consumer", group.epoch
        for member in group.members.values():
            member.epoch, member.state = group.epoch, 0
        return written.converted_to_consumer(
            group.name,
            generation=group.epoch,
            members={member.member_id: topic(member.assigned) for member in group.members.values()},
            instance_ids={of.member_id: of.instance_id for of in group.members.values() if of.instance_id is not None},
        )

    def _joined(self, group: Group, member: Member) -> list[RecordBytes]:
        group.epoch += 1
        group.members[member.member_id] = member
        records = [self._subscription(group, member), builders.consumer_group_epoch(group.name, group.epoch)]
        if group.born % 3 == 0 and group.assignment_epoch > 1:  # throttled: its target comes with some heartbeat
            member.epoch = group.assignment_epoch
        else:
            records += self._retargeted(group)
            self._reconcile(group, member)
        return [*records, self._current(group, member, previous_epoch=0)]

    # -- going on -----------------------------------------------------------------------------------------------------

    def _heartbeat(self, group: Group, number: int) -> list[RecordBytes]:
        member = pick([of for of in group.members.values() if not of.away], number)
        if group.kind != "consumer" or member is None:
            return []
        records = self._retargeted(group) if group.epoch > group.assignment_epoch else []
        before = (member.epoch, member.state, set(member.assigned), set(member.pending))
        self._reconcile(group, member)
        if before != (member.epoch, member.state, member.assigned, member.pending):
            rejoined = [self._subscription(group, member)] if member.classic else []
            records += [*rejoined, self._current(group, member, previous_epoch=before[0])]
        return records

    def _retargeted(self, group: Group) -> list[RecordBytes]:
        before = dict(group.targets)
        self._compute_targets(group)
        group.assignment_epoch = group.epoch
        changed = {of: topic(parts) for of, parts in group.targets.items() if before.get(of) != parts}
        return written.retarget(group.name, group.epoch, changed)

    def _reconcile(self, group: Group, member: Member) -> None:
        """CurrentAssignmentBuilder (4.3.1): give up first, then move to the epoch, then take what is free."""
        if member.state == 1:
            member.state, member.pending = 0, set()
        elif member.state == 0 and member.epoch == group.assignment_epoch:
            return
        target = group.targets.get(member.member_id, set())
        revoked = member.assigned - target
        if revoked:
            member.state, member.assigned, member.pending = 1, member.assigned & target, revoked
            return
        others = [of for of in group.members.values() if of is not member]
        taken = {partition for of in others for partition in of.assigned | of.pending}
        member.assigned |= target - taken
        member.epoch, member.state = group.assignment_epoch, 0 if member.assigned == target else 2

    def _commit(self, group: Group, number: int) -> list[RecordBytes]:
        partitions = [partition for partition in reversed(range(PARTITIONS)) if number >> partition & 1]
        for partition in partitions:
            group.offsets[partition] = group.offsets.get(partition, 0) + 1 + number % 7
        return [
            builders.offset_commit(group.name, "t", of, group.offsets[of], timestamp=self.now_ms) for of in partitions
        ]

    # -- leaving ------------------------------------------------------------------------------------------------------

    def _leave(self, group: Group, number: int) -> list[RecordBytes]:
        member = pick(list(group.members.values()), number)
        if member is None:
            return []
        del group.members[member.member_id]
        group.targets.pop(member.member_id, None)
        if group.kind == "classic":
            return self._next_generation(group)
        if group.members and all(of.classic for of in group.members.values()):
            return self._converted_to_classic(group, member)
        group.epoch += 1
        return written.consumer_leave(group.name, member.member_id, epoch=group.epoch)

    def _converted_to_classic(self, group: Group, leaver: Member) -> list[RecordBytes]:
        group.kind, group.assignment_epoch = "classic", 0
        for member in group.members.values():
            member.assigned, member.pending = set(group.targets.get(member.member_id, ())), set()
        return written.converted_to_classic(
            group.name,
            all_members=[*group.members, leaver.member_id],
            generation=group.epoch,
            remaining={of.member_id: topic(of.assigned) for of in group.members.values()},
            instance_ids={of.member_id: of.instance_id for of in group.members.values() if of.instance_id is not None},
        )

    def _go_away_or_return(self, group: Group, number: int) -> list[RecordBytes]:
        statics = [of for of in group.members.values() if of.instance_id is not None and not of.classic]
        member = pick(statics, number)
        if group.kind != "consumer" or member is None or member.instance_id is None:
            return []
        if not member.away:
            previous = member.epoch
            member.epoch, member.pending = -2, set()
            return [self._current(group, member, previous_epoch=previous)]
        group.born += 1
        old, member.member_id = member.member_id, f"n{group.born}"
        group.members = {of.member_id: of for of in group.members.values()}
        target = group.targets.pop(old, set())
        group.targets[member.member_id] = target
        member.epoch, member.state = group.assignment_epoch, 0
        member.assigned &= target  # it comes back with nothing in its hands, so what it lost is revoked already
        others = [of for of in group.members.values() if of is not member]
        taken = {partition for of in others for partition in of.assigned | of.pending}
        member.assigned |= target - taken
        member.state = 0 if member.assigned == target else 2
        return [
            *written.static_returns(
                group.name,
                old=old,
                new=member.member_id,
                instance_id=member.instance_id,
                epoch=group.assignment_epoch,
                assigned=topic(target),
            )[:-1],
            self._current(group, member, previous_epoch=0),
        ]

    def _delete(self, group: Group) -> list[RecordBytes]:
        if group.members or not group.exists:
            return []
        records = [builders.offset_commit_tombstone(group.name, "t", partition) for partition in group.offsets]
        if group.kind == "consumer":
            records += written.consumer_group_deleted(group.name)
        else:  # also of a group that only committed and never had the record
            records.append(builders.group_metadata_tombstone(group.name))
        self.groups[group.name] = Group(group.name, born=group.born)
        return records

    # -- parts --------------------------------------------------------------------------------------------------------

    def _compute_targets(self, group: Group) -> None:
        ids = sorted(group.members)
        group.targets = {of: set(range(turn, PARTITIONS, len(ids))) for turn, of in enumerate(ids)}

    def _subscription(self, group: Group, member: Member) -> RecordBytes:
        return builders.consumer_group_member_subscription(
            group.name,
            member.member_id,
            instance_id=member.instance_id,
            classic=written.speaks_classic() if member.classic else None,
        )

    def _current(self, group: Group, member: Member, *, previous_epoch: int) -> RecordBytes:
        return builders.consumer_group_current_assignment(
            group.name,
            member.member_id,
            epoch=member.epoch,
            previous_epoch=previous_epoch,
            state=member.state,
            assigned=topic(member.assigned),
            pending_revocation=topic(member.pending),
        )

    # -- what it knows ------------------------------------------------------------------------------------------------

    def expected(self) -> dict[str, dict[str, Any]]:
        """Group → the parts of its GROUP view that the log tells."""
        return {name: _expected(group) for name, group in self.groups.items() if group.exists}


def shown(view: dict[str, Any]) -> dict[str, Any]:
    """The same parts of a GROUP view."""
    members = {
        of["member_id"]: (of["epoch"], of["protocol"], of["instance_id"], of["assigned"], of["pending_revocation"])
        for of in view["members"]
    }
    return {
        **{name: view[name] for name in ("type", "state", "epoch", "assignment_epoch", "simple")},
        "members": members,
        "offsets": {of["partition"]: of["offset"] for of in view["offsets"]},
        "upgraded_members": view["migration"]["upgraded_members"],
        "leftovers": view["migration"]["leftovers"],
    }


def topic(partitions: set[int]) -> dict[str, list[int]]:
    """Partitions of topic t as records and views have them."""
    return {"t": sorted(partitions)} if partitions else {}


def pick(members: list[Member], number: int) -> Member | None:
    """The member that a number means."""
    return members[number % len(members)] if members else None


def _expected(group: Group) -> dict[str, Any]:
    consumer = group.kind == "consumer"
    return {
        "type": "consumer" if consumer else "classic",
        "state": _state(group),
        "epoch": group.epoch,
        "assignment_epoch": group.assignment_epoch if consumer else None,
        "simple": group.kind is None,
        "members": {
            of.member_id: (
                of.epoch if consumer else group.epoch,
                "classic" if of.classic or not consumer else "consumer",
                of.instance_id,
                topic(of.assigned),
                topic(of.pending),
            )
            for of in group.members.values()
        },
        "offsets": dict(sorted(group.offsets.items())),
        "upgraded_members": sum(not of.classic for of in group.members.values()) if consumer else 0,
        "leftovers": 0,
    }


def _state(group: Group) -> str:
    if not group.members:
        return "Empty"
    if group.kind == "classic":
        return "Stable"
    if group.epoch > group.assignment_epoch:
        return "Assigning"
    settled = all(of.state == 0 and of.epoch == group.assignment_epoch for of in group.members.values())
    return "Stable" if settled else "Reconciling"

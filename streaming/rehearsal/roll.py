"""The roll: members stopped and replaced by such of the other protocol, in the order and at the pace that is asked."""

from __future__ import annotations

import time
from collections.abc import Callable
from dataclasses import dataclass, field
from enum import StrEnum
from random import uniform
from typing import Final

from coordinator_model.gates.upgrade import KAFKAS_ASSIGNORS
from coordinator_model.groups.classic import CONSUMER_PROTOCOL_TYPE
from coordinator_model.migration.phases import members_by_protocol
from coordinator_model.rules.members import is_absent, members_of
from coordinator_model.rules.partition_holders import held
from coordinator_model.rules.rebalances import under_way
from coordinator_model.state.membership import CLASSIC, CONSUMER, Membership
from streaming.base.errors import CannotTellError
from streaming.base.times import now_ms
from streaming.rehearsal.follow import Follower
from streaming.rehearsal.members import Members, RehearsalMember
from streaming.rehearsal.shape import Shape

QUIET_MS: Final = 700
"""So long nothing must be written of a group that is taken to be settled: longer than a follow-up round takes."""

_POLL_SECONDS: Final = 0.1
_MORE_SECONDS: Final = 1.0
"""The most that a pause is longer by chance, a heartbeat of many clusters."""


class Order(StrEnum):
    """Which member goes first."""

    FORWARD = "forward"
    BACKWARD = "backward"


class RollEnding(StrEnum):
    """How a member goes."""

    GRACEFUL = "graceful"
    KILLED = "killed"


@dataclass(frozen=True, slots=True, kw_only=True)
class RollOptions:
    """How the operator will do it. Seconds."""

    order: Order = Order.FORWARD
    ending: RollEnding = RollEnding.GRACEFUL
    pace_seconds: float = 2.0
    """How long the group is left alone once it has settled after a member; by chance up to a second longer."""
    restart_seconds: float = 0.0
    """How long a member is away before the one in its place starts."""
    max_unavailable: int = 1
    surge: bool = False
    """Whether the new member starts before the old one stops."""
    patience_seconds: float = 120.0
    """How long the group may take to settle after each."""


@dataclass(slots=True, kw_only=True)
class Rolled:
    """What became of it."""

    refused: bool = False
    reasons: list[str] = field(default_factory=list)
    steps: list[dict[str, object]] = field(default_factory=list)
    """Of each: members, when it was stopped (ms), and seconds until the group was settled."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Killed:
    """What a static member met that was killed, and started again by somebody who knows nothing of the first one.

    Attributes:
        member: its client id.
        let_in: None where it had no answer in time.
        seconds: from its start to the answer.
        said: why it was refused, in the coordinator's words, else its client's; None where it was not.
    """

    member: str
    let_in: bool | None
    seconds: float
    said: str | None = None


class GroupRoll:
    """One roll of one group.

    Args:
        shape: the group.
        to: the protocol its members shall speak.
        options: how.
        members: makes members.
        follower: knows how the group stands.
        say: called with a sentence of what happens.
        advance: called with how much is done, 0 … 1.
    """

    def __init__(  # noqa: PLR0913 - who does, who watches, and who is informed
        self,
        shape: Shape,
        to: str,
        options: RollOptions,
        members: Members,
        follower: Follower,
        *,
        say: Callable[[str], None],
        advance: Callable[[float], None],
    ) -> None:
        self._shape, self._to, self._options = shape, to, options
        self._members, self._follower = members, follower
        self._say, self._advance = say, advance
        self._running: dict[int, RehearsalMember] = {}
        self._surging: list[RehearsalMember] = []
        own = shape.assignor is None or shape.assignor in KAFKAS_ASSIGNORS or shape.type != CLASSIC
        self._expected = sum(shape.topics.values()) if own and shape.protocol_type == CONSUMER_PROTOCOL_TYPE else 0
        """Partitions that have an owner once the group is settled."""

    def assemble(self) -> None:
        """Let all members of the protocol before join.

        Raises:
            CannotTellError: they do not get together.
        """
        of_two_kinds = self._shape.has_librdkafka and not all(member.librdkafka for member in self._shape.members)
        for number, member in sorted(enumerate(self._shape.members), key=lambda each: not each[1].leads):
            self._running[number] = self._members.start(member, self._shape.type)
            if of_two_kinds and member.leads:
                # Who joins first leads: of clients of two kinds that decides what is assigned.
                self._await_size(1)
        self._await(rolled=0, what="the members before the roll", known=frozenset(), new=len(self._shape.members))
        found = self._follower.membership()
        if found is not None:
            self._expected = _count(found[0])

    def run(self) -> Rolled:
        """Roll all members.

        Raises:
            CannotTellError: the group did not settle, or the broker is gone.
        """
        done = Rolled()
        numbers = sorted(self._running)
        if self._options.order is Order.BACKWARD:
            numbers.reverse()
        size = self._options.max_unavailable
        for start in range(0, len(numbers), size):
            part = numbers[start : start + size]
            if not self._replace(part, start + len(part), done):
                return done
            self._advance((start + len(part)) / len(numbers))
            # A constant pause would stop each member at the same time after the others' heartbeats, as no operator
            # does: partitions then wait for one heartbeat or for two in all rehearsals alike.
            pace_seconds = self._options.pace_seconds
            time.sleep(pace_seconds + uniform(0, min(pace_seconds, _MORE_SECONDS)))  # noqa: S311 - no secret
        return done

    def kill_static(self) -> Killed | None:
        """Once all are rolled: kill a static member, and start one in its place; None where none is static.

        The first process says nothing to the group, so its session lasts: what the second one meets differs between
        the protocols.
        """
        number = next((each for each in self._running if self._shape.members[each].instance_id is not None), None)
        if number is None:
            return None
        shape = self._shape.members[number]
        self._say(f"{shape.name} is killed, and started again")
        known = self._member_ids()
        self._running.pop(number).kill()
        time.sleep(self._options.restart_seconds)
        begun = time.monotonic()
        new = self._running[number] = self._members.start(shape, self._to)
        let_in: bool | None = None
        while let_in is None and new.failure is None and time.monotonic() < begun + self._options.patience_seconds:
            if new.refusal is not None:
                let_in = False
            elif self._has_taken(shape.instance_id, known):
                let_in = True
            else:
                self._follower.wait(_POLL_SECONDS)
        seconds = round(time.monotonic() - begun, 3)
        said = new.failure if new.refusal is None else self._reason(number, new.refusal)
        return Killed(member=shape.name, let_in=let_in, seconds=seconds, said=said)

    def _has_taken(self, instance_id: str | None, known: frozenset[str]) -> bool:
        """Whether a member that was not known has this instance id."""
        found = self._follower.membership()
        return found is not None and any(
            member.instance_id == instance_id and member.member_id not in known and not is_absent(member)
            for member in members_of(found[0]).values()
        )

    def stop(self) -> None:
        """End every member; a second call does nothing."""
        members = [*self._surging, *self._running.values()]
        for member in members:
            member.ask_to_stop()
        for member in members:
            member.stop()
        self._running.clear()

    def _replace(self, numbers: list[int], rolled: int, done: Rolled) -> bool:
        """Roll some members at a time; false if the coordinator refuses one."""
        shapes = [self._shape.members[number] for number in numbers]
        self._say(f"{', '.join(member.name for member in shapes)} to the {self._to} protocol")
        begun_ms = now_ms()
        known = self._member_ids()
        old = [self._running.pop(number) for number in numbers]
        if not self._options.surge:
            self._end(old)
            if self._shape.has_librdkafka and self._options.ending is RollEnding.GRACEFUL and rolled == len(numbers):
                # As in a restart that takes longer than a heartbeat: what the others join with then decides.
                dynamic = sum(self._shape.members[number].instance_id is None for number in numbers)
                self._await_size(len(self._shape.members) - dynamic)
            time.sleep(self._options.restart_seconds)
        for number, shape in zip(numbers, shapes, strict=True):
            self._running[number] = self._members.start(shape, self._to)
        if self._options.surge:
            self._surging = old
            self._await_first_answer(numbers)
            self._end(old)
            self._surging = []
        what = ", ".join(member.name for member in shapes)
        refused = self._await(rolled=rolled, what=what, known=known, new=len(numbers), newest=numbers)
        step: dict[str, object] = {"members": [member.name for member in shapes], "time": begun_ms}
        if refused is None:
            done.steps.append({**step, "settled_seconds": round((now_ms() - begun_ms) / 1000, 3)})
            return True
        done.steps.append({**step, "settled_seconds": None})
        done.refused = True
        done.reasons.append(self._reason(*refused))
        return False

    def _member_ids(self) -> frozenset[str]:
        while (found := self._follower.membership()) is None and self._follower.failure is None:
            self._follower.wait(_POLL_SECONDS)
        return frozenset() if found is None else frozenset(members_of(found[0]))

    def _end(self, members: list[RehearsalMember]) -> None:
        if self._options.ending is RollEnding.GRACEFUL:
            for member in members:
                member.ask_to_stop()
        for member in members:
            member.kill() if self._options.ending is RollEnding.KILLED else member.stop()

    def _await_size(self, count: int) -> None:
        """Until the group has so many members by the log, or patience ends: what is waited for next tells then."""
        deadline = time.monotonic() + self._options.patience_seconds
        while time.monotonic() < deadline:
            found = self._follower.membership()
            if found is not None and len(members_of(found[0])) == count:
                return
            self._follower.wait(_POLL_SECONDS)

    def _await_first_answer(self, numbers: list[int]) -> None:
        """Until the new members are in, or one is refused; the old ones are there meanwhile."""
        more = len(self._shape.members) + len(numbers)
        deadline = time.monotonic() + self._options.patience_seconds
        while time.monotonic() < deadline and all(self._running[number].refusal is None for number in numbers):
            found = self._follower.membership()
            if found is not None and len(members_of(found[0])) >= more:
                return
            self._follower.wait(_POLL_SECONDS)

    def _reason(self, number: int, refusal: str) -> str:
        """The coordinator's own words where it gives any, else the client's."""
        shape = self._shape.members[number]
        return (self._members.refusal(shape) if self._to == CONSUMER else None) or refusal

    def _await(
        self, *, rolled: int, what: str, known: frozenset[str], new: int, newest: list[int] | None = None
    ) -> tuple[int, str] | None:
        """Wait until the group is settled with so many members rolled, and so many new ones beside those known.

        Returns a new member that was refused, if one was.
        """
        patience = self._options.patience_seconds + self._expiry_seconds()
        deadline = time.monotonic() + patience
        while time.monotonic() < deadline:
            if self._follower.failure is not None:
                raise CannotTellError(f"rehearsal: the coordinator's log cannot be followed: {self._follower.failure}")
            for number, member in self._running.items():
                if member.failure is not None:
                    raise CannotTellError(f"rehearsal: {member.name} cannot take part: {member.failure}")
                if member.refusal is not None:
                    if newest is not None and number in newest:
                        return number, member.refusal
                    raise CannotTellError(
                        f"rehearsal: {member.name} was refused before it was rolled: {member.refusal}"
                    )
            if self._settled(rolled, known, new):
                return None
            self._follower.wait(_POLL_SECONDS)
        raise CannotTellError(f"rehearsal: the group has not settled within {patience:g} s after {what}")

    def _expiry_seconds(self) -> float:
        """A killed member stays one until its session has expired."""
        if self._options.ending is not RollEnding.KILLED:
            return 0.0
        return max(member.session_timeout_ms for member in self._shape.members) / 1000

    def _settled(self, rolled: int, known: frozenset[str], new: int) -> bool:
        found = self._follower.membership()
        if found is None:
            return False
        membership, written_ms = found
        present = [member for member in members_of(membership).values() if not is_absent(member)]
        if len(present) != len(self._shape.members) or now_ms() - written_ms < QUIET_MS:
            return False
        modern = membership.modern_group
        if modern is not None and under_way(modern):
            return False
        if new != len({member.member_id for member in present} - known):
            return False
        classic, consumer = members_by_protocol(membership)
        if self._shape.type != self._to and rolled != (consumer if self._to == CONSUMER else classic):
            return False
        return _count(membership) >= self._expected


def _count(membership: Membership) -> int:
    return sum(map(len, held(membership).values()))


def protocols(direction: str) -> tuple[str, str]:
    """(from, to) of `upgrade` or `downgrade`."""
    return (CLASSIC, CONSUMER) if direction == "upgrade" else (CONSUMER, CLASSIC)

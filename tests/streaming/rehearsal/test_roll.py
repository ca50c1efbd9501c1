"""What a rehearsal does with its members, where no broker takes part."""

from dataclasses import dataclass
from typing import Any

import pytest

from coordinator_model.state.membership import CLASSIC, CONSUMER, Membership
from lab.builders import group_metadata, member
from streaming.rehearsal.roll import GroupRoll, Killed, RollOptions
from streaming.rehearsal.shape import MemberShape, Shape
from tests.histories import at, history

REFUSED = "Broker: Static consumer still in use"


@dataclass
class FakeMember:
    name: str
    refusal: str | None = None
    failure: str | None = None
    killed: bool = False

    def kill(self) -> None:
        self.killed = True

    def ask_to_stop(self) -> None: ...

    def stop(self) -> None: ...


class Rig:
    """A group of a dynamic and a static member that were rolled; the log has a new member once one took an id."""

    def __init__(
        self, *, to: str = CONSUMER, static: bool = True, then: FakeMember | None = None, patience: float = 9
    ) -> None:
        self.started: list[FakeMember] = []
        self.taken = False
        self.then = then
        self.coordinator_says: str | None = "instance id static-1 is owned"
        shapes = (MemberShape(name="a"), MemberShape(name="b", instance_id="static-1" if static else None))
        shape = Shape(group="g", type=CLASSIC, assignor="range", members=shapes)
        options = RollOptions(patience_seconds=patience)
        rig: Any = self
        self.roll = GroupRoll(shape, to, options, rig, rig, say=lambda _: None, advance=lambda _: None)
        self.first = [FakeMember("a"), FakeMember("b")]
        self.roll._running = dict(enumerate(self.first))

    failure = None

    def start(self, shape: MemberShape, protocol: str) -> FakeMember:
        self.started.append(self.then or FakeMember(shape.name))
        return self.started[-1]

    def refusal(self, _: MemberShape) -> str | None:
        return self.coordinator_says

    def membership(self) -> tuple[Membership, int]:
        static = member("b-2" if self.taken else "b-1", {"t": [1]}, instance_id="static-1")
        log = history(at(0, group_metadata("g", generation=1, members=[member("a-1", {"t": [0]}), static])))
        return log.replayed().states["g"].membership, 0

    def wait(self, _: float) -> None:
        self.taken = self.started != [] and self.then is None


def test_the_static_member_is_killed_and_started_again() -> None:
    """Another one takes its instance id: the classic protocol lets it."""
    rig = Rig(to=CLASSIC)
    found = rig.roll.kill_static()

    assert [False, True] == [each.killed for each in rig.first]
    assert isinstance(found, Killed)
    assert ("b", True, None) == (found.member, found.let_in, found.said)


@pytest.mark.parametrize(
    ("coordinator", "said"), [("instance id static-1 is owned", "instance id static-1 is owned"), (None, REFUSED)]
)
def test_what_refuses_it_is_said(coordinator: str | None, said: str) -> None:
    """In the coordinator's words, where it says it again; else in its client's."""
    rig = Rig(then=FakeMember("b", refusal=REFUSED))
    rig.coordinator_says = coordinator
    found = rig.roll.kill_static()

    assert found is not None
    assert (False, said) == (found.let_in, found.said)


def test_one_that_has_no_answer_is_not_said_to_be_in() -> None:
    """Nor does it end the rehearsal, whose figures are there by then."""
    silent = Rig(then=FakeMember("b"), patience=0.05).roll.kill_static()
    broken = Rig(then=FakeMember("b", failure="its process ended")).roll.kill_static()

    assert silent is not None
    assert broken is not None
    assert (None, None) == (silent.let_in, silent.said)
    assert (None, "its process ended") == (broken.let_in, broken.said)


def test_nobody_is_killed_where_none_is_static() -> None:
    """Its members leave the group when their sessions end, under either protocol."""
    rig = Rig(static=False)

    assert rig.roll.kill_static() is None
    assert not any(each.killed for each in rig.first)

"""How the demo's group is rolled: by an operator who waits for the group to rest before the next member."""

import time
from pathlib import Path
from typing import Any

import pytest

from streaming.base.errors import CannotTellError
from streaming.demo.scenario import ROLLED_GROUP, ROLLED_MEMBERS, TOPICS, DemoScenario

EVERY_ORDER = {("orders", number) for number in range(TOPICS["orders"])}


class Members:
    """Members that share all partitions, those that are there; one that comes owns its own a while later."""

    LATE_SECONDS = 0.1

    def __init__(self) -> None:
        self.there: list[Member] = []
        self.stopped_while_owned: list[set[tuple[str, int]]] = []

    def __call__(self, **named: Any) -> "Member":
        member = Member(self, named["protocol"])
        self.there.append(member)
        return member

    def owned(self) -> set[tuple[str, int]]:
        """By all together."""
        return {place for member in self.there for place in member.owned}


class Member:
    is_running = True

    def __init__(self, members: Members, protocol: str) -> None:
        self._members, self.protocol = members, protocol
        self.owned_since = time.monotonic() + members.LATE_SECONDS

    @property
    def owned(self) -> set[tuple[str, int]]:
        if time.monotonic() < self.owned_since:
            return set()
        number = self._members.there.index(self)
        return {place for place in EVERY_ORDER if place[1] % len(self._members.there) == number}

    def await_assigned(self, timeout_seconds: float) -> None:
        if not self.owned:
            raise CannotTellError("no assignment")

    def stop(self) -> None:
        self._members.stopped_while_owned.append(self._members.owned())
        self._members.there.remove(self)


@pytest.mark.parametrize("protocol", ["consumer", "classic"])
def test_no_member_is_stopped_before_each_partition_has_an_owner_again(protocol: Any, tmp_path: Path) -> None:
    """One after the other is replaced by one of the other protocol, and each step is said."""
    steps: list[str] = []
    members = Members()
    scenario = DemoScenario("unused:1", tmp_path, on_step=steps.append, settle_seconds=0.2)
    scenario._member = members  # type: ignore[assignment] # in the place of processes
    for number in range(ROLLED_MEMBERS):
        scenario._join_rolled(f"{ROLLED_GROUP}-{number + 1}", "classic" if protocol == "consumer" else "consumer")

    scenario._roll_group(protocol, "rolls")

    assert [EVERY_ORDER] * ROLLED_MEMBERS == members.stopped_while_owned
    assert [protocol] * ROLLED_MEMBERS == [member.protocol for member in members.there]
    assert ["rolls"] == steps[:1]
    assert [f"member {number + 1} of {ROLLED_MEMBERS}" for number in range(ROLLED_MEMBERS)] == [
        step.removeprefix(f"{ROLLED_GROUP}: ").partition(" is replaced by one of the ")[0] for step in steps[1:]
    ]

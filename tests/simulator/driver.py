"""Numbers → things that happen: every history that the reference coordinator can write, and nothing else."""

from collections.abc import Callable
from random import Random
from typing import Final

from tests.simulator.coordinator import ReferenceCoordinator, places
from tests.simulator.memory import Group, Member

TOPICS: Final = (("t",), ("t", "u"), ("u",))
LAGS_MS: Final = (0, 0, 5, 400, 1_500, 30_000)
"""Pauses between two things: within a batch, within the assignment interval, beyond it, and beyond a heartbeat's."""
RESTART_MS: Final = 70_000
"""A static member's process takes so long to restart; one that is back sooner again and again is two of them."""
MOST_MEMBERS: Final = 5

Deed = Callable[[ReferenceCoordinator, Group, Random], bool]


def happen(coordinator: ReferenceCoordinator, group: Group, name: str, chance: Random) -> bool:
    """The deed of this name, with what it leaves open decided by chance; False where it cannot happen now."""
    coordinator.lag(chance.choice(LAGS_MS)) if chance.random() < 0.7 else None
    return DEEDS[name](coordinator, group, chance)


def history_of(chance: Random, *groups: tuple[str, str], length: int) -> ReferenceCoordinator:
    """A coordinator of groups (name, assignor) that has had `length` things happen, or refused them."""
    coordinator = ReferenceCoordinator()
    for name, protocol in groups:
        coordinator.open(name, protocol=protocol)
    for _ in range(length):
        group = coordinator.groups[chance.choice(list(coordinator.groups))]
        happen(coordinator, group, chance.choice(list(DEEDS)), chance)
    return coordinator


def _joins(*, classic: bool, static: bool, syncs: bool = True) -> Deed:
    def deed(coordinator: ReferenceCoordinator, group: Group, chance: Random) -> bool:
        if len(group.members) >= MOST_MEMBERS:
            return False
        topics = chance.choice(TOPICS)
        if classic:
            return coordinator.join_classic(group, static=static, topics=topics, syncs=syncs)
        return coordinator.join_consumer(group, static=static, topics=topics)

    return deed


def _some(chance: Random, group: Group) -> Member | None:
    return chance.choice(list(group.members.values())) if group.members else None


def _of_a_member(does: Callable[[ReferenceCoordinator, Group, Member, Random], bool]) -> Deed:
    def deed(coordinator: ReferenceCoordinator, group: Group, chance: Random) -> bool:
        member = _some(chance, group)
        return member is not None and does(coordinator, group, member, chance)

    return deed


def _beat(coordinator: ReferenceCoordinator, group: Group, member: Member, chance: Random) -> bool:
    return coordinator.heartbeat(group, member, let_go=chance.random() < 0.7)


def _bounce(coordinator: ReferenceCoordinator, group: Group, member: Member, chance: Random) -> bool:
    coordinator.lag(RESTART_MS)
    return coordinator.bounce(group, member)


def _come_back(coordinator: ReferenceCoordinator, group: Group, member: Member, chance: Random) -> bool:
    coordinator.lag(RESTART_MS)
    return coordinator.come_back(group, member, as_classic=chance.random() < 0.3)


def _several_leave(coordinator: ReferenceCoordinator, group: Group, chance: Random) -> bool:
    members = list(group.members.values())
    return coordinator.leave(group, *chance.sample(members, chance.randint(0, len(members))))


def _commit(coordinator: ReferenceCoordinator, group: Group, chance: Random) -> bool:
    some = chance.sample(list(places()), chance.randint(1, 4))
    ahead = {place: group.offsets[place]["offset"] if place in group.offsets else 0 for place in some}
    return coordinator.commit(group, {place: offset + chance.randint(0, 99) for place, offset in ahead.items()})


def _rewind(coordinator: ReferenceCoordinator, group: Group, chance: Random) -> bool:
    """A member seeks back, or an admin resets an empty group."""
    back = [place for place, offset in group.offsets.items() if offset["offset"] > 0]
    some = chance.sample(sorted(back), min(len(back), 2))
    return coordinator.commit(group, {place: group.offsets[place]["offset"] // 2 for place in some})


def _settle(coordinator: ReferenceCoordinator, group: Group, chance: Random) -> bool:
    return any([coordinator.heartbeat(group, member) for member in list(group.members.values())])  # noqa: C419 - all of them


DEEDS: Final[dict[str, Deed]] = {
    "join_classic": _joins(classic=True, static=False),
    "join_classic_static": _joins(classic=True, static=True),
    "join_and_lose_round": _joins(classic=True, static=False, syncs=False),
    "join_consumer": _joins(classic=False, static=False),
    "join_consumer_static": _joins(classic=False, static=True),
    "rebalance": lambda of, group, _: group.kind == "classic" and bool(group.members) and of.rebalance(group),
    "lose_round": lambda of, group, _: of.lose_round(group),
    "beat": _of_a_member(_beat),
    "beat_again": _of_a_member(_beat),
    "all_beat": _settle,
    "resubscribe": _of_a_member(lambda of, group, member, chance: of.resubscribe(group, member, chance.choice(TOPICS))),
    "move_host": _of_a_member(
        lambda of, group, member, chance: of.move_host(group, member, f"/10.0.0.{chance.randint(1, 9)}")
    ),
    "leave": _of_a_member(lambda of, group, member, _: of.leave(group, member)),
    "several_leave": _several_leave,
    "bounce": _of_a_member(_bounce),
    "step_away": _of_a_member(lambda of, group, member, _: of.step_away(group, member)),
    "come_back": _of_a_member(_come_back),
    "commit": _commit,
    "rewind": _rewind,
    "delete_offsets": lambda of, group, chance: of.delete_offsets(group, chance.choice(("t", "u"))),
    "delete": lambda of, group, _: of.delete(group),
}

"""Numbers → things that happen: every history that the reference coordinator can write, and nothing else."""

from collections.abc import Callable, Mapping
from random import Random
from typing import Final

from tests.simulator.cluster import RELEASES
from tests.simulator.coordinator import ReferenceCoordinator
from tests.simulator.memory import Group, Member
from tests.simulator.offsets import places

TOPICS: Final = (("t",), ("t", "u"), ("u",))
REGEXES: Final = ("rx-.*", "[tu]", "rx-a")
LAGS_MS: Final = (0, 0, 5, 400, 1_500, 30_000)
"""Pauses between two things: within a batch, within the assignment interval, beyond it, and beyond a heartbeat's."""
RESTART_MS: Final = 700_000
"""So long a static member's process runs between two restarts; one that is back sooner again and again is in a loop."""
MOST_MEMBERS: Final = 5
PRODUCERS: Final = (1, 2)

Deed = Callable[[ReferenceCoordinator, Group, Random], bool]


def happen(coordinator: ReferenceCoordinator, group: Group, name: str, chance: Random) -> bool:
    """The deed of this name, with what it leaves open decided by chance; False where it cannot happen now."""
    coordinator.lag(chance.choice(LAGS_MS)) if chance.random() < 0.7 else None
    return DEEDS[group.family][name](coordinator, group, chance)


def history_of(coordinator: ReferenceCoordinator, chance: Random, *, length: int) -> ReferenceCoordinator:
    """The coordinator when `length` things have happened to its groups, or were refused; no transaction stays open."""
    for _ in range(length):
        group = coordinator.groups[chance.choice(list(coordinator.groups))]
        happen(coordinator, group, chance.choice(list(DEEDS[group.family])), chance)
    for producer in PRODUCERS:
        coordinator.end_transaction(producer, commit=chance.random() < 0.5)
    return coordinator


def _joins_classic(*, static: bool, syncs: bool = True) -> Deed:
    def deed(coordinator: ReferenceCoordinator, group: Group, chance: Random) -> bool:
        topics = chance.choice(TOPICS)
        full = len(group.members) >= MOST_MEMBERS
        return not full and coordinator.join_classic(group, static=static, topics=topics, syncs=syncs)

    return deed


def _joins_consumer(*, static: bool, by_regex: bool = False) -> Deed:
    def deed(coordinator: ReferenceCoordinator, group: Group, chance: Random) -> bool:
        topics = chance.choice(TOPICS)
        if len(group.members) >= MOST_MEMBERS:
            return False
        assignor = chance.choice((None, None, "uniform", "range"))
        if not by_regex:
            return coordinator.join_consumer(group, static=static, topics=topics, server_assignor=assignor)
        return coordinator.join_consumer(
            group, topics=topics if chance.random() < 0.3 else (), regex=chance.choice(REGEXES)
        )

    return deed


def _join_share(coordinator: ReferenceCoordinator, group: Group, chance: Random) -> bool:
    return len(group.members) < MOST_MEMBERS and coordinator.join_share(group, topics=chance.choice(TOPICS))


def _join_streams(coordinator: ReferenceCoordinator, group: Group, chance: Random) -> bool:
    """A client of its own process, or another of one that there is."""
    beside = _some(chance, group) if group.kind == "streams" and chance.random() < 0.3 else None
    full = len(group.members) >= MOST_MEMBERS
    return not full and coordinator.join_streams(group, process_id=beside.process_id if beside else "")


def _some(chance: Random, group: Group) -> Member | None:
    return chance.choice(list(group.members.values())) if group.members else None


def _of_a_member(does: Callable[[ReferenceCoordinator, Group, Member, Random], bool]) -> Deed:
    def deed(coordinator: ReferenceCoordinator, group: Group, chance: Random) -> bool:
        member = _some(chance, group)
        return member is not None and does(coordinator, group, member, chance)

    return deed


def _beat(coordinator: ReferenceCoordinator, group: Group, member: Member, chance: Random) -> bool:
    return coordinator.heartbeat(group, member, let_go=chance.random() < 0.7)


def _all_beat(coordinator: ReferenceCoordinator, group: Group, chance: Random) -> bool:
    return any([coordinator.heartbeat(group, member) for member in list(group.members.values())])  # noqa: C419 - all of them


def _resubscribe(coordinator: ReferenceCoordinator, group: Group, member: Member, chance: Random) -> bool:
    regex = chance.choice(REGEXES) if group.kind == "consumer" and chance.random() < 0.3 else None
    return coordinator.resubscribe(group, member, chance.choice(TOPICS), regex=None if member.classic else regex)


def _bounce(coordinator: ReferenceCoordinator, group: Group, member: Member, chance: Random) -> bool:
    coordinator.lag(RESTART_MS)
    return coordinator.bounce(group, member)


def _come_back(coordinator: ReferenceCoordinator, group: Group, member: Member, chance: Random) -> bool:
    coordinator.lag(RESTART_MS)
    return coordinator.come_back(group, member, as_classic=chance.random() < 0.3)


def _several_leave(coordinator: ReferenceCoordinator, group: Group, chance: Random) -> bool:
    members = list(group.members.values())
    return coordinator.leave(group, *chance.sample(members, chance.randint(0, len(members))))


def _commits(*, transactional: bool = False) -> Deed:
    def deed(coordinator: ReferenceCoordinator, group: Group, chance: Random) -> bool:
        some = chance.sample(list(places()), chance.randint(1, 4))
        ahead = {place: group.offsets[place]["offset"] if place in group.offsets else 0 for place in some}
        return coordinator.commit(
            group,
            {place: offset + chance.randint(0, 99) for place, offset in ahead.items()},
            producer=chance.choice(PRODUCERS) if transactional else None,
            retained=not transactional and chance.random() < 0.1,
        )

    return deed


def _end_transaction(coordinator: ReferenceCoordinator, group: Group, chance: Random) -> bool:
    return coordinator.end_transaction(chance.choice(PRODUCERS), commit=chance.random() < 0.6)


def _rewind(coordinator: ReferenceCoordinator, group: Group, chance: Random) -> bool:
    """A member seeks back, or an admin resets an empty group."""
    back = [place for place, offset in group.offsets.items() if offset["offset"] > 0]
    some = chance.sample(sorted(back), min(len(back), 2))
    return coordinator.commit(group, {place: group.offsets[place]["offset"] // 2 for place in some})


def _expire(coordinator: ReferenceCoordinator, group: Group, chance: Random) -> bool:
    return coordinator.expire_offsets(group, [place for place in sorted(group.offsets) if chance.random() < 0.7])


def _grow(coordinator: ReferenceCoordinator, group: Group, chance: Random) -> bool:
    topic = chance.choice(("t", "u", "v", "rx-a", "rx-b"))
    return coordinator.grow(topic, min(coordinator.cluster.partitions.get(topic, 0) + chance.randint(1, 3), 9))


def _recreate(coordinator: ReferenceCoordinator, group: Group, chance: Random) -> bool:
    return coordinator.recreate(chance.choice(("t", "u", "rx-a")), chance.randint(1, 6))


def _upgrade_brokers(coordinator: ReferenceCoordinator, group: Group, chance: Random) -> bool:
    """To the next release, group after group: coordinators move from broker to broker."""
    later = [of for of in RELEASES.values() if of.name > coordinator.cluster.release.name]
    if later and chance.random() < 0.2:
        coordinator.upgrade_brokers(later[0])
    return False


_OF_ALL: Final[dict[str, Deed]] = {
    "beat": _of_a_member(_beat),
    "beat_again": _of_a_member(_beat),
    "all_beat": _all_beat,
    "all_beat_again": _all_beat,
    "leave": _of_a_member(lambda of, group, member, _: of.leave(group, member)),
    "several_leave": _several_leave,
    "move_host": _of_a_member(
        lambda of, group, member, chance: of.move_host(group, member, f"/10.0.0.{chance.randint(1, 9)}")
    ),
    "resubscribe": _of_a_member(_resubscribe),
    "grow": _grow,
    "recreate": _recreate,
    "upgrade_brokers": _upgrade_brokers,
    "delete": lambda of, group, _: of.delete(group),
}
_OF_CLASSIC_MEMBERS: Final[dict[str, Deed]] = {
    "join_classic": _joins_classic(static=False),
    "join_classic_static": _joins_classic(static=True),
    "join_and_lose_round": _joins_classic(static=False, syncs=False),
    "rebalance": lambda of, group, _: group.kind == "classic" and bool(group.members) and of.rebalance(group),
    "lose_round": lambda of, group, _: of.lose_round(group),
    "bounce": _of_a_member(_bounce),
    "commit": _commits(),
    "commit_in_transaction": _commits(transactional=True),
    "end_transaction": _end_transaction,
    "rewind": _rewind,
    "expire": _expire,
    "delete_offsets": lambda of, group, chance: of.delete_offsets(group, chance.choice(("t", "u"))),
}

DEEDS: Final[Mapping[str, Mapping[str, Deed]]] = {
    "consumer": {
        **_OF_ALL,
        **_OF_CLASSIC_MEMBERS,
        "join_consumer": _joins_consumer(static=False),
        "join_consumer_static": _joins_consumer(static=True),
        "join_consumer_by_regex": _joins_consumer(static=False, by_regex=True),
        "match_regexes": lambda of, group, _: of.match_regexes(group),
        "step_away": _of_a_member(lambda of, group, member, _: of.step_away(group, member)),
        "come_back": _of_a_member(_come_back),
    },
    "share": {
        **_OF_ALL,
        "join_share": _join_share,
        "join_share_again": _join_share,
        "initialize": lambda of, group, _: of.initialize(group),
        "initialize_again": lambda of, group, _: of.initialize(group),
    },
    "streams": {
        **_OF_ALL,
        **_OF_CLASSIC_MEMBERS,
        "join_streams": _join_streams,
        "join_streams_again": _join_streams,
        "join_streams_once_more": _join_streams,
        "end_delay": lambda of, group, _: of.end_delay(group),
        "end_delay_at_last": lambda of, group, _: of.end_delay(group),
    },
}
"""What a group may become → what may happen to it."""

"""Who is to have which partition: the leader's assignors of classic groups, and the broker's of consumer groups."""

from collections.abc import Mapping

from tests.simulator.memory import PARTITIONS, Place

Subscriptions = Mapping[str, tuple[str, ...]]
"""Member id → topics."""
Assignment = dict[str, set[Place]]


def ranges(subscriptions: Subscriptions) -> Assignment:
    """Neighbouring partitions of each topic to members in the order of their ids."""
    given: Assignment = {member: set() for member in subscriptions}
    for topic, count in PARTITIONS.items():
        members = sorted(member for member, topics in subscriptions.items() if topic in topics)
        for turn, member in enumerate(members):
            first, last = turn * count // len(members), (turn + 1) * count // len(members)
            given[member].update((topic, partition) for partition in range(first, last))
    return given


def sticky(subscriptions: Subscriptions, former: Mapping[str, set[Place]]) -> Assignment:
    """What members had, as far as the balance lets them keep it."""
    given: Assignment = {member: set() for member in sorted(subscriptions)}
    taken: set[Place] = set()
    for member, places in given.items():
        places.update(place for place in former.get(member, set()) - taken if place[0] in subscriptions[member])
        taken |= places
    for place in _places(subscriptions):
        able = [member for member in given if place[0] in subscriptions[member]]
        if place not in taken and able:
            given[min(able, key=lambda of: (len(given[of]), of))].add(place)
    while _evened(given, subscriptions):
        pass
    return given


def cooperative(subscriptions: Subscriptions, claims: Mapping[str, set[Place]]) -> Assignment:
    """The sticky assignment without what another member still claims: that is given out in the round after."""
    wanted = sticky(subscriptions, claims)
    claimed = {place: member for member, places in claims.items() for place in places}
    return {
        member: {place for place in places if claimed.get(place, member) == member} for member, places in wanted.items()
    }


def _places(subscriptions: Subscriptions) -> list[Place]:
    topics = {topic for topics in subscriptions.values() for topic in topics}
    return [(topic, partition) for topic in sorted(topics) for partition in range(PARTITIONS[topic])]


def _evened(given: Assignment, subscriptions: Subscriptions) -> bool:
    """Move one place from a member that has two more than another which can take it."""
    by_load = sorted(given, key=lambda of: (len(given[of]), of))
    for giver in reversed(by_load):
        for taker in by_load:
            able = sorted(place for place in given[giver] if place[0] in subscriptions[taker])
            if len(given[giver]) - len(given[taker]) >= 2 and able:
                given[giver].remove(able[-1])
                given[taker].add(able[-1])
                return True
    return False

"""Who is to have which partition: the leader's assignors of classic groups, and the broker's of consumer groups."""

from collections.abc import Mapping

from tests.simulator.cluster import Place

Wanted = Mapping[str, list[Place]]
"""Member id → every partition of what it subscribes to."""
Assignment = dict[str, set[Place]]


def ranges(wanted: Wanted) -> Assignment:
    """Neighbouring partitions of each topic to members in the order of their ids."""
    given: Assignment = {member: set() for member in wanted}
    counts = {topic: partition + 1 for places in wanted.values() for topic, partition in places}
    for topic, count in sorted(counts.items()):
        members = sorted(member for member, places in wanted.items() if (topic, 0) in places)
        for turn, member in enumerate(members):
            first, last = turn * count // len(members), (turn + 1) * count // len(members)
            given[member].update((topic, partition) for partition in range(first, last))
    return given


def sticky(wanted: Wanted, former: Mapping[str, set[Place]]) -> Assignment:
    """What members had, as far as the balance lets them keep it."""
    given: Assignment = {member: set() for member in sorted(wanted)}
    able = {member: set(places) for member, places in wanted.items()}
    taken: set[Place] = set()
    for member, places in given.items():
        places.update((former.get(member, set()) - taken) & able[member])
        taken |= places
    for place in sorted({place for places in wanted.values() for place in places} - taken):
        takers = [member for member in given if place in able[member]]
        given[min(takers, key=lambda of: (len(given[of]), of))].add(place)
    while _evened(given, able):
        pass
    return given


def cooperative(wanted: Wanted, claims: Mapping[str, set[Place]]) -> Assignment:
    """The sticky assignment without what another member still claims: that is given out in the round after."""
    assignment = sticky(wanted, claims)
    claimed = {place: member for member, places in claims.items() for place in places}
    return {
        member: {place for place in places if claimed.get(place, member) == member}
        for member, places in assignment.items()
    }


def shared(wanted: Wanted) -> Assignment:
    """Partitions to members in turn, and more members than partitions share them: every member reads something."""
    given: Assignment = {member: set() for member in sorted(wanted)}
    for place in sorted({place for places in wanted.values() for place in places}):
        takers = [member for member in given if place in wanted[member]]
        given[min(takers, key=lambda of: (len(given[of]), of))].add(place)
    for member, places in given.items():
        if not places and wanted[member]:
            places.add(wanted[member][sorted(given).index(member) % len(wanted[member])])
    return given


def _evened(given: Assignment, able: Mapping[str, set[Place]]) -> bool:
    """Move one place from a member that has two more than another which can take it."""
    by_load = sorted(given, key=lambda of: (len(given[of]), of))
    for giver in reversed(by_load):
        for taker in by_load:
            places = sorted(given[giver] & able[taker])
            if len(given[giver]) - len(given[taker]) >= 2 and places:
                given[giver].remove(places[-1])
                given[taker].add(places[-1])
                return True
    return False

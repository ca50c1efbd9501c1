"""Who holds which partitions, across the members of a group."""

from __future__ import annotations

from collections.abc import Iterable

from coordinator_model.group_state import Partitions


def held_twice(held: Iterable[tuple[str, Partitions]]) -> dict[str, tuple[str, ...]]:
    """The `Holders` of partitions that more than one member has, of (member id, partitions)."""
    listed = list(held)
    if _disjoint(listed):
        return {}
    first: dict[tuple[str, int], str] = {}
    holders: dict[tuple[str, int], set[str]] = {}
    for member_id, parts in listed:
        for topic, partitions in parts.items():
            for partition in partitions:
                place = (topic, partition)
                other = first.setdefault(place, member_id)
                if other != member_id:
                    holders.setdefault(place, {other}).add(member_id)
    return {f"{topic}/{partition}": tuple(sorted(ids)) for (topic, partition), ids in sorted(holders.items())}


def _disjoint(held: Iterable[tuple[str, Partitions]]) -> bool:
    """The answer nearly always, found without a look at each partition's holder."""
    seen: dict[str, set[int]] = {}
    counts: dict[str, int] = {}
    for _, parts in held:
        for topic, partitions in parts.items():
            seen.setdefault(topic, set()).update(partitions)
            counts[topic] = counts.get(topic, 0) + len(partitions)
    return all(len(partitions) == counts[topic] for topic, partitions in seen.items())

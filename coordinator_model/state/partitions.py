"""Sets of partitions by topic, or by subtopology: what records list in any order, and a topic more than once.

Every result names each topic once, with its partitions ascending, and no topic without one.
"""

from __future__ import annotations

from collections.abc import Iterable

from coordinator_model.state.membership import Partitions


def merged(parts: Iterable[tuple[str, Iterable[int]]]) -> Partitions:
    """All of these together, topics in the order in which they come first."""
    found: dict[str, tuple[int, ...]] = {}
    for topic, partitions in parts:
        found[topic] = tuple(sorted({*found.get(topic, ()), *partitions}))
    return {topic: partitions for topic, partitions in found.items() if partitions}


def common(parts: Partitions, others: Partitions) -> Partitions:
    """Those in both, in the order of the first."""
    return merged((topic, {*partitions} & {*others.get(topic, ())}) for topic, partitions in parts.items())


def without(parts: Partitions, others: Partitions) -> Partitions:
    """Those in the first and not in the second."""
    return merged((topic, {*partitions} - {*others.get(topic, ())}) for topic, partitions in parts.items())

"""Which groups have to be worked out anew, because their lag may be another than it was.

Lag changes with a commit, with the end of a log, and where records wait also with time. Most groups of a big cluster
do not commit, and nothing is written for them: what was worked out of them stays as it is.
"""

from collections.abc import Callable, Collection, Iterable

from streaming.base.persistent_map import GroupMap
from streaming.base.throttle import in_lots, no_pause
from streaming.board.board_group import BoardGroup
from streaming.end_offsets.store import EndOffsets


class Unrest:
    """Follows groups and log ends for one reader, who says after each look which groups rest."""

    def __init__(self) -> None:
        self._seen: GroupMap[BoardGroup] = GroupMap()
        self._version = 0
        self._restless: set[str] = set()
        self._by_topic: dict[str, set[str]] = {}

    def look(
        self, groups: GroupMap[BoardGroup], ends: EndOffsets, between: Callable[[], object] = no_pause
    ) -> tuple[set[str], set[str]]:
        """(groups that may have changed since the last look, groups that are gone since).

        `between` is called between some groups that changed and others.
        """
        gone: set[str] = set()
        for name, was, now in in_lots(groups.since(self._seen), between):
            former, topics = _topics(was), _topics(now)
            for topic in topics - former:
                self._by_topic.setdefault(topic, set()).add(name)
            for topic in former - topics:
                self._drop(topic, name)
            if now is None:
                gone.add(name)
                self._restless.discard(name)
            else:
                self._restless.add(name)
        self._seen = groups
        version = ends.version
        for topic in ends.moved_since(self._version):
            self._restless |= self._by_topic.get(topic, set())
        self._version = version
        return set(self._restless), gone

    def rest(self, names: Iterable[str]) -> None:
        """These groups stay as they are until something happens."""
        self._restless.difference_update(names)

    def rouse(self, names: Collection[str]) -> None:
        """These are to be looked at again, whatever the reason."""
        self._restless.update(name for name in names if name in self._seen)

    def _drop(self, topic: str, name: str) -> None:
        names = self._by_topic[topic]
        names.discard(name)
        if not names:
            del self._by_topic[topic]


def _topics(held: BoardGroup | None) -> set[str]:
    return set() if held is None else {bucket.topic for bucket in held.buckets}

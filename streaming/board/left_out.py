"""How many groups and topics a scope leaves out, kept up by what changes."""

import threading
from typing import Final

from streaming.base.name_filter import Scope
from streaming.base.persistent_map import GroupMap
from streaming.board.board_group import BoardGroup


class LeftOut:
    """Counts for one scope; safe to use from several threads."""

    def __init__(self, scope: Scope) -> None:
        self.scope: Final = scope
        self._lock = threading.Lock()
        self._seen: GroupMap[BoardGroup] = GroupMap()
        self._groups = 0
        self._topics: tuple[frozenset[str], int] = (frozenset(), 0)

    def counts(self, groups: GroupMap[BoardGroup], topics: frozenset[str]) -> dict[str, int]:
        """How many of these are left out: `groups` and `topics`."""
        with self._lock:
            if not self.scope.groups.takes_all:
                for name, was, now in groups.since(self._seen):
                    if (was is None) != (now is None) and not self.scope.groups(name):
                        self._groups += 1 if was is None else -1
                self._seen = groups
            if self._topics[0] is not topics:
                self._topics = topics, sum(not self.scope.topics(topic) for topic in topics)
            return {"groups": self._groups, "topics": self._topics[1]}

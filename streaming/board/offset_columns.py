"""Committed offsets as the board holds them: numbers in a row, without an object for each.

A bucket comes as text and stays text until somebody asks for what is in it: while the log is caught up with, most are
replaced before. Read, an offset takes 32 bytes, and the text goes. What a commit says besides numbers is nearly always
the same for a whole bucket (the topic's id, no metadata), and kept once; where it is not, it is kept for each.
"""

import json
import re
import sys
from array import array
from collections import Counter
from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import Any, Final, NamedTuple

from coordinator_model.state import snapshot
from coordinator_model.state.offsets import CommittedOffset

_HEAD: Final = re.compile(
    r'\[\d+,\{"topic":(?P<topic>"(?:[^"\\]|\\.)*"),"number":(?P<number>\d+)'
    r'(?:,"commits":(?P<commits>\d+))?(?:,"rewinds":(?P<rewinds>\d+))?(?:\}|,"offsets":)'
)
"""How the text of a bucket begins; one that begins in another way is read as a whole at once."""


_NUMBERS: Final = ("offset", "commit_timestamp_ms", "leader_epoch")
"""Numbers of a `CommittedOffset`; -1 is the default of each that has one."""


class _Said(NamedTuple):
    """What a commit says besides numbers."""

    metadata: str
    topic_id: str | None
    other_version: int | None


_said = lru_cache(4_096)(_Said)
"""The same object for the same words: most commits of a topic say the same."""


class OffsetColumns:
    """One offset bucket, never changed; `topic`, `number`, `commits` and `rewinds` as in `OffsetBucket`."""

    __slots__ = ("_numbers", "_said", "_text", "commits", "number", "rewinds", "topic")

    def __init__(self, text: str) -> None:
        """From the text of `snapshot.dump_offsets`."""
        self._text: str | None = text
        # Of each offset, by partition: partition, offset, time of commit (ms), leader epoch; None while it is text.
        self._numbers: array[int] | None = None
        self._said: _Said | tuple[_Said, ...] = ()
        head = _HEAD.match(text)
        if head is None:
            self._take(text)
        else:
            self.topic: str = sys.intern(json.loads(head["topic"]))
            self.number = int(head["number"])
            self.commits, self.rewinds = int(head["commits"] or 0), int(head["rewinds"] or 0)

    @property
    def key(self) -> tuple[str, int]:
        """Topic and number."""
        return self.topic, self.number

    @property
    def count(self) -> int:
        """How many committed offsets there are."""
        return len(self._held()) // 4

    @property
    def columns(self) -> "tuple[array[int], array[int], array[int]]":
        """Partitions ascending, their committed offsets, and when these were committed (ms, negative if not known)."""
        numbers = self._held()
        return numbers[::4], numbers[1::4], numbers[2::4]

    @property
    def numbers(self) -> "array[int]":
        """The numbers of all offsets by partition, four each: partition, offset, time of commit (ms), leader epoch."""
        return self._held()

    @property
    def leader_epochs(self) -> "array[int]":
        """Leader epochs of the commits, by partition as `columns`; -1 where a client gave none."""
        return self._held()[3::4]

    @property
    def newest_commit_ms(self) -> int:
        """When the last of its offsets was committed; negative where none says when."""
        return max(self.columns[2], default=-1)

    @property
    def topic_ids(self) -> str | tuple[str | None, ...] | None:
        """The topic id that all commits name, None if none does; one for each partition where they differ."""
        self._held()
        return self._said.topic_id if isinstance(self._said, _Said) else tuple(each.topic_id for each in self._said)

    @property
    def newest_version(self) -> int:
        """The largest value version that its offsets were written in, 0 for none."""
        numbers = self._held()
        if isinstance(self._said, _Said) and numbers:
            return _version(self._said)
        return max(self.versions, default=0)

    @property
    def versions(self) -> Mapping[int, int]:
        """Value version → how many offsets were written in it."""
        numbers = self._held()
        if isinstance(self._said, _Said):
            return {_version(self._said): len(numbers) // 4}
        return Counter(committed.value_version for _, committed in self.offsets())

    def offsets(self) -> Iterator[tuple[int, CommittedOffset]]:
        """(partition, committed offset), by partition."""
        numbers = self._held()
        for at in range(len(numbers) // 4):
            yield (
                numbers[4 * at],
                _committed(numbers, at, self._said if isinstance(self._said, _Said) else self._said[at]),
            )

    def _held(self) -> "array[int]":
        text, numbers = self._text, self._numbers
        # Two threads may read the text at once: each finds the same, and it goes last.
        if numbers is None:
            numbers = self._numbers if text is None else self._take(text)
        assert numbers is not None  # noqa: S101 - as said above
        return numbers

    def _take(self, text: str) -> "array[int]":
        snapshot.check_format(text)
        bucket: Mapping[str, Any] = json.loads(text)[1]
        self.topic, self.number = sys.intern(bucket["topic"]), bucket["number"]
        self.commits, self.rewinds = bucket.get("commits", 0), bucket.get("rewinds", 0)
        # Read as it stands, not by way of objects: it is a third of the cost, with every commit.
        held = sorted((int(partition), of) for partition, of in bucket.get("offsets", {}).items())
        found = array("q", [n for at, of in held for n in (at, *(of.get(name, -1) for name in _NUMBERS))])
        words = [_said(of.get("metadata", ""), of.get("topic_id"), of.get("other_version")) for _, of in held]
        self._said = words[0] if words and all(each is words[0] for each in words) else tuple(words)
        self._numbers = found
        self._text = None
        return found


@lru_cache(4_096)
def _version(said: _Said) -> int:
    return CommittedOffset(0, topic_id=said.topic_id, other_version=said.other_version).value_version


def _committed(numbers: "array[int]", at: int, said: _Said) -> CommittedOffset:
    _, offset, time_ms, leader_epoch = numbers[4 * at : 4 * at + 4]
    return CommittedOffset(
        offset=offset,
        leader_epoch=leader_epoch,
        metadata=said.metadata,
        commit_timestamp_ms=time_ms,
        topic_id=said.topic_id,
        other_version=said.other_version,
    )

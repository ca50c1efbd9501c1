"""Committed offsets as the board holds them: numbers packed in a row, and words that buckets share, as they came.

Nothing is made of them until somebody asks: figures of all groups are worked out of the numbers of all buckets, put one
after the other (`lag_columns.py`).
"""

import struct
from collections import Counter
from collections.abc import Iterator, Mapping

from coordinator_model.state import packed_offsets
from coordinator_model.state.offsets import CommittedOffset
from coordinator_model.state.packed_offsets import ROW, OffsetWords, PackedOffsets


class OffsetColumns:
    """One offset bucket, never changed; `topic` and `commits` as in `OffsetBucket`.

    Attributes:
        words: what its commits say besides numbers.
        numbers: as `packed_offsets.ROW` says.
    """

    __slots__ = ("numbers", "words")

    words: OffsetWords
    numbers: bytes

    def __init__(self, numbers: bytes, words: str) -> None:
        """From what `packed_offsets.dump_offsets` gives; raises SnapshotFormatError."""
        self.numbers, self.words = numbers, packed_offsets.words_of(words)
        packed_offsets.check(self.words, numbers)

    @property
    def packed(self) -> PackedOffsets:
        """What it was made of."""
        return self.numbers, packed_offsets.text_of(self.words)

    @property
    def topic(self) -> str:
        """The topic."""
        return self.words.topic

    @property
    def commits(self) -> int:
        """How often was committed."""
        return self._head[1]

    @property
    def newest_commit_ms(self) -> int:
        """When the last of its offsets was committed; negative where none says when."""
        return max(struct.unpack(f"<{len(self.numbers) // 8}q", self.numbers)[6::4], default=-1)

    @property
    def key(self) -> tuple[str, int]:
        """Topic and number."""
        return self.words.topic, self._head[0]

    @property
    def count(self) -> int:
        """How many committed offsets there are."""
        return self._head[3]

    @property
    def versions(self) -> Mapping[int, int]:
        """Value version → how many offsets were written in it."""
        versions = self.words.versions
        if self.words.which:
            return Counter(map(versions.__getitem__, self.words.which))
        return dict.fromkeys(versions, self.count)

    def offsets(self) -> Iterator[tuple[int, CommittedOffset]]:
        """(partition, committed offset), by partition."""
        return packed_offsets.offsets_of(self.words, self.numbers)

    @property
    def _head(self) -> tuple[int, int, int, int]:
        head: tuple[int, int, int, int] = ROW.unpack_from(self.numbers)
        return head

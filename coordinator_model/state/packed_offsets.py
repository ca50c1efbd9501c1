"""An offset bucket in columns: numbers packed in a row, and words that many buckets share.

What a commit says besides numbers is nearly always the same for all groups that read a topic: its id, and no metadata.
So a bucket is packed numbers, and a reference to words that are there once. Kept and passed on are the numbers as they
are packed and the words as JSON: `[FORMAT, object]`.
"""

from __future__ import annotations

import json
import struct
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache, cached_property, lru_cache
from itertools import chain
from typing import Final

from coordinator_model.state.offsets import CommittedOffset, OffsetBucket

FORMAT: Final = 2
"""Of the words."""

PackedOffsets = tuple[bytes, str]
"""Numbers, and words as JSON."""

Said = tuple[str, str | None, int | None]
"""What a commit says besides numbers: metadata, topic id, and the value's version where it is not the usual one."""

ROW: Final = struct.Struct("<4q")
"""The first row is of the bucket: its number, commits, rewinds, how many offsets. Then a row for each offset, by
partition: partition, offset, time of the commit (ms), leader epoch; the last two are negative where not known."""


@dataclass(frozen=True, eq=False)
class OffsetWords:
    """What there is to say of a bucket besides numbers; the same object for many buckets.

    Attributes:
        topic: whose offsets these are.
        said: what is said of some offset, each once; none where there is no offset.
        which: of each offset its place in `said`; empty where all say the first.
    """

    topic: str
    said: tuple[Said, ...]
    which: tuple[int, ...] = ()

    @cached_property
    def versions(self) -> tuple[int, ...]:
        """The value version of each of `said`."""
        return tuple(
            CommittedOffset(0, metadata=metadata, topic_id=topic_id, other_version=version).value_version
            for metadata, topic_id, version in self.said
        )


words: Final = lru_cache(1_024)(OffsetWords)
"""The same object for the same words."""


def dump_offsets(bucket: OffsetBucket) -> PackedOffsets:
    """One offset bucket."""
    said: dict[Said, int] = {}
    which: list[int] = []
    numbers = [bucket.number, bucket.commits, bucket.rewinds, len(bucket.offsets)]
    for partition, of in sorted(bucket.offsets.items()):
        numbers += (partition, of.offset, of.commit_timestamp_ms, of.leader_epoch)
        which.append(said.setdefault((of.metadata, of.topic_id, of.other_version), len(said)))
    packed = struct.pack(f"<{len(numbers)}q", *numbers)
    return packed, text_of(words(bucket.topic, tuple(said), tuple(which) if len(said) > 1 else ()))


def load_offsets(numbers: bytes, text: str) -> OffsetBucket:
    """Inverse of `dump_offsets`; raises SnapshotFormatError."""
    of = words_of(text)
    check(of, numbers)
    number, commits, rewinds, _ = ROW.unpack_from(numbers)
    return OffsetBucket(
        topic=of.topic, number=number, commits=commits, rewinds=rewinds, offsets=dict(offsets_of(of, numbers))
    )


@lru_cache(1_024)
def text_of(of: OffsetWords) -> str:
    """Words as JSON."""
    held = {"topic": of.topic, "said": of.said} | ({"which": of.which} if of.which else {})
    return _JSON.encode([FORMAT, held])


@lru_cache(1_024)
def words_of(text: str) -> OffsetWords:
    """Inverse of `text_of`; raises SnapshotFormatError."""
    check_format(text, (FORMAT,))
    _, held = json.loads(text)
    said = tuple((metadata, topic_id, version) for metadata, topic_id, version in held["said"])
    return words(held["topic"], said, tuple(held.get("which", ())))


_JSON: Final = json.JSONEncoder(separators=(",", ":"), ensure_ascii=False, check_circular=False)


class SnapshotFormatError(ValueError):
    """The text is of a format this release does not read."""


def check_format(text: str, accepted: tuple[int, ...]) -> None:
    """See, by its first characters alone, that a text is of such a format; raises SnapshotFormatError."""
    if not text.startswith(_beginnings(accepted)):
        raise SnapshotFormatError(refusal(text[1:].partition(",")[0][:20], accepted))


@cache
def _beginnings(accepted: tuple[int, ...]) -> tuple[str, ...]:
    return tuple(f"[{number}," for number in accepted)


def refusal(found: object, accepted: tuple[int, ...]) -> str:
    """Why a text is not read."""
    return f"snapshot format: found {found}, this release reads {' or '.join(map(str, accepted))}"


def check(of: OffsetWords, numbers: bytes) -> None:
    """See that words and numbers go together; raises ValueError."""
    count = ROW.unpack_from(numbers)[3] if len(numbers) >= ROW.size else 0
    goes_with_words = len(of.which) == count > 0 if of.which else len(of.said) == (count > 0)
    if len(numbers) != ROW.size * (count + 1) or not goes_with_words:
        raise ValueError(f"offsets: found {len(numbers)} bytes and {len(of.said)} words, accepted: of {count} offsets")


def offsets_of(of: OffsetWords, numbers: bytes) -> Iterator[tuple[int, CommittedOffset]]:
    """(partition, committed offset), by partition."""
    rows = ROW.iter_unpack(memoryview(numbers)[ROW.size :])
    count = len(numbers) // ROW.size - 1
    said = map(of.said.__getitem__, of.which) if of.which else chain(of.said * count)
    for (partition, offset, time_ms, leader_epoch), (metadata, topic_id, version) in zip(rows, said, strict=True):
        yield partition, CommittedOffset(offset, leader_epoch, metadata, time_ms, topic_id, version)

"""What a broker's loader said of each partition of `__consumer_offsets`, read from its log.

    from 4.0 on, and the new coordinator before    `Finished loading of metadata from …`,
                                                   `Failed to load metadata from …`
    the coordinator up to 3.9                      `Finished loading offsets and group metadata from …`,
                                                   `Error loading offsets from …`

The first names in its failure the offset in its own log. The second says why alone, and goes on without what stood
behind the record: it is not said which one it was.
"""

import re
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from typing import Final

_LOADED: Final = re.compile(
    r"Finished loading (?:of metadata|offsets and group metadata) from __consumer_offsets-(?P<partition>\d+)\b"
)
_FAILED: Final = re.compile(
    r"(?:Failed to load metadata|Error loading offsets) from __consumer_offsets-(?P<partition>\d+)\b"
    r"(?: with epoch -?\d+)?(?: due to (?P<why>.*))?"
)
_OFFSET: Final = re.compile(r"(?:\bat offset |\bDefaultRecord\(offset=)(?P<offset>\d+)\b")
"""Of a record that did not replay, or did not decode."""
_CAUSE: Final = re.compile(r"^(?:Caused by: )?(?:[\w$]+\.)+(?P<name>[\w$]+)(?:: (?P<text>.*))?$")
_UNKNOWN: Final = re.compile(r"Unknown (?P<of>group metadata|offset) message version: (?P<number>\d+)")
_DUE_TO: Final = " failed due to: "
_WORDS: Final = 300


@dataclass(frozen=True, slots=True, kw_only=True)
class Failure:
    """Why a partition did not load.

    Attributes:
        said: the innermost cause, in the broker's words, in one line.
        offset: of the record, in the broker's own log; None where it does not say.
        text: all that it said, for the table of known faults.
    """

    said: str
    offset: int | None
    text: str


@dataclass(slots=True)
class LoaderSaid:
    """By partition what came of it; a partition that is in neither was not heard of."""

    loaded: set[int]
    failed: dict[int, Failure]

    @property
    def heard_of(self) -> set[int]:
        """Partitions that the loader is through with."""
        return self.loaded | self.failed.keys()


def said(log: str) -> LoaderSaid:
    """What the log of one start says."""
    found = LoaderSaid(set(), {})
    for first, following in _entries(log.splitlines()):
        if (failed := _FAILED.search(first)) is not None:
            # The old loader says *finished* of it as well.
            found.failed.setdefault(int(failed["partition"]), _failure(first, failed["why"] or "", following))
        elif (loaded := _LOADED.search(first)) is not None:
            found.loaded.add(int(loaded["partition"]))
    found.loaded -= found.failed.keys()
    return found


def _entries(lines: Iterable[str]) -> Iterator[tuple[str, list[str]]]:
    """Entries of the log, which begin with `@`: the first line, and those that belong to it."""
    first: str | None = None
    following: list[str] = []
    for line in lines:
        if line.startswith("@"):
            if first is not None:
                yield first, following
            first, following = line, []
        else:
            following.append(line)
    if first is not None:
        yield first, following


def _failure(first: str, why: str, following: list[str]) -> Failure:
    causes = [match for line in following if (match := _CAUSE.match(line)) is not None]
    innermost = causes[-1] if causes else None
    # Up to 4.0 there is no stack, and the whole record stands before the cause.
    words = (
        why.rpartition(_DUE_TO)[2]
        if innermost is None
        else f"{innermost['name']}: {innermost['text'] or ''}".rstrip(": ")
    )
    offset = _OFFSET.search(f"{why} {' '.join(each['text'] or '' for each in causes)}")
    return Failure(
        said=" ".join(words.split())[:_WORDS],
        offset=None if offset is None else int(offset["offset"]),
        text="\n".join([first, *following]),
    )


def unknown_version(failure: Failure) -> tuple[bool, int] | None:
    """What a loader before 3.4.1 did not know: whether a type of record (else a version of offsets), and its number."""
    match = _UNKNOWN.search(failure.text)
    return None if match is None else (match["of"] != "offset", int(match["number"]))

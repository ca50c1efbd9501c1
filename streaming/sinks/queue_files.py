"""The files of a queue (`queue.py`): segments of whole frames, and how they come to be on the disk.

A segment's first line is its head; a frame is a line that says what follows, and that. A frame is there whole or not
at all: its bytes are on the disk when `append` returns, and what a crash leaves of a last one is cut off.
"""

import json
import zlib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, BinaryIO, Final

from streaming.base.atomic_files import sync, sync_directory

FORMAT: Final = "spool/1"

FrameHeader = Mapping[str, Any]


class DamagedError(ValueError):
    """What is there is not whole."""


@dataclass(slots=True)
class Segment:
    """A file of frames.

    Attributes:
        path: the file, called after `first`.
        first: position of its first entry.
        end: position after its last entry.
        size: bytes of head and whole frames.
    """

    path: Path
    first: int
    end: int
    size: int

    @classmethod
    def begin(cls, directory: Path, first: int, head: Mapping[str, Any]) -> "Segment":
        """Make an empty one; raises OSError."""
        path = directory / f"{first:020d}.ndjson"
        written = line({"format": FORMAT, **head})
        with path.open("wb") as file:
            file.write(written)
            sync(file)
        sync_directory(directory)
        return cls(path, first, first, len(written))

    @classmethod
    def read_head(cls, path: Path) -> tuple["Segment", dict[str, Any]]:
        """What is in a file: the segment as if nothing followed its head, and the head.

        Raises:
            DamagedError: there is no whole head.
            ValueError: it is another release's.
            OSError: it cannot be read.
        """
        with path.open("rb") as file:
            first_line = file.readline()
        try:
            head = json.loads(first_line)
        except ValueError:
            head = None
        if not isinstance(head, dict):
            raise DamagedError(f"{path.name} has no head")
        if head.get("format") != FORMAT:
            raise ValueError(f"{path.name} of format {head.get('format')!r}, this release reads {FORMAT!r}")
        return cls(path, int(path.stem), int(path.stem), len(first_line)), head

    def recovered(self) -> Iterator[tuple[FrameHeader, bytes]]:
        """(header, body) of each whole frame behind what is known, which it is part of from then on.

        Raises:
            DamagedError: what follows is not whole.
        """
        with self.path.open("rb") as file:
            file.seek(self.size)
            while first_line := file.readline():
                try:
                    header = json.loads(first_line)
                    body = file.read(header["bytes"])
                    whole = len(body) == header["bytes"] and zlib.crc32(body) == header["crc"]
                except (ValueError, KeyError, TypeError):
                    whole = False
                if not whole:
                    raise DamagedError(f"{self.path.name} is damaged at byte {self.size}")
                self.size, self.end = file.tell(), header["first"] + header["entries"]
                yield header, body

    def append(self, header: FrameHeader, body: bytes) -> None:
        """Add a frame; raises OSError, and is then as it was."""
        written = line({**header, "bytes": len(body), "crc": zlib.crc32(body)}) + body
        with self.path.open("r+b", buffering=0) as file:
            # One that failed may have left something behind what counts.
            file.truncate(self.size)
            file.seek(self.size)
            rest = memoryview(written)
            while rest:
                rest = rest[file.write(rest) :]
            sync(file)
        self.size += len(written)
        self.end += header["entries"]

    def frames(self, start: int = 0) -> Iterator[tuple[int, FrameHeader, BinaryIO]]:
        """(offset, header, file at the body) of each frame from the one at an offset on; the body need not be read."""
        with self.path.open("rb") as file:
            file.seek(start)
            if start == 0:
                file.readline()
            while (offset := file.tell()) < self.size:
                header = json.loads(file.readline())
                following = file.tell() + header["bytes"]
                yield offset, header, file
                file.seek(following)


def line(value: Mapping[str, Any]) -> bytes:
    """A line of JSON."""
    return json.dumps(value, separators=(",", ":")).encode("ascii") + b"\n"

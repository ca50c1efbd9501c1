"""gzip taken apart again, in parts that are never large: a megabyte of it may be a gigabyte of text."""

from collections.abc import Iterator
from typing import Final

from isal import isal_zlib

GZIP: Final = isal_zlib.MAX_WBITS | 16


class Unzipping:
    """One text in gzip, of which pieces come one after the other.

    Args:
        most: bytes in one part, at most.
    """

    def __init__(self, most: int) -> None:
        self._most = most
        self._packed = isal_zlib.decompressobj(GZIP)

    def parts(self, piece: bytes) -> Iterator[bytes]:
        """The text of the next piece."""
        rest = piece
        while True:
            part = self._packed.decompress(rest, self._most)
            rest = self._packed.unconsumed_tail
            if part:
                yield part
            if len(part) < self._most:
                return

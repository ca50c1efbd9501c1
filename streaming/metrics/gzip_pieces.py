"""Text compressed piece by piece, and pieces put together to one gzip stream without touching them again.

A piece is deflate blocks that refer to nothing before them and end at a byte, so pieces follow each other in any order.
What a stream needs of them besides is its checksum: that of two texts in a row follows from those of both and the
length of the second, by arithmetic on polynomials over GF(2) as zlib's crc32_combine does it (zlib/crc32.c).
"""

import struct
import zlib
from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from functools import lru_cache
from itertools import islice
from typing import Final

QUICK: Final = 1
"""Level for what is sent once."""

SENT_AT_ONCE: Final = 262_144
"""Bytes in one part of an answer, about."""

_RAW: Final = -zlib.MAX_WBITS
_HEAD: Final = b"\x1f\x8b\x08\x00\x00\x00\x00\x00\x04\xff"
"""A gzip member of deflate, no name, no time, quickly made, of no particular system (RFC 1952)."""
_LAST_BLOCK: Final = b"\x03\x00"
_POLYNOMIAL: Final = 0xEDB88320
_ONE: Final = 1 << 31
_SIZES: Final = 1 << 32


@dataclass(frozen=True, slots=True)
class Deflated:
    """A compressed piece of text.

    Attributes:
        blocks: its deflate blocks, none of them the last one of a stream.
        checksum: CRC-32 of the text.
        size: bytes of the text.
    """

    blocks: bytes
    checksum: int
    size: int


Piece = bytes | Deflated


def deflate(text: bytes, level: int) -> Deflated:
    """Compress a piece, all by itself; no other thread has to wait meanwhile."""
    packing = zlib.compressobj(level, zlib.DEFLATED, _RAW)
    return Deflated(packing.compress(text) + packing.flush(zlib.Z_SYNC_FLUSH), zlib.crc32(text), len(text))


def inflate(piece: Piece) -> bytes:
    """The text of a piece."""
    if isinstance(piece, bytes):
        return piece
    return zlib.decompressobj(_RAW).decompress(piece.blocks, piece.size) if piece.size else b""


def plain(pieces: Iterable[Piece]) -> Iterator[bytes]:
    """The text of all pieces, in parts that are worth sending."""
    return _gathered(map(inflate, pieces))


def gzipped(pieces: Iterable[Piece]) -> Iterator[bytes]:
    """The same as gzip, one member."""
    return _gathered(_member(pieces))


def _member(pieces: Iterable[Piece]) -> Iterator[bytes]:
    checksum = size = 0
    packing = None
    yield _HEAD
    for piece in pieces:
        if isinstance(piece, bytes):
            # Text that follows text is compressed as one.
            packing = packing or zlib.compressobj(QUICK, zlib.DEFLATED, _RAW)
            yield packing.compress(piece)
            checksum, size = zlib.crc32(piece, checksum), size + len(piece)
        else:
            if packing is not None:
                yield packing.flush(zlib.Z_SYNC_FLUSH)
                packing = None
            yield piece.blocks
            checksum, size = _moved(_by_nibble(piece.size), checksum) ^ piece.checksum, size + piece.size
    if packing is not None:
        yield packing.flush(zlib.Z_SYNC_FLUSH)
    yield _LAST_BLOCK + struct.pack("<II", checksum, size % _SIZES)


def _gathered(parts: Iterable[bytes]) -> Iterator[bytes]:
    held: list[bytes] = []
    size = 0
    for part in parts:
        held.append(part)
        size += len(part)
        if size >= SENT_AT_ONCE:
            yield b"".join(held)
            held, size = [], 0
    yield b"".join(held)


def _moved(by_nibble: Sequence[int], checksum: int) -> int:
    """A checksum times the polynomial of which these are the multiples, four powers at a time: eight steps, not 32."""
    product = 0
    for _ in range(8):
        product = (product >> 4) ^ _REDUCED[product & 15] ^ by_nibble[checksum & 15]
        checksum >>= 4
    return product


@lru_cache(16_384)
def _by_nibble(size: int) -> tuple[int, ...]:
    """The multiples, by all polynomials of degree 3, of what a checksum is multiplied by when so many bytes follow."""
    found = [0, _shift(size)]
    for _ in range(3):
        found = [of ^ lowest for of in found for lowest in (0, _by_x(found[1]))]
    return tuple(found)


def _by_x(of: int) -> int:
    return (of >> 1) ^ _POLYNOMIAL if of & 1 else of >> 1


def _times(one: int, other: int) -> int:
    """Product of two polynomials modulo the checksum's; the highest power stands in the lowest bit."""
    product, bit = 0, _ONE
    while one:
        if one & bit:
            product ^= other
            one ^= bit
        bit >>= 1
        other = _by_x(other)
    return product


def _shift(size: int) -> int:
    """What a checksum is multiplied by when so many bytes follow: x to the power of their bits."""
    found = _ONE
    for power in _BYTES:
        if size & 1:
            found = _times(power, found)
        size >>= 1
    return found


def _squares(of: int) -> Iterator[int]:
    while True:
        yield of
        of = _times(of, of)


_BYTES: Final = tuple(islice(_squares(_ONE >> 8), 64))
"""What it is multiplied by when 1, 2, 4, 8 … bytes follow."""
_REDUCED: Final = tuple(_times(_ONE >> 4, nibble) for nibble in range(16))
"""What stands for the four powers that a multiplication by the fourth one pushes out, by their bits."""

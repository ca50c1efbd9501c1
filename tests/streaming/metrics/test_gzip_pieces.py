"""Pieces compressed each by itself are one gzip stream in any order."""

import gzip
import random
import zlib

import pytest

from streaming.metrics import gzip_pieces
from streaming.metrics.gzip_pieces import Piece, deflate, gzipped, inflate, plain

TEXT = b'kafka_group_epoch{cluster="prod",group="g-%d"} 7\n'


@pytest.mark.parametrize("seed", range(20))
def test_pieces_in_any_order_are_one_stream(seed: int) -> None:
    """Text and compressed pieces, empty and long ones in turn: one member, whose checksum and size are right."""
    draw = random.Random(seed)
    pieces: list[Piece] = []
    for _ in range(draw.randrange(12)):
        text = TEXT % draw.randrange(9) * draw.choice([0, 1, 7, 3_000, 20_000])
        pieces.append(text if draw.random() < 0.4 else deflate(text, draw.choice([1, 6, 9])))
    text = b"".join(map(inflate, pieces))
    zipped = b"".join(gzipped(pieces))
    member = zlib.decompressobj(wbits=16 + zlib.MAX_WBITS)

    assert text == gzip.decompress(zipped)
    assert text == member.decompress(zipped)
    assert member.eof
    assert b"" == member.unused_data
    assert text == b"".join(plain(pieces))


def test_a_piece_can_be_used_again() -> None:
    """What is kept is sent with page after page."""
    piece = deflate(TEXT % 1, gzip_pieces.QUICK)

    assert TEXT % 1 * 3 == gzip.decompress(b"".join(gzipped([piece, piece, piece])))


def test_a_stream_is_handed_out_in_parts_worth_sending() -> None:
    """Neither as a whole nor piece by piece."""
    pieces = [deflate(random.Random(number).randbytes(1_000), 1) for number in range(1_000)]
    parts = list(gzipped(pieces))

    assert len(parts) < 8
    assert all(len(part) < gzip_pieces.SENT_AT_ONCE + 2_000 for part in parts)

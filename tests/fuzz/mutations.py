"""Damage to whole records, for the targets whose inputs are records: bytes alone are rarely records again."""

import random
from collections.abc import Callable
from typing import Final

from tests.fuzz.targets import FuzzedRecord, read_records, write_records

OF_RECORDS: Final = frozenset({"record", "log", "packs"})
"""Targets whose inputs are read by `read_records`."""

_MOST_BYTES: Final = 1_024


def mutated(data: bytes, most: int, seed: int, mutate: Callable[[bytes, int], bytes]) -> bytes:
    """Another input of at most `most` bytes. `mutate` changes bytes, and makes at most so many of them."""
    chance = random.Random(seed)
    records = read_records(data) or [FuzzedRecord(0, b"", b"")]
    for _ in range(chance.randint(1, 3)):
        _change(records, chance, mutate)
    return write_records(records)[:most]


def _change(records: list[FuzzedRecord], chance: random.Random, mutate: Callable[[bytes, int], bytes]) -> None:
    at, other = chance.randrange(len(records)), chance.randrange(len(records))
    one, another = records[at], records[other]

    def bytes_of(part: bytes | None) -> bytes:
        return mutate(part or b"", min(len(part or b"") + 64, _MOST_BYTES))

    match chance.randrange(9):
        case 0 | 1 | 2:
            records[at] = FuzzedRecord(one.wait_ms, one.key, bytes_of(one.value))
        case 3:
            records[at] = FuzzedRecord(one.wait_ms, bytes_of(one.key), one.value)
        case 4:
            records[at] = FuzzedRecord(one.wait_ms, one.key, None)
        case 5:
            records[at] = FuzzedRecord(chance.choice((0, 0, 1, 255)), one.key, another.value)
        case 6:
            records.insert(other, one)
        case 7 if len(records) > 1:
            del records[at]
        case _:
            records[at], records[other] = another, one

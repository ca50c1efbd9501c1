"""Tens of millions of damaged records through the decoders themselves, without the fuzzer's bookkeeping.

Coverage finds the odd input; mass finds the odd combination. Every input of the corpus is damaged in one place after
another, and each form decoded; one in `CHECKED` is asked for all of its target's properties besides.
"""

import random
import time
from collections.abc import Callable, Iterator
from typing import Any, Final

from coordinator_model.records.consumer_protocol import decode_assignment, decode_sticky_user_data, decode_subscription
from coordinator_model.records.kafka_streams import decode_assignment_info, decode_subscription_info
from coordinator_model.records.serde import decode_record
from tests.fuzz import corpus
from tests.fuzz.targets import FuzzedRecord, embedded, read_records, record, write_records

CHECKED: Final = 512
_ROUND: Final = 2_000
_EMBEDDED: Final[tuple[Callable[[bytes], Any], ...]] = (
    decode_subscription,
    decode_assignment,
    decode_sticky_user_data,
    decode_subscription_info,
    decode_assignment_info,
)
_ODD: Final = (0, 1, 2, 0x7F, 0x80, 0xFF)


def decoded(inputs: int, seconds: float, seed: int) -> Iterator[tuple[int, float]]:
    """Decode about so many damaged records, or for so long; yields inputs and seconds so far, again and again.

    Raises whatever a decoder raises, which none should, or AssertionError where a property does not hold.
    """
    chance = random.Random(seed)
    started = time.monotonic()
    records = [of for data in corpus.read("record") for of in read_records(data)[:1] if of.key and of.value]
    blobs = [data for data in corpus.read("embedded") if data]
    count = 0
    while count < inputs and time.monotonic() - started < seconds:
        one = chance.choice(records)
        count += _records(one, chance)
        blob = chance.choice(blobs)
        for decode in _EMBEDDED:
            for damaged in _damaged(blob, chance, _ROUND // len(_EMBEDDED)):
                decode(damaged)
                count += 1
        embedded(damaged)
        yield count, time.monotonic() - started


def _records(one: FuzzedRecord, chance: random.Random) -> int:
    assert one.key is not None
    assert one.value is not None
    count = 0
    for damaged in _damaged(one.value, chance, _ROUND):
        decode_record(one.key, damaged)
        count += 1
        if count % CHECKED == 0:
            record(write_records([FuzzedRecord(0, one.key, damaged)]))
    for damaged in _damaged(one.key, chance, _ROUND // 10):
        decode_record(damaged, one.value)
        count += 1
    return count


def _damaged(whole: bytes, chance: random.Random, times: int) -> Iterator[bytes]:
    """Forms of some bytes: one of them changed after another, the former changes staying for a while; some cut."""
    held, length = bytearray(whole), len(whole)
    places = chance.choices(range(length), k=times)
    values = chance.choices([*_ODD, *chance.randbytes(len(_ODD))], k=times)
    for number, (at, value) in enumerate(zip(places, values, strict=True)):
        if number % 4 == 0:
            held[:] = whole
        held[at] = value
        yield bytes(held) if number % 16 else bytes(held[:at])

"""Whatever input ever reached something new, or broke something, is read as it should, in bounded steps and space."""

import sys
import tracemalloc
from collections.abc import Callable

import pytest

from tests.fuzz import corpus
from tests.fuzz.targets import TARGETS

every_target = pytest.mark.parametrize("name", TARGETS)

CALLS_A_BYTE = {"record": 40, "embedded": 40}
CALLS_AT_LEAST = 4_000
BYTES_A_BYTE = 400
BYTES_AT_LEAST = 200_000


@every_target
def test_properties_hold_of_every_input(name: str) -> None:
    """No input of the corpus raises; each was worth keeping."""
    inputs = corpus.read(name)

    assert inputs
    for data in inputs:
        TARGETS[name](data)


@pytest.mark.parametrize("name", CALLS_A_BYTE)
def test_steps_are_bounded_by_the_length_of_the_input(name: str) -> None:
    """No input makes a decoder go round and round: calls of functions grow with its bytes at most."""
    for data in corpus.read(name):
        calls = _calls(TARGETS[name], data)

        assert calls <= CALLS_AT_LEAST + CALLS_A_BYTE[name] * len(data), data


@pytest.mark.parametrize("name", ["record", "embedded", "lines"])
def test_memory_is_bounded_by_the_length_of_the_input(name: str) -> None:
    """No length that is declared makes a decoder take memory before the bytes are seen to be there."""
    tracemalloc.start()
    try:
        for data in corpus.read(name):
            before = tracemalloc.get_traced_memory()[0]
            tracemalloc.reset_peak()
            TARGETS[name](data)
            taken = tracemalloc.get_traced_memory()[1] - before

            assert taken <= BYTES_AT_LEAST + BYTES_A_BYTE * len(data), data
    finally:
        tracemalloc.stop()


def _calls(target: Callable[[bytes], None], data: bytes) -> int:
    count = 0

    def counted(_frame: object, event: str, _argument: object) -> None:
        nonlocal count
        count += event in ("call", "c_call")

    sys.setprofile(counted)
    try:
        target(data)
    finally:
        sys.setprofile(None)
    return count

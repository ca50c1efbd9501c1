"""What lawful histories by Kafka's own coordinator are worth: the first few of those that `make histories` judges."""

from collections.abc import Iterator
from typing import Final

import pytest

from tests.simulator.kafka.__main__ import kind_of
from tests.simulator.kafka.judged import judged, unexplained
from tests.simulator.kafka.jvm import Histories, lawful_histories

SEEDS: Final = range(20)


@pytest.fixture(scope="module")
def histories(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Histories]:
    with lawful_histories(tmp_path_factory.mktemp("histories")) as running:
        yield running


@pytest.mark.parametrize("seed", SEEDS)
def test_nothing_is_an_alarm_but_what_was_done(histories: Histories, seed: int) -> None:
    """By Kafka's own coordinator: members come, go, die, pause; groups are rolled, brokers and clocks change."""
    history = histories.of(seed, kind_of(seed))

    assert [] == unexplained(history, judged(history))


def test_seed_makes_one_history(histories: Histories) -> None:
    """So that a finding can be looked at again."""
    first = histories.of(3).path.read_bytes()
    histories.of(4)

    assert first == histories.of(3).path.read_bytes()

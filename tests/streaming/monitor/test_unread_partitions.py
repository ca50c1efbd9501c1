"""Which partitions of the log cannot be read, shown as a series of looks."""

from collections.abc import Mapping
from typing import Final

import pytest
from structlog.testing import capture_logs

from coordinator_model.lag import EndOffsetHistory
from streaming.board.readiness import Positions
from streaming.end_offsets.store import PartitionEnds, Topic
from streaming.monitor.unread_partitions import SILENT_MS, UnreadPartitions

NOW_MS: Final = 1_000_000


class Looks:
    """Looks at a log of two partitions, both of which end at 10; each a second after the one before."""

    def __init__(self) -> None:
        self.now_ms = NOW_MS
        self.read = {0: 10, 1: 10}
        self.answered_ms: dict[int, int] = {}
        self._partitions = UnreadPartitions()

    def look(
        self, leaders: Mapping[int, int], *, owed: tuple[int, ...] = (), silent: tuple[int, ...] = ()
    ) -> dict[int, int]:
        self.now_ms += 1_000
        self.answered_ms |= {partition: self.now_ms for partition in leaders if partition not in silent}
        topic = Topic(id="log", name="__consumer_offsets", partitions=2, leaders=dict(leaders))
        ends = {
            partition: PartitionEnds(
                EndOffsetHistory(1, 1), high_watermark=10, last_stable=10, sampled_ms=self.answered_ms[partition]
            )
            for partition in self.answered_ms
        }
        return self._partitions.look(self.now_ms, topic, ends, Positions(self.read, self.read), owed)


BOTH: Final = {0: 1, 1: 2}


def test_partitions_with_leaders_are_read() -> None:
    """Nothing is in doubt."""
    assert {} == Looks().look(BOTH)


def test_a_partition_without_a_leader_is_not_read() -> None:
    """Since the look that showed it."""
    looks = Looks()
    looks.look(BOTH)

    assert {1: NOW_MS + 2_000} == looks.look({0: 1})
    assert {1: NOW_MS + 2_000} == looks.look({0: 1})


def test_a_leader_that_is_back_is_not_enough() -> None:
    """What was written meanwhile is to be read first."""
    looks = Looks()
    looks.look({0: 1})
    looks.read[1] = 7

    assert [1] == list(looks.look(BOTH))

    looks.read[1] = 10

    assert {} == looks.look(BOTH)


def test_a_leader_that_does_not_answer_is_not_read_from() -> None:
    """Since its last answer; a question that takes some seconds is no such silence."""
    looks = Looks()
    looks.look(BOTH)
    last_ms = looks.now_ms
    for _ in range(SILENT_MS // 1_000):
        assert {} == looks.look(BOTH, silent=(1,))

    assert {1: last_ms} == looks.look(BOTH, silent=(1,))


def test_what_is_owed_is_not_read() -> None:
    """Its leader is there, and its records were planned; they have not been replayed."""
    looks = Looks()

    assert [1] == list(looks.look(BOTH, owed=(1,)))
    assert {} == looks.look(BOTH)


@pytest.mark.parametrize("looks_without", [1, 5])
def test_each_loss_is_logged_once(looks_without: int) -> None:
    """And once that it is over."""
    looks = Looks()
    with capture_logs() as said:
        for _ in range(looks_without):
            looks.look({0: 1})
        for _ in range(3):
            looks.look(BOTH)

    assert [("partitions_not_read", [1]), ("partitions_read_again", [1])] == [
        (of["event"], of["partitions"]) for of in said
    ]

"""Where a recording of a log ends that is written to meanwhile, and what it says of open transactions."""

from collections.abc import Iterable
from typing import Any

import pytest
from kafka import TopicPartition

from streaming.config.kafka_sections import KafkaSection
from streaming.recording import recorder


class BusyLog:
    """A log of one partition to which ten records come between any two questions; a `KafkaConsumer` of it."""

    written = 0
    open_since: int | None = None

    def __init__(self, *, isolation_level: str, **_: Any) -> None:
        self._stable = isolation_level == "read_committed"

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        type(self).written += 10
        end = self.written if not self._stable or self.open_since is None else self.open_since
        return dict.fromkeys(partitions, end)

    def assign(self, _: object) -> None: ...
    def seek_to_beginning(self, *_: object) -> None: ...

    def position(self, _: object) -> int:
        return 0


@pytest.fixture(autouse=True)
def busy(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(recorder, "KafkaConsumer", BusyLog)
    monkeypatch.setattr(BusyLog, "written", 0)


def test_a_log_that_grows_has_no_open_transaction() -> None:
    """What comes between the two questions is no transaction; both readers stop at one end."""
    log = recorder.LogRecorder(KafkaSection(), [0])

    assert ({0: 10}, {}) == (log.ends, log.open_transactions)
    assert {0: 10.0} == log._commits.ends == log._membership.ends


def test_an_open_transaction_is_said(monkeypatch: pytest.MonkeyPatch) -> None:
    """The commits that it holds back are not in the recording, and that is reported."""
    monkeypatch.setattr(BusyLog, "open_since", 4)
    log = recorder.LogRecorder(KafkaSection(), [0])

    assert ({0: 10}, {0: 6}) == (log.ends, log.open_transactions)

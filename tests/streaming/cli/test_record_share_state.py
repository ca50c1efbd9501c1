"""`record` of the share coordinator's log, beside a group coordinator's that is made up."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from lab.builders import share_group_epoch, topic_id
from lab.share_state import share_snapshot, share_update
from streaming.__main__ import main
from streaming.base.errors import CannotTellError
from streaming.config.kafka_sections import KafkaSection
from streaming.kafka import broker_queries, preflight
from streaming.kafka.range_reader import SteppedOver
from streaming.recording import recorder
from streaming.recording.file_format import Header, RecordedRecord, RecordedTopic, open_recording

OFFSETS = "__consumer_offsets"
SHARE_STATE = "__share_group_state"
WRITTEN = {
    OFFSETS: (share_group_epoch("queue", 2), share_group_epoch("other", 2)),
    SHARE_STATE: (
        share_snapshot("queue", "t", 0),
        share_snapshot("other", "t", 0),
        share_update("queue", "t", 0, (3, 3, 4, 1)),
    ),
}


class FakeLog:
    """Either log, all in partition 0; of the second, partition 1 has no leader."""

    fails = False

    def __init__(self, topic: str, partitions: list[int], *, follow: bool, whole: bool = True) -> None:
        self.topic, self.whole = topic, whole
        self.ends = {0: 3}
        self.unread = dict.fromkeys(partitions[1:], "no leader") if topic == SHARE_STATE else {}
        self.open_transactions: dict[int, int] = {}
        self.stepped_over: dict[int, list[SteppedOver]] = {}

    def records(self, _: Callable[[float], None]) -> Iterator[RecordedRecord]:
        for offset, (key, value) in enumerate(WRITTEN[self.topic]):
            if self.fails and self.topic == SHARE_STATE:
                raise CannotTellError(f"{self.topic}: found no permission, accepted: READ and DESCRIBE")
            yield RecordedRecord(0, offset, 1, key, value)

    def close(self) -> None: ...


@pytest.fixture(autouse=True)
def logs(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the place of brokers."""
    topic = RecordedTopic(id=topic_id("t"), name="t", partitions=1)
    header: Any = Header(kafka_version="4.3", offsets_topic_partitions=1, topics=(topic,))
    monkeypatch.setattr(preflight, "preflight", lambda *_, **__: None)
    monkeypatch.setattr(
        recorder,
        "LogRecorder",
        lambda kafka, *more, **named: FakeLog(
            str(kafka.offsets_topic if isinstance(kafka, KafkaSection) else kafka), *more, **named
        ),
    )
    monkeypatch.setattr(recorder, "header_of", lambda _: header)
    monkeypatch.setattr(recorder, "share_state_of", lambda _: (SHARE_STATE, 2))
    monkeypatch.setattr(broker_queries, "delivery_count_limits", lambda _: {"": 7})


def recorded(out: Path, *options: str) -> tuple[Header, list[tuple[bool, int]]]:
    assert 0 == main(["record", "--bootstrap-server", "127.0.0.1:9", "--out", str(out), *options])
    with open_recording(out) as recording:
        return recording.header, [(of.share_state, of.offset) for of in recording.both_logs()]


def test_both_logs_are_recorded(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The header says where the second one ended, and the delivery limit. A partition that has no leader is named.

    Whether topics have offsets without a record is not looked at, so they may.
    """
    header, records = recorded(tmp_path / "log.ndjson")

    assert (2, {0: 3}, {"": 7}) == (
        header.share_state_partitions,
        header.share_live_from,
        header.delivery_count_limits,
    )
    assert [True] == [topic.gaps for topic in header.topics]
    assert [(True, 0), (True, 1), (True, 2), (False, 0), (False, 1)] == records
    assert f"{SHARE_STATE} partition 1 is not recorded (no leader)" in capsys.readouterr().err


def test_share_partitions_of_the_groups_that_are_named(tmp_path: Path) -> None:
    """As of the first log."""
    assert [(True, 0), (True, 2), (False, 0)] == recorded(tmp_path / "log.ndjson", "--group", "queue")[1]


def test_log_that_may_not_be_read_does_not_keep_the_groups_from_being_recorded(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The missing permission is said, before reading or while it."""
    monkeypatch.setattr(FakeLog, "fails", True)
    assert [(False, 0), (False, 1)] == recorded(tmp_path / "log.ndjson")[1]
    assert "share partitions are recorded in part" in capsys.readouterr().err

    def refused(_: object) -> None:
        raise CannotTellError("found no permission, accepted: DESCRIBE")

    monkeypatch.setattr(recorder, "share_state_of", refused)
    assert [(False, 0), (False, 1)] == recorded(tmp_path / "log.ndjson")[1]
    assert "share partitions are not recorded: found no permission, accepted: DESCRIBE" in capsys.readouterr().err


def test_cluster_without_share_groups_is_recorded_as_before(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """Kafka makes the second log with the first share group; nothing is said."""
    monkeypatch.setattr(recorder, "share_state_of", lambda _: None)
    header, records = recorded(tmp_path / "log.ndjson")

    assert [(False, 0), (False, 1)] == records
    assert ({}, [False]) == (header.delivery_count_limits, [topic.gaps for topic in header.topics])
    assert "share partitions" not in capsys.readouterr().err

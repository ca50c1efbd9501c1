"""`record` of groups that are named, from a log that is made up."""

from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest

from coordinator_model.state.shards import offsets_partition
from lab.builders import group_metadata, member
from streaming.__main__ import main
from streaming.kafka import preflight
from streaming.kafka.range_reader import SteppedOver
from streaming.recording import recorder
from streaming.recording.file_format import Header, RecordedRecord, open_recording

PARTITIONS = 4


class FakeLog:
    """A log that has two groups."""

    def __init__(self, _kafka: object, partitions: list[int], *, follow: bool) -> None:
        self.partitions = partitions
        self.ends = dict.fromkeys(partitions, 1)
        self.open_transactions: dict[int, int] = {}
        self.stepped_over: dict[int, list[SteppedOver]] = {3: [SteppedOver(4, 7, "does not unpack")]}

    def records(self, _: Callable[[float], None]) -> Iterator[RecordedRecord]:
        for name in ("orders", "payments"):
            partition = offsets_partition(name, PARTITIONS)
            if partition in self.partitions:
                written = group_metadata(name, generation=1, members=[member("m", {"t": [0]})])
                yield RecordedRecord(partition, 0, 1, *written)

    def close(self) -> None: ...


@pytest.fixture(autouse=True)
def log(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the place of brokers."""
    header: Any = Header(kafka_version="4.3", offsets_topic_partitions=PARTITIONS, topics=())
    monkeypatch.setattr(preflight, "preflight", lambda *_, **__: None)
    monkeypatch.setattr(recorder, "LogRecorder", FakeLog)
    monkeypatch.setattr(recorder, "header_of", lambda _: header)
    monkeypatch.setattr(recorder, "share_state_of", lambda _: None)


def recorded(out: Path, *options: str) -> int:
    return main(["record", "--bootstrap-server", "127.0.0.1:9", "--out", str(out), *options])


def test_a_batch_that_cannot_be_read_is_said(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The recording lacks it; the rest is there."""
    assert 0 == recorded(tmp_path / "log.ndjson", "--group", "orders")

    assert "partition 3: offsets 4 to 6 cannot be read (does not unpack)" in capsys.readouterr().err


def test_the_groups_that_are_named(tmp_path: Path) -> None:
    """And none beside them."""
    out = tmp_path / "log.ndjson"
    assert 0 == recorded(out, "--group", "orders")
    with open_recording(out) as recording:
        assert [offsets_partition("orders", PARTITIONS)] == [record.partition for record in recording]


def test_a_group_of_which_there_is_nothing(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Ends with 2 as in every command, and leaves no file that looks like a recording of it."""
    out = tmp_path / "log.ndjson"
    assert 2 == recorded(out, "--group", "orders", "--group", "no-such")

    accepted = "accepted: a group that __consumer_offsets has records of"
    assert f"error: --group: found 'no-such', {accepted}\n" in capsys.readouterr().err
    assert [] == [*tmp_path.iterdir()]


def test_a_group_that_is_waited_for(tmp_path: Path) -> None:
    """With `--follow` it may come yet."""
    assert 0 == recorded(tmp_path / "log.ndjson", "--group", "no-such", "--follow")

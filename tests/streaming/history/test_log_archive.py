"""Records kept for recordings of what was: a cut replays as the whole log would, however much of it is gone."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
from structlog.testing import capture_logs

from coordinator_model.replica import Replica
from coordinator_model.state.findings import Position
from coordinator_model.views.group_view import group_view
from lab import builders
from streaming.__main__ import main
from streaming.base.errors import CannotTellError
from streaming.base.times import now_ms
from streaming.config.kafka_sections import KafkaSection
from streaming.config.output_sections import HistorySection
from streaming.config.sections import Config, StateSection
from streaming.history import log_archive as records_module
from streaming.history.log_archive import HEADER, RecordKeeper, read_until_ms, rows_of
from streaming.history.queries import History
from streaming.history.store import HistoryStore, Retention
from streaming.history.tables import BASE_DAY, RECORDS
from streaming.monitor.parts import board_of, exporter_of, outputs_of
from streaming.recording.file_format import Header, RecordedRecord, open_recording
from tests.streaming.history.entries import DAY_MS, NOON_MS

HEAD = {"kafka_version": "4.3.1", "offsets_topic_partitions": 1, "topics": []}


def log(days: int) -> list[RecordedRecord]:
    """A log of one partition: each day a generation and commits of `a`, a commit of `b`; the last day `b` goes."""
    found: list[RecordedRecord] = []

    def write(record: builders.RecordBytes, day: int) -> None:
        found.append(RecordedRecord(0, len(found), NOON_MS + day * DAY_MS + len(found), *record))

    for day in range(days):
        members = [builders.member(f"m{day}", {"orders": [0, 1]}, topics=["orders"])]
        write(builders.group_metadata("a", generation=day + 1, members=members), day)
        write(builders.offset_commit("a", "orders", day % 3, 100 + day), day)
        write(builders.offset_commit("b", "orders", 0, day), day)
    write((found[-1].key, None), days - 1)
    return found


def replayed(records: Sequence[RecordedRecord], group: str = "a") -> dict[str, Any]:
    """The GROUP that records lead to, as `replay` shows one that is no share group."""
    replica = Replica()
    for record in records:
        replica.replay(Position(record.partition, record.offset, record.timestamp_ms), record.key, record.value)
    replica.settle()
    return {**group_view(replica.groups[group], replica.offsets(group), {}), "share_partitions": []}


@pytest.fixture
def store(tmp_path: Path) -> HistoryStore:
    """A store in which records are written, with its header, on the day of the log's last record."""
    store = HistoryStore(tmp_path, lambda: NOON_MS + 9 * DAY_MS)
    (tmp_path / RECORDS.name).mkdir()
    (tmp_path / RECORDS.name / HEADER).write_text(json.dumps(HEAD), "utf-8")
    return store


def test_cut_replays_as_the_log(store: HistoryStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The command writes a recording that `replay` takes: the group's records alone, in order, each once."""
    records = log(3)
    store.write(RECORDS, rows_of(records[:5]))
    store.write(RECORDS, rows_of(records[3:]))
    out = tmp_path / "cut.ndjson"

    assert 0 == main(["history", "a", "--dir", str(tmp_path), "--record", str(out)])
    assert f"6 records in {out}" in capsys.readouterr().err
    assert 0 == main(["replay", str(out), "--json"])
    assert replayed(records) == json.loads(capsys.readouterr().out)["groups"]["a"]
    with open_recording(out) as recording:
        assert [record for record in records if b"b" not in record.key[2:5]] == list(recording)


def test_cut_ends_where_it_is_reported_to(
    store: HistoryStore, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """The group as it was at a time is the replay up to the first record that is later."""
    records = log(3)
    store.write(RECORDS, rows_of(records))
    out = tmp_path / "cut.ndjson.gz"
    until = str(NOON_MS + DAY_MS + DAY_MS // 2)

    assert 0 == main(["history", "a", "--dir", str(tmp_path), "--record", str(out), "--until", until])
    assert 0 == main(["replay", str(out), "--json"])
    assert replayed(records[:6]) == json.loads(capsys.readouterr().out)["groups"]["a"]


def test_days_that_go_leave_the_last_of_each_key(store: HistoryStore, tmp_path: Path) -> None:
    """As a broker's cleaner does: the state stays whole, and what was deleted does not come back."""
    records = log(10)
    store.write(RECORDS, rows_of(records))
    for keep in (5, 2, 0):
        store.retain(Retention(days=keep, max_bytes=1 << 40))
        assert replayed(records) == replayed(History(tmp_path).records("a"))

    assert [BASE_DAY, "2024-10-13"] == store.days(RECORDS)
    assert [26, 29, 30] == [record.offset for record in History(tmp_path).records("b")]
    assert [24, 25, 27, 28] == [record.offset for record in History(tmp_path).records("a")][-4:]


def test_base_is_of_what_was_not_deleted(store: HistoryStore, tmp_path: Path) -> None:
    """A group whose last commit was deleted leaves nothing in the base, though earlier days had folded it in."""
    records = log(3)
    store.write(RECORDS, rows_of(records[:6]))
    store.retain(Retention(days=1, max_bytes=1 << 40))
    assert [5] == [record.offset for record in History(tmp_path).records("b")]
    store.write(RECORDS, rows_of(records[6:]))
    store.retain(Retention(days=1, max_bytes=1 << 40))

    assert [] == History(tmp_path).records("b")
    assert replayed(records) == replayed(History(tmp_path).records("a"))


@pytest.mark.parametrize(
    ("words", "status", "expected"),
    [
        (["a", "--record", "x"], 2, "--record: found with other options than it takes"),
        (["a", "--record", "x", "--dir", "{dir}", "--since", "1"], 2, "accepted: --dir or --config, and --until"),
        (["never", "--record", "x", "--dir", "{dir}"], 2, "group: found no records of 'never'"),
        (["a", "--record", "x", "--dir", "{dir}/records"], 3, "accepted: a history kept with history.records"),
        (["a", "--record", "{dir}/no/x", "--dir", "{dir}"], 2, "--record: found"),
    ],
)
def test_what_cannot_be_cut(
    store: HistoryStore,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
    words: list[str],
    status: int,
    expected: str,
) -> None:
    """Said in one line, with nothing written."""
    store.write(RECORDS, rows_of(log(1)))

    assert status == main(["history", *(word.format(dir=tmp_path) for word in words)])
    assert expected in capsys.readouterr().err
    assert not Path("x").exists()


class Broker:
    """Stands where the recorder does, for what a look does when the log cannot be read or written down."""

    def __init__(self, records: list[RecordedRecord]) -> None:
        self.log = records
        self.begun: list[Any] = []
        self.away = False
        self.unread: dict[int, str] = {}
        self.raises: Exception | None = None

    def __call__(self, _kafka: KafkaSection, partitions: list[int], *, whole: bool, begin: Any) -> "Broker":
        assert not whole
        if self.raises is not None:
            raise self.raises
        self.begun.append(begin)
        first = begin.get("membership", {}).get(0, 0)
        self._found = self.log[first:]
        self.positions = {"commits": {0: len(self.log)}, "membership": {0: len(self.log)}}
        assert partitions == [0]
        return self

    def records(self) -> Any:
        yield from self._found
        if self.away:
            raise CannotTellError("__consumer_offsets: found nobody")

    def close(self) -> None:
        pass


@pytest.fixture
def broker(monkeypatch: pytest.MonkeyPatch) -> Broker:
    """With a log of two days."""
    broker = Broker(log(2))
    monkeypatch.setattr(records_module, "LogRecorder", broker)
    monkeypatch.setattr(
        records_module, "header_of", lambda _: Header(kafka_version=None, offsets_topic_partitions=1, topics=())
    )
    return broker


def test_look_goes_on_where_the_last_one_ended(tmp_path: Path, broker: Broker) -> None:
    """In the next run too; one that broke off is read again, and each record is there once."""
    store = HistoryStore(tmp_path)
    broker.away = True
    RecordKeeper(KafkaSection(), store).look()
    assert read_until_ms(tmp_path) is None, "not read to the end"
    broker.away = False
    RecordKeeper(KafkaSection(), store).look()
    broker.log = log(3)
    before_ms = now_ms()
    RecordKeeper(KafkaSection(), store).look()

    assert before_ms <= (read_until_ms(tmp_path) or 0) <= now_ms()
    assert [{}, {}, {"commits": {0: 7}, "membership": {0: 7}}] == broker.begun
    found = History(tmp_path).records("a")
    assert [0, 1, 3, 4, 7] == [record.offset for record in found]


@pytest.mark.parametrize(
    ("raises", "reason"),
    [
        (CannotTellError("__consumer_offsets: found nobody"), "__consumer_offsets: found nobody"),
        (StopIteration("raised unpacking messageset"), "raised unpacking messageset"),
        (KeyError("endpoint_type"), "'endpoint_type'"),
        (OSError(28, "No space left on device", "/history/.1.new"), "No space left on device"),
    ],
)
def test_a_keeper_that_cannot_go_on_is_a_sink_that_fails(
    tmp_path: Path, broker: Broker, raises: Exception, reason: str
) -> None:
    """Every error is logged once, shown with since when nothing is kept, and tried again until it succeeds."""
    now = [1_000]
    keeper = RecordKeeper(KafkaSection(), HistoryStore(tmp_path), lambda: now[0])
    keeper.look()
    well = keeper.state()
    broker.raises = raises
    with capture_logs() as lines:
        for now[0] in (31_000, 61_000):
            keeper.look()
    failing = keeper.state()
    broker.raises = None
    now[0] = 91_000
    keeper.look()

    assert [("delivery_failed", "history-records", reason)] == [(of["event"], of["sink"], of["reason"]) for of in lines]
    assert (0, None, 7, None) == (well.waiting, well.oldest_ms, well.delivered, well.failure)
    assert (1, 1_000, 7, reason) == (failing.waiting, failing.oldest_ms, failing.delivered, failing.failure)
    assert (0, None, None) == ((after := keeper.state()).waiting, after.oldest_ms, after.failure)


def test_partitions_that_cannot_be_read_hold_up_no_other(tmp_path: Path, broker: Broker) -> None:
    """The records of the others are kept; that some are missing is shown, and the log is not said to be whole."""
    broker.unread = {3: "LEADER_NOT_AVAILABLE", 1: "no records"}
    keeper = RecordKeeper(KafkaSection(), HistoryStore(tmp_path))
    keeper.look()

    expected = "__consumer_offsets: found partitions that cannot be read (1: no records, 3: LEADER_NOT_AVAILABLE)"
    assert (expected, 7) == (keeper.state().failure, keeper.state().delivered)
    assert read_until_ms(tmp_path) is None


def test_a_keeper_is_one_of_the_monitor_s_sinks(tmp_path: Path) -> None:
    """So it is in /ready and in the metrics of sinks; where no records are to be kept there is none."""

    def sinks(*, records: bool) -> list[str]:
        config = Config(history=HistorySection(enabled=True, records=records), state=StateSection(dir=tmp_path))
        board = board_of(config)
        outputs_of(config, board, exporter_of(config, board), str)
        return [of.name for of in board.health.sinks()]

    assert [] == sinks(records=False)
    assert ["history-records"] == sinks(records=True)

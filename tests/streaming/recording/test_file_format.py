"""Recordings: what is read back, and which line is refused in which words."""

import gzip
import json
import tracemalloc
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from streaming.base.errors import UsageError
from streaming.recording import file_format as recording_module
from streaming.recording.file_format import (
    Header,
    RecordedRecord,
    RecordedTopic,
    open_new_recording,
    open_recording,
)

TOPIC = RecordedTopic(id="TxEtQAPfTvmvjNb8I9HdYA", name="orders", partitions=6)
HEADER = Header(kafka_version="4.3.1", offsets_topic_partitions=50, topics=(TOPIC,))
RECORDS = [
    RecordedRecord(1, 10, 1_700_000_000_000, b"\x00\x01key", b"value"),
    RecordedRecord(0, 3, 1_700_000_000_001, b"\x00\x02\xff", None),
    RecordedRecord(1, 12, -1, b"", b""),
]
HEADER_LINE: dict[str, Any] = {
    "format": "group-recording/1",
    "kafka_version": "4.3.1",
    "offsets_topic_partitions": 50,
    "topics": [{"id": TOPIC.id, "name": "orders", "partitions": 6}],
}
RECORD_LINE: dict[str, Any] = {"partition": 1, "offset": 10, "timestamp": 5, "key": "AAE=", "value": None}


def write(path: Path, *lines: object) -> Path:
    """Write lines; what is not text is made JSON."""
    path.write_text("".join(f"{line if isinstance(line, str) else json.dumps(line)}\n" for line in lines))
    return path


def refusal(path: Path) -> str:
    with pytest.raises(UsageError) as refused, open_recording(path) as recording:
        list(recording)
    return str(refused.value)


class TestRoundTrip:
    """What is written is read."""

    @pytest.mark.parametrize("name", ["r.ndjson", "r.ndjson.gz"])
    def test_plain_and_gzipped(self, tmp_path: Path, name: str) -> None:
        """Header and records come back as they were, zipped or not."""
        with open_new_recording(tmp_path / name, HEADER) as new:
            for record in RECORDS:
                new.write(record)

        with open_recording(tmp_path / name) as recording:
            assert (HEADER, RECORDS) == (recording.header, list(recording))
            assert 1.0 == recording.fraction_read
        assert len(RECORDS) == new.records

    def test_name_decides_about_gzip(self, tmp_path: Path) -> None:
        """Only a name ending in .gz is zipped."""
        for name in ("r.ndjson", "r.ndjson.gz"):
            with open_new_recording(tmp_path / name, HEADER):
                pass

        assert [False, True] == [
            (tmp_path / name).read_bytes()[:2] == b"\x1f\x8b" for name in ("r.ndjson", "r.ndjson.gz")
        ]

    def test_a_small_file_that_unzips_without_end_is_refused(
        self, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        """No more of a line is unzipped than a line may have."""
        monkeypatch.setattr(recording_module, "_LONGEST_LINE", 1_000_000)
        path = tmp_path / "r.ndjson.gz"
        path.write_bytes(gzip.compress((json.dumps(HEADER_LINE) + "\n").encode() + b" " * 50_000_000, 1))
        tracemalloc.start()
        try:
            said = refusal(path)
            taken = tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

        assert f"{path}:2: found a line without end, accepted: lines of 1000000 bytes at most" == said
        assert taken < 10_000_000

    def test_gzip_is_recognized_whatever_the_name(self, tmp_path: Path) -> None:
        """A zipped recording under a plain name is read all the same."""
        path = tmp_path / "r.ndjson"
        path.write_bytes(gzip.compress((json.dumps(HEADER_LINE) + "\n").encode()))

        with open_recording(path) as recording:
            assert HEADER == recording.header

    def test_file_appears_only_when_complete(self, tmp_path: Path) -> None:
        """A recording that failed half-way leaves nothing that could be taken for one."""

        def fail_half_way() -> None:
            with open_new_recording(tmp_path / "r.ndjson", HEADER) as new:
                new.write(RECORDS[0])
                raise RuntimeError

        with pytest.raises(RuntimeError):
            fail_half_way()

        assert [] == list(tmp_path.iterdir())

    def test_what_others_left_under_its_name_is_not_followed(self, tmp_path: Path) -> None:
        """In a directory that others may write to; and what is recorded is for the account alone."""
        theirs = tmp_path / "theirs"
        theirs.write_text("as it was")
        (tmp_path / "log.ndjson.partial").symlink_to(theirs)

        with open_new_recording(tmp_path / "log.ndjson", HEADER) as recording:
            recording.write(RECORDS[0])

        assert ("as it was", 0o600) == (theirs.read_text(), (tmp_path / "log.ndjson").stat().st_mode & 0o777)
        assert not (tmp_path / "log.ndjson").is_symlink()

    def test_file_that_cannot_be_written(self, tmp_path: Path) -> None:
        """The option is named when its file cannot be made."""
        with (
            pytest.raises(UsageError, match=r"--out: found '.*' \(No such file or directory\)"),
            open_new_recording(tmp_path / "none" / "r.ndjson", HEADER),
        ):
            pass

    def test_topic_names_by_id(self) -> None:
        """The header is the map from topic id to name."""
        assert {TOPIC.id: "orders"} == HEADER.topic_names

    def test_a_topic_without_an_id_is_of_no_id(self, tmp_path: Path) -> None:
        """As of brokers before 2.8: in the file zeros, as Kafka writes it; no two topics are the same for it."""
        header = replace(HEADER, topics=tuple(RecordedTopic(id=None, name=name, partitions=1) for name in "ab"))
        with open_new_recording(tmp_path / "r.ndjson", header):
            pass

        assert 2 == (tmp_path / "r.ndjson").read_text().count('"AAAAAAAAAAAAAAAAAAAAAA"')
        with open_recording(tmp_path / "r.ndjson") as recording:
            assert header == recording.header
            assert {} == recording.header.topic_names == recording.header.topic_ids

    def test_unknown_kafka_version_and_last_line_without_newline(self, tmp_path: Path) -> None:
        """A version that was not known is null; the last newline may be missing."""
        path = tmp_path / "r.ndjson"
        path.write_text(json.dumps({**HEADER_LINE, "kafka_version": None}) + "\n" + json.dumps(RECORD_LINE))

        with open_recording(path) as recording:
            assert None is recording.header.kafka_version
            assert [RecordedRecord(1, 10, 5, b"\x00\x01", None)] == list(recording)


class TestHeader:
    """The first line says what the file is."""

    @pytest.mark.parametrize(
        ("header", "expected"),
        [
            (
                {**HEADER_LINE, "format": "group-recording/2"},
                'found "format": "group-recording/2", accepted: "format": "group-recording/1"',
            ),
            ({"a": 1}, 'found no "format"'),
            ({**HEADER_LINE, "kafka_version": 4}, 'found "kafka_version": 4'),
            ({**HEADER_LINE, "offsets_topic_partitions": 0}, "a whole number, 1 or more"),
            ({**HEADER_LINE, "offsets_topic_partitions": True}, 'found "offsets_topic_partitions": true'),
            ({**HEADER_LINE, "topics": {}}, '"topics" as a list'),
            ({**HEADER_LINE, "topics": [{"id": "short", "name": "x", "partitions": 1}]}, "22 characters of base64url"),
            ({**HEADER_LINE, "topics": [7]}, "found the topic 7"),
            (
                {**HEADER_LINE, "topics": [{"id": TOPIC.id, "name": "\udc80", "partitions": 1}]},
                "22 characters of base64",
            ),
            ({**HEADER_LINE, "kafka_version": "\ud800"}, 'found "kafka_version": "\\ud800"'),
            (RECORD_LINE, 'found no "format"'),
            ([], "accepted: a header object as JSON"),
            ("not JSON", "found not JSON, accepted: a header object as JSON"),
        ],
    )
    def test_refused(self, tmp_path: Path, header: object, expected: str) -> None:
        """A first line that is no header is refused as line 1."""
        message = refusal(write(tmp_path / "r.ndjson", header, RECORD_LINE))

        assert message.startswith(f"{tmp_path / 'r.ndjson'}:1: found ")
        assert expected in message

    def test_empty_file(self, tmp_path: Path) -> None:
        """A file without a line is refused at its first line."""
        assert refusal(write(tmp_path / "r.ndjson")).endswith(":1: found nothing, accepted: a header object as JSON")

    def test_missing_file(self, tmp_path: Path) -> None:
        """A file that is not there is named."""
        assert f"FILE: found '{tmp_path}/none' (No such file or directory), accepted: a recording" == refusal(
            tmp_path / "none"
        )


class TestRecordLines:
    """Every further line is a record."""

    @pytest.mark.parametrize(
        ("line", "expected"),
        [
            ("", "found nothing, accepted: a record object as JSON"),
            ("{", "found {, accepted: a record object as JSON"),
            ("[1]", "accepted: a record object as JSON"),
            ({name: value for name, value in RECORD_LINE.items() if name != "value"}, "found no 'value'"),
            ({**RECORD_LINE, "offset": "10"}, 'found "offset": "10", accepted: "offset" as a whole number'),
            ({**RECORD_LINE, "timestamp": None}, 'found "timestamp": null'),
            ({**RECORD_LINE, "partition": True}, 'found "partition": true'),
            ({**RECORD_LINE, "partition": 50}, '"partition" from 0 to 49, as the header says'),
            ({**RECORD_LINE, "partition": -1}, 'found "partition": -1'),
            ({**RECORD_LINE, "offset": -1}, "found offset -1"),
            ({**RECORD_LINE, "key": None}, 'found "key": null, accepted: "key" as base64 text'),
            ({**RECORD_LINE, "key": "A"}, '"key" as base64 text'),
            ({**RECORD_LINE, "key": "AAE=\n"}, '"key" as base64 text'),
            ({**RECORD_LINE, "value": 7}, 'found "value": 7, accepted: "value" as base64 text or null'),
            ({**RECORD_LINE, "value": "é"}, '"value" as base64 text or null'),
            ('{"partition": 1' + "[" * 100_000, "accepted: a record object as JSON"),
        ],
    )
    def test_refused(self, tmp_path: Path, line: object, expected: str) -> None:
        """A line that is no record is refused by file and line, in one line."""
        path = write(tmp_path / "r.ndjson", HEADER_LINE, {**RECORD_LINE, "offset": 9}, line)
        message = refusal(path)

        assert message.startswith(f"{path}:3: found ")
        assert expected in message
        assert "\n" not in message
        assert len(message) < len(str(path)) + 200

    @pytest.mark.parametrize("second", [10, 9])
    def test_offsets_ascend_within_a_partition(self, tmp_path: Path, second: int) -> None:
        """An offset that repeats or falls is refused; other partitions may come in between."""
        path = write(
            tmp_path / "r.ndjson",
            HEADER_LINE,
            RECORD_LINE,
            {**RECORD_LINE, "partition": 2, "offset": 1},
            {**RECORD_LINE, "offset": second},
        )

        assert (
            f"{path}:4: found offset {second} after 10 in partition 1, accepted: offsets in ascending order from 0"
            == refusal(path)
        )

    def test_good_lines_before_a_bad_one_are_delivered(self, tmp_path: Path) -> None:
        """Reading is a line at a time: what precedes the error has been read."""
        path = write(tmp_path / "r.ndjson", HEADER_LINE, RECORD_LINE, "bad")
        with open_recording(path) as recording:
            records = iter(recording)

            assert 10 == next(records).offset
            with pytest.raises(UsageError):
                next(records)

    def test_unknown_members_are_left_alone(self, tmp_path: Path) -> None:
        """A line may say more than a record."""
        path = write(tmp_path / "r.ndjson", HEADER_LINE, {**RECORD_LINE, "headers": []})

        with open_recording(path) as recording:
            assert 1 == len(list(recording))

    def test_truncated_gzip(self, tmp_path: Path) -> None:
        """A zipped file cut short is refused where it ends."""
        with open_new_recording(tmp_path / "r.ndjson.gz", HEADER) as new:
            for offset in range(20_000):
                new.write(RecordedRecord(0, offset, offset * 7919, b"\x00\x01" + str(offset * offset).encode(), None))
        whole = (tmp_path / "r.ndjson.gz").read_bytes()
        (tmp_path / "cut.ndjson.gz").write_bytes(whole[: len(whole) // 2])

        message = refusal(tmp_path / "cut.ndjson.gz")

        assert "found damaged gzip data" in message
        assert not message.startswith(f"{tmp_path / 'cut.ndjson.gz'}:1:")

    def test_something_else_than_a_recording(self, tmp_path: Path) -> None:
        """Bytes that are no text are refused without a flood of them."""
        path = tmp_path / "r.ndjson"
        path.write_bytes(bytes(range(128, 256)) * 100)

        assert len(refusal(path)) < len(str(path)) + 150


def test_header_says_where_the_live_tail_begins(tmp_path: Path) -> None:
    """By partition; without it all is live, and nothing of it stands in the file."""
    path = tmp_path / "r.ndjson"
    for live_from in ({}, {0: 7, 49: 0}):
        with open_new_recording(path, replace(HEADER, live_from=live_from)):
            pass
        with open_recording(path) as opened:
            assert live_from == opened.header.live_from
        assert bool(live_from) == ("live_from" in path.read_text("utf-8"))


@pytest.mark.parametrize("live_from", [[1], {"50": 1}, {"x": 1}, {"0": -1}, {"0": "1"}, {"0": True}])
def test_live_tail_that_is_none_is_refused(tmp_path: Path, live_from: object) -> None:
    """Partitions that there are, and offsets."""
    path = tmp_path / "r.ndjson"
    header: dict[str, Any] = {
        "format": "group-recording/1",
        "kafka_version": None,
        "offsets_topic_partitions": 50,
        "topics": [],
    }
    path.write_text(json.dumps({**header, "live_from": live_from}) + "\n", "utf-8")

    with pytest.raises(UsageError, match="live_from"), open_recording(path):
        pass


@pytest.mark.parametrize("partitions", [[10**9], [4_000_000, 1_000_001], [-1]])
def test_topics_of_a_billion_partitions_are_refused(tmp_path: Path, partitions: list[int]) -> None:
    """Every partition has or lacks an owner, so a number in a header would take as much memory as it says."""
    topics = [{"id": f"{number:022}", "name": f"t{number}", "partitions": of} for number, of in enumerate(partitions)]
    path = write(tmp_path / "a.ndjson", {**HEADER_LINE, "topics": topics})

    with pytest.raises(UsageError, match=r"ndjson:1: found (\d+ partitions|the topic)"), open_recording(path):
        pass


def test_a_header_of_a_billion_partitions_takes_no_memory(tmp_path: Path) -> None:
    """What it says of one of them is looked at, and not held against a list of all."""
    path = write(
        tmp_path / "a.ndjson", {**HEADER_LINE, "offsets_topic_partitions": 10**9, "live_from": {"999999999": 7}}
    )
    tracemalloc.start()
    with open_recording(path) as recording:
        live_from = recording.header.live_from
    peak = tracemalloc.get_traced_memory()[1]
    tracemalloc.stop()

    assert ({999_999_999: 7}, True) == (live_from, peak < 10_000_000)

"""Recordings that hold the share coordinator's log as well, and what the commands that read them make of it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from lab.builders import group_metadata, member, topic_id
from lab.coordinator_events import share_join
from lab.share_state import share_snapshot, share_snapshot_tombstone, share_update
from streaming.__main__ import main
from streaming.base.errors import UsageError
from streaming.recording.file_format import (
    Header,
    RecordedRecord,
    RecordedTopic,
    open_new_recording,
    open_recording,
)

HEADER = Header(
    kafka_version="4.3.1",
    offsets_topic_partitions=50,
    topics=(
        RecordedTopic(id=topic_id("t"), name="t", partitions=2),
        RecordedTopic(id=topic_id("u"), name="u", partitions=1, gaps=True),
    ),
    share_state_partitions=3,
    share_live_from={1: 4},
    delivery_count_limits={"": 5, "queue": 2},
)
GROUPS = [
    RecordedRecord(4, offset, 1_000, *record)
    for offset, record in enumerate(share_join("queue", "a", epoch=2, targets={"a": {"t": [0, 1], "u": [0]}}))
] + [RecordedRecord(5, 0, 1_000, *group_metadata("classic", generation=1, members=[member("m", {"t": [0]})]))]
SHARE_STATE = [
    RecordedRecord(1, offset, 2_000 + offset, *record, True)
    for offset, record in enumerate(
        (
            share_snapshot("queue", "t", 0, delivery_complete_count=0),
            share_update("queue", "t", 0, (0, 9, 2, 1), (10, 10, 0, 3), (11, 11, 4, 5), delivery_complete_count=11),
            share_snapshot("queue", "u", 0, batches=[(3, 4, 4, 1)]),
            share_snapshot("gone", "t", 0),
            share_snapshot("queue", "t", 1),
            share_snapshot_tombstone("queue", "t", 1),
        )
    )
]
RECORDS = [*SHARE_STATE[:3], *GROUPS, *SHARE_STATE[3:]]


@pytest.fixture
def path(tmp_path: Path) -> Path:
    """Lines of the two logs between each other."""
    made = tmp_path / "log.ndjson"
    with open_new_recording(made, HEADER) as recording:
        for record in RECORDS:
            recording.write(record)
    return made


def test_both_logs_come_back_as_they_were(path: Path) -> None:
    """Who reads groups alone is not given the second."""
    with open_recording(path) as recording:
        assert (HEADER, RECORDS) == (recording.header, list(recording.both_logs()))
    with open_recording(path) as recording:
        assert GROUPS == list(recording)


def test_header_says_nothing_of_what_is_as_usual(tmp_path: Path) -> None:
    """A recording without share groups is what it was."""
    made = tmp_path / "log.ndjson"
    usual = replace(
        HEADER, topics=HEADER.topics[:1], share_state_partitions=50, share_live_from={}, delivery_count_limits={}
    )
    with open_new_recording(made, usual) as recording:
        recording.write(GROUPS[0])
    header, record = map(json.loads, made.read_text().splitlines())

    assert ["format", "kafka_version", "offsets_topic_partitions", "topics"] == list(header)
    assert ["id", "name", "partitions"] == list(header["topics"][0])
    assert ["partition", "offset", "timestamp", "key", "value"] == list(record)
    with open_recording(made) as reading:
        assert usual == reading.header


@pytest.mark.parametrize(
    ("line", "changed", "said"),
    [
        (0, {"share_state_partitions": 0}, '"share_state_partitions" as a whole number, 1 or more'),
        (0, {"share_live_from": {"3": 1}}, '"share_live_from" as an object of partitions, 0 to 2'),
        (0, {"delivery_count_limits": {"": 0}}, '"delivery_count_limits" as an object of groups and whole numbers'),
        (0, {"topics": [{"id": topic_id("t"), "name": "t", "partitions": 1, "gaps": 1}]}, '{"id": 22 characters'),
        (1, {"log": "__transaction_state"}, '"log": "__share_group_state", or none'),
        (1, {"partition": 3}, '"partition" from 0 to 2, as the header says'),
        (2, {"offset": 0}, "offsets in ascending order from 0"),
    ],
)
def test_line_that_is_not_such_is_refused(path: Path, line: int, changed: dict[str, Any], said: str) -> None:
    """With its number, and what is accepted."""
    lines = path.read_text().splitlines()
    lines[line] = json.dumps({**json.loads(lines[line]), **changed})
    path.write_text("\n".join(lines) + "\n")
    with (
        pytest.raises(UsageError, match=rf"ndjson:{line + 1}: found .*") as refused,
        open_recording(path) as recording,
    ):
        list(recording)

    assert said in str(refused.value)


def shown(capsys: pytest.CaptureFixture[str], *arguments: object) -> Any:
    assert 0 == main([*map(str, arguments), "--json"])
    return json.loads(capsys.readouterr().out)


def test_replay_shows_share_partitions_of_share_groups(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """With the group's limit, and what may have been a gap; state of a group that is not known is counted alone."""
    replayed = shown(capsys, "replay", path)
    of = replayed["groups"]["queue"]["share_partitions"]

    assert [] == replayed["groups"]["classic"]["share_partitions"]
    assert [("t", 0), ("u", 0)] == [(each["topic"], each["partition"]) for each in of]
    assert [(0, 10, 11), (0, 0, 0)] == [
        (each["start_offset"], each["first_not_done"], each["delivery_complete_count"]) for each in of
    ]
    assert [({"limit": 1, "rejected": 0}, 0), ({"limit": 0, "rejected": 0}, 2)] == [
        (each["archived_total"], each["archived_unclear"]) for each in of
    ]
    assert {"records": 6, "unknown_records": {}, "undecodable_records": {}, "orphans": 1} == replayed["counters"][
        "__share_group_state"
    ]
    assert len(GROUPS) == replayed["counters"]["records"]


def test_replay_until_a_time_stops_each_partition_of_either_log(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """What was not yet written is not shown."""
    (of,) = shown(capsys, "replay", path, "--until", "2000")["groups"]["queue"]["share_partitions"]

    assert (0, {"limit": 0, "rejected": 0}) == (of["delivery_complete_count"], of["archived_total"])


def test_replay_tells_what_was_given_up(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """By the name of the topic; below where the log ended when recording began, only what is information."""

    def archived(*more: str) -> list[tuple[Any, ...]]:
        events = shown(capsys, "replay", path, *more)["events"]
        return [
            (of["severity"], of["log"], of["detail"]["topic"], of["detail"]["first_offset"], of["detail"]["why"])
            for of in events
            if of["kind"] == "share_records_archived"
        ]

    assert [("info", "__share_group_state", "u", 3, "unclear")] == archived()
    assert [
        ("warning", "__share_group_state", "t", 11, "limit"),
        ("info", "__share_group_state", "u", 3, "unclear"),
    ] == archived("--past")
    assert 0 == main(["replay", str(path), "--events", "--past"])
    assert "share_records_archived" in capsys.readouterr().out


def test_state_of_the_early_access_is_not_read(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """Kafka 4.0 wrote other layouts under the same version: they would be taken for something else."""
    made = tmp_path / "log.ndjson"
    with open_new_recording(made, replace(HEADER, kafka_version="4.0.2")) as recording:
        for record in RECORDS:
            recording.write(record)
    assert 0 == main(["replay", str(made), "--json"])
    said = capsys.readouterr()
    replayed = json.loads(said.out)

    assert [] == replayed["groups"]["queue"]["share_partitions"]
    assert "__share_group_state" not in replayed["counters"]
    assert "__share_group_state: 6 records of Kafka 4.0, an early access, are not read" in said.err


def test_replay_as_text(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """A row a share partition."""
    assert 0 == main(["replay", str(path), "--group", "queue"])
    row = next(line for line in capsys.readouterr().out.splitlines() if line.startswith("u "))

    assert ["u", "0", "0", "0", "0", "0", "0", "0", "0", "2"] == row.split()


def test_decode_shows_either_log(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """The same key bytes are an offset commit in one and a snapshot in the other."""
    assert 0 == main(["decode", str(path)])
    lines = capsys.readouterr().out.splitlines()
    assert lines[1].startswith("__share_group_state 1/1 1970-01-01T00:00:02.001Z SHARE_UPDATE groupId=queue topicId=")
    assert lines[-1].endswith("partition=1 | tombstone")
    assert "SHARE_GROUP_MEMBER_METADATA" in lines[3]

    assert 0 == main(["decode", str(path), "--json"])
    first = json.loads(capsys.readouterr().out.splitlines()[0])
    assert ("__share_group_state", 1) == (first["log"], first["value"]["data"]["stateEpoch"])


def test_decode_of_a_key_and_a_value(capsys: pytest.CaptureFixture[str]) -> None:
    """Which log they are of has to be said: the types of the second are numbered from 0, too."""
    key, value = share_update("queue", "t", 0, (20, 20, 4, 5))
    assert value is not None
    assert 0 == main(["decode", "--share-state", key.hex(), value.hex()])
    assert "SHARE_UPDATE groupId=queue" in capsys.readouterr().out

    assert 2 == main(["decode", "--share-state", key.hex(), value.hex()[:-2]])
    assert "a __share_group_state record" in capsys.readouterr().err


def test_plan_leaves_share_groups_out(path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """As without the second log."""
    planned = shown(capsys, "plan", "--from", path)["groups"]

    assert {"classic": True, "queue": False} == {of["group"]: of["readiness"] != "out_of_scope" for of in planned}

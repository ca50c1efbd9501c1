"""What is written to the topics is as the committed schemas say, for every group and event of a recorded log."""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import jsonschema
import pytest

from lab.monitor_process import ROOT
from streaming.board import group_answer
from streaming.board.board import Board, Row
from streaming.end_offsets.store import EndOffsets, Topic
from streaming.recording.file_format import open_recording
from streaming.sinks import topic_format
from tests.streaming.board_rows import Shard
from tests.streaming.boards import NOW_MS

CLUSTER = "prod"
RECORDINGS = sorted((ROOT / "tests" / "recordings" / "4.3.1").glob("*.ndjson.gz"))


@pytest.fixture(scope="module")
def boards() -> list[Board]:
    """What a broker of 4.3.1 wrote of some fifty groups, on a board for each recording."""
    return [board_of(path) for path in RECORDINGS]


def board_of(path: Path) -> Board:
    shards: dict[int, Shard] = {}
    with open_recording(path) as recording:
        ends = EndOffsets()
        ends.set_topics([Topic(of.id, of.name, of.partitions) for of in recording.header.topics], [])
        for record in recording:
            shard = shards.setdefault(record.partition, Shard(record.partition))
            shard.pending.append((record.timestamp_ms, record.key, record.value))
    board = Board(ends)
    board.load([])
    board.apply(0, [row for shard in shards.values() for row in shard.flush()], NOW_MS)
    return board


def validator(name: str) -> Any:
    schema = json.loads((ROOT / "docs" / "schemas" / f"{name}.schema.json").read_text("utf-8"))
    jsonschema.Draft202012Validator.check_schema(schema)
    return jsonschema.Draft202012Validator(schema)


def values(boards: list[Board]) -> Iterator[Any]:
    for board in boards:
        for held in board.shown.groups.values():
            shot = topic_format.group_snapshot(held)
            yield json.loads(topic_format.group_value(CLUSTER, held, shot, board.ends.topic_names, NOW_MS))


def test_groups_are_as_their_schema_says(boards: list[Board]) -> None:
    """Classic, consumer, share and streams groups, with members and without."""
    found = list(values(boards))
    valid = validator("group-state")

    assert {"classic", "consumer", "share", "streams"} == {value["state"]["type"] for value in found}
    for value in found:
        valid.validate(value)


def test_a_schema_refuses_what_is_none(boards: list[Board]) -> None:
    """It is no schema that holds of anything."""
    value = next(values(boards))
    valid = validator("group-state")
    for wrong in ({**value, "format": "group-state/2"}, {**value, "state": {**value["state"], "epoch": "3"}}):
        assert not valid.is_valid(wrong)
    del value["snapshot"]
    assert not valid.is_valid(value)


def test_events_are_as_their_schema_says(boards: list[Board]) -> None:
    """Under their group's name, with their id and the cluster's name."""
    events = [event for board in boards for event in board.latest_events(10_000)]
    valid = validator("event")

    assert len(events) > 100
    for event in events:
        key, value = topic_format.event_record(CLUSTER, event)
        valid.validate(json.loads(value))
        assert event["group"].encode() == key
        assert {**event, "cluster": CLUSTER} == json.loads(value)


def test_the_monitor_is_as_its_schema_says(boards: list[Board]) -> None:
    """Positions and counts by partition."""
    value = json.loads(topic_format.monitor_value(CLUSTER, boards[0], NOW_MS, ready=True))

    validator("monitor-state").validate(value)
    assert value["shards"]


def test_a_snapshot_is_what_the_board_holds(boards: list[Board]) -> None:
    """Its rows make the same groups on another board: state, offsets, figures."""
    for board in boards:
        other = Board(board.ends)
        rows: list[Row] = []
        for name, held in board.shown.groups.items():
            rows += topic_format.rows(name, topic_format.group_snapshot(held), None)
        other.load(rows)

        assert list(group_answer.views(board, NOW_MS)) == list(group_answer.views(other, NOW_MS)) != []

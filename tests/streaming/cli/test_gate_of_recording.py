"""`gate downgrade --from`: what groups that are gone left in the log, and releases as people spell them."""

import base64
import json
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from lab.builders import (
    RecordBytes,
    consumer_group_epoch_tombstone,
    consumer_group_target_assignment_epoch_tombstone,
    group_metadata,
    member,
    share_group_epoch_tombstone,
    streams_group_epoch,
    streams_group_epoch_tombstone,
    streams_group_member,
    streams_group_member_tombstone,
    streams_group_topology,
    streams_group_topology_tombstone,
)
from lab.coordinator_events import consumer_gone, consumer_join, share_group_deleted, share_join, share_leave
from streaming.__main__ import main
from tests.histories import Moment, at, history

HEADER: Final = {"format": "group-recording/1", "kafka_version": "4.3.1", "offsets_topic_partitions": 50, "topics": []}


def text(value: bytes | None) -> str | None:
    return None if value is None else base64.b64encode(value).decode()


def gate(
    capsys: pytest.CaptureFixture[str],
    directory: Path,
    moments: list[Moment],
    *options: str,
    others: Mapping[int, list[Moment]] | None = None,
) -> tuple[int, Any]:
    """Exit status and the answer of `gate downgrade` on a recording of this history, and of other partitions."""
    file = directory / "log.ndjson"
    lines: list[Any] = [HEADER]
    records = list(history(*moments).records)
    for of_other, written in (others or {}).items():
        records += [replace(of, place=of.place._replace(partition=of_other)) for of in history(*written).records]
    for record in records:
        partition, offset, timestamp = record.place
        place = {"partition": partition, "offset": offset, "timestamp": timestamp}
        lines.append({**place, "key": text(record.key), "value": text(record.value)})
    file.write_text("".join(f"{json.dumps(line)}\n" for line in lines), "utf-8")
    status = main(["gate", "downgrade", "--from", str(file), "--json", *options])
    said = capsys.readouterr().out
    return status, json.loads(said) if said else None


SHARE: Final = share_join("g", "a", epoch=1, targets={"a": {"t": [0]}})
CONSUMER: Final = consumer_join("g", "a", epoch=2, targets={"a": {"t": [0]}})
STREAMS: Final = [
    streams_group_epoch("g", 2),
    streams_group_topology("g", 1, {"s": ["t"]}),
    streams_group_member("g", "a"),
]
ENDED: Final = {
    "share": (SHARE, [share_group_epoch_tombstone("g")]),
    "consumer": (CONSUMER, [consumer_group_epoch_tombstone("g")]),
    "streams": (STREAMS, [streams_group_epoch_tombstone("g")]),
}
"""Family → its records, and the tombstone of the epoch alone."""

REST: Final[dict[str, list[RecordBytes]]] = {
    "share": [*share_leave("g", "a", epoch=2), *share_group_deleted("g")],
    "consumer": [*consumer_gone("g", "a"), consumer_group_target_assignment_epoch_tombstone("g")],
    "streams": [streams_group_topology_tombstone("g"), streams_group_member_tombstone("g", "a")],
}


@pytest.mark.parametrize("family", ENDED)
def test_what_a_group_that_is_gone_left_behind_closes_the_gate(
    family: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """Its epoch was tombstoned first, so there is no group of the name, and an older broker meets the rest."""
    written, ended = ENDED[family]
    moments = [at(0, *written), at(1_000, *ended)]

    for options in ([], ["--target-version", "3.4"], ["--group", "g"]):
        status, answer = gate(capsys, tmp_path, moments, *options)
        assert 1 == status
        assert [("stop", "g")] == [
            (of["effect"], of["group"]) for of in answer["reasons"] if of["code"] == "leftover_records"
        ]
        assert {} == answer["groups"]


@pytest.mark.parametrize("family", ENDED)
def test_what_has_its_tombstones_is_no_reason(family: str, capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """The same end, and the rest follows: a recording opens no gate, and gives no reason to close one."""
    written, ended = ENDED[family]
    rest = [of for of in REST[family] if of[1] is None]
    status, answer = gate(capsys, tmp_path, [at(0, *written), at(1_000, *ended), at(2_000, *rest)])

    assert 3 == status
    assert [] == [of["code"] for of in answer["reasons"] if of["effect"] == "stop"]


def test_copy_that_is_not_the_group_closes_the_gate(capsys: pytest.CaptureFixture[str], tmp_path: Path) -> None:
    """After the topic was grown: the group is classic, and an older broker meets the copy in its old partition."""
    copy = [at(0, *consumer_join("orders", "a", epoch=2, targets={"a": {"t": [0]}}))]
    living = [at(5_000, group_metadata("orders", generation=1, members=[member("b", {"t": [0]})]))]

    status, answer = gate(capsys, tmp_path, copy, others={31: living})

    assert 1 == status
    assert ["group_type"] == [of["code"] for of in answer["reasons"] if of["effect"] == "stop"]
    assert {"classic": 1} == answer["groups"]


@pytest.mark.parametrize("release", ["4.0-IV3", "4.1.0-SNAPSHOT", " 3.4.1 ", "v3.9", "3.9.", "٣.٩", "4", "9.9", ""])
def test_release_of_another_spelling_is_refused(
    release: str, capsys: pytest.CaptureFixture[str], tmp_path: Path
) -> None:
    """A snapshot, or a metadata version, is not the release that it resembles."""
    assert (2, None) == gate(capsys, tmp_path, [at(0, *CONSUMER)], "--target-version", release)

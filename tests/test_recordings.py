"""Recordings of real brokers, replayed, against what Kafka's own tools said at their end.

Every `NAME.ndjson` in `tests/recordings` has a `NAME.truth.json` with the answers of `kafka-consumer-groups` as text.
"""

import json
from functools import cache
from pathlib import Path
from typing import Any

import pytest

from coordinator_model.group_state import GroupState
from coordinator_model.offsets import OffsetBucket
from coordinator_model.replica import Position, Replica
from coordinator_model.snapshot import dump_group, dump_offsets, load_group, load_offsets
from coordinator_model.view import group_view
from streaming.group_tables import member_rows, offset_rows, state_rows
from streaming.recording import RecordedRecord, open_recording

RECORDINGS = sorted((Path(__file__).parent / "recordings").glob("*.ndjson"))


@cache
def records(path: Path) -> tuple[RecordedRecord, ...]:
    with open_recording(path) as recording:
        return tuple(recording)


@cache
def topic_names(path: Path) -> dict[str, str]:
    with open_recording(path) as recording:
        return recording.header.topic_names


@cache
def truths(path: Path) -> dict[str, dict[str, str]]:
    found: dict[str, dict[str, str]] = json.loads(path.with_suffix(".truth.json").read_text(encoding="utf-8"))
    return found


@cache
def replayed(path: Path) -> Replica:
    replica = Replica()
    for record in records(path):
        replica.replay(Position(record.partition, record.offset, record.timestamp_ms), record.key, record.value)
    replica.settle()
    return replica


def view(path: Path, replica: Replica, group: str) -> dict[str, Any]:
    return group_view(replica.groups[group], replica.offsets(group), topic_names(path))


def living(path: Path) -> list[str]:
    """Groups Kafka knew at the end; of a deleted one the tool only says that it is not found."""
    return [group for group, truth in truths(path).items() if "GroupIdNotFoundException" not in truth["state"]]


class Snapshot:
    """The texts a checkpoint would hold, as the store of a new replica."""

    def __init__(self, replica: Replica) -> None:
        self._groups = {name: dump_group(state) for name, state in replica.groups.items()}
        self._buckets = {key: dump_offsets(bucket) for key, bucket in replica.buckets.items()}

    def restored(self) -> Replica:
        replica = Replica(self)
        for name in self._groups:
            # A replica takes from its store what it is asked for: ask for all, so that the next snapshot has it too.
            list(replica.offsets(name))
        return replica

    def load_group(self, name: str) -> GroupState | None:
        return load_group(self._groups[name]) if name in self._groups else None

    def load_bucket(self, group: str, topic: str, number: int) -> OffsetBucket | None:
        key = (group, topic, number)
        return load_offsets(self._buckets[key]) if key in self._buckets else None


def cases() -> list[Any]:
    return [pytest.param(path, group, id=f"{path.stem}-{group}") for path in RECORDINGS for group in living(path)]


def test_there_are_recordings() -> None:
    """The cases below are not empty."""
    assert cases()


@pytest.mark.parametrize("path", RECORDINGS, ids=lambda path: path.stem)
class TestWhole:
    """What holds for a recording as a whole."""

    def test_groups_are_those_kafka_knows(self, path: Path) -> None:
        """No group is missing, none is invented, and a deleted one is gone."""
        assert set(living(path)) == {name for name, state in replayed(path).groups.items() if state.exists}

    def test_every_record_decodes(self, path: Path) -> None:
        """Records of a real broker hold nothing unknown."""
        counters = replayed(path).counters

        assert (len(records(path)), {}, {}) == (
            counters.records,
            counters.unknown_records,
            counters.undecodable_records,
        )

    def test_state_is_the_same_cut_and_restored_anywhere(self, path: Path) -> None:
        """At every record the whole state goes through its snapshots and back, and ends as if it had not."""
        replica = Replica()
        for record in records(path):
            replica.replay(Position(record.partition, record.offset, record.timestamp_ms), record.key, record.value)
            replica = Snapshot(replica).restored()
        replica.settle()

        for group in living(path):
            assert view(path, replayed(path), group) == view(path, replica, group)


@pytest.mark.parametrize(("path", "group"), cases())
class TestGroup:
    """A group as `kafka-consumer-groups --describe` showed it."""

    def test_state_and_epochs(self, path: Path, group: str) -> None:
        """State, number of members, and for the consumer protocol both epochs, are Kafka's."""
        (expected,) = state_rows(truths(path)[group]["state"])
        found = view(path, replayed(path), group)

        assert (expected["state"], expected["members"]) == (found["state"], len(found["members"]))
        if found["type"] == "classic":
            assert (None, None) == (expected["epoch"], expected["assignment_epoch"])
        else:
            assert (expected["epoch"], expected["assignment_epoch"]) == (found["epoch"], found["assignment_epoch"])

    def test_members_and_assignments(self, path: Path, group: str) -> None:
        """Members, their clients, epochs, what they own and what they shall own are Kafka's."""
        expected = [
            {
                "member_id": row["member_id"],
                "instance_id": row["instance_id"],
                "client_id": row["client_id"],
                "client_host": row["client_host"],
                "epoch": row["epoch"],
                "owned": row["assigned"],
                "target": row["target"],
            }
            for row in member_rows(truths(path)[group]["members"])
        ]
        found = view(path, replayed(path), group)["members"]

        assert sorted(expected, key=_member_id) == [
            {
                **{name: member[name] for name in ("member_id", "instance_id", "client_id", "client_host", "epoch")},
                # The tool shows as assigned what is still to be revoked, too.
                "owned": _union(member["assigned"], member["pending_revocation"]),
                "target": member["target"],
            }
            for member in found
        ]

    def test_protocol_of_members(self, path: Path, group: str) -> None:
        """Where a group is half upgraded, the tool says which members are; so do we."""
        upgraded = {row["member_id"]: row["upgraded"] for row in member_rows(truths(path)[group]["members"])}
        found = {member["member_id"]: member["protocol"] for member in view(path, replayed(path), group)["members"]}

        told = {member_id: flag for member_id, flag in upgraded.items() if flag is not None}
        assert told == {member_id: found[member_id] == "consumer" for member_id in told}

    def test_committed_offsets(self, path: Path, group: str) -> None:
        """Every committed offset is Kafka's, and there is no other."""
        expected = {
            (row["topic"], row["partition"]): row["offset"]
            for row in offset_rows(truths(path)[group]["offsets"])
            if row["offset"] is not None
        }
        found = view(path, replayed(path), group)["offsets"]

        assert expected == {(offset["topic"], offset["partition"]): offset["offset"] for offset in found}


def _member_id(member: dict[str, Any]) -> str:
    return str(member["member_id"])


def _union(assigned: dict[str, list[int]], pending: dict[str, list[int]]) -> dict[str, list[int]]:
    return {
        topic: sorted({*assigned.get(topic, ()), *pending.get(topic, ())}) for topic in sorted({*assigned, *pending})
    }

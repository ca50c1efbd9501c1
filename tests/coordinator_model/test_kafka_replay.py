"""The replica holds what Kafka's own group coordinator holds after the same log.

Kafka's coordinator runs in a JVM of its own (`tests/kafka_replay`), without a broker. Both get recordings of five
releases, a thousand lawful histories with transactions, such histories cleaned, and faulty ones. What differs by design
has a name and a reason in `tests/kafka_replay/comparison.py`; everything else is an error.
"""

from collections.abc import Iterator
from dataclasses import fields, is_dataclass, replace
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from coordinator_model.records.record_types import RecordType
from coordinator_model.replica import Replica
from coordinator_model.state.events import Event
from coordinator_model.state.findings import Position
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.membership import ClassicGroup, ClassicMember, Membership, ModernGroup, ModernMember
from lab import builders
from lab.builders import RecordBytes
from streaming.recording.file_format import Header, RecordedRecord, open_new_recording
from tests.coordinator_model.test_simulated_faults import FAULTS, scene_of
from tests.histories import PARTITION, History, LogRecord, at, history, recording
from tests.kafka_replay import comparison
from tests.kafka_replay.__main__ import main
from tests.kafka_replay.comparison import BY_DESIGN, GIVES_UP, UNDECODABLE, Comparison, compare, look
from tests.kafka_replay.held import held_by
from tests.kafka_replay.judge import Judge, Verdict, kafka_judge
from tests.kafka_replay.logs import JudgedLog, of_history, of_recording, of_simulated
from tests.recorder.recordings import PATHS, UNREAD, name_of
from tests.side_by_side import cleaned, cleaned_while_read, lawful, log_of
from tests.simulator.coordinator import ReferenceCoordinator

HISTORIES: Final = 1_000
CLEANED: Final = 400
CUTS: Final = 5
"""How often each partition of a recording is cleaned."""
FAULTY: Final = 10
"""Histories of each fault."""


@pytest.fixture(scope="module")
def judge(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Judge]:
    with kafka_judge(tmp_path_factory.mktemp("judge")) as running:
        yield running


@pytest.mark.parametrize("path", PATHS, ids=name_of)
def test_recording_is_held_alike(judge: Judge, path: Path) -> None:
    """At dozens of places within each partition, and at its end. Kafka refuses share groups of early access."""
    found = Comparison()
    for log in of_recording(path):
        compare(log, judge, found)

    assert [] == found.faults
    assert found.places > 8
    assert ({UNDECODABLE} if name_of(path) in UNREAD else set()) == set(found.given_up.values())


def test_thousand_lawful_histories_are_held_alike(judge: Judge) -> None:
    """Groups of every type and release, conversions, transactions: at places within each, and at its end."""
    found = Comparison()
    for seed in range(HISTORIES):
        compare(of_simulated(f"history {seed}", lawful(seed)), judge, found)

    assert [] == found.faults
    assert {} == found.given_up
    assert found.places > 4 * HISTORIES


def less_of(log: History, chance: Random) -> History:
    """What the cleaner leaves, before it is read or while it is."""
    drop, then = chance.random() < 0.5, chance.randint(0, len(log))
    if chance.random() < 0.5:
        return cleaned(log, then, drop_tombstones=drop)
    first, read = sorted(chance.randint(0, then) for _ in range(2))
    return cleaned_while_read(log, read, first, then, drop_tombstones=drop)


def test_cleaned_histories_are_held_alike(judge: Judge) -> None:
    """What the cleaner leaves of a history is the same to both; now and then Kafka gives up on it (KAFKA-19862)."""
    found = Comparison()
    for seed in range(CLEANED):
        less = less_of(log_of(lawful(seed)), Random(seed))
        compare(of_history(f"cleaned history {seed}", less), judge, found)

    assert [] == found.faults
    assert UNDECODABLE not in found.given_up.values()
    assert len(found.given_up) < CLEANED / 20


@pytest.mark.parametrize("path", [path for path in PATHS if name_of(path) not in UNREAD], ids=name_of)
def test_cleaned_recording_is_held_alike(judge: Judge, path: Path) -> None:
    """The same of each partition of a real log, cleaned several times."""
    found = Comparison()
    log = recording(path)
    for partition in {of.place.partition for of in log.records}:
        part = replace(log, records=tuple(of for of in log.records if of.place.partition == partition))
        for seed in range(CUTS):
            name = f"{name_of(path)}[{partition}] cleaned, {seed}"
            compare(of_history(name, less_of(part, Random(name))), judge, found)

    assert [] == found.faults
    assert found.places == CUTS * len({of.place.partition for of in log.records})


GIVEN_UP: Final = {
    "coordinator_forgets_an_owner_who_gives_up": "a partition owned twice",
    "downgrade_forgets": "a tombstone out of order",
    "newer_broker_writes_newer_values": "a later value version",
    "topology_stays_behind": "a group of another type",
}
"""Fault → why Kafka's loader gives up on it, every time; on the others it never does."""


@pytest.mark.parametrize(
    ("script", "protocol"), [case[:2] for case in FAULTS], ids=[case[0].__name__ for case in FAULTS]
)
def test_faulty_histories_are_held_alike(judge: Judge, script: Any, protocol: str) -> None:
    """What no coordinator should write is loaded alike, as far as Kafka loads it; unknown types are counted alike."""
    found = Comparison()
    for seed in range(FAULTY):
        scene = scene_of(seed, protocol)
        script(scene)
        compare(of_simulated(f"{script.__name__} {seed}", scene.coordinator), judge, found)

    assert [] == found.faults
    reason = GIVEN_UP.get(script.__name__)
    assert ([reason] * FAULTY if reason else []) == list(found.given_up.values())


def one_by_one(*records: RecordBytes) -> History:
    """Each record a moment of its own."""
    return history(*(at(1_000 * (number + 1), record) for number, record in enumerate(records)))


EVERYTHING: Final = one_by_one(
    builders.streams_group_epoch("g", 4, metadata_hash=7, validated_topology_epoch=2),
    builders.streams_group_topology("g", 2, {"0": ["t", "u"], "1": ["v"]}),
    builders.streams_group_member(
        "g",
        "m",
        topology_epoch=2,
        process_id="p",
        instance_id="i",
        rack_id="r",
        endpoint=("host", 65_535),
        tags={"zone": "a"},
    ),
    builders.streams_group_target_assignment("g", "m", active={"0": [0]}, standby={"1": [1]}, warmup={"1": [0]}),
    builders.streams_group_target_assignment_epoch("g", 4),
    builders.streams_group_current_assignment(
        "g",
        "m",
        epoch=3,
        previous_epoch=2,
        state=2,
        active={"0": [0]},
        standby={"1": [1]},
        warmup={"1": [0]},
        active_pending_revocation={"0": {2: 2}},
        standby_pending_revocation={"0": [1]},
        warmup_pending_revocation={"0": [3]},
    ),
)
"""A streams member with all that one can have, which few have."""


def test_member_with_everything_is_held_alike(judge: Judge) -> None:
    """Tasks of every role, held and to be given up, endpoint, tags, rack and instance id."""
    found = Comparison()
    compare(of_history("everything", EVERYTHING), judge, found)

    assert [] == found.faults
    assert set() == found.by_design


ENDED: Final = {
    "a consumer group": one_by_one(builders.consumer_group_epoch("g", 2), builders.group_metadata_tombstone("g")),
    "a classic group that took the place of a consumer group": one_by_one(
        builders.consumer_group_epoch("g", 2),
        builders.consumer_group_member_subscription("g", "m"),
        builders.group_metadata("g", generation=3, members=[builders.member("m", {"t": [0]})]),
        builders.group_metadata_tombstone("g"),
    ),
}


@pytest.mark.parametrize("log", ENDED.values(), ids=ENDED)
def test_tombstone_of_a_classic_group_ends_whatever_there_is(judge: Judge, log: History) -> None:
    """No group is there afterwards, whatever records of its former type are left."""
    found = Comparison()
    compare(of_history("ended", log), judge, found)

    assert ([], {}) == (found.faults, found.given_up)
    assert {} == log.replayed().views


# -- differences by design --------------------------------------------------------------------------------------------


def of_member(*records: RecordBytes) -> History:
    """A consumer group of one member at epoch 2, and what comes then."""
    return one_by_one(
        builders.consumer_group_member_subscription("g", "m", topics=["t"]),
        builders.consumer_group_epoch("g", 2),
        builders.consumer_group_target_assignment("g", "m", {"t": [0]}),
        builders.consumer_group_target_assignment_epoch("g", 2),
        builders.consumer_group_current_assignment("g", "m", epoch=2, assigned={"t": [0]}),
        *records,
    )


COMMIT: Final = builders.offset_commit("g", "t", 0, 7)

DIFFERENT: Final[dict[str, History]] = {
    "a group without records": one_by_one(COMMIT, builders.offset_commit_tombstone("g", "t", 0)),
    "offsets without a group": one_by_one(
        COMMIT, builders.group_metadata("g", generation=1), builders.group_metadata_tombstone("g")
    ),
    "the time of a simple group": one_by_one(COMMIT),
    "partitions without an epoch": of_member(
        builders.consumer_group_current_assignment("g", "m", epoch=2, assigned={"t": [0]}, epochs=False)
    ),
    "a deleted target": one_by_one(
        builders.consumer_group_target_assignment_epoch_tombstone("g"),
        builders.consumer_group_epoch("g", 2),
        builders.consumer_group_target_assignment_epoch_tombstone("g"),
    ),
    "readiness by tasks": one_by_one(
        builders.streams_group_member("g", "m"),
        builders.streams_group_topology("g", 0, {"0": ["t"]}),
        builders.streams_group_epoch("g", 2),
        builders.streams_group_target_assignment("g", "m", active={"0": [0]}),
        builders.streams_group_target_assignment_epoch("g", 2),
        builders.streams_group_current_assignment("g", "m", epoch=2, active={"0": [0]}),
    ),
    "a member without an epoch": one_by_one(
        builders.consumer_group_member_subscription("g", "m", topics=["t"]), builders.consumer_group_epoch("g", 2)
    ),
}
"""Difference by design → the shortest log that shows it at its end."""

GIVEN_UP_ON: Final[dict[str, History]] = {
    UNDECODABLE: one_by_one(
        builders.share_group_epoch("g", 2), (builders.share_group_epoch("g", 3)[0], b"\0\0\0\0\0\2"), COMMIT
    ),
    "a later value version": one_by_one(COMMIT, (builders.consumer_group_epoch("g", 2)[0], b"\0\1\0\0\0\2\0")),
    "a tombstone out of order": of_member(builders.consumer_group_epoch_tombstone("g")),
    "a group of another type": of_member(builders.streams_group_epoch("g", 3)),
    "a partition owned twice": of_member(
        builders.consumer_group_current_assignment("g", "n", epoch=3, assigned={"t": [0]}),
        builders.consumer_group_current_assignment("g", "m", epoch=2, pending_revocation={"t": [0]}),
    ),
    "a streams member by half": one_by_one(
        builders.streams_group_epoch("g", 2),
        builders.streams_group_member("g", "m"),
        builders.streams_group_member_tombstone("g", "m"),
    ),
}
"""Why Kafka's loader gives up → the shortest log on which it does."""


@pytest.mark.parametrize("name", BY_DESIGN)
def test_difference_by_design_is_as_it_is_described(judge: Judge, name: str) -> None:
    """The log differs in this, is not given up, and differs in nothing else; the table of reasons has a row for it."""
    found = Comparison()
    compare(of_history(name, DIFFERENT[name]), judge, found)

    assert [] == found.faults
    assert {} == found.given_up
    assert name in found.by_design


@pytest.mark.parametrize("name", GIVES_UP)
def test_loader_gives_up_as_it_is_described(judge: Judge, name: str) -> None:
    """For this reason, and what both hold before is the same; the replica replays the log to its end."""
    found = Comparison()
    compare(of_history(name, GIVEN_UP_ON[name]), judge, found)

    assert [] == found.faults
    assert {name: name} == found.given_up
    assert 1 == found.places


@pytest.mark.parametrize("name", [*BY_DESIGN, *GIVES_UP])
def test_whatever_is_let_pass_has_its_reason(name: str) -> None:
    """No difference is without a row in the tables that say why."""
    assert f"\n    {name} " in (comparison.__doc__ or "")


def test_other_failure_is_a_fault(judge: Judge, monkeypatch: pytest.MonkeyPatch) -> None:
    """A record that Kafka refuses for a reason without a name is not let pass."""
    name = "a group of another type"
    monkeypatch.delitem(GIVES_UP, name)
    found = Comparison()
    compare(of_history(name, GIVEN_UP_ON[name]), judge, found)

    assert ["a group of another type: Kafka gives up"] == [fault.rpartition(": java")[0] for fault in found.faults]


def test_command_says_what_differs_in_a_recording(
    tmp_path: Path, capsys: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Exit status 0 and the differences by design; 1 and the faults beside them where there are any."""
    path, name = tmp_path / "recording", "the time of a simple group"
    with open_new_recording(path, Header(kafka_version=None, offsets_topic_partitions=1, topics=())) as new:
        new.write(RecordedRecord(0, 0, 1_000, *COMMIT))

    assert 0 == main([str(path)])
    assert f"by design: {name}\n" == capsys.readouterr().out
    monkeypatch.delitem(BY_DESIGN, name)
    assert 1 == main([str(path)])
    assert "recording[0] after 1 records, groups.g.state_timestamp_ms: Kafka has " in capsys.readouterr().out


# -- the judge can fail -----------------------------------------------------------------------------------------------

DELETED: Final = (
    one_by_one(
        builders.consumer_group_epoch("g", 3),
        builders.consumer_group_target_assignment_epoch("g", 3),
        builders.consumer_group_target_assignment_epoch_tombstone("g"),
    ),
    one_by_one(
        builders.share_group_epoch("g", 3),
        builders.share_group_target_assignment_epoch("g", 3),
        builders.share_group_state_partition_metadata("g", initialized={"t": [0]}),
        builders.share_group_state_partition_metadata_tombstone("g"),
        builders.share_group_target_assignment_epoch_tombstone("g"),
    ),
    one_by_one(
        builders.streams_group_epoch("g", 3),
        builders.streams_group_topology("g", 0, {"0": ["t"]}),
        builders.streams_group_topology_tombstone("g"),
        builders.streams_group_target_assignment_epoch("g", 3),
        builders.streams_group_target_assignment_epoch_tombstone("g"),
    ),
    one_by_one(builders.legacy_offset_commit("g", "t", 0, 7), builders.legacy_offset_commit("g", "t", 1, 8)),
    one_by_one(builders.legacy_offset_commit("g", "t", 0, 7), builders.legacy_offset_commit_tombstone("g", "t", 0)),
)
"""Tombstones that a coordinator writes only when the whole group ends, and commits of before 0.9."""


@pytest.fixture(scope="module")
def judged(judge: Judge) -> list[tuple[JudgedLog, Verdict]]:
    """Logs that have records of every type, and what Kafka made of them; the short ones first, which show most."""
    logs = [log for path in PATHS for log in of_recording(path)]
    logs += [of_simulated(f"history {seed}", lawful(seed)) for seed in range(60)]
    logs += [of_history("deleted", log) for log in DELETED]
    verdicts = [(log, judge.load(log.entries)) for log in sorted(logs, key=lambda log: len(log.records))]
    return [(log, verdict) for log, verdict in verdicts if verdict.failed is None]


class DeafReplica(Replica):
    """A replica that does not take in values, or tombstones, of one record type."""

    def __init__(self, type_: RecordType, *, tombstones: bool) -> None:
        super().__init__()
        self._ignored = (int(type_), tombstones)

    def replay(self, position: Position, key: bytes | None, value: bytes | None, *, commits: int = 1) -> list[Event]:
        return [] if self.ignores(key, value) else super().replay(position, key, value, commits=commits)

    def ignores(self, key: bytes | None, value: bytes | None) -> bool:
        return key is not None and (int.from_bytes(key[:2], "big"), value is None) == self._ignored


@pytest.mark.parametrize("tombstones", [False, True], ids=["value", "tombstone"])
@pytest.mark.parametrize("type_", RecordType, ids=lambda type_: type_.name)
def test_replica_that_misses_a_kind_of_record_is_found_out(
    judged: list[tuple[JudgedLog, Verdict]], type_: RecordType, tombstones: bool
) -> None:
    """Whichever of the types, its values or its tombstones: what the replica then holds is not what Kafka holds."""
    found = Comparison()
    for log, verdict in judged:
        deaf = DeafReplica(type_, tombstones=tombstones)
        if any(deaf.ignores(of.key, of.value) for of in log.records):
            look(log, verdict, found, deaf)
        if found.faults:
            return
    pytest.fail("nothing differs")


def test_replica_that_reads_what_was_aborted_is_found_out(judge: Judge) -> None:
    """Offsets of a transaction count once it is committed, and never if it is not."""
    coordinator = ReferenceCoordinator()
    group = coordinator.open("g")
    coordinator.commit(group, {("t", 0): 5})
    coordinator.commit(group, {("t", 0): 7}, producer=1)
    coordinator.end_transaction(1, commit=False)
    log = of_simulated("aborted", coordinator)
    (aborted,) = coordinator.log[1].records
    reads_all = replace(log, records=(*log.records, LogRecord(Position(PARTITION, 1, coordinator.now_ms), *aborted)))
    right, wrong = Comparison(), Comparison()
    compare(log, judge, right)
    compare(replace(reads_all, read=(*log.read[:-1], 2)), judge, wrong)

    assert [] == right.faults
    assert ["aborted after 2 records, offsets.g"] == [fault.partition(":")[0] for fault in wrong.faults]


# What the replica keeps of a record and Kafka's coordinator does not, with the reason.
NOT_COMPARED: Final = {
    ClassicMember: {
        "member_id": "its key",
        "assignment_user_data": "the coordinator hands embedded user data on unread",
        "assignment_malformed": "as above",
        "streams_active": "as above",
        "streams_standby": "as above",
    },
    ModernMember: {
        "member_id": "its key",
        "metadata_live": "which of its records there are is seen by what they say",
        "current_live": "as above",
        "partition_epochs": "the highest of them is compared",
    },
    ModernGroup: {
        "family": "another one is another group",
        "closed": "as above",
        "epoch_live": "which records there are is seen by what they say",
        "assignment_epoch_live": "as above",
        "partition_counts": "4.3 does not keep what 4.0 wrote",
        "topic_ids": "as above",
        "validation_told": "shown by the state, which is compared",
    },
}


def changed(value: Any) -> Any:
    """Another value of the same type; of an empty one the same, as other groups and members have one that is not."""
    if isinstance(value, bool):
        return not value
    if isinstance(value, int):
        return value - 1
    if isinstance(value, str):
        return f"{value}x"
    if is_dataclass(value) and not isinstance(value, type):
        return replace(value, **{field.name: changed(getattr(value, field.name)) for field in fields(value)})
    return None if value is None else type(value)()


def with_one_field_changed(state: GroupState, of: type[Any], name: str) -> Membership:
    """The group's membership with one field changed, in the group or in every member of it."""
    found, classic, modern = state.membership.copy(), state.membership.classic, state.membership.modern_group
    if modern is not None:
        group = modern.copy()
        found.modern = replace(group, **{name: changed(getattr(group, name))}) if of is ModernGroup else group
        if of is ModernMember:
            group.members = {
                key: replace(member, **{name: changed(getattr(member, name))}) for key, member in group.members.items()
            }
    elif classic is not None and of is ClassicGroup:
        found.classic = replace(classic, **{name: changed(getattr(classic, name))})
    elif classic is not None and of is ClassicMember:
        members = {
            key: replace(member, **{name: changed(getattr(member, name))}) for key, member in classic.members.items()
        }
        found.classic = replace(classic, members=members)
    return found


@pytest.fixture(scope="module")
def replicas() -> list[Replica]:
    """Replicas of every release's groups."""
    found = []
    for log in (EVERYTHING, *map(recording, PATHS)):
        replica = Replica()
        for of in log.records:
            replica.replay(of.place, of.key, of.value)
        found.append(replica)
    return found


@pytest.mark.parametrize(
    ("of", "name"),
    [
        pytest.param(of, field.name, id=f"{of.__name__}.{field.name}")
        for of in (ClassicGroup, ClassicMember, ModernGroup, ModernMember)
        for field in fields(of)
        if field.name not in NOT_COMPARED.get(of, {})
    ],
)
def test_whatever_is_kept_of_a_record_is_compared(replicas: list[Replica], of: type[Any], name: str) -> None:
    """If it were another, the comparison would differ; what is left out has its reason."""
    seen = any(differs_with(replica, of, name) for replica in replicas)

    assert seen, "compare it in tests/kafka_replay/held.py, or say in NOT_COMPARED why not"


def differs_with(replica: Replica, of: type[Any], name: str) -> bool:
    """Whether what is held differs with this field changed, in one group or another."""
    before = held_by(replica)
    for state in list(replica.groups.values()):
        former, state.membership = state.membership, with_one_field_changed(state, of, name)
        differs = held_by(replica) != before
        state.membership = former
        if differs:
            return True
    return False

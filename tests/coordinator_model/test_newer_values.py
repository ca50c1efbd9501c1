"""Values newer than this release knows: counted, reported once, shown on the group, never read in silence."""

from random import Random
from typing import Final

import pytest

from coordinator_model.replica import Replica
from coordinator_model.state.events import INFO
from coordinator_model.state.findings import Position
from lab.builders import group_metadata, group_metadata_tombstone, legacy_offset_commit, member, offset_commit
from tests.histories import PARTITION, Reported, at, history
from tests.side_by_side import VICTIM, Scene, lawful, log_of
from tests.simulator import faults

SEEDS: Final = range(20)
OF_CONSUMER_GROUPS: Final = (3, 5, 6, 7, 8)


def reported_of(reported: Reported) -> list[tuple[str, dict[str, object]]]:
    """(group, detail) of each type or version reported as unknown."""
    return [(of.group, dict(of.detail)) for of in reported.events if of.kind == "unknown_record"]


@pytest.mark.parametrize("seed", SEEDS)
def test_newer_value_is_reported_once_and_shown_on_its_group(seed: int) -> None:
    """Of any type, however often it comes; what is common to both versions is read."""
    chance = Random(seed)
    scene = Scene(seed)
    scene.consumer_members(2)
    type_, version, times = chance.choice(OF_CONSUMER_GROUPS), chance.randint(1, 9), chance.randint(1, 4)
    for _ in range(times):
        faults.write_newer(scene.coordinator, scene.group, type_, version)
        scene.traffic()

    _, log = scene.reported()
    reported = log.replayed()

    assert [(VICTIM, {"record_type": type_, "value_version": version})] == reported_of(reported)
    assert {str(type_): times} == reported.counters.newer_value_versions
    assert {str(type_): version} == reported.view(VICTIM)["newer_value_versions"]
    assert [] == [name for name, view in reported.views.items() if name != VICTIM and "newer_value_versions" in view]


@pytest.mark.parametrize("seed", SEEDS)
def test_values_of_known_versions_tell_nothing(seed: int) -> None:
    """Of brokers of any release, older layouts included."""
    reported = log_of(lawful(seed)).replayed()

    assert ([], {}) == (reported_of(reported), reported.counters.newer_value_versions)
    assert [] == [name for name, view in reported.views.items() if "newer_value_versions" in view]


def newer(record: tuple[bytes, bytes | None], version: int) -> tuple[bytes, bytes | None]:
    """The record under another version of its value."""
    key, value = record
    return key, version.to_bytes(2, "big") + (value or b"")[2:]


def test_commits_count_each_and_are_read() -> None:
    """A commit of a newer version is a commit: its offset is what was committed."""
    reported = history(
        at(0, newer(offset_commit("g", "t", 0, 5), 5)),
        at(1_000, newer(offset_commit("g", "t", 0, 6), 5)),
    ).replayed()

    assert {"1": 2} == reported.counters.newer_value_versions
    assert [6] == [offset["offset"] for offset in reported.view("g")["offsets"]]
    assert [("g", {"record_type": 1, "value_version": 5})] == reported_of(reported)


def test_value_that_cannot_be_read_at_all_is_reported_with_its_version() -> None:
    """Of a type whose layout is not made to grow: passed over as damaged, and reported as what it is."""
    reported = history(
        at(0, offset_commit("g", "t", 0, 5)), at(1_000, newer(legacy_offset_commit("g", "t", 1, 7), 1))
    ).replayed()

    assert ({"0": 1}, {"0": 1}) == (reported.counters.undecodable_records, reported.counters.newer_value_versions)
    assert [("g", {"record_type": 0, "value_version": 1})] == reported_of(reported)
    assert {"0": 1} == reported.view("g")["newer_value_versions"]


def test_group_that_comes_after_it_of_the_same_name_does_not_say_so() -> None:
    """It goes with the group."""
    classic = group_metadata("g", generation=1, members=[member("a", {"t": [0]})])
    reported = history(
        at(0, newer(classic, 5)), at(1_000, group_metadata_tombstone("g")), at(2_000, classic)
    ).replayed()

    assert "newer_value_versions" not in reported.view("g")


def test_restart_tells_it_no_second_time() -> None:
    """What was counted is in the checkpoint."""
    log = history(*(at(time_ms, newer(offset_commit("g", "t", 0, 5), 5)) for time_ms in (0, 1_000, 2_000)))

    assert 1 == len(reported_of(log.replayed_in_batches([1, 1])))


def test_it_is_an_alarm() -> None:
    """What is shown may be wrong: somebody has to look."""
    replica = Replica()
    (event,) = (
        event
        for event in replica.replay(Position(PARTITION, 0, 0), *newer(offset_commit("g", "t", 0, 5), 9))
        if event.kind == "unknown_record"
    )

    assert event.severity != INFO

"""The tables of what brokers made of logs, and what the program says of faults that were seen."""

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, Final

import pytest

from coordinator_model.clocked.not_loaded import LOADED_A_SECOND
from streaming.loading import compared, faults
from tests.brokers import loading_own, loading_page
from tests.loading_logs import RECORDINGS
from tests.recorder.recordings import PATHS


def test_a_row_takes_the_place_of_the_former(tmp_path: Path) -> None:
    """Of the same release; one that could not be tried takes that of no other. Releases stand in their order."""
    file = tmp_path / "loading.json"
    loading_page.save("size", [{"release": "4.0.2", "seconds": 1}, {"release": "3.9.2", "seconds": 2}], file)
    loading_page.save("size", [{"release": "4.0.2", "seconds": 3}, {"release": "3.9.2", "cannot_tell": "no"}], file)

    assert [("3.9.2", 2), ("4.0.2", 3)] == [(of["release"], of["seconds"]) for of in loading_page.load(file)["size"]]


LOGS: Final = loading_page.load()["logs"]
AGAIN: Final = loading_page.load()["again"]
REMEDIES: Final = loading_page.load()["remedies"]


def in_order(releases: Iterable[str]) -> tuple[str, ...]:
    return tuple(sorted({*releases}, key=faults.numbers))


@pytest.mark.parametrize("fault", faults.FAULTS, ids=lambda fault: fault.number)
def test_what_the_program_says_of_a_fault_was_seen(fault: faults.Fault) -> None:
    """On which brokers it was seen, which loaded such a log as they are installed, and on which each remedy helped."""
    log = loading_page.LOG_OF[fault.number]
    seen = (
        row["release"] for row in LOGS if fault.number in [name for of in row["logs"].values() for name in of["known"]]
    )
    loaded = (row["release"] for row in LOGS if row["name"] == row["release"] and not row["logs"][log]["failed"])
    tried = [row for row in REMEDIES if row["fault"] == fault.number]
    well = {
        name: in_order(row["release"] for row in tried if row[name] == "loads")
        for name in ("kept_as_is", "kept_cleaned", "deleted_as_is", "deleted_cleaned")
    }

    assert (in_order(seen), in_order(loaded)) == (fault.seen_on, fault.loaded_by)
    assert {*fault.seen_on} >= {row["release"] for row in tried}
    assert () == well["kept_as_is"]
    assert (well["kept_cleaned"], well["deleted_as_is"]) == (fault.wait_on, fault.delete_on)
    neither = {*well["deleted_cleaned"]} - {*fault.wait_on, *fault.delete_on}
    assert in_order(neither) == fault.delete_and_wait_on
    again = (row for row in AGAIN if row["fault"] == fault.number)
    well_again = in_order(row["release"] for row in again if {row["whole_as_is"], row["whole_cleaned"]} == {"loads"})
    assert well_again == fault.again_on


def test_no_other_fault_was_seen() -> None:
    """But of share groups as later releases write them, which those of 4.0 do not decode."""
    unknown = {
        (row["release"], name)
        for row in LOGS
        for name, of in row["logs"].items()
        if compared.UNKNOWN_FAULT in of["known"]
    }

    assert {("4.0.0", "share"), ("4.0.2", "share")} == unknown


def test_remedies_are_of_the_release_and_of_later_ones() -> None:
    """What helped on another release is not said; nor is an older one, to which brokers would have to go back."""
    by_number = {of.number: of for of in faults.FAULTS}
    fault = by_number["KAFKA-20254"]

    assert ["brokers of 4.2.1 and 4.3.1 load it", faults.DELETE_AND_WAIT] == fault.remedies("4.2.0")
    assert [] == fault.remedies("4.3.1")
    assert [] == by_number["KAFKA-21117"].remedies("3.8.1")


def test_all_recordings_are_loaded_by_their_own_release() -> None:
    """Each of them, in one log alone; recordings of one log share no group."""
    logs = loading_own.own_logs()
    files = [file for log in logs for file in log.files]

    assert sorted({*files}) == sorted(files)
    assert {*PATHS} <= {*files}


@pytest.mark.parametrize("row", loading_page.load()["own"], ids=lambda row: row["release"])
def test_nothing_of_them_is_different(row: Mapping[str, Any]) -> None:
    """0 groups and 0 offsets."""
    assert (0, 0, []) == (row["groups_different"], row["offsets_different"], row["failed"])


def test_every_recording_was_loaded() -> None:
    """By its release, of each that the table is to have."""
    tried = [file for row in loading_page.load()["own"] for file in row["recordings"]]

    assert sorted(str(of.relative_to(RECORDINGS)) for log in loading_own.own_logs() for of in log.files) == sorted(
        tried
    )


@pytest.mark.parametrize("row", loading_page.load()["size"], ids=lambda row: row["release"])
def test_a_load_is_taken_to_be_slower_than_it_was(row: Mapping[str, Any]) -> None:
    """So that one that is under way is no alarm; a million records were measured."""
    assert 1_000_000 <= row["records"]
    assert 2 * LOADED_A_SECOND <= row["bare"]["records_a_second_least"]

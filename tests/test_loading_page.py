"""The tables of what brokers made of logs, and what the program says of faults that were seen."""

from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest

from streaming.loading import compared, faults
from tests.brokers import loading_own, loading_page
from tests.recorder.recordings import PATHS


def test_a_row_takes_the_place_of_the_former(tmp_path: Path) -> None:
    """Of the same release; one that could not be tried takes that of no other. Releases stand in their order."""
    file = tmp_path / "loading.json"
    loading_page.save("logs", [{"release": "4.0.2", "seconds": 1}, {"release": "3.9.2", "seconds": 2}], file)
    loading_page.save("logs", [{"release": "4.0.2", "seconds": 3}, {"release": "3.9.2", "cannot_tell": "no"}], file)

    assert [("3.9.2", 2), ("4.0.2", 3)] == [(of["release"], of["seconds"]) for of in loading_page.load(file)["logs"]]


@pytest.mark.parametrize("row", loading_page.load()["logs"], ids=lambda row: row["release"])
def test_faults_were_seen_where_the_program_says_so(row: Mapping[str, Any]) -> None:
    """The faults of which it names this release are those with which its brokers failed."""
    said = {of.number for of in faults.FAULTS if row["release"] in of.seen_on}

    assert said == {number for of in row["logs"].values() for number in of["known"]} - {compared.UNKNOWN_FAULT}


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

"""What a rehearsal of brokers does to the gate that asks whether brokers may be rolled to that release."""

import json
from pathlib import Path
from typing import Any, Final

import pytest

from streaming.base.errors import UsageError
from streaming.loading.compared import FORMAT
from streaming.loading.kept import GOOD_FOR_MS, with_rehearsal

NOW_MS: Final = 1_795_000_000_000
OWN: Final = "b3duLWNsdXN0ZXItaWQtMQ"
OPEN: Final = {"gate": "downgrade", "verdict": "open", "reasons": [], "cluster_id": OWN}
WELL: Final[dict[str, Any]] = {
    "release": "4.0.2",
    "loads": True,
    "partitions": [{"partition": 3, "loaded": True, "known": None}],
    "groups_missing": [],
    "groups_changed": [],
    "offsets_missing": 0,
    "offsets_different": 0,
}
FAILED: Final[dict[str, Any]] = {
    **WELL,
    "loads": False,
    "partitions": [{"partition": 3, "loaded": False, "known": "KAFKA-21117"}],
    "groups_missing": ["g"],
    "offsets_missing": 2,
}
BY_DESIGN: Final = {"groups_changed": [{"group": "g", "was": "consumer", "is": "classic", "by_design": True}]}
LOST: Final = {"groups_changed": [{"group": "g", "was": "consumer", "is": "classic", "by_design": False}]}
UNTOLD: Final[dict[str, Any]] = {"release": "4.0.2", "loads": None, "partitions": [], "cannot_tell": "no jars"}


def written(directory: Path, *releases: dict[str, Any], **more: Any) -> Path:
    """A file of `rehearse brokers --json`."""
    file = directory / "rehearsal.json"
    report = {"format": FORMAT, "cluster_id": OWN, "time": NOW_MS - 1, "releases": releases, **more}
    file.write_text(json.dumps(report), "utf-8")
    return file


@pytest.mark.parametrize(
    ("release", "more", "verdict", "codes"),
    [
        (WELL, {}, "open", ["rehearsed"]),
        ({**WELL, **BY_DESIGN}, {}, "open", ["rehearsed"]),
        ({**WELL, **LOST}, {}, "closed", ["rehearsal_failed"]),
        ({**WELL, "offsets_different": 1}, {}, "closed", ["rehearsal_failed"]),
        (FAILED, {}, "closed", ["rehearsal_failed"]),
        (UNTOLD, {}, "cannot_tell", ["rehearsal_untold"]),
        (WELL, {"cluster_id": "another"}, "cannot_tell", ["rehearsal_of_other", "rehearsed"]),
        (WELL, {"cluster_id": None}, "cannot_tell", ["rehearsal_of_other", "rehearsed"]),
        (WELL, {"time": NOW_MS - GOOD_FOR_MS}, "open", ["rehearsed"]),
        (WELL, {"time": NOW_MS - GOOD_FOR_MS - 1}, "cannot_tell", ["rehearsal_old", "rehearsed"]),
    ],
)
def test_what_a_rehearsal_comes_to(
    release: dict[str, Any], more: dict[str, Any], verdict: str, codes: list[str], tmp_path: Path
) -> None:
    """A log that does not load closes the gate; a rehearsal of another cluster or day tells nothing."""
    answer = with_rehearsal(OPEN, "4.0.2", written(tmp_path, release, **more), NOW_MS)

    assert (verdict, codes) == (answer["verdict"], [of["code"] for of in answer["reasons"]])


def test_what_failed_is_named(tmp_path: Path) -> None:
    """By the fault's number, with what goes with the partition."""
    (reason,) = with_rehearsal(OPEN, "4.0.2", written(tmp_path, FAILED), NOW_MS)["reasons"]

    assert "Kafka 4.0.2 does not load 1 partition (KAFKA-21117): 1 group and 2 offsets are missing" in reason["text"]


def test_a_gate_that_is_closed_stays_closed(tmp_path: Path) -> None:
    """However well the log loads."""
    closed = {
        **OPEN,
        "verdict": "closed",
        "reasons": [{"effect": "stop", "code": "group_type", "group": "g", "text": ""}],
    }

    assert "closed" == with_rehearsal(closed, "4.0.2", written(tmp_path, WELL), NOW_MS)["verdict"]


def test_a_gate_that_does_not_know_its_cluster_cannot_tell(tmp_path: Path) -> None:
    """As where brokers do not answer."""
    answer = with_rehearsal({**OPEN, "cluster_id": None}, "4.0.2", written(tmp_path, WELL), NOW_MS)

    assert "cannot_tell" == answer["verdict"]


@pytest.mark.parametrize(
    ("target", "held"), [("4.0.2", ["4.0.2"]), ("4.0", ["4.0.1", "4.0.2"]), ("4.0", ["4.0.2"]), ("3.9", ["3.9.0"])]
)
def test_releases_of_a_target(target: str, held: list[str], tmp_path: Path) -> None:
    """Of a target without a patch number every release that was rehearsed counts."""
    file = written(tmp_path, *({**WELL, "release": release} for release in [*held, "4.3.1"]))

    assert len(held) == len(with_rehearsal(OPEN, target, file, NOW_MS)["reasons"])


@pytest.mark.parametrize("target", ["4.0.1", "4.1", "4"])
def test_a_file_without_the_release_is_refused(target: str, tmp_path: Path) -> None:
    """Whatever else it holds: 4.0.2 says nothing of 4.0.1."""
    file = written(tmp_path, {**WELL, "release": "3.9.2"})

    with pytest.raises(UsageError, match=f"--rehearsal: found a rehearsal of 3.9.2, accepted: one of {target}"):
        with_rehearsal(OPEN, target, file, NOW_MS)


@pytest.mark.parametrize("text", ["", "[]", '{"format": "group-rehearsal/1"}'])
def test_another_file_is_refused(text: str, tmp_path: Path) -> None:
    """Also a report of a roll's rehearsal."""
    (tmp_path / "other.json").write_text(text, "utf-8")

    with pytest.raises(UsageError, match="accepted: a file of rehearse brokers --json"):
        with_rehearsal(OPEN, "4.0.2", tmp_path / "other.json", NOW_MS)


@pytest.mark.parametrize(("target", "release"), [("4.0.2", "4.0.2"), ("3.9", "3.9.2"), ("4.0", "4.0.2")])
def test_without_one_the_command_is_named(target: str, release: str) -> None:
    """In one line, for the release, of a minor release for its latest; the verdict is as it was."""
    answer = with_rehearsal(OPEN, target, None, NOW_MS)

    (reason,) = answer["reasons"]
    assert ("open", "note", "not_rehearsed") == (answer["verdict"], reason["effect"], reason["code"])
    assert f"group-monitor rehearse brokers --release {release} " in reason["text"]


@pytest.mark.parametrize("target", ["3.2", "2.8.2"])
def test_releases_that_cannot_be_rehearsed(target: str) -> None:
    """Before 3.3 no command is named, for it would be refused."""
    assert OPEN == with_rehearsal(OPEN, target, None, NOW_MS)

"""Whose a state directory is: told before anything in it is touched."""

import json
import re
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any

import pytest

from streaming.errors import UsageError
from streaming.restart import IDENTITY_FILE, REMEDY, Identity, claim

IDENTITY = Identity(
    cluster_id="ZW1iZWRkZWQ",
    offsets_topic="__consumer_offsets",
    topic_id="ykfZRjoxTNC3Oq1z8S3kEA",
    partitions=50,
    shuffle_partitions=4,
    isolation="exact",
)
OTHERS: dict[str, Any] = {
    "cluster_id": "another",
    "offsets_topic": "copy",
    "topic_id": "another",
    "partitions": 100,
    "shuffle_partitions": 8,
    "isolation": "committed_only",
    "snapshot_format": 99,
    "state_layout": 99,
}


def test_directory_is_the_first_one_s_and_stays_so(tmp_path: Path) -> None:
    """Made where it is not, claimed by who comes first, and again by the same one after a restart."""
    directory = tmp_path / "state"

    claim(directory, IDENTITY)
    claim(directory, IDENTITY)

    assert asdict(IDENTITY) == json.loads((directory / IDENTITY_FILE).read_text())


@pytest.mark.parametrize("name", REMEDY)
def test_directory_of_another_one_is_refused(tmp_path: Path, name: str) -> None:
    """The error names what differs, what was found, what this one has, and the way out."""
    claim(tmp_path, replace(IDENTITY, **{name: OTHERS[name]}))

    told = f"{name} {OTHERS[name]!r}, this one has {getattr(IDENTITY, name)!r}, accepted: {REMEDY[name]}"
    with pytest.raises(UsageError, match=re.escape(told)):
        claim(tmp_path, IDENTITY)


def test_directory_from_before_layouts_had_numbers_is_refused(tmp_path: Path) -> None:
    """Spark would fail in the middle of it, and say nothing that helps."""
    held = {name: value for name, value in asdict(IDENTITY).items() if name != "state_layout"}
    (tmp_path / IDENTITY_FILE).write_text(json.dumps(held))

    with pytest.raises(UsageError, match="state_layout None, this one has 2, accepted: the release that wrote it"):
        claim(tmp_path, IDENTITY)

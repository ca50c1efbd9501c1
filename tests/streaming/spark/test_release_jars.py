"""Fetching the jars of several releases."""

from pathlib import Path
from typing import Any

import pytest

from streaming.base.errors import CannotTellError
from streaming.spark import kafka_jars, release_jars


def test_a_release_that_the_registry_lacks_keeps_no_other_from_being_fetched(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    """It is tried once more, as one file of many may break off; why it is not there is returned."""
    tried: list[str] = []

    def fetch(_configuration: str, directory: Path, **_: Any) -> None:
        tried.append(directory.name)
        if directory.name == "4.0.1" or len(tried) == 1:
            raise CannotTellError("jars: not all could be fetched")

    monkeypatch.setattr(release_jars, "DIRECTORY", tmp_path)
    monkeypatch.setattr(kafka_jars, "fetch", fetch)

    assert {"4.0.1": "jars: not all could be fetched"} == release_jars.fetch(["4.0.0", "4.0.1", "4.0.2"])
    assert ["4.0.0", "4.0.0", "4.0.1", "4.0.1", "4.0.2"] == tried

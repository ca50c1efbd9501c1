"""What `check` says of how many files and connections may be open."""

import pytest

from streaming.base import descriptors
from streaming.base.descriptors import OpenFilesLimit
from streaming.cli.check import _open_files


@pytest.mark.parametrize(
    ("hard", "expected"),
    [
        (65_536, ("ok", "65,536 at most")),
        (1_024, ("note", "ulimit -Hn: found 1,024, accepted: 4,096 or more, as callers may use up what there is")),
    ],
)
def test_a_low_limit_is_named(monkeypatch: pytest.MonkeyPatch, hard: int, expected: tuple[str, str]) -> None:
    """It can be done without, so it does not fail."""
    monkeypatch.setattr(descriptors, "limit", lambda: OpenFilesLimit(256, hard))
    found = _open_files()

    assert expected == (found.status, found.detail)

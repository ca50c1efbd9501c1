"""The project's `make`, called by tests."""

import os
import subprocess
from typing import Final

from streaming.base.places import ROOT

SET_UP: Final = "--old-file=classes"
"""Packages, jars and classes are there, or are taken for it."""


def run_make(*words: str) -> subprocess.CompletedProcess[str]:
    """`make` with these words, as if no other `make` ran the tests; its end is for who calls to judge."""
    return subprocess.run(  # noqa: S603 - our own words
        ["make", *words],  # noqa: S607 - of the path
        cwd=ROOT,
        env={name: value for name, value in os.environ.items() if not name.startswith("MAKE")},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )

"""The one import name an installed wheel has: the packages of the checkout stand inside it, off the search path.

`streaming` and `dashboards` belong to other distributions in site-packages. This program's own go first on the search
path of its processes alone: of this one by `sys.path`, of Spark's workers and other children by `PYTHONPATH`.
"""

import os
import sys
from pathlib import Path
from typing import Final

PACKAGES: Final = Path(__file__).resolve().parent / "packages"
"""Holds `streaming`, `coordinator_model`, `dashboards` and `conf`, as the checkout does."""


def use_packages() -> None:
    """Let this process, and those it starts, find the packages first."""
    own = str(PACKAGES)
    if own in sys.path:
        return
    sys.path.insert(0, own)
    inherited = os.environ.get("PYTHONPATH")
    os.environ["PYTHONPATH"] = os.pathsep.join([own, inherited] if inherited else [own])
    # `python -m`, by which Spark starts its workers, would look for them in the current directory first.
    os.environ["PYTHONSAFEPATH"] = "1"


def main() -> int:
    """Run `group-monitor`; returns the exit status."""
    use_packages()
    from streaming.__main__ import main as run  # found from now on

    return run()

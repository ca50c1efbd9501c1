"""Where the program's own files are, in a checkout and in an installed wheel alike, and where it puts what it makes."""

import os
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[2]
"""The directory that holds the packages `streaming`, `coordinator_model` and `dashboards`, and `conf`."""

IS_CHECKOUT: Final = (ROOT / "Makefile").is_file()


def _of_user(variable: str, default: str) -> Path:
    """A directory of the XDG base directory specification, which ignores relative paths."""
    named = os.environ.get(variable, "")
    return (Path(named) if Path(named).is_absolute() else Path(os.path.expanduser("~")) / default) / "group-monitor"  # noqa: PTH111 - without a home it stays, where Path would raise


CACHE: Final = ROOT / ".cache" if IS_CHECKOUT else _of_user("XDG_CACHE_HOME", ".cache")
"""What may be fetched or made again. A checkout keeps it in itself, wherever its commands are run."""

STATE: Final = Path(".cache/state") if IS_CHECKOUT else _of_user("XDG_STATE_HOME", ".local/state")
"""The default of `state.dir`: of a checkout, below the directory in which the command is run."""

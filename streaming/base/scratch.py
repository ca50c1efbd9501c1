"""Temporary directories, and those that a killed run has left behind.

A directory has the id of its process in its name, and is taken for left over once there is no such process.
"""

import os
import re
import shutil
import tempfile
from pathlib import Path


def directory(prefix: str) -> str:
    """Make one of this process; those of the same prefix whose process is gone are removed."""
    _remove_left_over(prefix)
    return tempfile.mkdtemp(prefix=f"{prefix}{os.getpid()}-")


def _remove_left_over(prefix: str) -> None:
    name = re.compile(rf"{re.escape(prefix)}(\d+)-\w+")
    for path in Path(tempfile.gettempdir()).glob(f"{prefix}*"):
        found = name.fullmatch(path.name)
        if found and not _runs(int(found[1])) and path.is_dir() and not path.is_symlink():
            shutil.rmtree(path, ignore_errors=True)


def _runs(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except (PermissionError, OverflowError):
        return True
    return True

"""Files that are there whole or as they were, and what it takes for a disk to hold them."""

import os
from pathlib import Path
from typing import IO, Any


def replace(path: Path, text: str) -> None:
    """Write a small file aside and rename it, in a directory that is there; a crash of the machine may undo it.

    Raises OSError.
    """
    scratch = path.with_name(f"{path.name}.new")
    with scratch.open("w", encoding="utf-8") as file:
        file.write(text)
    scratch.replace(path)


def sync(file: IO[Any]) -> None:
    """Have the disk hold what was written."""
    file.flush()
    os.fsync(file.fileno())


def sync_directory(directory: Path) -> None:
    """Have the disk hold the names of new files."""
    handle = os.open(directory, os.O_RDONLY)
    try:
        os.fsync(handle)
    finally:
        os.close(handle)

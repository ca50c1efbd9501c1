"""Files that are there whole or as they were, and what it takes for a disk to hold them."""

import os
from pathlib import Path
from typing import IO, Any


def replace(path: Path, text: str, *, durable: bool = False) -> None:
    """Write a small file aside and rename it; raises OSError.

    Args:
        path: the file; its directory must be there.
        text: all of it.
        durable: whether the disk holds it when this returns. Otherwise a crash of the machine may leave the former one.
    """
    scratch = path.with_name(f"{path.name}.new")
    with scratch.open("w", encoding="utf-8") as file:
        file.write(text)
        if durable:
            sync(file)
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

"""A disk that can be full: a small file system in memory, where this user may mount one."""

import os
import subprocess
from pathlib import Path
from typing import Final, Self

MIB: Final = 1024 * 1024
_FILLER: Final = "filler"


class SmallDisk:
    """Mounted on a directory as long as it is entered; where that is not allowed, the directory stays what it is.

    Attributes:
        directory: where.
        is_mounted: whether it is.
    """

    def __init__(self, directory: Path, size_mib: int = 96) -> None:
        self.directory = directory
        self._size_mib = size_mib
        self.is_mounted = False

    def fill(self) -> None:
        """Leave no room at all."""
        assert self.is_mounted
        with (self.directory / _FILLER).open("ab", buffering=0) as filler:
            for size in (MIB, 4096):
                try:
                    while True:
                        filler.write(bytes(size))
                except OSError:
                    continue

    def make_room(self) -> None:
        """Give back what was taken."""
        (self.directory / _FILLER).unlink()

    def set_writable(self, writable: bool) -> None:
        """Refuse what is written from here on, or take it again."""
        mode = "rw" if writable else "ro"
        subprocess.run(["mount", "-o", f"remount,{mode}", str(self.directory)], check=True)  # noqa: S603, S607 - no input of anybody's

    def __enter__(self) -> Self:
        self.directory.mkdir(parents=True, exist_ok=True)
        if os.geteuid() == 0:
            command = ["mount", "-t", "tmpfs", "-o", f"size={self._size_mib}m", "tmpfs", str(self.directory)]
            self.is_mounted = subprocess.run(command, capture_output=True, check=False).returncode == 0  # noqa: S603 - no input of anybody's
        return self

    def __exit__(self, *_: object) -> None:
        if self.is_mounted:
            # Lazily: whatever is still open in it goes with who has it open.
            subprocess.run(["umount", "-l", str(self.directory)], check=True)  # noqa: S603, S607 - as above

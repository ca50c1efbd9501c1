"""Who has a state directory: one monitor at a time, and who waits to take over from it.

An advisory lock of the operating system on a file in it: it ends with the process that holds it, however that ends, and
needs no clock, no lease to renew, and no second service. Where the directory is on storage that machines share, the
storage must know such locks (NFS 4 does), and a machine that vanishes keeps its lock until the storage gives it up.

The monitor's JVM may outlive it by a moment, in which it still writes to the checkpoint. So it holds a lock of its own
(`session.hold`), which the next one waits for, too.
"""

import fcntl
import json
import os
import socket
import time
from collections.abc import Callable
from pathlib import Path
from typing import IO, Final

from streaming.errors import UsageError

LOCK: Final = "lock"
JVM_LOCK: Final = "lock.jvm"
LOOK_EVERY_SECONDS: Final = 0.1


class StateLock:
    """The lock on a state directory, which is made if need be.

    Raises:
        UsageError: the directory cannot be written.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path = directory / LOCK
        try:
            directory.mkdir(parents=True, exist_ok=True)
            self._file: IO[str] = self._path.open("a+", encoding="utf-8")
        except OSError as error:
            raise UsageError(f"state.dir: found {str(directory)!r}: {error}, accepted: a writable directory") from error

    def take(self) -> None:
        """Take it; raises UsageError, naming who has it."""
        if not self._taken():
            raise UsageError(
                f"state.dir: found {str(self._directory)!r} in use by {self.holder()}, accepted: another state.dir, or "
                "--standby, to take over when that one ends"
            )

    def wait(self, look: Callable[[], object] = lambda: None) -> None:
        """Take it as soon as nobody has it; `look` is called now and then, and may raise."""
        while not self._taken():
            look()
            time.sleep(LOOK_EVERY_SECONDS)

    def holder(self) -> str:
        """Who took it last, in words."""
        try:
            held = json.loads(self._path.read_text("utf-8"))
            return f"process {held['pid']} on {held['host']}"
        except (OSError, ValueError, KeyError, TypeError):
            return "another process"

    def release(self) -> None:
        """Give it back."""
        self._file.close()

    def _taken(self) -> bool:
        try:
            fcntl.flock(self._file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            return False
        except OSError as error:
            raise UsageError(
                f"state.dir: found {str(self._directory)!r}, where nothing can be locked ({error.strerror}), accepted: "
                "a directory on a file system that knows locks"
            ) from error
        self._file.truncate(0)
        self._file.write(json.dumps({"pid": os.getpid(), "host": socket.gethostname()}) + "\n")
        self._file.flush()
        return True

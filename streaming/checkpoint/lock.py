"""Who has a state directory: one monitor at a time, and who waits to take over from it.

An advisory lock of the operating system on a file in it: it ends with the process that holds it, however that ends, and
needs no clock, no lease to renew, and no second service. Where the directory is on storage that machines share, the
storage must know such locks (NFS 4 does), and a machine that vanishes keeps its lock until the storage gives it up.

The monitor's JVM may outlive it by a moment, in which it still writes to the checkpoint. So it holds a lock of its own
(`jvm_lifecycle.hold`), which the next one waits for, too.
"""

import fcntl
import json
import os
import socket
import time
import uuid
from collections.abc import Callable
from pathlib import Path
from typing import IO, Final

from streaming.base.errors import UsageError

LOCK: Final = "lock"
JVM_LOCK: Final = "lock.jvm"
LOOK_EVERY_SECONDS: Final = 0.1


class StateLock:
    """The lock on a state directory.

    Directory and file are made when it is asked for. Until `keep` is called nothing is said in the file, and one that
    was made goes again with `release`: a start that is refused for another reason leaves every byte as it was. All
    methods raise UsageError where the directory cannot be written.
    """

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self._path = directory / LOCK
        self._file: IO[str] | None = None
        self._is_new = False
        self._directory_id: str | None = None

    def take(self) -> None:
        """Take it; raises UsageError, naming who has it."""
        if not self._taken():
            raise UsageError(
                f"state.dir: found {str(self._directory)!r} in use by {self.holder()}, accepted: another state.dir, or "
                "--standby, to take over when that one ends"
            )

    def wait(self, look: Callable[[], object] = lambda: None) -> None:
        """Take it as soon as it is free; `look` is called now and then, and may raise."""
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

    def is_held(self) -> bool:
        """Whether a monitor has it now; neither takes nor makes anything."""
        try:
            with self._path.open("rb") as file:
                fcntl.flock(file, fcntl.LOCK_SH | fcntl.LOCK_NB)
        except BlockingIOError:
            return True
        except OSError:
            return False
        return False

    def directory_id(self) -> str:
        """What the directory is called, for as long as it is there: a name by chance that `keep` writes down."""
        if self._directory_id is None:
            try:
                self._directory_id = str(json.loads(self._path.read_text("utf-8"))["directory"])
            except (OSError, ValueError, KeyError, TypeError):
                self._directory_id = uuid.uuid4().hex
        return self._directory_id

    def keep(self) -> None:
        """Say in the file who has it, now that it will be used."""
        file, directory_id = self._opened(), self.directory_id()
        file.truncate(0)
        held = {"pid": os.getpid(), "host": socket.gethostname(), "directory": directory_id}
        file.write(json.dumps(held) + "\n")
        file.flush()
        self._is_new = False

    def release(self) -> None:
        """Give it back."""
        if self._file is None:
            return
        if self._is_new:
            self._path.unlink(missing_ok=True)
        self._file.close()
        self._file, self._is_new = None, False

    def _opened(self) -> IO[str]:
        if self._file is None:
            try:
                self._directory.mkdir(parents=True, exist_ok=True)
                self._is_new = not self._path.exists()
                self._file = self._path.open("a+", encoding="utf-8")
            except OSError as error:
                raise UsageError(
                    f"state.dir: found {str(self._directory)!r}: {error}, accepted: a writable directory"
                ) from error
        return self._file

    def _taken(self) -> bool:
        file = self._opened()
        try:
            fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            self._is_new = False
            return False
        except OSError as error:
            raise UsageError(
                f"state.dir: found {str(self._directory)!r}, where nothing can be locked ({error.strerror}), accepted: "
                "a directory on a file system that knows locks"
            ) from error
        if self._path.exists() and self._path.stat().st_ino == os.fstat(file.fileno()).st_ino:
            return True
        # It was taken back by who had made it, between our opening and our locking it.
        file.close()
        self._file = None
        return self._taken()

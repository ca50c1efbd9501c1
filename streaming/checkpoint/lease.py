"""Who writes to a checkpoint: one monitor at a time, whatever state directory it has.

The lock on a state directory (`lock.py`) says nothing to a monitor that has another one, on another machine say, and
the same checkpoint. So the checkpoint carries a lease: a small file that its owner writes again every few seconds.

    the lease is                                   a monitor that starts
    not there                                      takes it
    of its own state directory, whose lock it has  takes it: its former owner has ended
    another one's, and changes                     is refused; with --standby it waits
    another one's, and does not change for a term  takes it over: its owner is gone

Nobody's clock is compared with another one's, as those of two machines differ: who waits looks whether the lease
changes. Who was stopped for so long that another one took over finds that when it would renew the lease, and ends.
"""

import json
import os
import socket
import threading
import time
import uuid
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from streaming.base.errors import UsageError
from streaming.base.logging_setup import get_logger
from streaming.base.threads import Repeating
from streaming.checkpoint.files import CheckpointFiles

LEASE_FILE: Final = "lease.json"
FORMAT: Final = "lease/1"

RENEW_SECONDS: Final = 3.0
TERM_SECONDS: Final = 15.0
"""After so long without a change its owner is taken for dead."""
LOOK_SECONDS: Final = 0.5

OWNER_BESIDE: Final = "the state directory that it is in"
"""Who has that lock may write to it; a copy of the directory has a checkpoint of its own."""

_log = get_logger("lease")


def owner_of(directory: Path, directory_id: str) -> str:
    """Who a monitor is with a state directory whose lock it has: the same after a restart, another one for a copy."""
    return f"{directory_id} {socket.gethostname()} {directory.resolve().stat().st_ino}"


class Lease:
    """The lease on a checkpoint.

    Args:
        files: the checkpoint's.
        where: the checkpoint, for messages, as `OPTION: found 'PLACE'`.
        owner: who we are.
        clock: seconds that only grow.
        sleep: waits for seconds.
    """

    def __init__(
        self,
        files: CheckpointFiles,
        where: str,
        owner: str,
        *,
        clock: Callable[[], float] = time.monotonic,
        sleep: Callable[[float], object] = time.sleep,
    ) -> None:
        self._files = files
        self._where = where
        self._owner = owner
        self._clock = clock
        self._sleep = sleep
        self._run = uuid.uuid4().hex
        self._renewals = 0
        self._lost: str | None = None
        self._is_over = False
        self._lock = threading.Lock()
        self._thread = Repeating("lease", RENEW_SECONDS, self.renew)

    def take(self, *, wait: bool = False, look: Callable[[], object] = lambda: None) -> None:
        """Take it, once that is right, and renew it from then on.

        Args:
            wait: whether to wait while another one has it.
            look: called now and then; may raise.

        Raises:
            UsageError: another one has it.
            OSError: the checkpoint's place cannot be read or written.
        """
        while not self._is_free(wait=wait, look=look):
            pass
        self._thread.start()

    def _is_free(self, *, wait: bool, look: Callable[[], object]) -> bool:
        seen = self._read()
        is_contested = seen is not None and _said(seen, "owner") != self._owner
        if is_contested:
            _log.info("lease_watched", holder=_holder(seen), term_seconds=TERM_SECONDS)
        since = self._clock()
        while seen is not None and is_contested and self._clock() - since < TERM_SECONDS:
            look()
            self._sleep(LOOK_SECONDS)
            now = self._read()
            if now is not None and now != seen:
                if not wait:
                    raise UsageError(
                        f"{self._where} in use by {_holder(now)}, accepted: a checkpoint of its own, or --standby, to "
                        "take over when that one ends"
                    )
                since = self._clock()
            seen = now
        self._write()
        if not is_contested:
            return True
        # Another one may have waited as long.
        self._sleep(2 * LOOK_SECONDS)
        return self._is_ours(self._read())

    def renew(self) -> None:
        """Write it again; one that is not ours any more is lost."""
        with self._lock:
            if self._lost is not None or self._is_over:
                return
            try:
                found = self._read()
                if found is not None and not self._is_ours(found) and _said(found, "run") is not None:
                    self._lost = _holder(found)
                    _log.error("lease_lost", holder=self._lost)
                    return
                self._write()
            except OSError as error:
                _log.info("lease_not_renewed", reason=str(error))

    @contextmanager
    def aside(self) -> Iterator[None]:
        """Have no file of it in the checkpoint meanwhile, so that another directory can take that one's place."""
        with self._lock:
            self._files.remove(LEASE_FILE)
            try:
                yield
            finally:
                self._write()

    def refuse_lost(self) -> None:
        """See that it is still ours. Raises UsageError."""
        if self._lost is not None:
            raise UsageError(
                f"{self._where} taken over by {self._lost}, as this monitor did not renew its lease for "
                f"{TERM_SECONDS:g} s, accepted: one monitor at a time"
            )

    def release(self) -> None:
        """Give it back, if it is still ours."""
        self._thread.stop()
        with self._lock:
            self._is_over = True
            try:
                if self._is_ours(self._read()):
                    self._files.remove(LEASE_FILE)
            except OSError as error:
                _log.info("lease_not_released", reason=str(error))

    def _is_ours(self, lease: str | None) -> bool:
        return lease is not None and _said(lease, "run") == self._run

    def _read(self) -> str | None:
        try:
            return self._files.text(LEASE_FILE)
        except FileNotFoundError:
            return None

    def _write(self) -> None:
        self._renewals += 1
        held = {
            "format": FORMAT,
            "owner": self._owner,
            "run": self._run,
            "pid": os.getpid(),
            "host": socket.gethostname(),
            "renewals": self._renewals,
        }
        self._files.write(LEASE_FILE, json.dumps(held) + "\n")


def _said(lease: str, name: str) -> object:
    """What a lease says of something; None of one that is being written."""
    try:
        held = json.loads(lease)
    except ValueError:
        return None
    return held.get(name) if isinstance(held, dict) else None


def _holder(lease: str | None) -> str:
    if lease is None or _said(lease, "pid") is None:
        return "another process"
    return f"process {_said(lease, 'pid')} on {_said(lease, 'host')}"

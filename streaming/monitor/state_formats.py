"""Files of the state directory that name their format: another one than ours is refused before anything is touched.

What a later release wrote may mean something else under the same names. A reader that took it for damaged would begin
with nothing, and overwrite it. The checkpoint's own numbers stand in `monitor.json` (`checkpoint/contents.py`).
"""

import re
from pathlib import Path
from typing import Final, NamedTuple

from streaming.base.errors import UsageError
from streaming.board import event_window_file
from streaming.checkpoint import resume_file
from streaming.checkpoint.identity import REBUILD
from streaming.end_offsets.store import FILE_FORMAT
from streaming.monitor import coordinator_check
from streaming.sinks import queue
from streaming.sinks.outputs import SPOOL

END_OFFSETS_FILE: Final = "end-offsets.json"
EVENTS_FILE: Final = "events.db"

_HEAD_BYTES: Final = 256
_FORMAT: Final = re.compile(rb'\s*\{\s*"format"\s*:\s*"([^"\\]*)"')
"""It stands first; the rest may be as long as all histories together."""


class _Kind(NamedTuple):
    """One kind of file: its names, the format read here, and how to do without it."""

    pattern: str
    accepted: str
    way_out: str


_KINDS: Final = (
    _Kind(resume_file.RESUME_FILE, resume_file.FORMAT, REBUILD),
    _Kind(END_OFFSETS_FILE, FILE_FORMAT, "the file moved away, and lag in seconds begins with new samples"),
    _Kind(EVENTS_FILE, event_window_file.FORMAT, "the file moved away, and the list of latest events begins empty"),
    _Kind(
        coordinator_check.AGREED_FILE,
        coordinator_check.FORMAT,
        "the file moved away, and coordinators are asked again about what could not be read",
    ),
    _Kind(f"{SPOOL}/{queue.FILE}", queue.FORMAT, "the file moved away, and what it holds is not passed on"),
)


def refuse_others(directory: Path, *, rebuild: bool) -> None:
    """See that this release reads each file, or that it says no format: damage is its reader's business.

    With `rebuild` the resume file does not count: a new one is written.

    Raises:
        UsageError: a file is of another format, or cannot be read.
    """
    for kind in _KINDS:
        if rebuild and kind.way_out is REBUILD:
            continue
        for path in sorted(directory.glob(kind.pattern)):
            found = _format(path, kind.accepted)
            if found not in (None, kind.accepted):
                raise UsageError(
                    f"state.dir: found {str(path)!r} of format {found!r}, accepted: {kind.accepted!r}; the release "
                    f"that wrote it, or {kind.way_out}"
                )


def _format(path: Path, accepted: str) -> str | None:
    try:
        with path.open("rb") as file:
            head = file.read(_HEAD_BYTES)
    except OSError as error:
        raise UsageError(f"state.dir: found {str(path)!r}: {error.strerror}, accepted: a readable file") from error
    if head.startswith(b"SQLite format 3\0"):
        # Its `user_version`.
        return f"{accepted.partition('/')[0]}/{int.from_bytes(head[60:64])}"
    found = _FORMAT.match(head)
    return None if found is None else found[1].decode("utf-8", "replace")

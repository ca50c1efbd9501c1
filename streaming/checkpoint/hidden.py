"""The checkpoint that earlier releases wrote beside a state directory with a name such as `a b`: below `a%20b`.

They gave Spark the directory's URI, whose escapes Hadoop takes for letters of the name, and looked for it themselves
where it should have been. What they left is used, or removed by `run --rebuild`, if there is no doubt whose it is.

    found there                                   what is done
    nothing                                       nothing
    a checkpoint, and nothing else; ours          moved to where it belongs, and gone on from
        and one where it belongs                  refused: it is unknown which of them is right
        its monitor's JVM still writes to it      waited for, then refused
        no `monitor.json` says whose              refused
    anything else beside it                       refused if our own is gone; else it is somebody's own directory
"""

import fcntl
import shutil
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Any, Final

from streaming.base.errors import UsageError
from streaming.base.logging_setup import get_logger
from streaming.checkpoint import contents
from streaming.checkpoint.files import LocalFiles
from streaming.checkpoint.identity import Identity, may_be_one_topic
from streaming.checkpoint.location import CHECKPOINT, is_checkpoint_alone, names
from streaming.checkpoint.lock import JVM_LOCK, LOOK_EVERY_SECONDS

JVM_ENDS_SECONDS: Final = 20.0
"""So long the JVM of a monitor that was killed may go on."""

_OURS: Final = ("cluster_id", "offsets_topic")

_log = get_logger("state")


class Hidden:
    """What is below the hidden name of a state directory, whose lock is ours.

    Args:
        directory: the state directory.
        hidden: what `location.hidden_beside` found.
        held: what `monitor.json` said before this start; None where there was none.
        identity: who starts now.
    """

    def __init__(self, directory: Path, hidden: Path, held: Mapping[str, Any] | None, identity: Identity) -> None:
        self._directory = directory
        self._hidden = hidden
        self._held = held
        self._identity = identity

    def use(self, own: Path, *, own_is_gone: bool) -> None:
        """Move it to where it belongs. Raises UsageError if that is not to be done."""
        if not is_checkpoint_alone(self._hidden):
            if own_is_gone:
                raise self._refused(
                    "other things as well", "it moved to where it belongs, or run --rebuild after it was"
                )
            return
        self._refuse_anothers()
        if own.exists() and names(own):
            raise self._refused(
                "it has one of its own as well", "one of both moved away, or run --rebuild, which removes both"
            )
        if own.exists():
            own.rmdir()
        (self._hidden / CHECKPOINT).rename(own)
        self._remove_parents()
        _log.warning("checkpoint_found", directory=str(self._directory), found=str(self._hidden / CHECKPOINT))

    def remove(self) -> None:
        """Remove it. Raises UsageError if that is not to be done."""
        if not is_checkpoint_alone(self._hidden):
            return
        self._refuse_anothers()
        shutil.rmtree(self._hidden / CHECKPOINT)
        self._remove_parents()
        _log.warning("checkpoint_removed", directory=str(self._directory), found=str(self._hidden / CHECKPOINT))

    def _refuse_anothers(self) -> None:
        wanted = {name: getattr(self._identity, name) for name in _OURS}
        away = "that directory moved away or deleted by hand"
        if self._held is None:
            raise self._refused("nothing says whose", away)
        is_one = may_be_one_topic(self._held.get("topic_id"), self._identity.topic_id)
        if not is_one or {name: self._held.get(name) for name in _OURS} != wanted:
            raise self._refused("another topic's", away)
        try:
            files = LocalFiles(self._hidden / CHECKPOINT)
            mark = contents.mark(files)
            read = contents.committed_positions(files, mark.batch) if mark.has_state else ()
        except (OSError, ValueError, LookupError, TypeError, AttributeError) as error:
            raise self._refused("damaged", away) from error
        if any(partition >= self._identity.partitions for positions in read for partition in positions):
            raise self._refused("of a topic with more partitions", away)
        until = time.monotonic() + JVM_ENDS_SECONDS
        while _is_locked_by_java(self._directory / JVM_LOCK):
            if time.monotonic() > until:
                raise self._refused("still written to by the JVM of a former monitor", "that process ended")
            time.sleep(LOOK_EVERY_SECONDS)

    def _remove_parents(self) -> None:
        """Of the hidden name, what is empty now."""
        for path in (self._hidden, *self._hidden.parents):
            if path.exists() and (self._directory.resolve().is_relative_to(path) or names(path)):
                return
            path.rmdir()

    def _refused(self, reason: str, accepted: str) -> UsageError:
        return UsageError(
            f"state.dir: found {str(self._directory)!r}, whose checkpoint an earlier release wrote to "
            f"{str(self._hidden / CHECKPOINT)!r} ({reason}), accepted: {accepted}"
        )


def _is_locked_by_java(file: Path) -> bool:
    """Whether another process has a lock of the kind that Java takes."""
    try:
        with file.open("r+b") as opened:
            fcntl.lockf(opened, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except FileNotFoundError:
        return False
    except OSError:
        return True
    return False

"""The end of a stateful task's connection, so that the JVM closes its side of it.

The JVM's state server accepts a connection of each task and never closes it (SPARK-58932, mended in Spark 4.2.1): a
socket a task, until no file can be opened any more. What closes it is the interruption of the server's thread when the
task ends, but only of a thread that still waits for a request. So the server is not told that the processor is closed,
which would end its thread before, and this side stays open until later tasks have ended, too.

What is used of Spark is not public and pinned by the lock of packages. Spark's own tester has no connection.
"""

from collections import deque
from typing import Any, Final

from pyspark.sql.streaming.stateful_processor import StatefulProcessorHandle

_KEPT: Final[deque[Any]] = deque()
_MOST: Final = 4
"""A worker has one task at a time, and may have the next one before the JVM is done with the last."""


def leave_open(handle: StatefulProcessorHandle) -> None:
    """End a task's use of its connection; to be called when its processor is closed."""
    client: Any = getattr(handle, "_statefulProcessorApiClient", None)
    if getattr(client, "_client_socket", None) is None:
        return
    client.set_handle_state = _unsaid
    _KEPT.append((client.sockfile, client._client_socket))  # noqa: SLF001 - as the module says
    while len(_KEPT) > _MOST:
        for each in _KEPT.popleft():
            each.close()


def _unsaid(_state: object) -> None:
    """All that Spark has left to say of a closed processor is that it is."""

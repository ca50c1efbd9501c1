"""The connection over which the JVM serves the rows of a micro-batch."""

import errno
import time
from collections.abc import Callable
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.util import _create_local_socket

OPEN_SECONDS: Final = 30.0
"""Whoever uses up the descriptors may let go of some."""

NO_DESCRIPTORS: Final = tuple(f"[Errno {number}]" for number in (errno.EMFILE, errno.ENFILE))
"""What the system's errors begin with then; Spark has them in a text of its own."""

_AGAIN_SECONDS: Final = 0.5


def opened(
    address: tuple[Any, Any], clock: Callable[[], float] = time.monotonic, sleep: Callable[[float], object] = time.sleep
) -> tuple[Any, Any]:
    """A connection to where the JVM serves rows, as PySpark makes it: (file, socket).

    Raises:
        PySparkException: it could not be opened, for want of descriptors not in time.
        OSError: the same.
    """
    until = clock() + OPEN_SECONDS
    while True:
        try:
            file, connected = _create_local_socket(address)
        except (PySparkException, OSError) as error:
            if not any(sign in str(error) for sign in NO_DESCRIPTORS) or clock() >= until:
                raise
            sleep(_AGAIN_SECONDS)
        else:
            return file, connected

"""The connection over which the JVM serves the rows of a micro-batch."""

import time
from collections.abc import Callable
from typing import Any, Final

from pyspark.errors import PySparkException
from pyspark.util import _create_local_socket

from streaming.base import descriptors

OPEN_SECONDS: Final = 30.0
"""What uses up the descriptors may let go of some."""

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
            if not descriptors.none_left(error) or clock() >= until:
                raise
            sleep(_AGAIN_SECONDS)
        else:
            return file, connected

"""Why Spark did not start, in a line, asked while its JVM is there: a launch that fails ends it, and its words with it.

the failure is                                 what is said of it
an error of Spark's in a JVM that goes on      the error
a JVM that ended before it could be asked      what it printed: the last cause, or the first line that tells of one
"""

import re
from pathlib import Path
from typing import Final

from pyspark.errors import PySparkRuntimeError

from streaming.base.errors import CannotTellError, first_line, words

_ENDED: Final = "JAVA_GATEWAY_EXITED"
_CAUSE: Final = "Caused by: "
_FRAME: Final = re.compile(r"\s|\.\.\.")
_TELLS: Final = re.compile(r"exception|error|invalid|unrecognized|unsupported|cannot|could not|denied", re.IGNORECASE)
_LONGEST: Final = 500


def of(error: Exception, log_file: Path, printed_before: int) -> CannotTellError:
    """What to say of a start that failed.

    Args:
        error: what it failed with.
        log_file: where the JVM prints.
        printed_before: bytes that were in it before this start.
    """
    ended = isinstance(error, PySparkRuntimeError) and _ENDED in words(error)
    said = (ended and _printed(log_file, printed_before)) or first_line(error)
    return CannotTellError(f"spark: found one that does not start ({said}), accepted: one that does; see {log_file}")


def size(log_file: Path) -> int:
    """Bytes in the log now; 0 where there is none."""
    return log_file.stat().st_size if log_file.exists() else 0


def _printed(log_file: Path, printed_before: int) -> str:
    """Of what the JVM printed, the line that says most; nothing if it printed nothing."""
    try:
        with log_file.open("rb") as file:
            file.seek(printed_before)
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    lines = [line for line in text.splitlines() if line.strip() and not _FRAME.match(line)]
    causes = [line.removeprefix(_CAUSE) for line in lines if line.startswith(_CAUSE)]
    telling = [line for line in lines if _TELLS.search(line)]
    return (causes[-1:] or telling[:1] or lines[-1:] or [""])[0][:_LONGEST]

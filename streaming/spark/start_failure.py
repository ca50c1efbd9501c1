"""Why Spark did not start, in a line, asked while its JVM is there: a launch that fails ends it, and its words with it.

the failure is                                 what is said of it
an error of Spark's in a JVM that goes on      the error
a JVM that ended before it could be asked      what it printed: the last cause, or the first line that tells of one

Where the words are about an option of the configuration, that is what is named.
"""

import re
from collections.abc import Mapping
from itertools import pairwise
from pathlib import Path
from typing import Final

from pyspark.errors import PySparkRuntimeError

from streaming.base.errors import CannotTellError, UsageError, first_line, words

_ENDED: Final = "JAVA_GATEWAY_EXITED"
_CAUSE: Final = "Caused by: "
_BEFORE_CAUSE: Final = "Error occurred during initialization of boot layer"
_FRAME: Final = re.compile(r"\s|\.\.\.")
_TELLS: Final = re.compile(r"exception|error|invalid|unrecognized|unsupported|cannot|could not|denied", re.IGNORECASE)
_LONGEST: Final = 500

_AT_FAULT: Final[Mapping[str, tuple[re.Pattern[str], str]]] = {
    "spark.master": (
        re.compile(r"could not parse master url|invalid master|all masters are unresponsive", re.IGNORECASE),
        "a master that is there",
    ),
    "spark.driver_memory": (
        re.compile(
            r"heap size|not enough space for object heap|could not reserve enough space|system memory \d+ must be",
            re.IGNORECASE,
        ),
        "a size that the machine has and Spark can do with",
    ),
    "JAVA_HOME, PATH": (re.compile(r"FindException: Module \S+ not found"), "a Java with all of its modules"),
}
"""Option or variable → what is said where it is at fault, and what is accepted."""

_NO_MACHINE: Final = "Could not create the Java Virtual Machine"
_JAVA_OPTIONS: Final = "spark.driver.extraJavaOptions"

_OPTION_OF_JAVA: Final = re.compile(r"(?:unrecognized|invalid|unsupported)[^'\n]*?option:? '?([^\s']+)", re.IGNORECASE)


def of(
    error: Exception, log_file: Path, printed_before: int, conf: Mapping[str, str] | None = None
) -> CannotTellError | UsageError:
    """What to say of a start that failed.

    Args:
        error: what it failed with.
        log_file: where the JVM prints.
        printed_before: bytes that were in it before this start.
        conf: `spark.conf` of the configuration.
    """
    ended = isinstance(error, PySparkRuntimeError) and _ENDED in words(error)
    said = (ended and _printed(log_file, printed_before)) or first_line(error)
    conf = conf or {}
    if name := _setting_at_fault(said, conf):
        return _of_setting(name, said, log_file)
    for option, (about, accepted) in _AT_FAULT.items():
        if about.search(said):
            return UsageError(f"{option}: found one with which Spark does not start ({said}), accepted: {accepted}")
    if _NO_MACHINE in said and _JAVA_OPTIONS in conf:
        return _of_setting(_JAVA_OPTIONS, said, log_file)
    return CannotTellError(f"spark: found one that does not start ({said}), accepted: one that does; see {log_file}")


def _of_setting(name: str, said: str, log_file: Path) -> UsageError:
    return UsageError(f"spark.conf: found {name}, with which Spark does not start ({said}); see {log_file}")


def _setting_at_fault(said: str, conf: Mapping[str, str]) -> str | None:
    """The setting of `spark.conf` that words are about: by its name, by its value, or an option of Java in that."""
    option = _OPTION_OF_JAVA.search(said)
    for name, value in conf.items():
        is_named = re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.]*\w)", said) or f'"{value}"' in said
        if is_named or (option and option[1].lstrip("-") in value):
            return name
    return None


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
    lines = [line for line in text.splitlines() if line.strip() and not _FRAME.match(line) and line != _BEFORE_CAUSE]
    if none := [before for before, line in pairwise(lines) if _NO_MACHINE in line]:
        return f"{none[0]}: {_NO_MACHINE}"[:_LONGEST]
    causes = [line.removeprefix(_CAUSE) for line in lines if line.startswith(_CAUSE)]
    telling = [line for line in lines if _TELLS.search(line)]
    return (causes[-1:] or telling[:1] or lines[-1:] or [""])[0][:_LONGEST]

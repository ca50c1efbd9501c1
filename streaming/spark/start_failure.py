"""Why Spark did not start, in a line, asked while its JVM is there: a launch that fails ends it, and its words with it.

the failure is                                 what is said of it
an error of Spark's in a JVM that goes on      the error
a JVM that ended before it could be asked      what it printed: the last cause, or the first line that tells of one

Where the words are about an option of the configuration, that is what is named. They are about a setting of
`spark.conf` if they have its name, the words of its name ("Executor memory must be"), or a value that stands for
nothing else.
"""

import re
from collections.abc import Mapping
from contextlib import suppress
from itertools import pairwise
from pathlib import Path
from typing import Final

from py4j.protocol import Py4JError, Py4JNetworkError
from pyspark.errors import PySparkRuntimeError

from streaming.base.errors import CannotTellError, UsageError, first_line, words

_ENDED: Final = "JAVA_GATEWAY_EXITED"
_CAUSE: Final = "Caused by: "
_SAYS_NOTHING: Final = (
    "Error occurred during initialization of ",  # the boot layer, or the VM; why is the next line
    "WARNING: Using incubator modules: ",
)
_FRAME: Final = re.compile(r"\s|\.\.\.")
_TELLS: Final = re.compile(r"exception|error|invalid|unrecognized|unsupported|cannot|could not|denied", re.IGNORECASE)
_LONGEST: Final = 500

_AT_FAULT: Final[Mapping[str, tuple[re.Pattern[str], str]]] = {
    "spark.master": (
        re.compile(
            r"could not parse master url|invalid master|all masters are unresponsive|running with master '",
            re.IGNORECASE,
        ),
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

_LOGGED: Final = re.compile(
    r'timestamp=\S+ level=(?P<level>\w+) logger=\S+ event="(?P<event>.*?)"(?: error="(?P<error>.*)")?'
)
"""A line of conf/log4j2.properties."""
_FAILED: Final = ("ERROR", "FATAL")

_WORD: Final = re.compile(r"[A-Z]?[a-z]+")
_LEAST_WORDS: Final = 2
_TELLTALE: Final = re.compile(r"(?=.*[A-Za-z])(?=.*[./:-])\S{4,}")
"""A value that stands for nothing else: a class, a path, an address, an option of Java."""

_OPTION_OF_JAVA: Final = re.compile(r"(?:unrecognized|invalid|unsupported)[^'\n]*?option:? '?([^\s']+)", re.IGNORECASE)


def of(
    error: Exception, log_file: Path, printed_before: int, conf: Mapping[str, str] | None = None
) -> CannotTellError | UsageError:
    """What to say of a start that failed; the log gets what it was not printed to.

    Args:
        error: what it failed with.
        log_file: where the JVM prints.
        printed_before: bytes that were in it before this start.
        conf: `spark.conf` of the configuration.
    """
    if _ended(error):
        said = _printed(log_file, printed_before) or first_line(error)
    else:
        said = first_line(error)
        _keep(words(error), log_file)
    conf = conf or {}
    if name := _setting_at_fault(said, conf):
        return _of_setting(name, said, log_file)
    for option, (about, accepted) in _AT_FAULT.items():
        if about.search(said):
            return UsageError(
                f"{option}: found one with which Spark does not start ({said}), accepted: {accepted}; see {log_file}"
            )
    if _NO_MACHINE in said and _JAVA_OPTIONS in conf:
        return _of_setting(_JAVA_OPTIONS, said, log_file)
    return CannotTellError(f"spark: found one that does not start ({said}), accepted: one that does; see {log_file}")


def _ended(error: Exception) -> bool:
    """Whether the JVM is gone: before it said where it listens, or in the middle of a call."""
    if isinstance(error, PySparkRuntimeError):
        return _ENDED in words(error)
    is_cut_short = type(error) is Py4JError and "\n" not in words(error)  # an answer of Java's has its words below
    return is_cut_short or isinstance(error, Py4JNetworkError | ConnectionError)


def _of_setting(name: str, said: str, log_file: Path) -> UsageError:
    return UsageError(f"spark.conf: found {name}, with which Spark does not start ({said}); see {log_file}")


def _setting_at_fault(said: str, conf: Mapping[str, str]) -> str | None:
    """The setting of `spark.conf` that words are about: by its name, by its value, or an option of Java in that."""
    option = _OPTION_OF_JAVA.search(said)
    for name, value in conf.items():
        is_named = re.search(rf"(?<![\w.]){re.escape(name)}(?![\w.]*\w)", said) or f'"{value}"' in said
        if is_named or (option and option[1].lstrip("-") in value):
            return name
    return next((name for name, value in conf.items() if _is_meant(said, name, value)), None)


def _is_meant(said: str, name: str, value: str) -> bool:
    """Whether words tell of a setting without its name."""
    of_name = _WORD.findall(name)[1:]  # without "spark"
    in_words = r"[\s-]+".join(of_name) if len(of_name) >= _LEAST_WORDS else ""
    parts = [re.escape(part) for part in re.split(r"[,\s]+", value) if _TELLTALE.fullmatch(part)]
    return any(re.search(rf"(?<!\w){part}(?!\w)", said, re.IGNORECASE) for part in filter(None, (in_words, *parts)))


def size(log_file: Path) -> int:
    """Bytes in the log now; 0 where there is none."""
    return log_file.stat().st_size if log_file.exists() else 0


def _keep(text: str, log_file: Path) -> None:
    """Write to the log what Java answered, its stack too: it logs that something went wrong at most."""
    with suppress(OSError), log_file.open("a", encoding="utf-8") as log:
        log.write(f"{text.strip()}\n")


def _printed(log_file: Path, printed_before: int) -> str:
    """Of what the JVM printed, the line that says most; nothing if it printed nothing."""
    try:
        with log_file.open("rb") as file:
            file.seek(printed_before)
            text = file.read().decode("utf-8", "replace")
    except OSError:
        return ""
    lines = [
        line
        for line in map(_unlogged, text.splitlines())
        if line.strip() and not _FRAME.match(line) and not line.startswith(_SAYS_NOTHING)
    ]
    if none := [before for before, line in pairwise(lines) if _NO_MACHINE in line]:
        return f"{none[0]}: {_NO_MACHINE}"[:_LONGEST]
    causes = [line.removeprefix(_CAUSE) for line in lines if line.startswith(_CAUSE)]
    telling = [line for line in lines if _TELLS.search(line)]
    return (causes[-1:] or telling[:1] or lines[-1:] or [""])[0][:_LONGEST]


def _unlogged(line: str) -> str:
    """What a line of the log says of a failure, nothing if it is of another; any other line as it is."""
    logged = _LOGGED.search(line)
    if logged is None:
        return line
    said = f"{logged['event']} {logged['error'] or ''}".strip()
    return said if logged["level"] in _FAILED else ""

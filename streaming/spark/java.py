"""The Java that runs Spark, the broker and Kafka's tools.

Standard library only: `python -m streaming.spark.java` checks it before anything is installed, and prints where it is.
"""

import locale
import os
import re
import shutil
import subprocess
import sys
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Final

from streaming.base.errors import MonitorError, UsageError
from streaming.spark import cds_archive

# What both Spark 4.2 and Kafka 4.3 are tested with.
ACCEPTED_VERSIONS: Final = (17, 21)

_REMEDY: Final = "install one (Debian: apt install openjdk-17-jre-headless) and let JAVA_HOME or PATH lead to it"
_VERSION: Final = re.compile(r'version "(?P<first>\d+)(?:\.(?P<second>\d+))?')
_CHECK_SECONDS: Final = 30
_BEYOND_ASCII: Final = 0x80


def find_java() -> Path:
    """The `java` command that `JAVA_HOME`, or else the path, leads to, once its version is known to be right.

    Raises:
        UsageError: there is none, it does not run, or its version is another.
    """
    home = os.environ.get("JAVA_HOME")
    origin = "JAVA_HOME" if home else "PATH"
    found = shutil.which(str(Path(home) / "bin" / "java")) if home else shutil.which("java")
    if found is None:
        where = f"no bin/java in {home!r}" if home else "no java"
        raise UsageError(f"{origin}: found {where}, accepted: Java {_accepted()}; {_REMEDY}")
    said = _said(found)
    version = feature_version(said)
    if version not in ACCEPTED_VERSIONS:
        # Variables for any Java, as JAVA_TOOL_OPTIONS, may hold what it does not start with; it repeats them first.
        lines = [line for line in said.splitlines() if line.strip() and not line.startswith("Picked up ")]
        instead = f", but {lines[0][:200]!r}" if lines else ""
        what = f"Java {version}" if version else f"a java that does not say its version{instead}"
        raise UsageError(f"{origin}: found {what} ({found}), accepted: Java {_accepted()}; {_REMEDY}")
    return Path(found)


def feature_version(text: str) -> int | None:
    """The feature version in what `java -version` prints: 17 of `17.0.15`, 8 of `1.8.0_402`; None where none is."""
    match = _VERSION.search(text)
    if match is None:
        return None
    first, second = int(match["first"]), match["second"]
    # Until Java 8 the feature version came second.
    return int(second) if first == 1 and second else first


def command(
    jars_dir: Path, main_class: str, arguments: Sequence[str] = (), *, heap: str = "128m", also: Sequence[Path] = ()
) -> list[str]:
    """The command line of a small JVM that is up quickly: one compiler, one collector thread, classes ready-made.

    Args:
        jars_dir: folder with every jar of the class path; the archive beside it is used, if it was made.
        main_class: the class to run.
        arguments: what it is given.
        heap: the largest heap, in Java's form.
        also: further jars.

    Raises:
        UsageError: no usable Java, or no jars.
    """
    if not any(jars_dir.glob("*.jar")):
        raise UsageError(f"jars: found none in {str(jars_dir)!r}, accepted: the folder that `make setup` fills")
    options = ["-XX:TieredStopAtLevel=1", "-XX:+UseSerialGC", f"-Xmx{heap}", "-Djava.net.preferIPv4Stack=true"]
    options += cds_archive.options(cds_archive.beside(jars_dir.resolve()))
    class_path = os.pathsep.join([str(jars_dir.resolve() / "*"), *map(str, also)])
    return [str(find_java()), *options, "-cp", class_path, main_class, *arguments]


def names_in_utf8() -> dict[str, str]:
    """Variables for a JVM, by which it finds files whose names are not ASCII, in whatever locale we were started.

    Python takes the names of files for UTF-8 in any; Java in one without it has no such files.
    """
    return {} if locale.getencoding().upper() == "UTF-8" else {"LC_ALL": "C.UTF-8"}


def properties(settings: Mapping[str, str]) -> str:
    """A file of Java's properties: in ASCII, as Spark reads such files as UTF-8, and Kafka as Latin-1."""
    return "".join(f"{name}={_property(value)}\n" for name, value in settings.items())


def _property(value: str) -> str:
    escaped = value.replace("\\", "\\\\").replace("\n", "\\n").replace("\r", "\\r").replace("\t", "\\t")
    escaped = f"\\{escaped}" if escaped.startswith(" ") else escaped
    units = memoryview(escaped.encode("utf-16-be", "surrogatepass")).cast("B")
    pairs = (units[at] << 8 | units[at + 1] for at in range(0, len(units), 2))
    return "".join(chr(unit) if unit < _BEYOND_ASCII else f"\\u{unit:04x}" for unit in pairs)


@cache
def _said(java: str) -> str:
    """What it prints of its version; nothing if it does not run."""
    try:
        return subprocess.run(  # noqa: S603 - no shell takes part
            [java, "-version"], capture_output=True, text=True, timeout=_CHECK_SECONDS, check=False
        ).stderr
    except (OSError, subprocess.TimeoutExpired):
        return ""


def _accepted() -> str:
    return " or ".join(str(version) for version in ACCEPTED_VERSIONS)


def main() -> int:
    """Print where Java is, or in one line why it cannot be used; returns the exit status."""
    try:
        sys.stdout.write(f"{find_java()}\n")
    except MonitorError as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main())

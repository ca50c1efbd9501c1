"""The classes of Spark's JVM as an archive from which they are taken ready-made.

A start of Spark loads some fifteen thousand classes out of three hundred jars and verifies each, two fifths of the
processor time of a start. A JVM can write down what it has loaded, and others of the same kind map that file instead
(class data sharing). `python -m streaming.monitor.cds_training` makes one, once for an installation, and `python -m
lab.kafka_classes` one of Kafka's, for broker, consumers and tools of the demo and of tests (`make classes` both).

    the archive is              a start
    there                       takes its classes from it
    not there, or cut short     goes without
    damaged                     goes without: what a JVM maps it does not look at, so its sum is compared before
    of another Java, of other   goes without: the JVM sees that, and says so
    jars or of other modules    on standard error, in `spark.log`
"""

import json
import sys
import zlib
from importlib.metadata import version
from pathlib import Path
from typing import Final

from streaming.base import atomic_files
from streaming.base.errors import CannotTellError
from streaming.base.places import IS_CHECKOUT, ROOT

_INSTALLED: Final = Path(sys.prefix) / "share" / "group-monitor"
"""Beside an installed wheel: an account that may install it may write there."""

_ON_STANDARD_ERROR: Final = ("-Xlog:disable", "-Xlog:all=warning:stderr")
"""By default it says on standard output, where what programs print is read, that it has no use for an archive."""

_WHERE_IT_WAS_MADE_FOR: Final = ("-XX:+UnlockDiagnosticVMOptions", "-XX:ArchiveRelocationMode=0")
"""By default Java maps the archive at a random address and corrects its twenty million pointers: 0.3 s of each start,
and 70 MB that could be read from the file again. If that address is taken, it does so nevertheless."""

_PIECE_BYTES: Final = 1 << 22


def place() -> Path:
    """Where the archive of this installation's Spark is, if it was made."""
    directory = ROOT / ".cache" / "classes" if IS_CHECKOUT else _INSTALLED
    return directory / f"spark-{version('pyspark')}.jsa"


def beside(jars_dir: Path) -> Path:
    """Where the archive of a folder of jars is, if it was made."""
    return jars_dir.with_name(f"{jars_dir.name}.jsa")


def options(archive: Path) -> list[str]:
    """Options of a JVM that make it use the archive; none where there is no whole one."""
    if not is_whole(archive):
        return []
    return [f"-XX:SharedArchiveFile={archive}", *_WHERE_IT_WAS_MADE_FOR, *_ON_STANDARD_ERROR]


def is_whole(archive: Path) -> bool:
    """Whether it is what `keep` kept; 180 MB are looked through in a tenth of a second."""
    try:
        held = json.loads(_sum_of(archive).read_text(encoding="ascii"))
        return bool(archive.stat().st_size == held["bytes"] and _crc32(archive) == held["crc32"])
    except (OSError, ValueError, KeyError, TypeError):
        return False


def keep(made: Path, archive: Path) -> None:
    """Put a new archive in its place; a JVM that uses the former one keeps it.

    Raises:
        CannotTellError: none was made.
        OSError: it cannot be put there.
    """
    if not made.is_file():
        raise CannotTellError("class archive: found none made, accepted: a Java that has one of its own classes")
    archive.parent.mkdir(parents=True, exist_ok=True)
    said = json.dumps({"bytes": made.stat().st_size, "crc32": _crc32(made)})
    # Between these two steps the sum is another's, and a start goes without.
    made.replace(archive)
    atomic_files.replace(_sum_of(archive), said + "\n")


def _sum_of(archive: Path) -> Path:
    return archive.with_suffix(".json")


def _crc32(path: Path) -> int:
    found = 0
    with path.open("rb") as file:
        while piece := file.read(_PIECE_BYTES):
            found = zlib.crc32(piece, found)
    return found

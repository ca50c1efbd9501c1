"""A file system of the local disk that sets the mode of a file itself.

Hadoop's own starts a child process, `chmod`, for each file it writes where its native library is missing, as it is
beside Spark: eight of a micro-batch (docs/decisions/0025). One jar has a file system that is Hadoop's in all else,
checksums included, and asks Java to set the mode.

    the jar is     the checkpoint is written
    there          through it, where all tasks run in our own JVM
    not there      as before: with the same files, modes and contents

`make setup` fetches it; for an installed wheel `python -m group_monitor.classes` does.
"""

import sys
from pathlib import Path
from typing import Final

from streaming.base.places import IS_CHECKOUT, ROOT
from streaming.spark import kafka_jars

_CONFIGURATION: Final = "spark"
"""Of conf/ivy.xml."""
_CLASS: Final = "com.globalmentor.apache.hadoop.fs.BareLocalFileSystem"
_CLASS_PATH: Final = "spark.driver.extraClassPath"

DIRECTORY: Final = (
    ROOT / ".cache" / "jars" / _CONFIGURATION if IS_CHECKOUT else Path(sys.prefix) / "share" / "group-monitor" / "jars"
)
"""Beside the archive of classes, which is made with it on the class path."""


def settings(of_user: dict[str, str]) -> dict[str, str]:
    """Spark's settings for it; none where it is not there.

    Args:
        of_user: settings that go before ours; a class path among them is kept.
    """
    jars = sorted(map(str, DIRECTORY.glob("*.jar")))
    if not jars or "spark.hadoop.fs.file.impl" in of_user:
        return {}
    theirs = of_user.get(_CLASS_PATH)
    return {_CLASS_PATH: ":".join(jars if theirs is None else [*jars, theirs]), "spark.hadoop.fs.file.impl": _CLASS}


def fetch_if_missing() -> None:
    """Have it beside an installed wheel. Raises what `kafka_jars.fetch` does."""
    if not IS_CHECKOUT and not DIRECTORY.is_dir():
        kafka_jars.fetch(_CONFIGURATION, DIRECTORY)

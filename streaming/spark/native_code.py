"""Where Java unpacks program code of libraries, and whether it may be run from there.

The state of a query is kept by RocksDB, which is no Java: its jar holds a program library, which is unpacked into a
temporary directory and loaded. On a disk that is mounted `noexec`, as hardened machines have it for /tmp, that fails,
with each start again.
"""

import os
import re
from collections.abc import Mapping
from typing import Final

from streaming.base.errors import CannotTellError

DIRECTORY: Final = "ROCKSDB_SHAREDLIB_DIR"
"""The variable by which RocksDB unpacks elsewhere than other libraries."""

_OPTIONS: Final = "spark.driver.extraJavaOptions"
_OF_JAVA: Final = re.compile(r"-Djava\.io\.tmpdir=(\S+)")
_SIGNS: Final = re.compile(
    r"UnsatisfiedLinkError|failed to map segment from shared object|Could not initialize class org\.rocksdb"
)


def is_refused(text: str) -> bool:
    """Whether an error says that a library was not loaded."""
    return _SIGNS.search(text) is not None


def place(conf: Mapping[str, str]) -> str:
    """Where libraries are unpacked by a JVM with these settings of Spark."""
    said = _OF_JAVA.findall(conf.get(_OPTIONS, "")) or _OF_JAVA.findall(os.environ.get("JAVA_TOOL_OPTIONS", ""))
    return os.environ.get(DIRECTORY) or (said[-1] if said else "/tmp")  # noqa: S108 - Java's own default


def refusal(conf: Mapping[str, str], why: str) -> str:
    """What to say of it, in a line.

    Args:
        conf: `spark.conf` of the configuration.
        why: what was found.
    """
    return (
        f"java.io.tmpdir: found {place(conf)!r}, from which Java loads no program code ({why}), accepted: a directory "
        f"that is not mounted noexec, by the variable {DIRECTORY} or -Djava.io.tmpdir= in {_OPTIONS} of spark.conf"
    )


def refuse_noexec(conf: Mapping[str, str]) -> None:
    """See before a start whether the directory is on a disk that runs nothing.

    Raises:
        CannotTellError: it is.
    """
    try:
        flags = os.statvfs(place(conf)).f_flag
    except OSError:
        return  # Java says what is wrong with it
    if flags & os.ST_NOEXEC:
        raise CannotTellError(refusal(conf, "mounted noexec"))

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
_FOR_ANY_JAVA: Final = ("_JAVA_OPTIONS", "JDK_JAVA_OPTIONS", "JAVA_TOOL_OPTIONS")
"""Variables that any Java takes options from; the first one counts more than the command line, the others less."""
_LONGEST: Final = 300
_OF_JAVA: Final = re.compile(r"-Djava\.io\.tmpdir=(\S+)")
_SIGNS: Final = re.compile(
    r"UnsatisfiedLinkError|failed to map segment from shared object|Could not initialize class org\.rocksdb"
)


def is_refused(text: str) -> bool:
    """Whether an error says that a library was not loaded."""
    return _SIGNS.search(text) is not None


def why(text: str) -> str:
    """Of an error that says so, the words that do; it may have several languages' stacks around them."""
    found = re.search(rf"\S*(?:{_SIGNS.pattern}).*", text)
    return (found[0] if found else text.strip())[:_LONGEST]


def place(conf: Mapping[str, str]) -> str:
    """Where libraries are unpacked by a JVM with these settings of Spark."""
    if DIRECTORY in os.environ:
        return os.environ[DIRECTORY]
    options = [os.environ.get(name, "") for name in _FOR_ANY_JAVA]
    options.insert(1, conf.get(_OPTIONS, ""))
    said = next(filter(None, map(_OF_JAVA.findall, options)), ["/tmp"])  # noqa: S108 - Java's own default
    return said[-1]


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

"""Where a checkpoint is: one place, whatever its name, for Spark and for us.

Hadoop takes the path of a location as it stands, nothing in it escaped: `file:///data/a b` is the directory `a b`, and
`file:///data/a%20b` one that is called so. Spark writes a checkpoint there. But what it reads state back with escapes
the path before it is used, and so looks elsewhere. A location of plain letters is the same either way; any other is
given to Spark as a mount of Hadoop's (`viewfs`), whose name is plain, for writing and reading alike.
"""

import hashlib
import os
import re
import stat
from contextlib import suppress
from pathlib import Path
from typing import TYPE_CHECKING, Any, Final, NamedTuple

from streaming.base.errors import UsageError

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

CHECKPOINT: Final = "checkpoint"

_OF_SPARK: Final = frozenset({"metadata", ".metadata.crc", "offsets", "commits", "state", "sources"})

_FORM: Final = re.compile(r"(?:(?P<scheme>[A-Za-z][A-Za-z0-9+.-]*):)?(?P<authority>//[^/]*)?(?P<path>.*)", re.DOTALL)
"""As `org.apache.hadoop.fs.Path` takes it apart."""
_NO_PASSWORD: Final = re.compile(r"//([^:@]*@)?([^:@]*|\[[^\]]*\])(:\d*)?")
"""A user's name, a host and a port, each of which may be missing."""
_PLAIN: Final = re.compile(r"[\w\-.!~'(),;:$&+=@/]*")
"""What `java.net.URI` leaves as it is in a path, without what a pattern of names has; and letters beyond ASCII."""
_MOUNT: Final = "fs.viewfs.mounttable"
_FOR_MOUNTS: Final = (
    "spark.sql.streaming.checkpointFileManagerClass",
    "org.apache.spark.sql.execution.streaming.checkpointing.FileSystemBasedCheckpointFileManager",
)
"""What Spark has by default makes no directory where there is a mount."""


class Location(NamedTuple):
    """A checkpoint's place.

    Attributes:
        name: as Hadoop takes it, nothing escaped.
        option: which option says it, for messages.
        local: the directory, where it is on this machine whatever Hadoop is configured for; None where Hadoop has to be
            asked.
    """

    name: str
    option: str
    local: Path | None

    @classmethod
    def of(cls, directory: Path, checkpoint: str | None) -> "Location":
        """Of the options `state.dir` and `state.checkpoint_location`.

        Raises:
            UsageError: there is a colon in the path, which Hadoop takes for the end of a scheme; no absolute path after
                `file:`; a whole file system in the place of a directory of it; or a password, which is not repeated.
        """
        if checkpoint is None:
            # Spark reads a bare path as the file system's it is configured for, which is not always this machine's.
            path = (directory / CHECKPOINT).resolve()
            _refuse_colon("state.dir", str(directory), str(path))
            return cls(f"file://{path}", "state.dir", path)
        name = os.path.expanduser(checkpoint)  # noqa: PTH111 - a URL is not a path
        parts = _FORM.fullmatch(name)
        assert parts is not None  # noqa: S101 - every part may be missing
        _refuse_password(parts["scheme"], parts["authority"] or "")
        _refuse_colon("state.checkpoint_location", checkpoint, parts["path"])
        _refuse_root(checkpoint, parts["path"])
        if parts["scheme"] != "file":
            return cls(name, "state.checkpoint_location", None)
        if not parts["path"].startswith("/") or parts["authority"] not in (None, "//"):
            raise UsageError(
                f"state.checkpoint_location: found {checkpoint!r}, accepted: file:// and an absolute path, a path, "
                "or a URL of a file system Spark knows"
            )
        # As Hadoop has it: no slash twice, no dots.
        path = Path(os.path.normpath("/" + parts["path"].lstrip("/")))
        return cls(name, "state.checkpoint_location", path)

    @property
    def is_plain(self) -> bool:
        """Whether Spark reads from where it writes."""
        parts = _FORM.fullmatch(self.name)
        return parts is not None and _PLAIN.fullmatch(parts["path"]) is not None

    @property
    def for_spark(self) -> str:
        """What Spark is given; `mount` has to be called first."""
        return self.name if self.is_plain else f"viewfs://{self._mount}/{CHECKPOINT}"

    @property
    def _mount(self) -> str:
        # Hadoop looks at a mount when its name is first used, and never again.
        return f"checkpoint-{hashlib.sha256(self.name.encode('utf-8', 'surrogateescape')).hexdigest()[:16]}"

    def mount(self, spark: "SparkSession") -> None:
        """Have Spark find what `for_spark` says; nothing to do for a plain one."""
        if self.is_plain:
            return
        conf = hadoop_configuration(spark)
        spark.conf.set(*_FOR_MOUNTS)
        root = spark._jvm.org.apache.hadoop.fs.Path(self.name)  # type: ignore[union-attr]  # noqa: SLF001 - Hadoop's own classes
        qualified = root.getFileSystem(conf).makeQualified(root)
        conf.set(f"{_MOUNT}.{self._mount}.link./{CHECKPOINT}", qualified.toUri().toString())


def hidden_beside(directory: Path) -> Path | None:
    """Where earlier releases wrote the checkpoint of a directory of an odd name; None where there is nothing."""
    path = directory.resolve()
    hidden = Path(path.as_uri().removeprefix("file://"))
    return hidden if hidden != path and (hidden / CHECKPOINT).is_dir() else None


def is_checkpoint_alone(hidden: Path) -> bool:
    """Whether there is a checkpoint of Spark's, and nothing else. Raises OSError."""
    checkpoint = hidden / CHECKPOINT
    return (
        names(hidden) == {CHECKPOINT}
        and not hidden.is_symlink()
        and not checkpoint.is_symlink()
        and _OF_SPARK >= names(checkpoint) >= {"metadata"}
    )


def open_to_others(directory: Path, checkpoint: str | None) -> str | None:
    """What to say where any account of this machine may write to the state, and so decide what the monitor says.

    Its group may: Kubernetes' `fsGroup` and OpenShift's group 0 need that. Args as of `Location.of`, which has passed.
    """
    places = {"state.dir": directory}
    if checkpoint is not None and (local := Location.of(directory, checkpoint).local) is not None:
        places["state.checkpoint_location"] = local
    for option, place in places.items():
        with suppress(OSError):
            if place.stat().st_mode & stat.S_IWOTH:
                return (
                    f"{option}: found {str(place)!r}, which any account of this machine may write to, accepted: one "
                    "that only this account and its group may (chmod o-w)"
                )
    return None


def names(directory: Path) -> set[str]:
    """What is in a directory. Raises OSError."""
    return {entry.name for entry in directory.iterdir()}


def hadoop_configuration(spark: "SparkSession") -> Any:  # noqa: ANN401 - an object of Java
    """Hadoop's configuration as queries of a session begin with it."""
    return spark.sparkContext._jsc.hadoopConfiguration()  # noqa: SLF001 - the only way to it


def _refuse_password(scheme: str | None, authority: str) -> None:
    """A URL is in every message, in Spark's log and in its plans; Hadoop itself takes no password from one any more."""
    if authority and _NO_PASSWORD.fullmatch(authority) is None:
        raise UsageError(
            f"state.checkpoint_location: found a URL ({scheme}:) with a password before its host, accepted: one "
            "without; spark.conf takes secrets as references (spark.hadoop.fs.…: ${env:NAME})"
        )


def _refuse_root(found: str, path: str) -> None:
    """A checkpoint is a directory of its own: `run --rebuild` puts it aside under another name, and removes it."""
    if os.path.normpath("/" + path.lstrip("/")) == "/":
        raise UsageError(
            f"state.checkpoint_location: found {found!r}, which names no directory, accepted: one of its own, as in "
            "s3a://bucket/group-monitor"
        )


def _refuse_colon(option: str, found: str, path: str) -> None:
    if ":" in path:
        raise UsageError(
            f"{option}: found {found!r} with a colon in its path, accepted: a path without one, as Hadoop takes it for "
            "the end of a scheme"
        )

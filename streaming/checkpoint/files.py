"""The files of a checkpoint, wherever it is: on a disk of this machine, or where Hadoop's file systems reach.

Spark writes them, and lists what is in its own directories strictly; what is ours stands beside those.
"""

import shutil
from abc import abstractmethod
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Final, Protocol

from py4j.protocol import Py4JError, Py4JJavaError
from pyspark.errors import PySparkException
from pyspark.sql import SparkSession

from streaming.base import atomic_files
from streaming.base.errors import first_line
from streaming.checkpoint.location import Location, hadoop_configuration
from streaming.query.jvm_objects import borrowed

FORGOTTEN: Final = ".forgotten"
"""Ends the name of a checkpoint on its way out."""

_MISSING: Final = ("java.io.FileNotFoundException", "java.nio.file.NoSuchFileException")
_CHANGED: Final = ("RemoteFileChangedException", "Status Code: 412")
"""What S3's file system says of a file that was written again between its being opened and read, as a lease is."""
_READS: Final = 5


class _ChangedMeanwhileError(OSError):
    """A file was written again while it was read; another reading has it whole."""


class CheckpointFiles(Protocol):
    """A checkpoint's files; names are relative to it, with slashes. All methods raise OSError.

    Attributes:
        root: the directory as Hadoop writes it down: one slash after `file:`, nothing escaped.
    """

    root: str

    @abstractmethod
    def names(self, directory: str = "") -> list[str]:
        """What a directory holds, in any order; nothing if there is none."""

    @abstractmethod
    def text(self, name: str) -> str:
        """A file's text. Raises FileNotFoundError if there is none."""

    @abstractmethod
    def write(self, name: str, text: str) -> None:
        """Write a small file, with the directories it is in."""

    @abstractmethod
    def remove(self, name: str) -> None:
        """Remove a file; nothing if there is none."""

    @abstractmethod
    def forget(self) -> None:
        """Remove all of it; interrupted, it is either there or not, as far as the file system can do that."""


class LocalFiles(CheckpointFiles):
    """On a disk of this machine, without a JVM."""

    def __init__(self, directory: Path) -> None:
        self._directory = directory
        self.root = f"file:{directory}"

    def names(self, directory: str = "") -> list[str]:
        """As of the protocol."""
        path = self._directory / directory
        return [entry.name for entry in path.iterdir()] if path.is_dir() else []

    def text(self, name: str) -> str:
        """As of the protocol."""
        return (self._directory / name).read_text(encoding="utf-8")

    def write(self, name: str, text: str) -> None:
        """As of the protocol."""
        path = self._directory / name
        path.parent.mkdir(parents=True, exist_ok=True)
        # Hadoop's sum of what it was.
        path.with_name(f".{path.name}.crc").unlink(missing_ok=True)
        # Not beside it: Spark takes the name of every file in its own directories for a number.
        scratch = self._directory / f".{path.name}"
        atomic_files.replace(scratch, text)
        scratch.replace(path)

    def remove(self, name: str) -> None:
        """As of the protocol."""
        (self._directory / name).unlink(missing_ok=True)

    def forget(self) -> None:
        """As of the protocol."""
        former = self._directory.with_name(self._directory.name + FORGOTTEN)
        shutil.rmtree(former, ignore_errors=True)
        if self._directory.exists():
            self._directory.replace(former)
        shutil.rmtree(former, ignore_errors=True)


class HadoopFiles(CheckpointFiles):
    """Where Hadoop's file system for the location says.

    Raises:
        OSError: there is none, or it cannot be reached.
    """

    def __init__(self, spark: SparkSession, location: Location) -> None:
        assert spark._jvm is not None  # noqa: S101, SLF001 - there is one
        self._jvm: Any = spark._jvm  # noqa: SLF001 - Hadoop's own classes
        with _as_os_errors():
            path = self._jvm.org.apache.hadoop.fs.Path(location.name)
            self._system = path.getFileSystem(hadoop_configuration(spark))
            self.root = str(self._system.makeQualified(path).toString()).rstrip("/")

    def names(self, directory: str = "") -> list[str]:
        """As of the protocol."""
        try:
            with _as_os_errors(), borrowed(self._path(directory)) as path:
                return [found.getPath().getName() for found in self._system.listStatus(path)]
        except FileNotFoundError:
            return []

    def text(self, name: str) -> str:
        """As of the protocol."""
        for _ in range(_READS - 1):
            with suppress(_ChangedMeanwhileError):
                return self._read(name)
        return self._read(name)

    def _read(self, name: str) -> str:
        with _as_os_errors(), borrowed(self._path(name)) as path, borrowed(self._system.open(path)) as stream:
            try:
                return str(self._jvm.org.apache.commons.io.IOUtils.toString(stream, "UTF-8"))
            finally:
                stream.close()

    def write(self, name: str, text: str) -> None:
        """As of the protocol. Who reads meanwhile may find it empty, where the file system has no better way."""
        with _as_os_errors(), borrowed(self._path(name)) as path, borrowed(self._system.create(path, True)) as stream:
            try:
                stream.write(bytearray(text.encode()))
            finally:
                stream.close()

    def remove(self, name: str) -> None:
        """As of the protocol."""
        with _as_os_errors(), borrowed(self._path(name)) as path:
            self._system.delete(path, False)

    def forget(self) -> None:
        """As of the protocol."""
        with _as_os_errors():
            root, former = (self._jvm.org.apache.hadoop.fs.Path(self.root + of) for of in ("", FORGOTTEN))
            self._system.delete(former, True)
            if self._system.exists(root) and not self._system.rename(root, former):
                raise OSError(f"{self.root} cannot be renamed")
            self._system.delete(former, True)

    def _path(self, name: str) -> Any:  # noqa: ANN401 - an object of Java
        return self._jvm.org.apache.hadoop.fs.Path(f"{self.root}/{name}" if name else self.root)


@contextmanager
def _as_os_errors() -> Iterator[None]:
    """Errors of Hadoop as Python's of files; those of a JVM that is gone stay what they are."""
    try:
        yield
    except Py4JJavaError as error:
        java = error.java_exception
        reason = first_line(Exception(str(java.toString())))
        if java.getClass().getName() in _MISSING:
            raise FileNotFoundError(reason) from error
        if any(sign in reason for sign in _CHANGED):
            raise _ChangedMeanwhileError(reason) from error
        raise OSError(reason) from error
    except (Py4JError, PySparkException) as error:
        raise OSError(first_line(error)) from error

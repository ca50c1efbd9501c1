"""A checkpoint's files by Hadoop: what its errors are here. Reading and writing is tried with a real JVM elsewhere."""

from pathlib import Path
from types import SimpleNamespace
from typing import Any, cast

import pytest
from py4j.protocol import Py4JError, Py4JJavaError

from streaming.base.errors import CannotTellError, UsageError
from streaming.checkpoint.contents import Mark
from streaming.checkpoint.files import HadoopFiles
from streaming.checkpoint.location import Location
from streaming.checkpoint.state_directory import StateDirectory
from tests.streaming.checkpoint.test_state_of_a_run import IDENTITY

PLACE = "hdfs://name:8020/state"


def java_error(name: str, text: str = "it is so") -> Py4JJavaError:
    """As py4j raises it; without a gateway to ask for the stack."""

    class Raised(Py4JJavaError):  # type: ignore[misc]  # py4j has no types
        def __init__(self) -> None:
            self.java_exception = SimpleNamespace(
                toString=lambda: f"{name}: {text}\n\tat x", getClass=lambda: SimpleNamespace(getName=lambda: name)
            )

        def __str__(self) -> str:
            return name

    return Raised()


class Lent(SimpleNamespace):
    """An object of Java, as py4j shows it."""

    def _detach(self) -> None: ...


class FileSystem(Lent):
    """One of Hadoop's that answers every question with an error."""

    def __init__(self, error: Exception) -> None:
        super().__init__()
        self.error = error

    def makeQualified(self, path: Lent) -> Lent:  # noqa: N802 - Java's
        return path

    def fail(self, *_: object) -> None:
        raise self.error

    listStatus = open = create = delete = exists = fail  # noqa: N815 - as above


def spark_of(system: FileSystem) -> Any:
    """A session on whose JVM there is this file system."""

    def path(name: str) -> Lent:
        return Lent(toString=lambda: name, getFileSystem=lambda _: system)

    jvm = SimpleNamespace(org=SimpleNamespace(apache=SimpleNamespace(hadoop=SimpleNamespace(fs=SimpleNamespace()))))
    jvm.org.apache.hadoop.fs.Path = path
    context = SimpleNamespace(_jsc=SimpleNamespace(hadoopConfiguration=lambda: None))
    return SimpleNamespace(_jvm=jvm, sparkContext=context)


def files_with(error: Exception) -> HadoopFiles:
    return HadoopFiles(cast("Any", spark_of(FileSystem(error))), Location.of(Path("state"), PLACE))


@pytest.mark.parametrize("name", ["java.io.FileNotFoundException", "java.nio.file.NoSuchFileException"])
def test_what_is_missing_is_missing(name: str) -> None:
    """A directory that is not there holds nothing, as before the first micro-batch; a file that is not is an error."""
    files = files_with(java_error(name))

    assert [] == files.names("commits")
    with pytest.raises(FileNotFoundError, match=f"^{name}: it is so$"):
        files.text("metadata")


@pytest.mark.parametrize("error", [java_error("java.net.ConnectException"), Py4JError("the JVM does not say")])
def test_a_file_system_that_is_away_is_not_an_empty_one(error: Exception) -> None:
    """Or a checkpoint would be taken for none, and the board be filled with nothing."""
    files = files_with(error)

    for ask in (lambda: files.names("commits"), lambda: files.text("metadata"), files.forget):
        with pytest.raises(OSError, match=r"ConnectException|does not say") as raised:
            ask()
        assert not isinstance(raised.value, FileNotFoundError)


@pytest.mark.parametrize(
    "error",
    [
        java_error("org.apache.hadoop.fs.s3a.RemoteFileChangedException"),
        java_error(
            "java.io.IOException", "a pre-condition did not hold (Service: S3, Status Code: 412, Request ID: X)"
        ),
    ],
)
def test_file_that_is_written_again_while_it_is_read_is_read_again(error: Exception) -> None:
    """A lease is, every three seconds; S3 has no old file that could be read to its end."""
    files, asked = files_with(error), []

    def changed_once(path: Lent) -> Lent:
        asked.append(path)
        if len(asked) == 1:
            raise error
        return Lent(close=lambda: None)

    files._system.open = changed_once
    files._jvm.org.apache.commons = SimpleNamespace(io=SimpleNamespace(IOUtils=Lent(toString=lambda *_: "held")))

    assert ("held", 2) == (files.text("lease.json"), len(asked))


def test_file_that_changes_without_end_is_an_error() -> None:
    """Reading it is given up, in the words of the file system."""
    files = files_with(java_error("org.apache.hadoop.fs.s3a.RemoteFileChangedException"))

    with pytest.raises(OSError, match="RemoteFileChangedException: it is so"):
        files.text("lease.json")


def reached(directory: Path, error: Exception) -> StateDirectory:
    state = StateDirectory(directory, PLACE, reads_uncommitted=True, clock_ms=lambda: 0)
    state.claim(IDENTITY, rebuild=False)
    state.reach(spark_of(FileSystem(error)))
    return state


def test_checkpoint_that_is_not_there_yet_is_begun(tmp_path: Path) -> None:
    """A first start, on a file system of other machines."""
    state = reached(tmp_path, java_error("java.io.FileNotFoundException"))
    state.examine()

    assert (Mark(), False) == (state.mark(), state.holds_state())


def test_checkpoint_whose_file_system_is_away_is_not_called_damaged(tmp_path: Path) -> None:
    """It may be back soon: status 3, and no word of `--rebuild`, which would forget what is whole."""
    state = reached(tmp_path, java_error("java.net.ConnectException"))

    with pytest.raises(
        CannotTellError, match=f"^state.checkpoint_location: found '{PLACE}', which cannot be"
    ) as raised:
        state.examine()
    assert "--rebuild" not in str(raised.value)


def test_file_system_that_hadoop_does_not_know_is_refused(tmp_path: Path) -> None:
    """By the option that names it."""
    error = java_error("org.apache.hadoop.fs.UnsupportedFileSystemException", 'No FileSystem for scheme "nil"')
    state = StateDirectory(tmp_path, "nil://x/y", reads_uncommitted=True, clock_ms=lambda: 0)
    spark = spark_of(FileSystem(error))
    path = spark._jvm.org.apache.hadoop.fs.Path

    def unknown(name: str) -> Lent:
        return Lent(toString=path(name).toString, getFileSystem=FileSystem(error).fail)

    spark._jvm.org.apache.hadoop.fs.Path = unknown
    with pytest.raises(UsageError, match=r"^state.checkpoint_location: found 'nil://x/y', which Hadoop does not know"):
        state.reach(spark)

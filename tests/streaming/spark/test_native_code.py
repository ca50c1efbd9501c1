"""Where program code of libraries is unpacked, and a disk that runs none."""

import os
from types import SimpleNamespace
from typing import Any

import pytest

from streaming.base.errors import CannotTellError
from streaming.spark import native_code

OPTIONS = "spark.driver.extraJavaOptions"
JAVA_S_OWN = "/tmp"  # noqa: S108 - Java's default, in which nothing is made here


@pytest.fixture(autouse=True)
def _plain(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in (native_code.DIRECTORY, "JAVA_TOOL_OPTIONS", "JDK_JAVA_OPTIONS", "_JAVA_OPTIONS"):
        monkeypatch.delenv(name, raising=False)


@pytest.mark.parametrize(
    ("conf", "environment", "expected"),
    [
        ({}, {}, JAVA_S_OWN),
        ({OPTIONS: "-Xss4m -Djava.io.tmpdir=/scratch"}, {}, "/scratch"),
        ({}, {"JAVA_TOOL_OPTIONS": "-Djava.io.tmpdir=/scratch"}, "/scratch"),
        ({OPTIONS: "-Djava.io.tmpdir=/other"}, {"_JAVA_OPTIONS": "-Djava.io.tmpdir=/scratch"}, "/scratch"),
        (
            {OPTIONS: "-Xss4m"},
            {"JDK_JAVA_OPTIONS": "-Djava.io.tmpdir=/scratch", "JAVA_TOOL_OPTIONS": "-Djava.io.tmpdir=/other"},
            "/scratch",
        ),
        ({OPTIONS: "-Djava.io.tmpdir=/scratch"}, {native_code.DIRECTORY: "/lib/here"}, "/lib/here"),
    ],
)
def test_the_directory_is_java_s(
    conf: dict[str, str], environment: dict[str, str], expected: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Java's own default, unless a setting or a variable says otherwise; RocksDB's own variable counts first."""
    for name, value in environment.items():
        monkeypatch.setenv(name, value)

    assert expected == native_code.place(conf)


@pytest.mark.parametrize(("flags", "is_refused"), [(os.ST_NOEXEC | os.ST_NOSUID, True), (os.ST_NOSUID, False)])
def test_a_disk_that_runs_nothing_is_refused_before_the_start(
    flags: int, is_refused: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    """In a line with what helps; exit status 3, as no option of the configuration is at fault."""
    monkeypatch.setattr(os, "statvfs", lambda _: SimpleNamespace(f_flag=flags))
    if not is_refused:
        native_code.refuse_noexec({})
        return

    with pytest.raises(CannotTellError, match=r"^java\.io\.tmpdir: found '/tmp', .*noexec.*accepted: .*ROCKSDB_"):
        native_code.refuse_noexec({})


def test_a_directory_that_is_not_there_is_java_s_to_refuse(monkeypatch: pytest.MonkeyPatch) -> None:
    """What cannot be looked at is not blamed."""

    def gone(_: str) -> Any:
        raise FileNotFoundError

    monkeypatch.setattr(os, "statvfs", gone)

    native_code.refuse_noexec({})


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("java.lang.UnsatisfiedLinkError: /tmp/librocksdbjni1.so: failed to map segment from shared object", True),
        ("java.lang.NoClassDefFoundError: Could not initialize class org.rocksdb.Options", True),
        ("java.lang.NoClassDefFoundError: Could not initialize class org.apache.Other", False),
        ("java.io.IOException: No space left on device", False),
    ],
)
def test_it_is_known_by_what_java_says(text: str, expected: bool) -> None:
    """The first time, and each time after it."""
    assert expected == native_code.is_refused(text)


def test_why_is_what_says_so() -> None:
    """Whichever language's stack comes first, and whatever failed for it."""
    text = (
        "Traceback (most recent call last):\n  File x\npy4j.protocol.Py4JJavaError: An error occurred.\n"
        "Caused by: Job aborted: java.lang.UnsatisfiedLinkError: /x/lib.so: failed to map segment\n\tat a.b\n"
    )

    assert "java.lang.UnsatisfiedLinkError: /x/lib.so: failed to map segment" == native_code.why(text)

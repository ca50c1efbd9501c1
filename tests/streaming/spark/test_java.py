"""Which Java is taken, and what is said where none can be."""

import locale
import os
from pathlib import Path

import pytest

from streaming.base.errors import UsageError
from streaming.spark import cds_archive, java


def fake_java(home: Path, says: str) -> Path:
    """A `java` that prints one line on standard error, as the real one does."""
    program = home / "bin" / "java"
    program.parent.mkdir(parents=True)
    program.write_text(f"#!/bin/sh\necho '{says}' >&2\n", "utf-8")
    program.chmod(0o755)
    return program


@pytest.mark.parametrize(
    ("says", "version"),
    [
        ('openjdk version "17.0.15" 2025-04-15', 17),
        ('openjdk version "21" 2023-09-19', 21),
        ('openjdk version "21-ea" 2023-09-19', 21),
        ('java version "1.8.0_402"', 8),
        ('Picked up JAVA_TOOL_OPTIONS: -Xmx1g\nopenjdk version "17.0.1"', 17),
        ("no such thing", None),
    ],
)
def test_feature_version(says: str, version: int | None) -> None:
    """The feature version stands first, until Java 8 second; other lines do not matter."""
    assert version == java.feature_version(says)


def test_java_home_comes_before_the_path(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where JAVA_HOME is set, its java is taken, whatever the path holds."""
    program = fake_java(tmp_path / "home", 'openjdk version "21.0.2"')
    other = fake_java(tmp_path / "path", 'openjdk version "17.0.2"')
    monkeypatch.setenv("JAVA_HOME", str(tmp_path / "home"))
    monkeypatch.setenv("PATH", f"{other.parent}{os.pathsep}{os.environ['PATH']}")

    assert program == java.find_java()


@pytest.mark.parametrize("says", ['openjdk version "11.0.2"', 'openjdk version "25"', "something else"])
def test_another_version_is_refused_with_the_remedy(says: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """A java of another version is an error that names where it was found and what is accepted, in one line."""
    fake_java(tmp_path, says)
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(UsageError, match=r"^JAVA_HOME: found .*bin/java.*, accepted: Java 17 or 21; install"):
        java.find_java()


def test_a_java_that_does_not_start_is_quoted(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """By what it says is wrong, as of a variable that holds an option it does not know; not by the variable."""
    fake_java(tmp_path, "Picked up JAVA_TOOL_OPTIONS: -Xbogus\nUnrecognized option: -Xbogus\nError: no machine")
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    with pytest.raises(UsageError, match="a java that does not say its version, but 'Unrecognized option: -Xbogus' "):
        java.find_java()


def test_no_java_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Without any java the error says that there is none on the path."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path))

    with pytest.raises(UsageError, match=r"^PATH: found no java, accepted: Java 17 or 21; install"):
        java.find_java()


def test_check_ends_with_the_status_of_usage_errors(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """The check that set-up runs prints one line and ends with status 2."""
    monkeypatch.setenv("JAVA_HOME", str(tmp_path))

    assert 2 == java.main()
    assert 1 == capsys.readouterr().err.count("\n")


@pytest.mark.parametrize(
    ("value", "written"),
    [
        ("a b = c", "a b = c"),
        (" a", r"\ a"),
        ("a\nb\tc\rd\\e", r"a\nb\tc\rd\\e"),
        ("/wörk/群", r"/w\u00f6rk/\u7fa4"),
        ("🦆", r"\ud83e\udd86"),
    ],
)
def test_settings_are_the_same_whatever_java_takes_a_file_for(value: str, written: str) -> None:
    """Spark reads properties as UTF-8, Kafka as Latin-1: they are in ASCII."""
    assert f"log.dirs={written}\nb=c\n" == java.properties({"log.dirs": value, "b": "c"})


@pytest.mark.parametrize(
    ("encoding", "expected"), [("ANSI_X3.4-1968", {"LC_ALL": "C.UTF-8"}), ("utf-8", {}), ("UTF-8", {})]
)
def test_a_jvm_reads_names_as_utf_8(monkeypatch: pytest.MonkeyPatch, encoding: str, expected: dict[str, str]) -> None:
    """In a locale without it, Java would find no directory with letters beyond ASCII."""
    monkeypatch.setattr(locale, "getencoding", lambda: encoding)

    assert expected == java.names_in_utf8()


def test_a_folder_without_jars_is_refused(tmp_path: Path) -> None:
    """A class path that is empty is reported before a JVM fails over it."""
    with pytest.raises(UsageError, match=r"^jars: found none in .*make setup"):
        java.command(tmp_path, "kafka.Kafka")


def test_classes_come_from_the_archive_beside_the_jars(tmp_path: Path) -> None:
    """Where one was made, every program of these jars takes it; where not, or it is damaged, it starts without."""
    jars = tmp_path / "kafka-1.0"
    jars.mkdir()
    (jars / "any.jar").touch()
    made, archive = tmp_path / "made", tmp_path / "kafka-1.0.jsa"
    made.write_bytes(b"classes")
    without = java.command(jars, "kafka.Kafka")
    cds_archive.keep(made, archive)

    found = java.command(jars, "kafka.Kafka")

    assert cds_archive.options(archive) == [option for option in found if option not in without]
    archive.write_bytes(b"classed")
    assert without == java.command(jars, "kafka.Kafka")

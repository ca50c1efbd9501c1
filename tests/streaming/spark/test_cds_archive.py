"""An archive of classes is used where it is whole, and missed nowhere."""

import os
import shlex
import subprocess
from collections.abc import Sequence
from pathlib import Path
from unittest.mock import MagicMock

import pyspark
import pytest
from pyspark.sql import SparkSession

from streaming.base.errors import CannotTellError
from streaming.config.loading import Config
from streaming.spark import callbacks, cds_archive, java, session

(IVY,) = (Path(pyspark.__file__).parent / "jars").glob("ivy-*.jar")
PROGRAM = "org.apache.ivy.Main"
"""A small program of one of Spark's jars: `-version` loads a few hundred classes, and ends."""


def ran(jar: Path, options: Sequence[str]) -> str:
    """What a JVM says of the classes it loads, once the program has ended as it should."""
    done = subprocess.run(  # noqa: S603 - no shell takes part
        [str(java.find_java()), *options, "-Xlog:class+load", "-cp", str(jar), PROGRAM, "-version"],
        capture_output=True,
        text=True,
        timeout=120,
        check=True,
    )
    assert "Apache Ivy" in done.stdout
    return done.stdout


def is_shared(said: str) -> bool:
    """Whether the program's classes came out of an archive."""
    (line,) = [line for line in said.splitlines() if f" {PROGRAM} source: " in line]
    return "shared objects file" in line


@pytest.fixture
def archive(tmp_path: Path) -> Path:
    """One that a JVM made of a copy of the jar."""
    jar = tmp_path / "program.jar"
    jar.write_bytes(IVY.read_bytes())
    made, kept = tmp_path / "made.jsa", tmp_path / "kept" / "program.jsa"
    ran(jar, [f"-XX:ArchiveClassesAtExit={made}"])
    cds_archive.keep(made, kept)
    return kept


def test_classes_come_from_a_whole_archive_of_these_jars(archive: Path, tmp_path: Path) -> None:
    """A JVM takes its classes from it, unless a jar is another than it was: then it starts all the same."""
    jar, options = tmp_path / "program.jar", cds_archive.options(archive)

    assert f"-XX:SharedArchiveFile={archive}" == options[0]
    assert is_shared(ran(jar, options))

    os.utime(jar, (1, 1))
    assert not is_shared(ran(jar, options))


@pytest.mark.parametrize("damage", ["gone", "cut short", "one bit", "no sum", "sum of nothing"])
def test_a_damaged_archive_is_passed_by(tmp_path: Path, damage: str) -> None:
    """A JVM would map whatever is in it; so it is not given one that is not what was kept."""
    archive, made = tmp_path / "spark.jsa", tmp_path / "made"
    made.write_bytes(bytes(range(256)) * 100)
    cds_archive.keep(made, archive)
    assert cds_archive.is_whole(archive)

    held = archive.read_bytes()
    match damage:
        case "gone":
            archive.unlink()
        case "cut short":
            archive.write_bytes(held[:-1])
        case "one bit":
            archive.write_bytes(held[:1_000] + bytes([held[1_000] ^ 1]) + held[1_001:])
        case "no sum":
            archive.with_suffix(".json").unlink()
        case _:
            archive.with_suffix(".json").write_text("[]")

    assert [] == cds_archive.options(archive)


def test_a_start_is_reported_of_the_archive(archive: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Spark's JVM gets the option where there is an archive, and starts with the others alone where there is none."""
    monkeypatch.setattr(cds_archive, "place", lambda: archive)
    reported = session.java_options()
    monkeypatch.setattr(cds_archive, "place", lambda: archive.with_name("none.jsa"))

    assert [*session.java_options(), *cds_archive.options(archive)] == reported


def test_an_option_with_a_blank_is_one(archive: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The checkout may be in a directory with blanks: Spark takes its text of options apart as a shell does."""
    place = archive.with_name("of a b") / "spark.jsa"
    cds_archive.keep(archive, place)
    monkeypatch.setattr(cds_archive, "place", lambda: place)
    builder = MagicMock()
    builder.appName.return_value = builder.master.return_value = builder.config.return_value = builder
    builder.getOrCreate.side_effect = RuntimeError
    monkeypatch.setattr(SparkSession, "builder", builder)
    monkeypatch.setattr(callbacks, "choose_mode", lambda: None)
    monkeypatch.setattr(callbacks, "close_when_interrupted", lambda: None)

    with pytest.raises(CannotTellError):
        session.start(Config.model_validate({"state": {"dir": str(tmp_path)}}), tmp_path / "spark.log")
    settings = dict(call.args for call in builder.config.call_args_list)
    assert f"-XX:SharedArchiveFile={place}" in shlex.split(settings["spark.driver.extraJavaOptions"])

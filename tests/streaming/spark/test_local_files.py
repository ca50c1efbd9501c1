"""When the checkpoint goes through the file system that needs no child processes."""

from pathlib import Path

import pytest

from streaming.spark import local_files

CLASS_PATH = "spark.driver.extraClassPath"
FILE_SYSTEM = "spark.hadoop.fs.file.impl"


@pytest.fixture
def jar(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> str:
    """One that was fetched."""
    monkeypatch.setattr(local_files, "DIRECTORY", tmp_path)
    made = tmp_path / "file-system-1.jar"
    made.touch()
    return str(made)


def test_without_its_jar_hadoop_s_own_is_left_as_it_is(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """An installed wheel runs before anything was fetched."""
    monkeypatch.setattr(local_files, "DIRECTORY", tmp_path / "none")

    assert {} == local_files.settings({CLASS_PATH: "theirs.jar"})


def test_its_jar_is_put_on_the_class_path(jar: str) -> None:
    """And its class named for files of the local disk."""
    found = local_files.settings({})

    assert {CLASS_PATH, FILE_SYSTEM} == found.keys()
    assert jar == found[CLASS_PATH]


def test_a_class_path_of_the_user_is_kept(jar: str) -> None:
    """It would be replaced otherwise."""
    assert f"{jar}:theirs.jar" == local_files.settings({CLASS_PATH: "theirs.jar"})[CLASS_PATH]


@pytest.mark.usefixtures("jar")
def test_a_file_system_of_the_user_s_choice_is_theirs() -> None:
    """Who names one has a reason."""
    assert {} == local_files.settings({FILE_SYSTEM: "org.example.Theirs"})


def test_a_checkout_fetches_nothing_here(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """`make setup` does; a wheel fetches the jar once."""
    fetched: list[tuple[str, Path]] = []
    monkeypatch.setattr("streaming.spark.kafka_jars.fetch", lambda *what: fetched.append(what))
    monkeypatch.setattr(local_files, "DIRECTORY", tmp_path / "jars")
    local_files.fetch_if_missing()
    assert [] == fetched
    monkeypatch.setattr(local_files, "IS_CHECKOUT", False)
    local_files.fetch_if_missing()
    assert [("spark", tmp_path / "jars")] == fetched
    (tmp_path / "jars").mkdir()
    local_files.fetch_if_missing()
    assert 1 == len(fetched)

"""Where a checkpoint is: what Hadoop makes of the options, and what is refused."""

import re
from pathlib import Path

import pytest

from streaming.base.errors import UsageError
from streaming.checkpoint.location import Location
from streaming.config.loading import Config

PLAIN = ("state", "ä-日本", "a+b&c=d;e,f", "it's-(one)~!", "$x@y")
ODD = (
    "a b",
    "a%20b",
    "100%",
    "#1",
    "[1]",
    "{x,y}",
    "what?",
    "all*",
    'say "so"',
    "a\\b",
    "a|b",
    "<x>",
    "^",
    "`",
    "tab\t",
    "→",
)


@pytest.mark.parametrize("name", PLAIN)
def test_plain_name_is_given_to_spark_as_it_is(tmp_path: Path, name: str) -> None:
    """Java's URI leaves these letters alone, so Spark reads from where it writes."""
    location = Location.of(tmp_path / name, None)

    assert (f"file://{tmp_path}/{name}/checkpoint",) * 2 == (location.name, location.for_spark)
    assert tmp_path / name / "checkpoint" == location.local


@pytest.mark.parametrize("name", ODD)
def test_odd_name_stays_what_it_is_behind_a_plain_one(tmp_path: Path, name: str) -> None:
    """Nothing in it is escaped; Spark is given a name that is the same at every start, and another one's for none."""
    location, again = (Location.of(tmp_path / name, None) for _ in range(2))

    assert tmp_path / name / "checkpoint" == location.local
    assert re.fullmatch("viewfs://checkpoint-[0-9a-f]{16}/checkpoint", location.for_spark)
    assert again.for_spark == location.for_spark
    assert Location.of(tmp_path / f"{name}2", None).for_spark != location.for_spark


@pytest.mark.parametrize(
    ("option", "local"),
    [
        ("file:/a/b", "/a/b"),
        ("file:///a/b", "/a/b"),
        ("file:///a/b/", "/a/b"),
        ("file:////a//b", "/a/b"),
        ("file:///a%20b", "/a%20b"),
        ("file:///a b#c", "/a b#c"),
        ("/a/b", None),
        ("a/b", None),
        ("hdfs:///a", None),
        ("hdfs://name:8020/a b", None),
        ("s3a://bucket/a", None),
        ("s3a://bucket/a/", None),
        ("hdfs://name@host:8020/a", None),
        ("hdfs://[::1]:8020/a", None),
        ("abfs://container@account.dfs.core.windows.net/a", None),
    ],
)
def test_location_is_local_where_hadoop_need_not_be_asked(option: str, local: str | None) -> None:
    """A bare path is of the file system that Hadoop is configured for; no escape means anything."""
    location = Location.of(Path("state"), option)

    assert option == location.name
    assert (None if local is None else Path(local)) == location.local


@pytest.mark.parametrize("option", ["file:a", "file://host/a"])
def test_file_without_an_absolute_path_is_refused(option: str) -> None:
    """Hadoop knows no such place."""
    with pytest.raises(UsageError, match=f"^state.checkpoint_location: found '{option}', accepted: file://"):
        Location.of(Path("state"), option)


@pytest.mark.parametrize(
    "option",
    [
        "/",
        "file:",
        "file:///",
        "file:/a/..",
        "hdfs://name:8020",
        "hdfs://name:8020/",
        "s3a://bucket",
        "s3a://bucket//.",
    ],
)
def test_whole_file_system_is_refused(option: str) -> None:
    """`--rebuild` gives a checkpoint another name before it removes it, and what is a bucket's root has none."""
    with pytest.raises(UsageError, match=f"^state.checkpoint_location: found '{option}', which names no directory"):
        Location.of(Path("state"), option)


@pytest.mark.parametrize(
    "option",
    [
        "s3a://AKIA:hush@bucket/a",
        "s3a://AKIA:hu/sh@bucket/a",
        "s3a://:hush@bucket/a",
        "hdfs://me:hush@host:8020/a",
        "hdfs://me:hush@host:8020",
    ],
)
def test_password_in_a_url_is_refused_and_not_repeated(option: str) -> None:
    """It would stand in messages, in Spark's log and in its plans."""
    with pytest.raises(
        UsageError, match=r"^state.checkpoint_location: found a URL \((s3a|hdfs):\) with a password"
    ) as refused:
        Location.of(Path("state"), option)
    assert "hu" not in str(refused.value)


@pytest.mark.parametrize("option", [None, "/a:b/c", "file:/a:b", "hdfs://name:8020/a:b", "s3a://bucket/12:30"])
def test_colon_in_a_path_is_refused(tmp_path: Path, option: str | None) -> None:
    """In one line that names the option; that of a scheme, or of a port, is none."""
    wrong = "state.dir" if option is None else "state.checkpoint_location"
    with pytest.raises(UsageError, match=f"^{wrong}: found '.*:.*' with a colon in its path, accepted: a path without"):
        Location.of(tmp_path / "a:b", option)


def test_link_that_leads_to_a_colon_is_refused(tmp_path: Path) -> None:
    """What counts is the directory itself."""
    (tmp_path / "a:b").mkdir()
    (tmp_path / "link").symlink_to("a:b")

    with pytest.raises(UsageError, match=r"state\.dir: found .*link' with a colon"):
        Location.of(tmp_path / "link", None)


def test_tilde_is_the_home_directory(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """In each option that is a place."""
    monkeypatch.setenv("HOME", str(tmp_path))
    config = Config.model_validate(
        {"state": {"dir": "~/a b", "checkpoint_location": "~/c"}, "history": {"dir": "~/past"}}
    )

    assert tmp_path / "a b" == config.state.dir
    assert tmp_path / "past" == config.history_dir
    assert str(tmp_path / "c") == Location.of(config.state.dir, config.state.checkpoint_location).name

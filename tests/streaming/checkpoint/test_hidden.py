"""What earlier releases wrote beside a state directory of an odd name: used or removed only if it is ours alone."""

import subprocess
import sys
from dataclasses import replace
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from streaming.base.errors import UsageError
from streaming.checkpoint import hidden
from streaming.checkpoint.lease import LEASE_FILE
from streaming.checkpoint.location import CHECKPOINT
from streaming.checkpoint.lock import JVM_LOCK
from streaming.checkpoint.resume_file import Resume, save
from streaming.checkpoint.state_directory import StateDirectory
from tests.streaming.checkpoint.test_state_of_a_run import IDENTITY, NOW_MS, Clock, opened, spark_finishes

NAMES = {"a b": "a%20b", "100%": "100%25", "[1]#ü": "%5B1%5D%23%C3%BC"}


def left(directory: Path, *, query_id: str = "0b5e") -> Path:
    """What a former release leaves: its files in the directory, the checkpoint in the hidden one, which is returned."""
    StateDirectory(directory, None, reads_uncommitted=True, clock_ms=lambda: NOW_MS).claim(IDENTITY, rebuild=False)
    save(directory, Resume(read_ms=NOW_MS, seen_ms=NOW_MS, has_batches=True))
    beside = Path(directory.as_uri().removeprefix("file://"))
    spark_finishes(beside, 7, query_id=query_id)
    return beside


def names(directory: Path) -> list[str]:
    return sorted(path.name for path in directory.iterdir())


@pytest.mark.parametrize(("name", "written"), NAMES.items())
def test_is_moved_to_where_it_belongs_and_gone_on_from(tmp_path: Path, name: str, written: str) -> None:
    """It is named, and nothing of it stays where it was."""
    directory = tmp_path / name
    beside = left(directory)
    with capture_logs() as lines:
        state = opened(directory, Clock())

    assert tmp_path / written == beside
    assert ({0: 7}, {0: 7}) == state.positions()
    assert [name] == names(tmp_path)
    assert [("checkpoint_found", str(beside / CHECKPOINT))] == [(line["event"], line["found"]) for line in lines]


def test_it_takes_the_place_of_a_directory_with_a_lease_alone(tmp_path: Path) -> None:
    """As a monitor opens it: it has the lease first, and keeps it."""
    left(tmp_path / "a b")
    state = StateDirectory(tmp_path / "a b", None, reads_uncommitted=True, clock_ms=lambda: NOW_MS)
    state.claim(IDENTITY, rebuild=False)
    state.hold("id")
    state.examine()

    assert ({0: 7}, {0: 7}) == state.positions()
    assert (tmp_path / "a b" / CHECKPOINT / LEASE_FILE).exists()
    state.let_go()
    assert not (tmp_path / "a b" / CHECKPOINT / LEASE_FILE).exists()


def test_is_removed_to_rebuild(tmp_path: Path) -> None:
    """With the one that is where it belongs, if there are both."""
    beside = left(tmp_path / "a b")
    spark_finishes(tmp_path / "a b", 9)
    with capture_logs() as lines:
        state = opened(tmp_path / "a b", Clock(), rebuild=True)

    assert (["checkpoint_removed"], False, False) == (
        [line["event"] for line in lines],
        state.holds_state(),
        beside.exists(),
    )


def test_of_two_no_one_can_tell_which_is_right(tmp_path: Path) -> None:
    """As a release went back and came again: both stay, and one line says what to do."""
    beside = left(tmp_path / "a b")
    spark_finishes(tmp_path / "a b", 9)

    with pytest.raises(UsageError, match=f"{beside}/checkpoint' .it has one of its own as well.* or run --rebuild"):
        opened(tmp_path / "a b", Clock())
    assert [CHECKPOINT] == names(beside)


@pytest.mark.parametrize("rebuild", [False, True])
def test_of_which_nothing_says_whose_it_is_is_neither_used_nor_removed(tmp_path: Path, rebuild: bool) -> None:
    """`monitor.json` was deleted, or never was: it may be anybody's."""
    beside = left(tmp_path / "a b")
    (tmp_path / "a b" / "monitor.json").unlink()

    with pytest.raises(UsageError, match=f"^state.dir: found .*{beside}/checkpoint' .nothing says whose.*moved away"):
        opened(tmp_path / "a b", Clock(), rebuild=rebuild)
    assert [CHECKPOINT] == names(beside)


def test_of_another_topic_is_not_removed(tmp_path: Path) -> None:
    """The directory may be rebuilt for a topic that was made anew; what is hidden is the former one's."""
    beside = left(tmp_path / "a b")

    with pytest.raises(UsageError, match="another topic's"):
        opened(tmp_path / "a b", Clock(), rebuild=True, identity=replace(IDENTITY, topic_id="u"))
    assert [CHECKPOINT] == names(beside)


@pytest.mark.parametrize(
    "more", ["monitor.json", "checkpoint/identity.json", "checkpoint/lease.json", "checkpoint/x", "lock"]
)
@pytest.mark.parametrize("rebuild", [False, True])
def test_directory_of_its_own_is_let_be(tmp_path: Path, more: str, rebuild: bool) -> None:
    """Somebody called it so: a monitor's whose own checkpoint is where it belongs goes on beside it."""
    directory = tmp_path / "a b"
    beside = left(directory)
    (beside / more).touch()
    spark_finishes(directory, 9)
    state = opened(directory, Clock(), rebuild=rebuild)

    assert rebuild != state.holds_state()
    assert (beside / more).exists()
    assert (beside / CHECKPOINT / "commits" / "0").exists()


def test_checkpoint_that_may_be_among_other_things_is_named(tmp_path: Path) -> None:
    """Where our own is gone: what to do with it is for people to say."""
    beside = left(tmp_path / "a b")
    (beside / "notes").touch()

    with pytest.raises(UsageError, match=f"{beside}/checkpoint' .other things as well"):
        opened(tmp_path / "a b", Clock())


def test_damaged_one_is_named(tmp_path: Path) -> None:
    """It cannot be seen whose positions these are."""
    beside = left(tmp_path / "a b")
    (beside / CHECKPOINT / "offsets" / "0").write_text("v1")

    with pytest.raises(UsageError, match=f"{beside}/checkpoint' .damaged"):
        opened(tmp_path / "a b", Clock())


def test_one_of_more_partitions_is_another_one_s(tmp_path: Path) -> None:
    """Whatever `monitor.json` says."""
    beside = left(tmp_path / "a b")
    path = beside / CHECKPOINT / "offsets" / "0"
    path.write_text(path.read_text().replace('"0"', '"49"'))

    with pytest.raises(UsageError, match="of a topic with more partitions"):
        opened(tmp_path / "a b", Clock())


def test_one_that_is_still_written_to_is_not_moved(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The JVM of a killed monitor may be at it; it is waited for, for a while."""
    monkeypatch.setattr(hidden, "JVM_ENDS_SECONDS", 0.2)
    beside = left(tmp_path / "a b")
    program = "import fcntl, sys; f = open(sys.argv[1], 'w'); fcntl.lockf(f, fcntl.LOCK_EX); print(flush=True); input()"
    with subprocess.Popen(  # noqa: S603 - our own interpreter
        [sys.executable, "-c", program, str(tmp_path / "a b" / JVM_LOCK)],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
    ) as jvm:
        assert jvm.stdout is not None
        jvm.stdout.readline()
        with pytest.raises(UsageError, match="still written to by the JVM of a former monitor"):
            opened(tmp_path / "a b", Clock())
        jvm.communicate(b"\n")

    assert [CHECKPOINT] == names(beside)
    assert opened(tmp_path / "a b", Clock()).holds_state()

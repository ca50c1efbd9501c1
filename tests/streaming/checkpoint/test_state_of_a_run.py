"""What a run finds in its state directory: gone on from, refused, or read again."""

import json
import os
import shutil
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from streaming.base.errors import UsageError
from streaming.board.readiness import Offsets, Positions
from streaming.checkpoint import resume_file
from streaming.checkpoint.identity import REBUILD, Identity
from streaming.checkpoint.state_directory import CHECKPOINT, StateDirectory
from streaming.end_offsets.store import PartitionEnds
from tests.streaming.checkpoint.test_resume_file import ends_of

NOW_MS = 1_790_000_000_000
RETENTION_MS = 3_600_000
TOPIC = "log"
IDENTITY = Identity(
    cluster_id="c", offsets_topic=TOPIC, topic_id="t", partitions=1, shuffle_partitions=4, isolation="exact"
)


class Clock:
    """A wall clock that stands still until it is set."""

    def __init__(self) -> None:
        self.now_ms = NOW_MS

    def __call__(self) -> int:
        return self.now_ms


@pytest.fixture
def clock() -> Clock:
    return Clock()


def opened(directory: Path, clock: Clock, *, rebuild: bool = False, identity: Identity = IDENTITY) -> StateDirectory:
    """As a run opens it."""
    state = StateDirectory(directory, None, reads_uncommitted=True, clock_ms=clock)
    state.tombstone_retention_ms = RETENTION_MS
    state.claim(identity, rebuild=rebuild)
    return state


def spark_finishes(directory: Path, offset: int, batch: int = 0) -> None:
    """A micro-batch that ended at an offset, as Spark notes it."""
    for name, text in (
        ("offsets", "v1\n{}\n" + f'{{"commits":{{"0":{offset}}},"membership":{{"0":{offset}}}}}\n'),
        ("commits", "v1\n{}"),
    ):
        path = directory / CHECKPOINT / name / str(batch)
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def run(directory: Path, clock: Clock, end: int) -> StateDirectory:
    """A run that reads an empty log up to an end, shows all there is, and is ended."""
    state = opened(directory, clock)
    state.begin({0: 0})
    spark_finishes(directory, end)
    state.finished_batch()
    state.follow(clock.now_ms, sampled(end, clock.now_ms), Positions({0: end}, {0: end}))
    return state


def sampled(end: int, now_ms: int) -> dict[int, PartitionEnds]:
    return {0: ends_of(end, end, now_ms)}


def outlived(state: StateDirectory, end: int, read: Offsets) -> bool:
    return state.rebuild_if_outlived({0: end}, {0: end}, Positions(read, read))


def test_what_another_run_left_is_gone_on_from(tmp_path: Path, clock: Clock) -> None:
    """With where it was, and from where on it drew alarms."""
    run(tmp_path, clock, 7)
    clock.now_ms += 60_000
    state = opened(tmp_path, clock)

    assert state.holds_state()
    assert ({0: 7}, {0: 7}) == state.positions()
    assert not outlived(state, 9, {0: 7})
    assert ({0: 0}, {}) == (state.begin({0: 9}), state.told_before)


@pytest.mark.parametrize(("away_ms", "end", "expected"), [(RETENTION_MS - 1, 9, False), (RETENTION_MS, 9, True)])
def test_log_unread_for_too_long_is_read_again(
    tmp_path: Path, clock: Clock, away_ms: int, end: int, expected: bool
) -> None:
    """The checkpoint is forgotten, which is said and counted; what was reported is kept in mind."""
    run(tmp_path, clock, 7)
    clock.now_ms += away_ms
    state = opened(tmp_path, clock)
    with capture_logs() as lines:
        found = outlived(state, end, {0: 7})

    assert (expected, not expected, int(expected)) == (found, state.holds_state(), state.rebuilds)
    assert expected == (["state_rebuilt"] == [line["event"] for line in lines])
    if expected:
        assert ({0: 9}, {0: 7}) == (state.begin({0: 9}), state.told_before)


def test_log_in_which_nothing_is_unread_is_as_it_was(tmp_path: Path, clock: Clock) -> None:
    """However long no one looked: nothing was written, so no one was deleted."""
    run(tmp_path, clock, 7)
    clock.now_ms += 1_000 * RETENTION_MS

    assert not outlived(opened(tmp_path, clock), 7, {0: 7})


def test_run_that_was_cut_off_from_the_log_notices_too(tmp_path: Path, clock: Clock) -> None:
    """It need not have ended: brokers were away for it, and no one else."""
    state = run(tmp_path, clock, 7)
    clock.now_ms += RETENTION_MS

    assert outlived(state, 9, {0: 7})
    assert not outlived(state, 9, {})
    state.begin({0: 9})
    assert not outlived(state, 9, {})


def test_rebuilding_that_was_interrupted_is_finished(tmp_path: Path, clock: Clock) -> None:
    """The next run does not go on from what was to go, and does not call it damaged."""
    run(tmp_path, clock, 7)
    shutil.copytree(tmp_path, tmp_path.with_suffix(".whole"))
    opened(tmp_path, clock, rebuild=True)
    shutil.copytree(tmp_path.with_suffix(".whole") / CHECKPOINT, tmp_path / CHECKPOINT)
    state = opened(tmp_path, clock)

    assert not state.holds_state()
    assert ({0: 9}, {0: 7}) == (state.begin({0: 9}), state.told_before)


def test_rebuilt_log_of_another_topic_is_reported_in_full(tmp_path: Path, clock: Clock) -> None:
    """Its offsets say nothing of those of the former one."""
    run(tmp_path, clock, 7)
    anew = Identity(
        cluster_id="c", offsets_topic=TOPIC, topic_id="u", partitions=1, shuffle_partitions=4, isolation="exact"
    )
    with pytest.raises(UsageError, match="topic_id 't', this one has 'u'"):
        opened(tmp_path, clock, identity=anew)
    state = opened(tmp_path, clock, identity=anew, rebuild=True)
    state.begin({0: 9})

    assert {} == state.told_before


def test_checkpoint_that_is_gone_is_reported(tmp_path: Path, clock: Clock) -> None:
    """Only where there was one: a run that finished no micro-batch leaves none."""
    opened(tmp_path, clock).begin({0: 0})
    opened(tmp_path, clock)
    run(tmp_path, clock, 7)
    shutil.rmtree(tmp_path / CHECKPOINT)

    with pytest.raises(UsageError, match=f"its checkpoint is gone.* or {REBUILD}"):
        opened(tmp_path, clock)


@pytest.mark.parametrize("text", ["", "v1", "v1\n{}\n{", 'v1\n{}\n{"log":{"0":7}}', "v1\n{}\n[]\n[]", "\0" * 40])
def test_damaged_log_of_offsets_is_reported(tmp_path: Path, clock: Clock, text: str) -> None:
    """Before Spark is started, which takes seconds."""
    run(tmp_path, clock, 7)
    (tmp_path / CHECKPOINT / "offsets" / "0").write_text(text)

    with pytest.raises(UsageError, match=f"^state.dir: found .*, damaged .* or {REBUILD}$"):
        opened(tmp_path, clock)


def test_checkpoint_of_an_earlier_release_is_as_old_as_its_files(tmp_path: Path, clock: Clock) -> None:
    """It left no word of when it had read the log."""
    run(tmp_path, clock, 7)
    (tmp_path / resume_file.RESUME_FILE).unlink()
    written_seconds = (NOW_MS - RETENTION_MS) / 1_000
    os.utime(tmp_path / CHECKPOINT / "commits" / "0", (written_seconds, written_seconds))

    assert outlived(opened(tmp_path, clock), 9, {0: 7})


def test_disk_that_is_full_does_not_end_a_run(tmp_path: Path, clock: Clock, monkeypatch: pytest.MonkeyPatch) -> None:
    """What could not be noted is reported once, and noted when there is room."""

    def full(directory: Path, _resume: resume_file.Resume) -> None:
        raise OSError(28, "No space left on device", str(directory))

    state = run(tmp_path, clock, 7)
    with capture_logs() as lines, monkeypatch.context() as patched:
        patched.setattr(resume_file, "save", full)
        for end in (8, 9):
            clock.now_ms += 60_000
            state.follow(clock.now_ms, sampled(end, clock.now_ms), Positions({0: 9}, {0: 9}))
    clock.now_ms += 60_000
    state.follow(clock.now_ms, sampled(10, clock.now_ms), Positions({0: 10}, {0: 10}))

    assert ["state_not_saved"] == [line["event"] for line in lines]
    assert 10 == json.loads((tmp_path / resume_file.RESUME_FILE).read_text())["told"]["0"]

"""What a run finds in its state directory: gone on from, refused, or read again."""

import json
import shutil
from pathlib import Path

import pytest
from structlog.testing import capture_logs

from streaming.base.errors import UsageError
from streaming.board.readiness import Offsets, Positions
from streaming.checkpoint import resume_file
from streaming.checkpoint.identity import CHECKPOINT_IDENTITY_FILE, IDENTITY_FILE, REBUILD, Identity
from streaming.checkpoint.location import CHECKPOINT
from streaming.checkpoint.resume_file import RESUME_FILE
from streaming.checkpoint.state_directory import StateDirectory
from streaming.end_offsets.store import PartitionEnds
from tests.streaming.checkpoint.test_resume_file import ends_of

NOW_MS = 1_790_000_000_000
RETENTION_MS = 3_600_000
QUERY = "0b5e"
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


def opened(
    directory: Path,
    clock: Clock,
    *,
    rebuild: bool = False,
    identity: Identity = IDENTITY,
    checkpoint: str | None = None,
) -> StateDirectory:
    """As a run opens it."""
    state = StateDirectory(directory, checkpoint, reads_uncommitted=True, clock_ms=clock)
    state.tombstone_retention_ms = RETENTION_MS
    state.claim(identity, rebuild=rebuild)
    state.examine()
    return state


def spark_finishes(
    directory: Path, offset: int, batch: int = 0, *, query_id: str = QUERY, at_ms: int = NOW_MS, cut: str = "[]"
) -> None:
    """A micro-batch that ended at an offset, as Spark notes it."""
    position = f'{{"commits":{{"0":{offset}}},"membership":{{"0":{offset}}},"cut":{cut}}}'
    for name, text in (
        ("metadata", f'{{"id":"{query_id}"}}'),
        (f"offsets/{batch}", f'v1\n{{"batchTimestampMs":{at_ms}}}\n{position}\n'),
        (f"commits/{batch}", "v1\n{}"),
    ):
        path = directory / CHECKPOINT / name
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text)


def run(directory: Path, clock: Clock, end: int) -> StateDirectory:
    """A run that reads an empty log up to an end, shows all there is, and is ended."""
    state = opened(directory, clock)
    state.begin({0: 0})
    spark_finishes(directory, end)
    state.finished_batch(QUERY, 0)
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


@pytest.mark.parametrize(
    ("at_ms", "cut", "expected"),
    [(NOW_MS - RETENTION_MS, "[]", True), (NOW_MS - RETENTION_MS + 1, "[]", False), (NOW_MS, "[0]", True)],
)
def test_checkpoint_that_no_run_left_word_of_is_as_old_as_its_last_batch(
    tmp_path: Path, clock: Clock, at_ms: int, cut: str, expected: bool
) -> None:
    """As Spark noted it, whenever its files were copied; one that did not reach the end of the log says nothing."""
    run(tmp_path, clock, 7)
    (tmp_path / RESUME_FILE).unlink()
    spark_finishes(tmp_path, 7, at_ms=at_ms, cut=cut)

    assert expected == outlived(opened(tmp_path, clock), 9, {0: 7})


class TestWhatDoesNotBelongTogether:
    """Checkpoint, `monitor.json` and `resume.json`, each deleted, exchanged or older than the others.

    What is shown is never older than what is gone on from: either all of it is of one run, or the log is read from its
    beginning, or it is refused.
    """

    def test_without_monitor_json_the_checkpoint_says_whose_it_is(self, tmp_path: Path, clock: Clock) -> None:
        """What was deleted is written again."""
        run(tmp_path, clock, 7)
        (tmp_path / IDENTITY_FILE).unlink()

        assert ({0: 7}, {0: 7}) == opened(tmp_path, clock).positions()
        assert "t" == json.loads((tmp_path / IDENTITY_FILE).read_text())["topic_id"]

    def test_checkpoint_of_which_nothing_says_whose_it_is_is_refused(self, tmp_path: Path, clock: Clock) -> None:
        """An earlier release wrote it, and what it had noted of it is gone."""
        run(tmp_path, clock, 7)
        (tmp_path / IDENTITY_FILE).unlink()
        (tmp_path / CHECKPOINT / CHECKPOINT_IDENTITY_FILE).unlink()

        with pytest.raises(UsageError, match=f"monitor.json is gone, and its checkpoint does not say.* or {REBUILD}"):
            opened(tmp_path, clock)

    def test_checkpoint_of_an_earlier_release_is_gone_on_from(self, tmp_path: Path, clock: Clock) -> None:
        """`monitor.json` says whose it is, and from then on the checkpoint does, too."""
        run(tmp_path, clock, 7)
        (tmp_path / CHECKPOINT / CHECKPOINT_IDENTITY_FILE).unlink()
        noted = json.loads((tmp_path / RESUME_FILE).read_text())
        del noted["query_id"], noted["batch"]
        (tmp_path / RESUME_FILE).write_text(json.dumps(noted))
        opened(tmp_path, clock).begin({0: 9})

        assert "t" == json.loads((tmp_path / CHECKPOINT / CHECKPOINT_IDENTITY_FILE).read_text())["topic_id"]

    @pytest.mark.parametrize("field", ["cluster_id", "topic_id", "isolation"])
    def test_checkpoint_of_another_one_is_refused(self, tmp_path: Path, clock: Clock, field: str) -> None:
        """By its own word, whatever stands beside it: exchanged, or with `monitor.json` of another one."""
        run(tmp_path, clock, 7)
        path = tmp_path / CHECKPOINT / CHECKPOINT_IDENTITY_FILE
        path.write_text(json.dumps({**json.loads(path.read_text()), field: "another"}))

        with pytest.raises(UsageError, match=f"^state.dir: found .*/checkpoint' of a monitor with {field} 'another'"):
            opened(tmp_path, clock)

    def test_checkpoint_that_does_not_say_whose_it_is_is_not_of_a_run_that_did(
        self, tmp_path: Path, clock: Clock
    ) -> None:
        """Exchanged with one of an earlier release, which may be of any cluster."""
        run(tmp_path, clock, 7)
        (tmp_path / CHECKPOINT / CHECKPOINT_IDENTITY_FILE).unlink()

        with pytest.raises(UsageError, match="its checkpoint does not say whose it is"):
            opened(tmp_path, clock)

    def test_older_checkpoint_is_not_gone_on_from(self, tmp_path: Path, clock: Clock) -> None:
        """When the log was read is not known of it: what was deleted since may have left no trace."""
        state = run(tmp_path, clock, 7)
        older = tmp_path.with_suffix(".older")
        shutil.copytree(tmp_path / CHECKPOINT, older)
        spark_finishes(tmp_path, 9, batch=1)
        state.finished_batch(QUERY, 1)
        clock.now_ms += resume_file.SAVE_EVERY_MS
        state.follow(clock.now_ms, sampled(9, clock.now_ms), Positions({0: 9}, {0: 9}))
        shutil.rmtree(tmp_path / CHECKPOINT)
        older.rename(tmp_path / CHECKPOINT)
        with capture_logs() as lines:
            state = opened(tmp_path, clock)

        assert (["state_rebuilt"], 1, False) == ([line["event"] for line in lines], state.rebuilds, state.holds_state())

    def test_another_checkpoint_of_the_same_topic_is_not_gone_on_from(self, tmp_path: Path, clock: Clock) -> None:
        """As of a second monitor of the cluster, or `resume.json` of it."""
        run(tmp_path, clock, 7)
        spark_finishes(tmp_path, 7, query_id="another")
        state = opened(tmp_path, clock)

        assert not state.holds_state()
        assert {0: 9} == state.begin({0: 9})

    def test_older_resume_json_is_taken_for_what_it_says(self, tmp_path: Path, clock: Clock) -> None:
        """The log counts as unread since then, which is on the safe side."""
        run(tmp_path, clock, 7)
        spark_finishes(tmp_path, 9, batch=1)
        state = opened(tmp_path, clock)
        clock.now_ms += RETENTION_MS

        assert ({0: 9}, {0: 9}) == state.positions()
        assert outlived(state, 10, {0: 9})

    def test_state_directory_that_is_new_beside_a_checkpoint_elsewhere(self, tmp_path: Path, clock: Clock) -> None:
        """As of a move to another machine: the checkpoint says whose it is and how old, and that will do."""
        run(tmp_path / "former", clock, 7)
        place = f"file:{tmp_path}/former/{CHECKPOINT}"
        state = opened(tmp_path / "new", clock, checkpoint=place)

        assert ({0: 7}, {0: 7}) == state.positions()
        clock.now_ms += RETENTION_MS
        assert outlived(opened(tmp_path / "newer", clock, checkpoint=place), 9, {0: 7})


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
    assert 10 == json.loads((tmp_path / RESUME_FILE).read_text())["told"]["0"]

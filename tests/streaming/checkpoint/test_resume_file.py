"""How far the log was read, and when: what a run leaves for the next, and what the next concludes from it."""

import json
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from coordinator_model.lag import EndOffsetHistory
from streaming.board.readiness import Positions
from streaming.checkpoint import resume_file
from streaming.checkpoint.resume_file import BUILT_FROM, CLOCK_SLACK_MS, RESUME_FILE, Resume, ResumeWriter
from streaming.end_offsets.store import PartitionEnds
from streaming.query.log_continuity import SAME_TAIL_MS

NOW_MS = 1_790_000_000_000
DAY_MS = 86_400_000
LEFT = Resume(read_ms=NOW_MS, seen_ms=NOW_MS, live_from={0: 5, 1: 7}, told={0: 9}, has_batches=True)


def ends_of(high_watermark: int | None, last_stable: int | None, sampled_ms: int) -> PartitionEnds:
    return PartitionEnds(
        EndOffsetHistory(), high_watermark=high_watermark, last_stable=last_stable, sampled_ms=sampled_ms
    )


def follower(directory: Path, *, reads_uncommitted: bool = True) -> ResumeWriter:
    return ResumeWriter(directory, Resume.begun(NOW_MS, {0: 0}, {0: 3}), reads_uncommitted=reads_uncommitted)


@pytest.mark.parametrize(
    ("away_ms", "too_long"),
    [
        (0, False),
        (DAY_MS - 1, False),
        (DAY_MS, True),
        (30 * DAY_MS, True),
        (-CLOCK_SLACK_MS, False),  # as clocks are set right
        (-CLOCK_SLACK_MS - 1, True),  # no one can tell how long it was
        (-30 * DAY_MS, True),
    ],
)
def test_unread_for_longer_than_tombstones_are_kept(away_ms: int, too_long: bool) -> None:
    """From the retention on, and where the clock ran backwards, what is unread may lack tombstones."""
    assert too_long == LEFT.unread_too_long(NOW_MS + away_ms, DAY_MS)


@pytest.mark.parametrize(
    ("away_ms", "live_from"),
    [
        (SAME_TAIL_MS, {0: 5, 1: 7}),
        (SAME_TAIL_MS + 1, {0: 50, 1: 70}),
        (-SAME_TAIL_MS - 1, {0: 50, 1: 70}),
    ],
)
def test_same_tail_keeps_its_marks(away_ms: int, live_from: dict[int, int]) -> None:
    """Soon after, alarms are drawn from where they would have been; later only beyond the end that is found."""
    assert live_from == LEFT.going_on(NOW_MS + away_ms, {0: 50, 1: 70}).live_from


@pytest.mark.parametrize(
    ("ends", "told_before", "built_until"),
    [
        ({0: BUILT_FROM - 1, 1: 1}, {}, {0: BUILT_FROM - 1, 1: 1}),
        ({0: BUILT_FROM - 2, 1: 1}, {}, {}),
        ({0: BUILT_FROM, 1: 1}, {0: 3}, {}),
    ],
)
def test_only_the_first_reading_of_a_long_log_is_of_state_alone(
    ends: dict[int, int], told_before: dict[int, int], built_until: dict[int, int]
) -> None:
    """A short one is followed from its beginning, and so is one that a former reading reported; it stays so."""
    begun = Resume.begun(NOW_MS, ends, told_before)

    assert built_until == begun.built_until
    assert built_until == begun.going_on(NOW_MS + 2 * SAME_TAIL_MS, {0: 10 * BUILT_FROM, 1: 5}).built_until


def test_file_of_before_says_nothing_of_state_alone(tmp_path: Path) -> None:
    """A monitor of a release that followed all goes on so."""
    resume_file.save(tmp_path, LEFT)
    file = tmp_path / RESUME_FILE
    held = json.loads(file.read_text("utf-8"))
    del held["built_until"]
    file.write_text(json.dumps(held), "utf-8")

    assert resume_file.load(tmp_path) == LEFT


def test_file_holds_what_was_left(tmp_path: Path) -> None:
    """Written and read again; and nothing is left where there is no file."""
    assert resume_file.load(tmp_path) is None

    resume_file.save(tmp_path, LEFT)

    assert resume_file.load(tmp_path) == LEFT


@pytest.mark.parametrize("text", ["", "{", "[]", "null", '{"format":"resume/9"}', '{"format":"resume/1"}', "\0\0\0"])
def test_damaged_file_is_as_none(tmp_path: Path, text: str) -> None:
    """A machine that failed may have left anything; the checkpoint's own files say how old it is."""
    (tmp_path / RESUME_FILE).write_text(text)

    assert resume_file.load(tmp_path) is None


class TestFollower:
    """What has been read up to when."""

    def test_end_that_is_reached_counts_from_when_it_was_seen(self, tmp_path: Path) -> None:
        """Not from when it was reached: what was written in between is unread."""
        followed = follower(tmp_path)
        seen, later = NOW_MS + 1_000, NOW_MS + 9_000

        followed.follow(seen, seen, {0: ends_of(10, 10, seen)}, Positions({0: 4}, {0: 10}))
        assert NOW_MS == followed.resume.read_ms

        followed.follow(later, later, {0: ends_of(20, 20, later)}, Positions({0: 10}, {0: 10}))
        assert (seen, {0: 10}) == (followed.resume.read_ms, followed.resume.told)

    @pytest.mark.parametrize(
        ("positions", "reached"),
        [
            (Positions({0: 10}, {0: 8}), True),
            (Positions({0: 9}, {0: 8}), False),
            (Positions({0: 10}, {0: 7}), False),
            (Positions({}, {}), False),
        ],
    )
    def test_each_reader_has_its_own_end(self, tmp_path: Path, positions: Positions, reached: bool) -> None:
        """The reader of commits cannot pass an open transaction, and has read all it can."""
        followed = follower(tmp_path)
        seen = NOW_MS + 1_000

        followed.follow(seen, seen, {0: ends_of(10, 8, seen)}, positions)

        assert (seen if reached else NOW_MS) == followed.resume.read_ms

    def test_single_reader_reads_up_to_the_last_stable_offset(self, tmp_path: Path) -> None:
        """It is behind an open transaction with both, and not to blame."""
        followed = follower(tmp_path, reads_uncommitted=False)
        seen = NOW_MS + 1_000

        followed.follow(seen, seen, {0: ends_of(10, 8, seen)}, Positions({0: 8}, {0: 8}))

        assert seen == followed.resume.read_ms

    @pytest.mark.parametrize(
        "ends", [{}, {0: ends_of(None, None, NOW_MS + 1_000)}, {0: ends_of(10, 10, NOW_MS - 60_000)}]
    )
    def test_partition_that_does_not_answer_may_hold_more(self, tmp_path: Path, ends: dict[int, PartitionEnds]) -> None:
        """Nothing is concluded from a sample that lacks one, or has an old figure of it."""
        followed = follower(tmp_path)

        followed.follow(NOW_MS + 1_000, NOW_MS + 1_000, ends, Positions({0: 99}, {0: 99}))

        assert NOW_MS == followed.resume.read_ms

    def test_partition_that_came_since_is_read_up_to_its_end_as_well(self, tmp_path: Path) -> None:
        """The topic was grown: all that was in the log is not read before the new partition is."""
        followed = follower(tmp_path)
        seen = NOW_MS + 1_000
        ends = {0: ends_of(10, 10, seen), 1: ends_of(5, 5, seen)}

        followed.follow(seen, seen, ends, Positions({0: 10}, {0: 10}))
        assert NOW_MS == followed.resume.read_ms

        followed.follow(seen, seen, ends, Positions({0: 10, 1: 5}, {0: 10, 1: 5}))
        assert (seen, {0: 10, 1: 5}) == (followed.resume.read_ms, followed.resume.told)

    def test_saved_with_the_first_batch_and_now_and_then(self, tmp_path: Path) -> None:
        """That there is a checkpoint is known at once, and what was reported; when nothing came, to some seconds."""
        followed = follower(tmp_path)
        followed.finished_batch(NOW_MS + 1, "0b5e", 0)
        saved: Any = resume_file.load(tmp_path)
        assert saved is not None
        assert saved.has_batches

        for after_ms, end, expected_ms in (
            (1_000, 0, 1_000),
            (2_000, 0, 1_000),
            (3_000, 1, 3_000),
            (9_999_999, 1, 9_999_999),
        ):
            seen = NOW_MS + after_ms
            followed.follow(seen, seen, {0: ends_of(end, end, seen)}, Positions({0: 1}, {0: 1}))
            held = resume_file.load(tmp_path)
            assert held is not None
            assert (expected_ms, after_ms) == (held.read_ms - NOW_MS, followed.resume.read_ms - NOW_MS)


@pytest.mark.parametrize(
    ("membership", "commits", "expected"),
    [({0: 10, 1: 7}, {0: 8, 1: 7}, False), ({0: 9, 1: 7}, {0: 8, 1: 7}, True), ({0: 10}, {0: 8, 1: 7}, True)],
)
def test_unread(membership: dict[int, int], commits: dict[int, int], expected: bool) -> None:
    """Some reader has yet to come to its end of some partition."""
    assert expected == resume_file.unread({0: 10, 1: 7}, {0: 8, 1: 7}, Positions(membership, commits))


def test_another_reading_tells_nothing_that_was_reported() -> None:
    """By this one or a former one, whichever came further; a log read on is reported on."""
    left = replace(LEFT, told={0: 9, 1: 2}, told_before={1: 7, 2: 1})
    again = Resume.begun(NOW_MS, {0: 1}, left.all_told())

    assert {0: 9, 1: 7, 2: 1} == again.told_before
    assert {0: 9, 1: 2} == left.going_on(NOW_MS, {}).told
    assert {1: 7, 2: 1} == left.going_on(NOW_MS, {}).told_before

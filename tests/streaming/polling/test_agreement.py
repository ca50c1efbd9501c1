"""Whether a coordinator's answer is what a board shows of a group."""

import pytest

from lab import builders
from lab.builders import RecordBytes
from lab.coordinator_events import consumer_join, share_join
from streaming.board.board_group import BoardGroup
from streaming.polling import answers
from streaming.polling.agreement import agrees
from streaming.polling.client import Answered
from tests.streaming.board_rows import Shard
from tests.streaming.boards import THEN_MS, board_of
from tests.streaming.polling import replies

T = "t"


def held(*records: RecordBytes) -> BoardGroup:
    """Group `g` as a board has it once these are read."""
    shard = Shard()
    shard.pending = [(THEN_MS, *record) for record in records]
    return board_of(shard).shown.groups["g"]


def committed(offset: int, partition: int = 0) -> RecordBytes:
    return builders.offset_commit("g", T, partition, offset)


def classic(*members: str, **offsets: int) -> Answered:
    """An answer about a group of these members, each with the partition of its place, and offsets as `p0=5`."""
    made = [builders.member(name, {T: [at]}) for at, name in enumerate(members)]
    described = answers.classic_group(replies.classic("g", *made, state="Stable" if members else "Empty"))
    found = {int(name[1:]): offset for name, offset in offsets.items()}
    return Answered(described, answers.offsets(replies.offsets({T: found})))


GENERATION = builders.group_metadata("g", generation=7, members=[builders.member("a", {T: [0]})])


@pytest.mark.parametrize(
    ("answer", "agreed"),
    [
        pytest.param(classic("a", p0=5), True, id="the same"),
        pytest.param(classic("b", p0=5), False, id="another member"),
        pytest.param(classic("a", "b", p0=5), False, id="one more"),
        pytest.param(classic(p0=5), False, id="none"),
        pytest.param(classic("a", p0=6), False, id="another offset"),
        pytest.param(classic("a"), False, id="an offset that is gone"),
        pytest.param(classic("a", p0=5, p1=1), False, id="an offset that was never seen"),
        pytest.param(Answered(classic("a").described, None), False, id="offsets are not to be had"),
        pytest.param(Answered(answers.DescribedGroup("PreparingRebalance", None), {}), False, id="between generations"),
    ],
)
def test_members_and_offsets_are_compared(answer: Answered, *, agreed: bool) -> None:
    """What the answer does not say, as the generation, is not."""
    assert agreed == agrees(answer, [held(GENERATION, committed(5))])


def test_a_group_that_only_commits_has_no_members() -> None:
    """Neither in the log nor at its coordinator."""
    assert agrees(classic(p0=5), [held(committed(5))])
    assert not agrees(classic(p0=5), [])


def test_it_may_have_moved_on_between_two_looks() -> None:
    """The answer is of a moment between them; what it has beyond both is not known to be so."""
    looks = [held(GENERATION, committed(5)), held(GENERATION, committed(9), committed(1, 1))]

    assert agrees(classic("a", p0=5), looks)
    assert agrees(classic("a", p0=7, p1=1), looks)
    assert not agrees(classic("a", p0=10, p1=1), looks)
    assert not agrees(classic("a", p0=4, p1=1), looks)
    assert not agrees(classic("a", p0=7, p1=2), looks)


@pytest.mark.parametrize(
    ("epoch", "assigned", "agreed"), [(5, {T: [0]}, True), (6, {T: [0]}, False), (5, {T: [1]}, False)]
)
def test_of_the_new_protocol_epochs_and_assignments_are_compared(
    epoch: int, assigned: dict[str, list[int]], *, agreed: bool
) -> None:
    """They are in answers as they are in records."""
    shown = held(*consumer_join("g", "m", epoch=5, targets={"m": {T: [0]}}))
    answer = answers.consumer_group(replies.consumer("g", replies.consumer_member("m", epoch, assigned), epoch=5))

    assert agreed == agrees(Answered(answer, {}), [shown])


def test_of_a_share_group_it_is_not_compared_what_members_hold() -> None:
    """The log does not have it."""
    shown = held(*share_join("g", "m", epoch=2, targets={"m": {T: [0]}}))

    found = answers.share_group(replies.share("g", "m", {T: [0, 1]}))

    assert agrees(Answered(found, {}), [shown])

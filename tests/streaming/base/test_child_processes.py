"""Work shared out among children: their answers come in order, and none is left behind."""

import multiprocessing
import os
import signal
from collections.abc import Callable, Iterator

import pytest

from streaming.base.child_processes import answered_by_children, taken_by_turns


def test_answers_come_in_the_order_of_the_shares() -> None:
    """Each share is answered by a process of its own."""
    with answered_by_children(lambda share: (share, os.getpid()), ["a", "b", "c"]) as answers:
        found = list(answers)

    assert ["a", "b", "c"] == [share for share, _ in found]
    assert 3 == len({process for _, process in found} - {os.getpid()})


def test_no_share_needs_no_process() -> None:
    """Then there is no answer either."""
    with answered_by_children(fails, []) as answers:
        assert [] == list(answers)


def fails(_: str) -> str:
    raise KeyError("no such thing")


def is_killed(_: str) -> str:
    os.kill(os.getpid(), signal.SIGKILL)
    raise AssertionError


@pytest.mark.parametrize(("answer", "reason"), [(fails, "KeyError: 'no such thing'"), (is_killed, "it is gone")])
def test_a_child_that_cannot_answer_fails_the_task(answer: Callable[[str], str], reason: str) -> None:
    """In its own words, or if the kernel ended it for want of memory: the batch fails, and is repeated."""
    with (
        pytest.raises(RuntimeError, match=f"a share of the work: {reason}"),
        answered_by_children(answer, ["a"]) as answers,
    ):
        list(answers)


def test_children_end_when_their_answers_are_not_taken() -> None:
    """A task that fails or is stopped leaves no process behind."""

    def waits(_: str) -> str:
        signal.pause()
        raise AssertionError

    with pytest.raises(ZeroDivisionError), answered_by_children(waits, ["a", "b"]):
        raise ZeroDivisionError

    assert [] == multiprocessing.active_children()


def test_each_share_is_taken_once_by_whichever_process_is_free() -> None:
    """One that is held up by its first share leaves the others to the rest."""
    has_one, all_taken = multiprocessing.Event(), multiprocessing.Event()

    def answer(taken: Callable[[], Iterator[int]]) -> list[int]:
        shares = taken()
        first = next(shares)
        has_one.set()
        assert all_taken.wait(20)
        return [first, *shares]

    with taken_by_turns(range(200)) as taken, answered_by_children(answer, [taken]) as answers:
        assert has_one.wait(20)
        own = list(taken())
        all_taken.set()
        found = list(answers)

    assert [[0]] == found
    assert list(range(1, 200)) == own


def test_of_no_shares_none_is_taken() -> None:
    """Nor is one waited for."""
    none: list[int] = []
    with taken_by_turns(none) as taken:
        assert [] == list(taken())

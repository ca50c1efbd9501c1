"""Classic groups that may hang: whom to ask about, and what makes an answer a stuck rebalance."""

from typing import Any

import pytest

from coordinator_model.clocked import hang_suspicion
from coordinator_model.clocked.described import COMPLETING, PREPARING, Described
from coordinator_model.clocked.hang_suspicion import FRESH_MS, RECENT_MS, SILENT_MS
from coordinator_model.clocked.stuck import GRACE_MS
from coordinator_model.state.group_state import GroupState
from lab.builders import REBALANCE_TIMEOUT_MS, RecordBytes, group_metadata, member, offset_commit
from lab.coordinator_events import consumer_join
from tests.histories import at, history
from tests.moments import overdue, suspicion

STEP_MS = 1_000_000
MEMBERS = group_metadata("g", generation=5, members=[member("a", {"t": [0]}), member("b", {"t": [1]})], leader="a")
LONGEST_MS = REBALANCE_TIMEOUT_MS + GRACE_MS


def group(*records: RecordBytes) -> GroupState:
    """A group as these records left it, the last of them written at STEP_MS."""
    return history(*(at(STEP_MS - n, record) for n, record in reversed(list(enumerate(reversed(records)))))).replayed(
    ).states["g"]  # fmt: skip


# -- whom to ask about ------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("records", "after_ms", "committed_ms", "lags", "expected"),
    [
        ([MEMBERS], SILENT_MS + 1, STEP_MS - 1, True, "commits_stopped"),
        ([MEMBERS], SILENT_MS, STEP_MS - 1, True, None),
        ([MEMBERS], SILENT_MS + 1, STEP_MS + 2, True, None),
        ([MEMBERS], SILENT_MS + 1, STEP_MS - 1, False, None),
        ([MEMBERS], SILENT_MS + 1, None, True, None),
        ([group_metadata("g", generation=3), MEMBERS], SILENT_MS + 1, None, False, "rounds_lost"),
        ([group_metadata("g", generation=3), MEMBERS], SILENT_MS, None, False, None),
        ([group_metadata("g", generation=3), MEMBERS], RECENT_MS + 1, None, False, None),
        ([group_metadata("g", generation=4), MEMBERS], SILENT_MS + 1, None, False, None),
        ([group_metadata("g", generation=6)], SILENT_MS + 1, None, False, "forming"),
        ([group_metadata("g", generation=6)], SILENT_MS, None, False, None),
        ([group_metadata("g", generation=6)], RECENT_MS + 1, STEP_MS, True, None),
        ([offset_commit("g", "t", 0, 5)], SILENT_MS + 1, STEP_MS, True, None),
        (consumer_join("g", "a", epoch=2, targets={"a": {"t": [0]}}), SILENT_MS + 1, STEP_MS, True, None),
    ],
    ids=[
        *("silent while records wait", "silent for a moment", "commits", "idle", "never commits", "lost a round"),
        *(
            "lost one just now",
            "lost one long ago",
            "lost none",
            "emptied",
            "emptied just now",
            "emptied long ago",
            "only commits",
        ),
        "consumer group",
    ],
)
def test_whom_to_ask_about(
    records: list[RecordBytes], after_ms: int, committed_ms: int | None, lags: bool, expected: str | None
) -> None:
    """Silence alone is no reason: an idle group has no lag, and a group of old has no one who could hang."""
    assert expected == suspicion(group(*records), committed_ms, STEP_MS + after_ms, lags=lags)


# -- what an answer means ---------------------------------------------------------------------------------------------


def asked(*answers: tuple[int, str], step_offset: int = 0) -> Described | None:
    """Answers (milliseconds after the last record, state), one after another."""
    reported = None
    for after_ms, answer in answers:
        reported = hang_suspicion.described(reported, answer, 2, step_offset, STEP_MS + after_ms)
    return reported


def every(pause_ms: int, until_ms: int, state: str = PREPARING) -> list[tuple[int, str]]:
    """The same answer again and again, from 20 s on."""
    return [(ms, state) for ms in (*range(20_000, until_ms, pause_ms), until_ms)]


def stuck(answer: Described | None, *, now_ms: int | None = None, moved_ms: int | None = None) -> list[dict[str, Any]]:
    """Details of what is reported of the group of two."""
    at_ms = now_ms if now_ms is not None else 0 if answer is None else answer.asked_ms
    return [dict(event.detail) for event in overdue(group(MEMBERS), at_ms, moved_ms, described=answer)]


def test_rebalance_that_outlasts_every_member_is_stuck() -> None:
    """The coordinator removes whom it waits for after the longest rebalance timeout; then it should be over."""
    (detail,) = stuck(asked(*every(5_000, 20_000 + LONGEST_MS + 1)))

    assert (PREPARING, "members", 5, 2) == (
        detail["state"],
        detail["waiting_for"],
        detail["generation"],
        detail["described_members"],
    )
    assert (LONGEST_MS + 1, REBALANCE_TIMEOUT_MS) == (detail["rebalancing_ms"], detail["timeout_ms"])
    assert [] == stuck(asked(*every(5_000, 20_000 + LONGEST_MS)))


def test_leader_that_gives_no_assignment_is_waited_for() -> None:
    """Who leads now is not reported; who led the last generation is."""
    (detail,) = stuck(asked(*every(5_000, 20_000 + LONGEST_MS + 1, COMPLETING)))

    assert ("assignor", "a") == (detail["waiting_for"], detail["former_leader"])


def test_both_states_are_one_rebalance() -> None:
    """Rounds that are lost one after another never get to Stable."""
    answers = [(ms, (PREPARING, COMPLETING)[n % 2]) for n, (ms, _) in enumerate(every(5_000, 20_000 + LONGEST_MS + 1))]

    assert 1 == len(stuck(asked(*answers)))


@pytest.mark.parametrize("answer", ["Stable", "Empty", "Dead", ""])
def test_any_other_answer_begins_again(answer: str) -> None:
    """In between the group was whole, for however short a time."""
    assert [] == stuck(asked(*every(5_000, 200_000), (200_001, answer), (205_000, PREPARING), (340_000, PREPARING)))
    assert [] == stuck(asked((20_000, answer), (20_000 + LONGEST_MS + 1, answer)))


def test_answers_far_apart_are_no_row() -> None:
    """Between them anything may have been."""
    assert [] == stuck(asked((20_000, PREPARING), (20_000 + LONGEST_MS + 1, PREPARING)))
    assert 1 == len(stuck(asked(*every(FRESH_MS, 20_000 + LONGEST_MS + 1))))


def test_old_answer_says_nothing_of_now() -> None:
    """The brokers may be away since."""
    answer = asked(*every(5_000, 20_000 + LONGEST_MS + 1))
    assert answer is not None

    assert 1 == len(stuck(answer, now_ms=answer.asked_ms + FRESH_MS))
    assert [] == stuck(answer, now_ms=answer.asked_ms + FRESH_MS + 1)


@pytest.mark.parametrize(("age_ms", "expected"), [(60_000, 1), (60_001, 0)])
def test_answer_is_of_now_for_a_minute(age_ms: int, expected: int) -> None:
    """Nor are two answers a row that are further apart."""
    answer = asked(*every(5_000, 20_000 + LONGEST_MS + 1))
    assert answer is not None

    assert expected == len(stuck(answer, now_ms=answer.asked_ms + age_ms))
    row = asked((20_000, PREPARING), (20_000 + age_ms, PREPARING))
    assert row is not None
    assert (row.since_ms < row.asked_ms) is bool(expected)


def test_new_generation_ends_it() -> None:
    """The answer is of before it."""
    assert [] == stuck(asked(*every(5_000, 20_000 + LONGEST_MS + 1), step_offset=7))
    assert [] == stuck(None)


def test_coordinator_that_moved_starts_its_timers_again() -> None:
    """A group that was between two generations is found as the log has it, and begins again."""
    assert [] == stuck(asked(*every(5_000, 20_000 + LONGEST_MS + 1)), moved_ms=STEP_MS + 30_000)


def test_it_is_the_same_event_as_long_as_it_lasts() -> None:
    """It belongs to the last record of the group: nothing is written until it is over."""
    answers = (asked(*every(5_000, 20_000 + LONGEST_MS + more)) for more in (1, 50_000))
    ids = {event.id for of in answers if of is not None for event in overdue(group(MEMBERS), of.asked_ms, described=of)}

    assert 1 == len(ids)


def test_members_word_counts_and_kafka_s_default_where_there_is_none() -> None:
    """A group of which the log has no member yet may still be forming."""
    empty = group(group_metadata("g", generation=6))
    assert empty.membership.classic is not None

    assert 300_000 == hang_suspicion.rebalance_timeout_ms(empty.membership.classic)


def test_hang_of_a_classic_group_is_inferred() -> None:
    """From answers of its coordinator: no record says so."""
    (event,) = overdue(
        group(MEMBERS), 20_000 + STEP_MS + LONGEST_MS + 1, described=asked(*every(5_000, 20_000 + LONGEST_MS + 1))
    )

    assert ("rebalance_stuck", True) == (event.kind, event.inferred)


def test_answer_about_a_group_that_is_no_classic_one_is_none() -> None:
    """It was converted meanwhile: what the coordinator answered was of the group before."""
    state = group(*consumer_join("g", "a", epoch=2, targets={"a": {"t": [0]}}))
    answer = asked(*every(5_000, 20_000 + LONGEST_MS + 1), step_offset=state.last_step_offset)
    assert answer is not None

    assert [] == overdue(state, answer.asked_ms, described=answer)

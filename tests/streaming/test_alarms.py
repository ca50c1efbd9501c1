"""Every kind of alarm by its row alone: opened, on the page, in the API, as a metric, after a restart, and over.

What only a look with a clock finds is tried where that is (`watchers/test_looked_for_alarms.py`).
"""

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Final

import pytest

from coordinator_model.clocked import endings
from coordinator_model.clocked.alarms import is_still_open, still_open
from coordinator_model.clocked.finding_members import involved_members
from coordinator_model.clocked.moment import Moment
from coordinator_model.figures.summary import summary
from coordinator_model.kinds.table import ALARMS, LOOK, RECORD, TIME, sentence
from coordinator_model.replica import Replica
from coordinator_model.rules.static_absences import ABSENT
from coordinator_model.rules.table import RULES
from coordinator_model.state.events import INFO, MEANINGS, SEVERITIES, Event, event_view
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.snapshot import dump_group, load_group
from streaming.board import attention, group_answer
from streaming.board.board import Board
from streaming.metrics.catalogue import CATALOGUE
from streaming.metrics.exporter import Exporter
from tests.alarm_stories import STORIES, Story
from tests.histories import TextStore
from tests.streaming.board_rows import Shard
from tests.streaming.boards import CLUSTER, board_of, lags_of, rendered

FORMER: Final = json.loads((Path(__file__).parent / "alarms_of_former_release.json").read_text())
"""Kind → the group's state once its story has opened, as the release before wrote it, and the ids it had reported."""

KINDS: Final = sorted(STORIES)


class Run:
    """A story so far: the group's state, and what was reported."""

    def __init__(self, story: Story, state: GroupState | None = None) -> None:
        self.story = story
        self.store = TextStore()
        self.events: list[Event] = []
        if state is None:
            self._replay(story.opened)
        else:
            self.store.groups["g"] = dump_group(state)

    @property
    def state(self) -> GroupState:
        """Of the group now."""
        state = self.store.load_group("g")
        assert state is not None
        return state

    def end(self) -> list[Event]:
        """What is reported from where it has opened on, until it is over."""
        before = len(self.events)
        self._replay(self.story.rest)
        if self.story.over_ms is not None:
            self.events += endings.alarms_over(Moment(state=self.state, now_ms=self.story.over_ms))
        return self.events[before:]

    def _replay(self, log: Any) -> None:
        replica = Replica(self.store, self.store.counters(), live_from=0)
        for of in log.records:
            self.events += replica.replay(of.place, of.key, of.value)
        self.events += replica.settle()
        self.store.keep(replica)


def of_kind(events: list[Event], kind: str) -> Iterator[tuple[bool, str]]:
    """(whether it is over, id) of the events of an alarm."""
    for event in events:
        if event.kind in (kind, ALARMS[kind].cleared_as):
            yield bool(event.detail.get("cleared")) or event.kind != kind, event.id


def shown(kind: str) -> Board:
    """A board when the alarm has just opened."""
    shard = Shard(7)
    shard.pending += [(of.place.timestamp_ms, of.key, of.value) for of in STORIES[kind].opened.records]
    return board_of(shard)


def last_ms(kind: str) -> int:
    """When the alarm has just opened."""
    return STORIES[kind].opened.records[-1].place.timestamp_ms


def test_every_kind_has_a_story() -> None:
    """What opens in a group's state has a story here; a rule that keeps an alarm has a row."""
    assert {kind for kind, row in ALARMS.items() if row.ends != LOOK} == STORIES.keys()
    assert {kind for kind, row in ALARMS.items() if row.ends == TIME} == endings.ENDED_BY_TIME.keys()
    keeping = {kind for row in RULES if "alarms" in row.remembers for kind in row.kinds}
    assert STORIES.keys() <= keeping


@pytest.mark.parametrize("kind", sorted(ALARMS))
def test_every_kind_is_said_and_shown(kind: str) -> None:
    """It has a severity, a meaning, both sentences, a metric, and on the page a reason to look or a part of its own."""
    row = ALARMS[kind]

    assert SEVERITIES[kind] != INFO
    assert MEANINGS[kind]
    assert row.sentence
    assert row.cleared or MEANINGS[row.cleared_as or ""]
    assert row.metric in CATALOGUE
    assert row.code is None or row.code in attention.SEVERITIES


@pytest.mark.parametrize("kind", KINDS)
def test_open_it_is_kept_with_its_beginning(kind: str) -> None:
    """When, where and whom it is about, under the names of its event."""
    run = Run(STORIES[kind])
    opened = [event for event in run.events if event.kind == kind]

    assert opened
    for event in opened:
        assert is_still_open(run.state, kind, event.detail, event.time_ms)
        names = {*ALARMS[kind].names(event.detail)}
        first = next(of for of in opened if names & {*ALARMS[kind].names(of.detail)})  # it may be said again, as worse
        assert {(first.time_ms, first.offset)} == {
            (of.since_ms, of.offset) for name, of in run.state.open(kind).items() if name in names
        }
    assert not summary(run.state).words.steady or ALARMS[kind].code is None


@pytest.mark.parametrize("kind", KINDS)
def test_open_it_is_on_the_page_and_in_the_api(kind: str) -> None:
    """Among the reasons to look, or as the part of the group's answer that the row names."""
    board, row = shown(kind), ALARMS[kind]
    held, now_ms = board.shown.groups["g"], last_ms(kind)
    reasons = attention.reasons(board, held, lags_of(held, board.ends, now_ms).of_read(0), now_ms)
    codes = {reason["code"]: reason for reason in reasons}
    answer = group_answer.view(board, "g", now_ms)
    assert answer is not None

    assert reasons == answer["attention"]
    if row.code is not None:
        names = [*still_open(held.state, kind, now_ms)]
        assert row.text(len(names), names) == codes[row.code]["text"]
    else:
        assert row.shown_as in codes or answer["migration"][row.shown_as]


@pytest.mark.parametrize("kind", KINDS)
def test_open_it_is_in_its_metric(kind: str) -> None:
    """With a value beyond 0, of the very group."""
    page, _ = rendered(Exporter(shown(kind), CLUSTER, clock_ms=lambda: last_ms(kind)))
    lines = [line for line in page.decode().splitlines() if line.startswith(f"{ALARMS[kind].metric}{{")]

    assert any(float(line.rpartition(" ")[2]) > 0 for line in lines if 'group="g"' in line)


@pytest.mark.parametrize("kind", KINDS)
def test_open_it_names_its_members_where_the_row_says_so(kind: str) -> None:
    """They are in the group, and are named under the kind."""
    state = Run(STORIES[kind]).state

    involved = {member.member_id for finding, member in involved_members(state, last_ms(kind)) if finding == kind}

    assert bool(involved) == ALARMS[kind].involves


@pytest.mark.parametrize("kind", KINDS)
def test_after_a_restart_it_is_over_once_and_was_not_opened_again(kind: str) -> None:
    """A state that was written and read is as good as the one that was never written."""
    run = Run(STORIES[kind])
    opened = [*of_kind(run.events, kind)]
    again = Run(STORIES[kind], load_group(dump_group(run.state)))

    ended = [*of_kind(run.end(), kind)]

    assert {True} == {over for over, _ in ended}
    assert [over for over, _ in opened].count(False) >= len(ended) > 0
    assert ended == [*of_kind(again.end(), kind)]
    if ALARMS[kind].ends == RECORD:
        assert kind not in again.state.alarms
    else:
        assert {} == still_open(again.state, kind, STORIES[kind].over_ms or 0)


SAID_AGAIN: Final = (3,)
"""Take-overs with which this release says once more, as critical, what the one before said with the second alone."""


@pytest.mark.parametrize("kind", sorted(FORMER.keys() - {ABSENT}))
def test_state_of_the_release_before_goes_on(kind: str) -> None:
    """What it had reported is not reported again, nothing of it is lost, and each is over at its time."""
    own = Run(STORIES[kind])
    assert FORMER[kind]["ids"] == [
        event.id for event in own.events if event.kind == kind and event.detail.get("replacements", 0) not in SAID_AGAIN
    ]
    run = Run(STORIES[kind], load_group(FORMER[kind]["state"]))

    assert own.state.alarms[kind].keys() == run.state.alarms[kind].keys()
    assert [*of_kind(own.end(), kind)] == [*of_kind(run.end(), kind)]
    assert not {"rebalance_storm", "duplicate_assignment"} & run.state.alarms.keys() or kind in run.state.alarms


def test_member_that_is_away_in_a_state_of_the_release_before_is_shown_until_it_is_back() -> None:
    """That release reported it as this one does, kept no alarm of it, and its end was that it returned."""
    own = Run(STORIES[ABSENT])
    assert FORMER[ABSENT]["ids"] == [event.id for event in own.events if event.kind == ABSENT]
    run = Run(STORIES[ABSENT], load_group(FORMER[ABSENT]["state"]))
    now_ms = last_ms(ABSENT)

    assert still_open(own.state, ABSENT, now_ms).keys() == still_open(run.state, ABSENT, now_ms).keys() == {"i"}
    assert not summary(run.state).words.steady
    assert ["static_member_returned"] == [event.kind for event in run.end() if event.kind.startswith("static")]
    assert (None, {}) == (run.state.absences, run.state.alarms)


def test_member_that_stays_away_in_a_state_of_the_release_before_is_given_up_in_silence() -> None:
    """A day later it is open no more, and none of the looks in between reports anything."""
    state = load_group(FORMER[ABSENT]["state"])
    times = (last_ms(ABSENT) + hours * 3_600_000 for hours in range(26))

    assert [] == [event for now_ms in times for event in endings.alarms_over(Moment(state=state, now_ms=now_ms))]
    assert {} == still_open(state, ABSENT, last_ms(ABSENT) + 25 * 3_600_000)


@pytest.mark.parametrize("kind", KINDS)
def test_its_end_is_a_sentence_of_its_own(kind: str) -> None:
    """And no sentence is the name of a kind."""
    run = Run(STORIES[kind])
    said = [
        (over, sentence(event_view(event)))
        for event in [*run.events, *run.end()]
        for over, id_ in of_kind([event], kind)
        if id_
    ]

    assert {False, True} == {over for over, _ in said}
    assert not {text for over, text in said if over} & {text for over, text in said if not over}
    assert kind.replace("_", " ").capitalize() not in {text for _, text in said}

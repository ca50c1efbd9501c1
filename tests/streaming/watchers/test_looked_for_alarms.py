"""Every alarm that only a look with a clock finds, by its row alone: opened, shown, after a restart, and over once."""

from dataclasses import dataclass
from typing import Any, Final

import pytest

from coordinator_model.clocked.finding_members import involved_members
from coordinator_model.clocked.table import CLOCKED_RULES
from coordinator_model.kinds.table import ALARMS, LOOK, LOOKED_FOR, RECORD, WARNING, Alarm
from lab import builders as log
from lab import coordinator_events as happens
from streaming.board import attention, group_answer
from streaming.board.board import Board
from streaming.board.event_window import Event
from streaming.metrics.exporter import Exporter
from streaming.watchers.overdue_watch import OverdueWatch
from tests.histories import Moment, at
from tests.streaming.board_rows import Shard
from tests.streaming.boards import CLUSTER, NOW_MS, board_of, lags_of, log_ends, rendered, sample

SECOND: Final = 1_000
MINUTE: Final = 60 * SECOND


@dataclass(frozen=True, slots=True)
class Story:
    """Of a group `g`, which reads the two partitions of `t`: what leads to it, and what is written that ends it.

    `id` is that of its event as the release before wrote it, where that had the kind.
    """

    opens: tuple[Moment, ...]
    ends: tuple[log.RecordBytes, ...]
    id: str | None


def _old(generation: int, *members: str) -> log.RecordBytes:
    return log.group_metadata("g", generation=generation, members=[log.member(name, {"t": [0, 1]}) for name in members])


STORIES: Final = {
    "rebalance_stuck": Story(
        (
            at(NOW_MS, *happens.consumer_join("g", "a", epoch=1, targets={"a": {"t": [0, 1]}})),
            at(NOW_MS + SECOND, *happens.consumer_join("g", "b", epoch=2, targets={"a": {"t": [0]}, "b": {"t": [1]}})),
        ),
        (
            *happens.consumer_moves("g", "a", epoch=2, assigned={"t": [0]}),
            *happens.consumer_moves("g", "b", epoch=2, assigned={"t": [1]}),
        ),
        "7-10-rebalance_stuck-0",
    ),
    "migration_stalled": Story(
        (
            at(
                NOW_MS,
                log.consumer_group_epoch("g", 5),
                log.consumer_group_target_assignment_epoch("g", 5),
                log.consumer_group_member_subscription("g", "new", topics=["t"]),
                log.consumer_group_member_subscription("g", "old", topics=["t"], classic=happens.speaks_classic()),
                log.consumer_group_current_assignment("g", "new", epoch=5, assigned={"t": [0]}),
                log.consumer_group_current_assignment("g", "old", epoch=5, assigned={"t": [1]}),
            ),
        ),
        (
            *happens.consumer_leave("g", "old", epoch=6),
            *happens.retarget("g", 6, {"new": {"t": [0, 1]}}),
            *happens.consumer_moves("g", "new", epoch=6, assigned={"t": [0, 1]}),
        ),
        "7-5-migration_stalled-0",
    ),
    "members_not_back": Story(
        (
            at(NOW_MS, _old(1, "c1", "c2")),
            at(
                NOW_MS + 60 * SECOND,
                *happens.converted_to_consumer("g", generation=1, members={"c1": {}, "c2": {}}),
                *happens.consumer_join("g", "n1", epoch=2, targets={"n1": {"t": [0, 1]}}),
            ),
            at(
                NOW_MS + 105 * SECOND,
                *happens.consumer_leave("g", "c1", "c2", epoch=3),
                *happens.retarget("g", 3, {"n1": {"t": [0, 1]}}),
                *happens.consumer_moves("g", "n1", epoch=3, assigned={"t": [0, 1]}),
            ),
        ),
        tuple(happens.consumer_join("g", "n2", epoch=4, targets={"n2": {}})),
        None,
    ),
    "group_unsettled": Story(
        tuple(at(NOW_MS + turn * 20 * SECOND, _old(turn + 1, f"m-{turn % 2}")) for turn in range(60)),
        (),
        "7-1-group_unsettled-0",
    ),
    "partition_unassigned": Story(
        (at(NOW_MS, *happens.consumer_join("g", "a", epoch=1, targets={"a": {"t": [0]}}, assigned={"t": [0]})),),
        (
            *happens.retarget("g", 2, {"a": {"t": [0, 1]}}),
            *happens.consumer_moves("g", "a", epoch=2, assigned={"t": [0, 1]}),
        ),
        "7-4-partition_unassigned-2396107522",
    ),
}


class Watched:
    """A board of one group, who looks at it, and the clock."""

    def __init__(self, story: Story) -> None:
        self.shard = Shard(7)
        self.shard.pending += [(of.time_ms, *record) for of in story.opens for record in of.records]
        self.now_ms = story.opens[-1].time_ms
        self.board: Board = board_of(self.shard, ends := log_ends(t=2))
        self.board.health.set_log_end_at_start({7: 1}, {7: 1})
        self.board.health.set_positions({7: 1}, {7: 1}, self.now_ms)
        sample(ends, self.now_ms, "t", 0, 0)
        self.look_anew()

    def look_anew(self) -> None:
        """As after a restart: what was reported is known by the events that are kept."""
        self.watch = OverdueWatch(self.board, self.board.events.add, lambda: self.now_ms)

    def until(self, kind: str, count: int) -> list[Event]:
        """What is reported of a kind, once there is so much of it or an hour of looks is over."""
        looks = 0
        while len(found := self.reported(kind)) < count and looks < 360:
            self.now_ms += 10 * SECOND
            looks += 1
            self.watch.check()
        return found

    def reported(self, kind: str) -> list[Event]:
        return [event for event in self.board.latest_events(999) if event["kind"] == kind]

    def reasons(self) -> dict[str, str]:
        """Code → text, as the page has it."""
        held = self.board.shown.groups["g"]
        lag = lags_of(held, self.board.ends, self.now_ms).of_read(0)
        return {of["code"]: of["text"] for of in attention.reasons(self.board, held, lag, self.now_ms)}

    def answered(self) -> dict[str, str]:
        """The same of the API's answer."""
        answer = group_answer.view(self.board, "g", self.now_ms)
        assert answer is not None
        return {of["code"]: of["text"] for of in answer["attention"]}

    def involved(self, kind: str) -> set[str]:
        """Ids of the members that a finding of this kind is about."""
        state = self.board.shown.groups["g"].state
        return {member.member_id for finding, member in involved_members(state, self.now_ms) if finding == kind}

    def figures(self, metric: str) -> list[float]:
        """The group's samples of a metric."""
        page, _ = rendered(Exporter(self.board, CLUSTER, clock_ms=lambda: self.now_ms))
        lines = [line for line in page.decode().splitlines() if line.startswith(f"{metric}{{") and 'group="g"' in line]
        return [float(line.rpartition(" ")[2]) for line in lines]


def test_every_kind_has_a_story_and_a_rule() -> None:
    """A row that no look finds would be shown nowhere."""
    assert {*LOOKED_FOR} == STORIES.keys()
    assert {*LOOKED_FOR} <= {kind for row in CLOCKED_RULES for kind in row.kinds}


@pytest.mark.parametrize(
    ("fields", "found"),
    [
        ({"ends": RECORD}, "found one='' and shown_as=''"),
        ({"ends": RECORD, "one": "behind", "shown_as": "blockers"}, "found one='behind' and shown_as='blockers'"),
        ({"ends": LOOK, "shown_as": "blockers"}, "found no one"),
        ({"ends": "never", "one": "behind"}, "found ends='never'"),
        ({"ends": RECORD, "one": "behind", "cleared": None}, "found cleared and cleared_as, or neither"),
    ],
)
def test_an_alarm_that_is_shown_nowhere_or_has_no_end_cannot_exist(fields: dict[str, Any], found: str) -> None:
    """Its row is refused as it is made."""
    row = {"severity": WARNING, "meaning": "", "sentence": "", "metric": "", "cleared": "It is over"}

    with pytest.raises(ValueError, match=f"member_behind: {found}"):
        Alarm(name="member_behind", **{**row, **fields})


@pytest.mark.parametrize("kind", LOOKED_FOR)
def test_it_is_shown_while_it_lasts_and_reported_once_over_a_restart(kind: str) -> None:
    """On the page, in the API, as a metric, and with its members where the row says so.

    Its id is that which the release before gave it, so that neither reports it again.
    """
    row, story = ALARMS[kind], STORIES[kind]
    watched = Watched(story)

    (opened,) = watched.until(kind, 1)
    assert story.id in (None, opened["id"])
    assert watched.reasons()[row.code or ""] == row.text(1)
    assert watched.answered() == watched.reasons()
    assert any(value > 0 for value in watched.figures(row.metric))
    assert bool(watched.involved(kind)) == row.involves

    watched.look_anew()
    watched.watch.check()
    assert [opened] == watched.reported(kind)
    assert row.code in watched.reasons()

    if story.ends:
        watched.board.apply(9, watched.shard.write(*story.ends, timestamp_ms=watched.now_ms), watched.now_ms)
    _, over = watched.until(kind, 2)
    watched.now_ms += MINUTE
    watched.watch.check()

    assert over["detail"]["cleared"]
    assert [opened, over] == watched.reported(kind)
    assert row.code not in watched.reasons()

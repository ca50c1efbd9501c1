"""How long a static member may be away: of whom brokers are asked, when, and what is shown of it."""

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field
from typing import Any

from structlog.testing import capture_logs

from lab.coordinator_events import consumer_join, static_goes_away
from streaming.board import group_answer
from streaming.board.board import Board
from streaming.watchers.session_timeouts import FRESH_MS, SessionTimeoutSampler
from tests.streaming.board_rows import Shard
from tests.streaming.boards import NOW_MS, THEN_MS, board_of, classic_group
from tests.streaming.fake_cluster import FakeCluster

TARGETS = {"a": {"t": [0]}}


@dataclass
class FakeConfigs(FakeCluster[list[str]]):
    """The session timeout of each group."""

    timeouts_ms: dict[str, int] = field(default_factory=dict)

    def session_timeouts(self, groups: Collection[str]) -> Mapping[str, int]:
        self.note(sorted(groups))
        return {name: self.timeouts_ms[name] for name in groups if name in self.timeouts_ms}


@dataclass
class Rig:
    """A sampler on a board, and the clock they share."""

    board: Board
    brokers: FakeConfigs
    now_ms: int = NOW_MS

    def __post_init__(self) -> None:
        self.sampler = SessionTimeoutSampler(self.board, self.brokers.connect, lambda: self.now_ms)

    def look(self, *, after_ms: int = 0) -> None:
        self.now_ms += after_ms
        self.sampler.check()

    def static_member(self, group: str) -> dict[str, Any]:
        """What the API shows of the group's only instance id."""
        shown = group_answer.view(self.board, group, self.now_ms)
        assert shown is not None
        (of,) = shown["static_members"]
        return dict(of)


def rig(*away: str, there: Collection[str] = ()) -> Rig:
    """Groups of one static member each, `away` since THEN_MS or `there`, and a classic group."""
    shard = Shard()
    for name in (*away, *there):
        for record in consumer_join(name, "a", epoch=2, targets=TARGETS, instance_id=f"i-{name}"):
            shard.pending.append((THEN_MS - 1_000, *record))
    for name in away:
        for record in static_goes_away(name, "a", assigned=TARGETS["a"], previous_epoch=2):
            shard.pending.append((THEN_MS, *record))
    classic_group(shard, "classic", {"m": {"t": [1]}})
    return Rig(board_of(shard), FakeConfigs())


def test_age_of_an_absence_stands_beside_what_it_may_be() -> None:
    """The log shows since when, the brokers for how long."""
    reported = rig("g")
    reported.brokers.timeouts_ms["g"] = 45_000

    reported.look()

    shown = reported.static_member("g")
    assert (THEN_MS, NOW_MS - THEN_MS, 45_000) == (
        shown["absent_since"], shown["absent_ms"], shown["session_timeout_ms"]
    )  # fmt: skip


def test_brokers_are_asked_about_groups_with_somebody_away_and_no_other() -> None:
    """One question for all of them, and none where everybody is there."""
    asked, quiet = rig("g", "h", there=["i"]), rig(there=["i"])

    asked.look()
    quiet.look()

    assert ([["g", "h"]], []) == (asked.brokers.asked, quiet.brokers.asked)
    assert 0 == quiet.brokers.connections


def test_nothing_is_asked_again_within_a_minute() -> None:
    """Answered or not; after that it may have been configured again."""
    reported = rig("g")

    reported.look()
    reported.look(after_ms=FRESH_MS - 1)
    reported.look(after_ms=1)

    assert [["g"], ["g"]] == reported.brokers.asked


def test_timeout_is_unknown_where_brokers_do_not_tell() -> None:
    """Out of reach, or without the permission: the age is shown alone, and the next try is a new connection."""
    reported = rig("g")
    reported.brokers.down = OSError("away")

    reported.look()
    reported.look(after_ms=FRESH_MS)

    assert None is reported.static_member("g")["session_timeout_ms"]
    assert 2 == reported.brokers.connections


def test_answers_last_through_an_outage() -> None:
    """What was said once is shown until something else is said."""
    reported = rig("g")
    reported.brokers.timeouts_ms["g"] = 45_000
    reported.look()
    reported.brokers.down = OSError("away")

    reported.look(after_ms=FRESH_MS)

    assert 45_000 == reported.static_member("g")["session_timeout_ms"]


def test_an_outage_is_logged_when_it_begins_and_when_it_is_over() -> None:
    """However many questions fail in between; the last line says how many."""
    reported = rig("g")
    with capture_logs() as lines:
        reported.brokers.down = OSError("away")
        for _ in range(3):
            reported.look(after_ms=FRESH_MS)
        reported.brokers.down = None
        reported.look(after_ms=FRESH_MS)
        reported.look(after_ms=FRESH_MS)

    assert ["session_timeouts_unavailable", "session_timeouts_available_again"] == [line["event"] for line in lines]
    assert ("OSError: away", 3) == (lines[0]["reason"], lines[1]["failures"])

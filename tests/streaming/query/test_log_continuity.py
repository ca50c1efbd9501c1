"""Whether the log is still the one that was read: shown by what brokers say from look to look."""

from collections.abc import Collection, Mapping
from typing import Any, Final

import pytest

from streaming.kafka.leader_epochs import LeaderEpochEnd
from streaming.kafka.log_bounds import Bounds
from streaming.query.log_continuity import GAP_SECONDS, SAME_TAIL_MS, SHORT_SECONDS, LogContinuity, Look, Note

DAY: Final = 86_400.0


class Log:
    """One partition's leader and its log: where each epoch begins, and where the log ends.

    `keeps_epochs` is whether its message format has them; `answers` whether it can be asked about them.
    """

    def __init__(self, *epochs: tuple[int, int], end: int) -> None:
        self.epochs, self.end, self.leader = list(epochs), end, 1
        self.keeps_epochs = self.answers = True

    def end_of(self, epoch: int) -> LeaderEpochEnd:
        """As a leader answers: the last epoch that is no later, and where the next one begins."""
        if not self.keeps_epochs:
            return LeaderEpochEnd(-1, -1)
        earlier = [of for of, _ in self.epochs if of <= epoch]
        later = [begins for of, begins in self.epochs if of > epoch]
        return LeaderEpochEnd(max(earlier, default=epoch), min(later, default=self.end))


class Run:
    """A run of the monitor on a log of one partition, from a position on."""

    def __init__(self, log: Log, start: dict[str, Any], **known: Any) -> None:
        self.log, self.position, self.now = log, start, 0.0
        self.asked: list[int] = []
        self._continuity = LogContinuity(self._ask, clock=lambda: self.now, **known)

    def look(self, seconds: float = 0.4, *, leader: bool = True, partitions: int = 1) -> Look:
        """The next look, some time later; of what may be read a micro-batch is made."""
        self.now += seconds
        of = self.log
        bounds = Bounds({}, {}, partitions=partitions)
        if leader:
            bounds = Bounds({0: of.end}, {0: of.end}, {0: of.epochs[-1][0]}, {0: of.leader}, partitions=partitions)
        look = self._continuity.look(self.position, bounds, lambda wanted: dict.fromkeys(wanted, 0))
        if 0 in look.high and (look.high[0] > self.position["membership"].get("0", 0) or look.again):
            self._continuity.planned([0])
            uneven = {**self.position.get("uneven", {}), **{str(of): [*by] for of, by in look.uneven.items()}}
            self.position = read_to(look.high[0], epoch=look.epochs(0, look.high[0]))
            self.position |= {"uneven": uneven} if uneven else {}
        return look

    def _ask(
        self, asked: Collection[tuple[int, int]], leaders: Mapping[int, int]
    ) -> dict[tuple[int, int], LeaderEpochEnd]:
        assert {0: self.log.leader} == leaders
        self.asked += [epoch for _, epoch in sorted(asked)]
        return {(0, epoch): self.log.end_of(epoch) for _, epoch in asked} if self.log.answers else {}


def read_to(offset: int, *, epoch: int | None = None) -> dict[str, Any]:
    """A position; of a release that noted no epochs without one."""
    of = {"commits": {"0": offset}, "membership": {"0": offset}}
    return of if epoch is None else {**of, "epochs": {"0": epoch}}


class TestLeaderEpochs:
    """What a new leader is asked before anything is read of it."""

    def test_a_leader_that_has_all_that_was_read_is_read_on_from(self) -> None:
        """A move of a leader, as after every rolling restart."""
        log = Log((2, 0), end=100)
        run = Run(log, read_to(90, epoch=2))
        run.look()
        log.epochs.append((3, 100))
        log.end = 120

        look = run.look()

        assert ({0: 120}, {}, {}) == (look.high, look.begins, look.again)
        assert {"0": 3} == run.position["epochs"]

    def test_a_lost_tail_is_read_again_though_the_log_has_grown_back(self) -> None:
        """An unclean election: the new leader ends the former epoch before what was read of it."""
        log = Log((2, 0), end=100)
        run = Run(log, read_to(100, epoch=2))
        run.look()
        run.log = Log((2, 0), (3, 80), end=150)

        look = run.look()

        assert {0: {"from": 80, "to": 100}} == look.again
        assert {0: (0, 0)} == look.begins

    def test_a_lost_tail_is_found_at_a_start(self) -> None:
        """It was lost while no monitor ran."""
        assert {0: {"from": 80, "to": 100}} == Run(Log((2, 0), (3, 80), end=150), read_to(100, epoch=2)).look().again

    def test_a_lost_tail_of_which_nothing_was_read_is_none(self) -> None:
        """What was there between is not missed."""
        assert {} == Run(Log((2, 0), (3, 100), end=150), read_to(100, epoch=2)).look().again

    def test_other_records_in_the_place_of_those_read_are_found(self) -> None:
        """The former leader comes back by a second unclean election: longer than what was read, and without it."""
        log = Log((5, 0), (6, 80), end=90)
        run = Run(log, read_to(90, epoch=6))
        run.look()
        run.log = Log((5, 0), (7, 100), end=100)

        assert {0: {"from": 90, "to": 90}} == run.look().again

    def test_an_epoch_without_records_is_missed_by_nobody(self) -> None:
        """A leader that wrote nothing leaves none: what was read is of the epoch before."""
        log = Log((5, 0), (6, 90), end=90)
        run = Run(log, read_to(80, epoch=5))
        run.look()
        assert {"0": 5} == run.position["epochs"]
        run.log = Log((5, 0), (7, 90), end=95)

        assert ({}, {0: 95}) == ((look := run.look()).again, look.high)

    def test_an_empty_broker_under_the_same_id_has_lost_everything(self) -> None:
        """Its log begins at 0, in an epoch of its own, and has nothing."""
        run = Run(Log((4, 0), end=0), read_to(100, epoch=3))

        assert {0: {"from": 0, "to": 100}} == run.look().again

    def test_nobody_is_asked_while_leaders_stay(self) -> None:
        """Once at the start, and again when another leads."""
        run = Run(Log((2, 0), end=100), read_to(90, epoch=2))
        run.look()
        asked = list(run.asked)
        run.log.end = 130
        run.look()

        assert [1, 2] == asked == run.asked

    def test_a_leader_that_cannot_be_asked_is_not_read_yet(self) -> None:
        """Its records may be others; they are read once it has answered."""
        run = Run(Log((2, 0), (3, 100), end=150), read_to(100, epoch=2))
        run.log.answers = False

        assert {} == run.look().high

        run.log.answers = True

        assert {0: 150} == run.look().high

    def test_a_message_format_without_epochs_is_read_on(self) -> None:
        """It has no answer, and that is no loss."""
        log = Log((2, 0), end=100)
        log.keeps_epochs = False
        run = Run(log, read_to(90, epoch=1))

        assert ({}, {0: 100}) == ((look := run.look()).again, look.high)
        assert {"0": -1} == run.position["epochs"]

    def test_brokers_without_epochs_are_read_on(self) -> None:
        """Before 2.1 an end names none, and no leader is asked."""
        run = Run(Log((-1, 0), end=100), read_to(90))

        assert {0: 100} == run.look().high
        assert [] == run.asked

    def test_a_position_of_an_earlier_release_is_read_on(self) -> None:
        """It names no epoch; the next one does."""
        run = Run(Log((2, 0), end=100), read_to(90))

        assert {} == run.look().again
        assert {"0": 2} == run.position["epochs"]


class TestUneven:
    """Replicas of a log that was cut off may differ at offsets where each was cleaned separately: no epoch tells."""

    def test_each_broker_that_comes_to_lead_it_is_read_from_its_beginning(self) -> None:
        """As its coordinator loads its own log; not again while it leads, nor at a restart."""
        run = Run(Log((2, 0), end=100), read_to(100, epoch=2))
        run.look()
        run.log = Log((2, 0), (3, 80), end=150)
        assert {0: {"from": 80, "to": 100}} == run.look().again

        run.log.end = 160
        assert {} == run.look().again

        for epoch, leader in ((4, 2), (5, 1)):
            run.log.epochs.append((epoch, run.log.end))
            run.log.leader, run.log.end = leader, run.log.end + 10
            look = run.look()
            assert ({0: {"replica": leader}}, {0: (0, 0)}) == (look.again, look.begins)
            run.log.end += 10
            assert {} == run.look().again
            assert {} == Run(run.log, run.position).look().again
        run.log.leader = 2
        run.log.epochs.append((6, run.log.end))
        assert {0: {"replica": 2}} == Run(run.log, run.position).look().again

    def test_a_leader_of_a_later_epoch_is_read_from_its_beginning_though_it_led_before(self) -> None:
        """While the monitor was away another may have led, whose log it followed; what it had dropped is dropped."""
        run = Run(Log((2, 0), end=100), read_to(100, epoch=2))
        run.look()
        run.log = Log((2, 0), (3, 80), end=150)
        run.look()
        run.log.epochs += [(4, 150), (5, 155)]
        run.log.end = 160

        assert ({0: {"replica": 1}}, {0: (0, 0)}) == ((look := Run(run.log, run.position).look()).again, look.begins)

    def test_a_position_of_a_former_release_knows_the_broker_alone(self) -> None:
        """It is read on while that one leads, and of the next one's log from the beginning; then the epoch is known."""
        log = Log((2, 0), (3, 80), end=150)
        run = Run(log, {**read_to(140, epoch=3), "uneven": {"0": 1}})

        assert {} == run.look().again
        assert {"0": [1, 3]} == run.position["uneven"]

        log.epochs.append((4, 150))
        log.leader, log.end = 2, 160

        assert {0: {"replica": 2}} == Run(log, {**read_to(150, epoch=3), "uneven": {"0": 1}}).look().again

    def test_a_leader_that_moves_is_read_on_where_nothing_was_lost(self) -> None:
        """Replicas that were never cut off have the same last record of each key."""
        run = Run(Log((2, 0), end=100), read_to(90, epoch=2))
        run.look()
        run.log.leader, run.log.end = 2, 120
        run.log.epochs.append((3, 100))

        assert ({}, {0: 120}) == ((look := run.look()).again, look.high)

    def test_a_log_that_was_unread_for_long_is_no_uneven_one(self) -> None:
        """It is read again as tombstones may be gone, and had them on all brokers."""
        run = Run(Log((2, 0), end=100), read_to(90, epoch=2), tombstone_seconds=60.0)
        run.look()
        run.log.end = 120
        run.look(90.0, leader=False)
        assert "unread_seconds" in run.look(1.0).again[0]
        run.log.leader, run.log.end = 2, 130
        run.log.epochs.append((3, 120))

        assert {} == run.look().again


class TestShorterLogs:
    """A log that ends before what was read, and whose epochs do not tell why."""

    def test_a_log_that_is_shorter_for_a_moment_is_waited_for(self) -> None:
        """A new leader may not know yet how far its log reaches."""
        log = Log((-1, 0), end=80)
        run = Run(log, read_to(90))

        assert {} == run.look().high
        assert {} == run.look(SHORT_SECONDS - 1).high

        log.end = 95

        assert ({0: 95}, {}) == ((look := run.look()).high, look.again)

    def test_a_log_that_stays_shorter_is_read_again(self) -> None:
        """It was cut off."""
        run = Run(Log((-1, 0), end=80), read_to(90))
        run.look()

        assert {0: {"from": 80, "to": 90}} == run.look(SHORT_SECONDS).again


class TestGaps:
    """A partition that was not looked at for a while, its leader being away, or everything standing still."""

    def test_what_comes_after_a_gap_is_judged_as_after_a_restart(self) -> None:
        """The log's end as it is found then says below what records may be missing; the live tail goes on."""
        run = Run(Log((2, 0), end=100), read_to(100, epoch=2))
        run.look()
        run.look(leader=False)
        run.log.end = 120

        assert {0: (120, None)} == run.look(GAP_SECONDS).gaps

    def test_a_moment_is_no_gap(self) -> None:
        """Nothing is cleaned away so soon."""
        run = Run(Log((2, 0), end=100), read_to(100, epoch=2))
        run.look()
        run.log.end = 120

        assert {} == run.look(GAP_SECONDS - 1).gaps

    def test_nothing_written_is_no_gap(self) -> None:
        """There is nothing to judge."""
        run = Run(Log((2, 0), end=100), read_to(100, epoch=2))
        run.look()

        assert {} == run.look(GAP_SECONDS).gaps

    def test_after_more_than_five_minutes_only_state_is_made(self) -> None:
        """As after a restart: who comes so late cannot know what was cleaned meanwhile."""
        run = Run(Log((2, 0), end=100), read_to(100, epoch=2))
        run.look()
        run.log.end = 120

        assert {0: (120, 120)} == run.look(SAME_TAIL_MS / 1_000 + 1).gaps

    def test_after_tombstones_are_gone_it_is_read_again(self) -> None:
        """Else what ended meanwhile would stay for ever."""
        run = Run(Log((2, 0), end=100), read_to(100, epoch=2), tombstone_seconds=DAY)
        run.look()
        run.log.end = 120

        assert {0: {"unread_seconds": round(DAY)}} == run.look(DAY).again

    def test_nothing_unread_outlives_nothing(self) -> None:
        """There is no tombstone that could be missed."""
        run = Run(Log((2, 0), end=100), read_to(100, epoch=2), tombstone_seconds=DAY)
        run.look()

        assert {} == run.look(DAY).again

    @pytest.mark.parametrize(
        ("live_from", "seconds", "gap"),
        [
            pytest.param([0], 100.0, (120, None), id="the run before ended a moment ago"),
            pytest.param([0], 400.0, (120, 120), id="it ended long ago"),
            pytest.param([], 100.0, (120, 120), id="where it is live is not known"),
        ],
    )
    def test_a_leader_that_was_away_at_the_start(
        self, live_from: list[int], seconds: float, gap: tuple[int, int | None]
    ) -> None:
        """How long it was not read counts from before the start."""
        run = Run(Log((2, 0), end=120), read_to(100, epoch=2), live_from=live_from, unread_seconds=seconds)
        run.look(leader=False)

        assert {0: gap} == run.look().gaps

    def test_what_a_first_run_finds_once_a_leader_comes_is_history(self) -> None:
        """It is from before this run looked, and nothing in it is an alarm."""
        run = Run(Log((2, 0), end=120), {"commits": {}, "membership": {}}, live_from=[])
        run.look(leader=False)

        look = run.look()

        assert ({0: (120, 120)}, {0: (0, 0)}) == (look.gaps, look.begins)

    def test_a_partition_that_is_new_is_live(self) -> None:
        """The topic was grown while the monitor watched: all that it holds was written since."""
        run = Run(Log((0, 0), end=20), {"commits": {}, "membership": {}}, live_from=[])
        run.look(leader=False, partitions=0)

        look = run.look()

        assert ({}, {0: (0, 0)}) == (look.gaps, look.begins)


class TestOwed:
    """Records that were planned, and could not be read."""

    def test_what_is_owed_is_read_from_where_it_was_planned(self) -> None:
        """The position is beyond it."""
        run = Run(Log((2, 0), end=120), read_to(110, epoch=2), owed={0: Note((95, 100))})

        look = run.look()

        assert ({0: (95, 100)}, {0: 120}) == (look.begins, look.high)

    def test_what_was_brought_is_owed_no_more(self) -> None:
        """The run before had planned it, and its micro-batch was repeated at this start."""
        start = {**read_to(110, epoch=2), "begins": {"0": [95, 100]}}
        run = Run(Log((2, 0), end=120), start, owed={0: Note((95, 100))})

        assert {} == run.look().begins

    def test_what_was_to_be_read_again_is(self) -> None:
        """From its beginning, with the reason."""
        why = {"from": 80, "to": 100}
        run = Run(Log((2, 0), end=120), read_to(110, epoch=2), owed={0: Note((0, 0), again=why)})

        look = run.look()

        assert ({0: why}, {0: (0, 0)}) == (look.again, look.begins)

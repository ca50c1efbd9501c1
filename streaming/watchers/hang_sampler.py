"""Asks coordinators about classic groups that may hang (`coordinator_model.clocked.hang_suspicion`), and no others.

All groups are looked through with each measurement of their lag (`lag_sampler.py`), on columns; one thread looks at
those that were found every few seconds. The suspects of a coordinator are asked about in one DescribeGroups; one
that turns out to be between two generations is asked about again with the next check, any other after a minute. So the
number of questions grows with the silent groups, not with all groups, up to `MOST_ASKED` a check.

It needs the permission DESCRIBE on the groups, and does without: a group that is refused is not asked about for an
hour, and logged once. Of failures in a row the first is logged, and their end.
"""

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from itertools import islice
from typing import Final, Protocol

import numpy as np
from kafka.errors import KafkaError

from coordinator_model.clocked import hang_suspicion
from coordinator_model.clocked.described import Described
from coordinator_model.figures.table import GroupWords
from streaming.base.logging_setup import get_logger
from streaming.base.outage import Outage
from streaming.base.threads import Connection, Repeating
from streaming.board.board import Board
from streaming.board.board_group import BoardGroup
from streaming.board.lag_columns import Lags
from streaming.kafka.cluster_client import ReportedGroup

CHECK_EVERY_SECONDS: Final = 5.0
MOST_ASKED: Final = 50

CALM_MS: Final = 60_000
"""How long a suspect that is not rebalancing is left alone."""

REFUSED_MS: Final = 3_600_000

_log = get_logger("suspects")


class GroupsClient(Protocol):
    """What the sampler asks of a cluster. Both methods may raise KafkaError, OSError or RuntimeError."""

    def describe(self, groups: Collection[str], broker: int) -> Mapping[str, ReportedGroup]:
        """Groups that this broker coordinates; those it knows nothing of are left out."""
        ...

    def close(self) -> None:
        """Let go of all connections; a call under way in another thread ends with an error."""
        ...


class HangSampler:
    """The thread that asks.

    Args:
        board: where the groups are; no group is suspected before it is ready.
        connect: makes a client; called again after a failure.
        clock_ms: the wall clock, in milliseconds.
    """

    def __init__(self, board: Board, connect: Callable[[], GroupsClient], clock_ms: Callable[[], int]) -> None:
        self._board = board
        self._clock_ms = clock_ms
        self._connection = Connection(connect)
        self._outage = Outage(_log, "group_descriptions", clock_ms)
        self._answers: dict[str, Described] = {}
        self._not_before_ms: dict[str, int] = {}
        self._unanswered: list[BoardGroup] = []
        self._logged_refusal = False
        self._worth_a_look: Mapping[str, bool] = {}
        """Group → whether records wait for it, as its lag was last measured."""
        thread = Repeating("suspects", CHECK_EVERY_SECONDS, self.check, self._connection.drop)
        self.start, self.stop, self._stopping = thread.start, thread.stop, thread.stopping

    @property
    def answers(self) -> Mapping[str, Described]:
        """Group → the last answer about it, of present suspects. Replaced, never changed."""
        return self._answers

    def check(self) -> None:
        """Ask about those whose turn it is. Never raises."""
        if not self._board.health.ready()[0]:
            return
        now_ms, found = self._clock_ms(), self._worth_a_look
        answered = {held.name for held in self._suspects(self._answers.keys() & found, now_ms)}
        self._answers = {name: answer for name, answer in self._answers.items() if name in answered}
        self._not_before_ms = {name: ms for name, ms in self._not_before_ms.items() if name in found}
        waiting = [name for name in found if self._not_before_ms.get(name, now_ms) <= now_ms]
        # Who has waited longest is asked first: otherwise a few would keep all others from their turn.
        waiting.sort(key=lambda name: self._not_before_ms.get(name, 0))
        # Without an answer nobody knows that an outage is over, though by now none may be suspected.
        due = list(islice(self._suspects(waiting, now_ms), MOST_ASKED)) or self._unanswered
        if not due:
            return
        try:
            self._unanswered = due
            self._ask(due)
            self._unanswered = []
            self._outage.succeeded()
        except Exception as error:  # noqa: BLE001 - whatever a client throws must not end the looking
            if not self._stopping.is_set():
                self._outage.failed(error)
            self._connection.drop()

    def look(self, lags: Lags, now_ms: int) -> None:
        """Take the lag of all groups at this moment: which of them may be suspected until the next."""
        groups = lags.table.groups
        step_ms, (_, committed_ms, _, unknown) = groups["last_step_ms"], lags.read
        # Who waited when the lag was last known does so until it is known again.
        waited = np.zeros(len(groups), np.bool_)
        waited[[groups.places[name] for name, of in self._worth_a_look.items() if of and name in groups.places]] = True
        waits = (lags.waits | (waited & (unknown > 0))) & (
            now_ms - np.maximum(committed_ms, step_ms) > hang_suspicion.SILENT_MS
        )
        emptied = (groups["classic_members"] == 0) & (now_ms - step_ms <= hang_suspicion.RECENT_MS)
        found = np.flatnonzero(groups.by_words(_may_hang) & (waits | emptied | groups.has("rounds_lost_ms")))
        self._worth_a_look = {
            groups.names[at]: of for at, of in zip(found.tolist(), waits[found].tolist(), strict=True)
        }

    def _suspects(self, names: Iterable[str], now_ms: int) -> Iterator[BoardGroup]:
        """Those of these groups that are suspected now; in a cluster that is silent, that may be all there are."""
        groups, found = self._board.shown.groups, self._worth_a_look
        for name in names:
            held, waits = groups.get(name), found.get(name)
            if held is None or waits is None or not _may_hang(held.words):
                continue
            of = held.summary
            if hang_suspicion.why(
                members=of.members,
                last_step_ms=of.last_step_ms,
                rounds_lost_ms=of.rounds_lost_ms,
                newest_commit_ms=held.newest_commit_ms,
                lags=waits,
                now_ms=now_ms,
            ):
                yield held

    def _ask(self, due: Collection[BoardGroup]) -> None:
        topic = self._board.ends.topic(self._board.offsets_topic)
        leaders = {} if topic is None else topic.leaders
        by_broker: dict[int, list[BoardGroup]] = {}
        for held in due:
            if held.summary.partition in leaders:
                by_broker.setdefault(leaders[held.summary.partition], []).append(held)
        failed: Exception | None = None
        for broker, groups in by_broker.items():
            try:
                answers = self._connection.client.describe([held.name for held in groups], broker)
            except (KafkaError, OSError, RuntimeError) as error:
                failed = failed or error
                self._board.ends.doubt_leaders()
                continue
            for held in groups:
                self._take(held, answers.get(held.name, ReportedGroup()), self._clock_ms())
        if failed is not None:
            raise failed

    def _take(self, held: BoardGroup, answer: ReportedGroup, now_ms: int) -> None:
        name = held.name
        if answer.away:
            # Asked again with the next check: by then the topic is described again, if another broker leads it.
            self._board.ends.doubt_leaders()
            return
        if answer.refused:
            self._not_before_ms[name] = now_ms + REFUSED_MS
            if not self._logged_refusal:
                self._logged_refusal = True
                _log.info("group_not_described", group=name, needs="the permission DESCRIBE on groups")
            return
        step_offset = held.state.last_step_offset
        reported = hang_suspicion.described(self._answers.get(name), answer.state, answer.members, step_offset, now_ms)
        self._answers = {**self._answers, name: reported}
        self._not_before_ms[name] = now_ms if reported.rebalancing else now_ms + CALM_MS


def _may_hang(words: GroupWords) -> bool:
    """Whether it is a group of which the log would not show a rebalance."""
    return not (words.is_modern or words.simple or words.in_step)

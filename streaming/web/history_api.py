"""What the API answers of the past: from the history if one is kept, and of the last seconds from the board."""

import threading
from collections.abc import Collection, Iterator, Mapping
from contextlib import contextmanager, suppress
from typing import TYPE_CHECKING, Any, Final, cast

from coordinator_model.kinds.table import sentence
from streaming.base.answers import BurnDownAnswer, EventAnswer, HistoryAnswer
from streaming.base.errors import CannotTellError, CheckFailed, NoSuchGroupError
from streaming.base.name_filter import one_of
from streaming.board.board import Board, BoardMoment
from streaming.board.event_window import Event
from streaming.board.plan import Completed
from streaming.reports import rolled
from streaming.web.query_parameters import SHOWN, BadRequestError, NotFoundError, limit_of, pattern_of, time_of

if TYPE_CHECKING:
    from streaming.history.queries import History

DEFAULT_EVENTS: Final = 1_000
DAY_MS: Final = 86_400_000
WEEK_MS: Final = 7 * DAY_MS
MOST_EVENTS: Final = 10_000
MOST_QUESTIONS: Final = 4
"""The history reads files for each question; more than so many at a time would keep others from being answered."""


class NoHistoryError(LookupError):
    """No history is kept; the message says how one is."""


class BusyError(RuntimeError):
    """So much is asked already that this is not answered now; the message says of what."""


class HistoryApi:
    """Answers from a history.

    Args:
        board: holds what is in no file yet, and the names of topics.
        history: what is kept, if anything is.
    """

    def __init__(self, board: Board, history: "History | None") -> None:
        self._board = board
        self._history = history
        self._turns = threading.BoundedSemaphore(MOST_QUESTIONS)

    @property
    def is_kept(self) -> bool:
        """Whether there is a history."""
        return self._history is not None

    def of(self, name: str, query: Mapping[str, str]) -> HistoryAnswer:
        """What happened to a group, by `since`, `until` and `limit`; or, with `at`, the GROUP as it was, and `as_of`.

        Raises:
            BadRequestError: a parameter is not what is accepted.
            NoHistoryError: none is kept.
            BusyError: others ask it already.
            NotFoundError: there is, or was, no such group.
            CannotTellError: the history does not go back so far, or cannot be read.
        """
        moment = self._board.moment()
        # Files have what was; only what is not read now is missing in them.
        unread = moment.standing.unread.of(name, moment.shown.groups.get(name))
        try:
            with self._turn() as history:
                if query.get("at"):
                    return cast(HistoryAnswer, history.group_at(name, time_of("at", query["at"])))
                found: HistoryAnswer = {"group": name, "events": self._events(history, name, query)}
                if unread is not None:
                    found["doubt"] = unread
                return found
        except NoSuchGroupError as error:
            raise NotFoundError(str(error), moment.doubt_of(name)) from None

    def refuse_unknown(self, groups: Collection[str]) -> None:
        """Raise NotFoundError for the first of these groups that is not shown."""
        moment = self._board.moment()
        for name in groups:
            if name not in moment.shown.groups or not self._board.scope.groups(name):
                raise no_group(name, moment)

    def burn_down(self, query: Mapping[str, str], now_ms: int, groups: Collection[str] = ()) -> BurnDownAnswer:
        """The migration from `since` until now, of all groups in scope, or of those of `groups` and of `match`.

        A group that is named may have ended since.

        Raises:
            BadRequestError, NoHistoryError, BusyError, CannotTellError: as `of`.
        """
        since_ms = time_of("since", query["since"]) if query.get("since") else now_ms - WEEK_MS
        if since_ms >= now_ms:
            raise BadRequestError(f"since: found {query['since'][:SHOWN]!r}, accepted: a time of the past")
        asked = one_of(groups, pattern_of("match", query.get("match")))

        def chosen(name: str) -> bool:
            return self._board.scope.groups(name) and asked(name)

        with self._turn() as history:
            return history.burn_down(since_ms, now_ms, chosen)

    def completed(self, now_ms: int) -> Completed | None:
        """Rebalances of the last day; None where no history is kept, or it does not answer now."""
        with suppress(NoHistoryError, BusyError, CannotTellError), self._turn() as history:
            return Completed(*history.rebalances(now_ms - DAY_MS, now_ms))
        return None

    def report(self, name: str, query: Mapping[str, str], now_ms: int) -> dict[str, Any]:
        """What a roll of a group cost since `since`: measured from kept records, else from events, kept or remembered.

        Raises:
            BadRequestError: a parameter is not what is accepted.
            NotFoundError: there is no such group.
            BusyError, CannotTellError: as `of`.
        """
        moment = self._board.moment()
        if name not in moment.shown.groups:
            raise no_group(name, moment)
        if not query.get("since"):
            raise BadRequestError("since: found nothing, accepted: when the roll began")
        since_ms = time_of("since", query["since"])
        until_ms = time_of("until", query["until"]) if query.get("until") else now_ms
        if until_ms <= since_ms:
            raise BadRequestError("until: found a time not after since, accepted: a later one")
        found = self._measured(name, since_ms, until_ms)
        if found is None:
            span = {"since": str(since_ms), "until": str(until_ms), "limit": str(MOST_EVENTS)}
            events = self.of(name, span)["events"] if self.is_kept else self._remembered(name, since_ms, until_ms)
            found = rolled.of_events(events, name, since_ms, until_ms)
        rolled.add_lag(found, self._board.lag_history.group(name))
        rolled.add_doubt(found, moment.doubt_of(name))
        return found

    def _measured(self, name: str, since_ms: int, until_ms: int) -> dict[str, Any] | None:
        """From the records that a history keeps; None where it keeps none, or none as late."""
        if self._history is None:
            return None
        # Imported late: without a history there is no Parquet.
        from streaming.history.log_archive import header, read_until_ms

        with suppress(CannotTellError, CheckFailed, NoSuchGroupError), self._turn() as history:
            known = read_until_ms(history.directory)  # before the records: they may be more, never less
            records = history.records(name)
            return rolled.of_records(header(history.directory), records, name, since_ms, until_ms, known)
        return None

    def _remembered(self, name: str, since_ms: int, until_ms: int) -> list[Event]:
        window = self._board.events
        found = window.latest(window.size, group=name, since_ms=since_ms)
        return [self._board.named(event) for event in found if event["time"] <= until_ms]

    @contextmanager
    def _turn(self) -> Iterator["History"]:
        if self._history is None:
            raise NoHistoryError("history: found none kept, accepted: a monitor with history.enabled")
        if not self._turns.acquire(blocking=False):
            raise BusyError(f"history: found {MOST_QUESTIONS} questions under way, accepted: fewer at a time")
        try:
            yield self._history
        finally:
            self._turns.release()

    def _events(self, history: "History", name: str, query: Mapping[str, str]) -> list[EventAnswer]:
        limit = limit_of(query.get("limit") or str(DEFAULT_EVENTS), MOST_EVENTS)
        since_ms, until_ms = (time_of(of, query[of]) if query.get(of) else None for of in ("since", "until"))
        # What came in within the last seconds is not in the files yet.
        window = self._board.events
        recent = window.latest(window.size, group=name, since_ms=since_ms)
        recent = [event for event in recent if until_ms is None or event["time"] <= until_ms]
        ask = history.timeline if recent else history.events
        kept = ask(name, since_ms=since_ms, until_ms=until_ms, limit=limit)
        by_id = {event["id"]: event for event in (*kept, *recent)}
        found = sorted(by_id.values(), key=lambda event: (event["time"], event["partition"], event["offset"]))
        return [with_sentence(self._board.named(event)) for event in found[-limit:]]


def no_group(name: str, moment: BoardMoment) -> NotFoundError:
    """That there is no such group, or that it is not known whether there is."""
    return NotFoundError(f"group: found {name!r}, accepted: a group of this cluster", moment.doubt_of(name))


def with_sentence(event: Event) -> EventAnswer:
    """The event with its sentence as `text`."""
    return cast(EventAnswer, {**event, "text": sentence(event)})

"""What the API answers of the past: from the history if one is kept, and of the last seconds from the board."""

import threading
from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from streaming.board.board import Board
from streaming.board.event_window import Event
from streaming.web.query_parameters import limit_of, time_of

if TYPE_CHECKING:
    from streaming.history.queries import History

DEFAULT_EVENTS: Final = 1_000
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

    def of(self, name: str, query: Mapping[str, str]) -> dict[str, Any]:
        """What happened to a group, by `since`, `until` and `limit`; or, with `at`, the GROUP as it was, and `as_of`.

        Raises:
            BadRequestError: a parameter is not what is accepted.
            NoHistoryError: none is kept.
            BusyError: others ask it already.
            CheckFailed: there is, or was, no such group.
            CannotTellError: the history does not go back so far, or cannot be read.
        """
        if self._history is None:
            raise NoHistoryError("history: found none kept, accepted: a monitor with history.enabled")
        if not self._turns.acquire(blocking=False):
            raise BusyError(f"history: found {MOST_QUESTIONS} questions under way, accepted: fewer at a time")
        try:
            if query.get("at"):
                return self._history.group_at(name, time_of("at", query["at"]))
            return {"group": name, "events": self._events(self._history, name, query)}
        finally:
            self._turns.release()

    def _events(self, history: "History", name: str, query: Mapping[str, str]) -> list[Event]:
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
        return [self._board.named(event) for event in found[-limit:]]

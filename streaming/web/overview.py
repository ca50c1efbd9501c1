"""All groups in a line each, and what of it changed: what the page keeps up with.

Rows are made once for all who look, at most every second and less often where making them takes long. A row that
differs from the one before gets the number of this making, its *version*; a client that has seen version n is sent what
is newer than n. Five thousand groups of which ten move cost ten rows a second.
"""

import threading
import time
import uuid
from collections import deque
from collections.abc import Callable, Mapping
from typing import Final

from coordinator_model.clocked.not_back import KIND as NOT_BACK
from streaming.base.answers import RowAnswer
from streaming.base.persistent_map import GroupMap
from streaming.board import attention
from streaming.board.batch_update import BoardSnapshot
from streaming.board.board import Board, BoardMoment
from streaming.board.board_group import BoardGroup
from streaming.board.lag_columns import Lags, measure, table_of
from streaming.board.readiness import Standing
from streaming.board.unread import Unread
from streaming.end_offsets.store import Topic

MAKE_EVERY_SECONDS: Final = 1.0
SHARE_OF_TIME: Final = 0.2
"""Making takes no more than this share of the time, however many groups there are."""

REMEMBERED: Final = 120
"""Versions that a reader may be behind, and still be sent changes."""

UNASKED_SECONDS: Final = 600.0
"""After so long without a reader nothing is kept: it holds on to groups as they were for the last one."""

_TENTHS_BELOW_SECONDS: Final = 60


class Overview:
    """Rows of all groups, with versions.

    Args:
        board: what is summed up.
        clock_ms: the wall clock, in milliseconds.
    """

    def __init__(self, board: Board, clock_ms: Callable[[], int]) -> None:
        self._board = board
        self._clock_ms = clock_ms
        self._lock = threading.Lock()
        self._asked = time.monotonic()
        # Versions of two runs of the monitor are not comparable.
        self.run: Final = uuid.uuid4().hex[:8]
        self._version = 0
        self._forget()

    def _forget(self) -> None:
        self._made_until = 0.0
        self._rows: dict[str, RowAnswer] = {}
        self._names: list[str] | None = None
        self._doubted: Mapping[str, int] = {}
        self._made_of = BoardMoment(BoardSnapshot(), Standing([], None))
        self._figures: dict[str, tuple[float, ...]] = {}
        self._found: tuple[Mapping[str, frozenset[str]], Mapping[str, Topic]] = ({}, {})
        self._changes: deque[tuple[int, frozenset[str], frozenset[str]]] = deque(maxlen=REMEMBERED)

    def rows(self) -> tuple[int, list[RowAnswer], BoardMoment]:
        """Version, the rows of the groups in scope by name, and the moment they are of, as `moment` has it."""
        with self._lock:
            self._make()
            if self._names is None:
                self._names = sorted(filter(self._board.scope.groups, self._rows))
            return self._version, [self._rows[name] for name in self._names], self._believed()

    def moment(self) -> tuple[int, BoardMoment]:
        """Version, and what the rows are made of. A doubt that came up since is theirs, one that went is not gone."""
        with self._lock:
            self._make()
            return self._version, self._believed()

    def _believed(self) -> BoardMoment:
        then, now = self._made_of.standing, self._board.health.standing()
        unread = then.unread.joined(now.unread)
        return BoardMoment(self._made_of.shown, (then if now.doubt is None else now)._replace(unread=unread))

    def changes(
        self, since: int, group: str | None = None
    ) -> tuple[int, list[RowAnswer], list[str], BoardMoment] | None:
        """What is newer than a version, of all groups or of one.

        Returns:
            (version, changed rows, names of groups that are gone, what `moment` says), or None where that is too long
            ago to tell.
        """
        with self._lock:
            self._make()
            oldest = self._changes[0][0] if self._changes else self._version + 1
            if since > self._version or since < oldest - 1:
                return None
            changed: set[str] = set()
            gone: set[str] = set()
            for version, rows, names in reversed(self._changes):
                if version <= since:
                    break
                changed |= rows
                gone |= names
            of_all = changed | gone
            wanted = set(filter(self._board.scope.groups, of_all)) if group is None else {group} & of_all
            rows_now = [self._rows[name] for name in sorted(wanted) if name in self._rows]
            gone_now = sorted(name for name in wanted if name not in self._rows)
            return self._version, rows_now, gone_now, self._believed()

    def let_go(self) -> bool:
        """Keep nothing where no client has looked lately; returns whether that is so."""
        with self._lock:
            unasked = time.monotonic() - self._asked > UNASKED_SECONDS
            if unasked and self._rows:
                self._forget()
                # A client that has seen the last version is sent everything: what has gone since is not known.
                self._version += 1
            return unasked

    def _make(self) -> None:
        begun = self._asked = time.monotonic()
        # Of many groups rows are made every so many seconds: those of half a log need not wait for their turn.
        then, now = self._made_of.standing, self._board.health.standing()
        doubt_is_gone = now.doubt is None and then.doubt is not None
        if begun < self._made_until and not doubt_is_gone and now.unread == then.unread:
            return
        now_ms = self._clock_ms()
        made_of = self._board.moment()
        groups = made_of.shown.groups
        lags = measure(table_of(groups.values()), self._board.ends, now_ms)
        touched = {name: now is not None for name, _, now in groups.since(self._made_of.shown.groups)}
        gone = {name for name, is_there in touched.items() if not is_there}
        changed = set()
        unread = made_of.standing.unread
        former, self._doubted = self._doubted, self._board.doubted(made_of)
        doubted = set() if unread == then.unread else (self._doubted.keys() | former.keys()) & groups.keys()
        for name in self._to_make(groups, lags) | doubted | (touched.keys() - gone):
            held = groups[name]
            row = self._row(held, lags, now_ms, unread)
            # A group that was touched counts as changed: its members' assignments are no part of the row.
            if name in touched or self._rows.get(name) != row:
                if name not in self._rows:
                    self._names = None
                changed.add(name)
                self._rows[name] = row
        for name in gone:
            self._names = None
            self._rows.pop(name, None)
        self._made_of = made_of
        self._version += 1
        self._changes.append((self._version, frozenset(changed), frozenset(gone)))
        done = time.monotonic()
        self._made_until = begun + max(MAKE_EVERY_SECONDS, (done - begun) / SHARE_OF_TIME)

    def _to_make(self, groups: GroupMap[BoardGroup], lags: Lags) -> set[str]:
        """Groups whose rows may be others, besides those that were touched.

        That is where lag or what is lost is another, records wait, or a group is not at rest; and where what a row
        depends on besides is another: what the threads found, and the topics' sizes.
        """
        former, self._found = self._found, (self._board.findings.overdue, self._board.ends.sizes)
        overdue, sizes = self._found
        if sizes is not former[1]:
            self._figures = {}
        columns = (lags.known_records, lags.sum_records, lags.unknown_offsets, lags.lost_offsets)
        was, self._figures = (
            self._figures,
            dict(zip(lags.table.groups.names, zip(*(column.tolist() for column in columns), strict=True), strict=True)),
        )
        asked = {name for name, figures in self._figures.items() if figures[0] > 0 or was.get(name) != figures}
        asked |= self._board.sums_of(groups).unsteady
        asked = asked.union(*(found ^ former[0].get(kind, frozenset()) for kind, found in overdue.items()))
        return asked & groups.keys()

    def _row(self, held: BoardGroup, lags: Lags, now_ms: int, unread: Unread) -> RowAnswer:
        of, doubt = held.summary, unread.of(held.name, held)
        expected = NOT_BACK in self._board.expectations.kinds(held.name)
        not_back = None if expected else self._board.findings.not_back.get(held.name)
        number = lags.table.groups.places[held.name]
        figures = lags.figures(number)
        known = not of.words.polled
        row: RowAnswer = {
            "group": held.name,
            "type": of.words.type,
            "state": of.words.group_state,
            "simple": of.words.simple,
            "epoch": of.epoch if of.epoch >= 0 else None,
            "classic_members": of.classic_members,
            "consumer_members": of.consumer_members,
            "absent_members": of.absent_members,
            "phase": of.words.phase,
            "blockers": list(of.words.blockers),
            "out_of_scope": of.words.out_of_scope,
            "mixed_since": of.mixed_since_ms,
            "leftovers": of.leftovers if known else None,
            "upgrades": of.upgrades if known else None,
            "downgrades": of.downgrades if known else None,
            "lag": figures["lag"],
            "at_least": figures["at_least"],
            "unknown_lags": figures["unknown_lags"],
            "max_lag": figures["max_lag"],
            "max_lag_seconds": _rounded(figures["max_lag_seconds"]),
            "max_lag_seconds_at_least": figures["max_lag_seconds_at_least"],
            "missing_members": 0 if not_back is None else not_back.missing,
            "rebalances": of.rebalances if known else None,
            "rebalancing_since": of.rebalancing_since_ms if known else None,
            "duplicate_partitions": of.duplicates if known else of.duplicates or None,
            "unassigned_partitions": held.unassigned_partitions(self._board.ends.sizes),
            "attention": attention.reasons(self._board, held, lags.of_read(number), now_ms),
        }
        if doubt is not None:
            row["doubt"] = doubt
        return row


def _rounded(seconds: float | None) -> float | None:
    """Tenths of a second below a minute, whole ones above: a row that differs by less is the same."""
    return None if seconds is None else round(seconds, 1 if seconds < _TENTHS_BELOW_SECONDS else None)

"""Looks at share groups with a clock in hand: share partitions that do not get on, groups that deliver again and again.

What became done in windows of five minutes stands with each partition of the share coordinator's log, and a group is in
many: here they are seen together (`coordinator_model.rules.share_redelivery`).
"""

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from coordinator_model.clocked.share_stalls import SharePlace, ShareStalls
from coordinator_model.records.topics import SHARE_STATE_TOPIC
from coordinator_model.rules import share_redelivery
from coordinator_model.rules.share_redelivery import Redeliveries, Window
from coordinator_model.state.events import Event, event_view
from coordinator_model.state.findings import Position
from streaming.board.board import SHARE_LOG, Board
from streaming.board.board_group import BoardGroup
from streaming.board.lag_columns import Lags
from streaming.board.share_partitions import ShareLag
from streaming.end_offsets.store import EndOffsets
from streaming.watchers.overdue_watch import Publish, reported_event

LATE_MS: Final = 30_000
"""How long after a window is over its last records may be read."""


class ShareWatch:
    """Used by the thread that measures lag.

    Args:
        board: what is looked at.
        publish: takes events, each with its id.
    """

    def __init__(self, board: Board, publish: Publish) -> None:
        self._board = board
        self._publish = publish
        self._stalls = ShareStalls()
        self._redelivering: dict[str, Event] = {}
        self._resumed = False

    def look(self, lags: Lags, now_ms: int) -> None:
        """Publish what has begun, and what is over.

        Args:
            lags: of all groups, as they are now.
            now_ms: the wall clock.
        """
        if self._board.ends.share_log.why_unknown is not None or not lags.of_shares:
            return
        moment = self._board.moment()
        if not moment.standing.ready or moment.standing.stands_still:
            return
        if not self._resumed:
            self._resume()
        doubted = self._board.doubted(moment).keys()
        held = {place: of for place, of in enumerate(lags.table.groups.held) if of.shares and of.name not in doubted}
        with self._board.ends.lock:
            places = [of for at, group in held.items() for of in _places(group, lags.of_shares[at], self._board.ends)]
        known = {of.name for of in held.values()} | {of for of in self._stalls.groups if of not in moment.shown.groups}
        events = self._stalls.look(places, now_ms, known=known)
        events += self._redeliveries(now_ms)
        if events:
            self._publish([event_view(event) for event in events])

    def _resume(self) -> None:
        """Take up what was reported before."""
        kept = self._board.events
        reported = [reported_event(of) for of in kept.latest(kept.size) if of.get("log") == SHARE_STATE_TOPIC]
        for event in reported:
            event.log = SHARE_STATE_TOPIC
        self._stalls.resume(reported)
        for event in reported:
            if event.kind == share_redelivery.KIND:
                self._redelivering[event.group] = event
        self._resumed = True

    def _redeliveries(self, now_ms: int) -> list[Event]:
        """Groups that began to deliver again and again, or got over it, since they were looked at last."""
        seen = Redeliveries(_windows(self._board.shown.shares.logs), now_ms - LATE_MS)
        found: list[Event] = []
        for event in seen.judged():
            before = self._redelivering.get(event.group)
            is_open = before is not None and not before.detail.get("cleared")
            is_end = bool(event.detail.get("cleared"))
            # Windows long over are let go, so a row that goes on seems to begin later.
            if is_end == is_open and (before is None or event.time_ms > before.time_ms):
                event.log = SHARE_STATE_TOPIC
                self._redelivering[event.group] = event
                found.append(event)
        return found


def _windows(logs: Mapping[int, Mapping[str, Any]]) -> dict[str, dict[int, Window]]:
    """Windows of all partitions of the log together, by group and number."""
    found: dict[str, dict[int, Window]] = {}
    for place, totals in logs.items():
        for group, windows in totals.get("windows", {}).items():
            of_group = found.setdefault(group, {})
            for name, (done, again, offset, time_ms) in windows.items():
                window = of_group.setdefault(int(name), Window())
                window.done += done
                window.again += again
                last = Position(place - SHARE_LOG, offset, time_ms)
                window.place = max(window.place, last, key=lambda of: (of.timestamp_ms, of.partition, of.offset))
    return found


def _places(group: BoardGroup, lags: Iterable[ShareLag], ends: EndOffsets) -> Iterator[SharePlace]:
    """Share partitions as a look has them; hold the lock of `ends`."""
    assigned = group.topics.assigned
    for of in lags:
        figures = of.figures
        if of.why is not None and figures.start_offset is not None and of.seconds is None:
            continue  # where the partition ends is not known
        topic = figures.topic_id if group.topics.by_id else of.topic
        yield SharePlace(
            group=group.name,
            topic_id=figures.topic_id,
            partition=figures.partition,
            log=SHARE_STATE_TOPIC,
            written=Position(figures.log_partition, figures.written_offset, figures.written_ms),
            first_not_done=figures.first_not_done,
            done_to=figures.done_to,
            done_ms=figures.done_ms,
            waits_since_ms=of.stalled_since_ms,
            arrived_ms=_arrived_ms(of, ends),
            assigned=figures.partition in assigned.get(topic, ()),
        )


def _arrived_ms(of: ShareLag, ends: EndOffsets) -> int | None:
    """Since when records have come since a share partition was set up; None where none were seen to."""
    known = None if of.figures.start_offset is not None else ends.partition(of.topic, of.figures.partition)
    samples = [] if known is None else known.history.samples()
    if not samples:
        return None
    before = max((end for time_ms, end in samples if time_ms <= of.figures.written_ms), default=samples[0][1])
    return next((time_ms for time_ms, end in samples if end > before), None)

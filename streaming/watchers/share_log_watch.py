"""Looks for the share coordinator's log, and how far it is read: what is said where lag of share groups is not known.

The source of the stream looks for itself (`query/share_source.py`), as often, and reads what it finds. Nothing waits
for this log: a monitor that may not read it is ready without it.
"""

import time
from collections.abc import Callable, Mapping
from typing import Any, Final

from coordinator_model.records.topics import SHARE_STATE_TOPIC
from streaming.base.logging_setup import get_logger
from streaming.base.outage import Outage
from streaming.base.threads import Repeating
from streaming.board.board import SHARE_LOG, Board
from streaming.end_offsets.share_log import ShareLogState
from streaming.kafka.share_log import look_for

CHECK_EVERY_SECONDS: Final = 1.0
LOOK_EVERY_SECONDS: Final = 60.0

_log = get_logger("share_log")


class ShareLogWatch:
    """The thread that looks.

    Args:
        board: what is shown, with where logs end.
        look: whether the topic is there, and may be read; may raise.
        clock_ms: the wall clock, in milliseconds.
        clock: seconds that only grow.
    """

    def __init__(
        self,
        board: Board,
        look: Callable[[], tuple[bool, bool]],
        clock_ms: Callable[[], int],
        clock: Callable[[], float] = time.monotonic,
    ) -> None:
        self._board = board
        self._look = look
        self._clock = clock
        self._outage = Outage(_log, "share_log", clock_ms)
        self._look_at = -LOOK_EVERY_SECONDS
        thread = Repeating("share-log", CHECK_EVERY_SECONDS, self.check)
        self.start, self.stop, self._stopping = thread.start, thread.stop, thread.stopping

    def check(self) -> None:
        """Look, if it is time to, and see how far the log is read. Never raises."""
        status, now = self._board.ends.share_log, self._clock()
        if now >= self._look_at:
            self._look_at = now + LOOK_EVERY_SECONDS
            try:
                status.see(seen(*self._look()))
                self._outage.succeeded()
            except Exception as error:  # noqa: BLE001 - whatever a client throws must not end the looking
                if not self._stopping.is_set():
                    self._outage.failed(error)
        if status.found == "readable":
            shown = self._board.shown.shares
            logs = shown.logs
            status.follow(
                {place - SHARE_LOG: int(of["next_offset"]) for place, of in logs.items()},
                unread=[place - SHARE_LOG for place, of in logs.items() if "owed" in of],
                is_foreign=not shown.groups and any(of.get("undecodable_records") for of in logs.values()),
            )
            status.meet_ends(self._ends())

    def _ends(self) -> Mapping[int, tuple[int, int]]:
        """Partition → where it begins and ends, once all of them are known; nothing before."""
        ends = self._board.ends
        topic = ends.topic(SHARE_STATE_TOPIC)
        with ends.lock:
            known = {
                of: (held.earliest, held.high_watermark)
                for of, held in ends.of_topic(SHARE_STATE_TOPIC).items()
                if held.earliest is not None and held.high_watermark is not None
            }
        return known if topic is not None and len(known) == topic.partitions else {}


def seen(is_there: bool, is_readable: bool) -> ShareLogState:
    """What was seen of the topic, in a word."""
    return "readable" if is_readable else "unreadable" if is_there else "absent"


def looking(settings: Mapping[str, Any]) -> Callable[[], tuple[bool, bool]]:
    """Looks with these settings of librdkafka."""
    return lambda: look_for(settings)

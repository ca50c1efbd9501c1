"""How long a static member that is away may stay so: configuration, asked of the brokers where the log does not tell.

The log has the session timeout of classic members. A consumer-protocol member's is its group's configuration
`consumer.session.timeout.ms`, by default the brokers' `group.consumer.session.timeout.ms` (KIP-848); a broker answers
with whichever holds. Asked are groups with a member that is away and no other, all at once, and not again for a minute.

It needs the permission DESCRIBE_CONFIGS on the groups, and does without: the timeout then stays unknown.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Final, Protocol

from streaming.base.logging_setup import get_logger
from streaming.base.outage import Outage
from streaming.base.threads import Connection, Repeating
from streaming.board.board import Board

CHECK_EVERY_SECONDS: Final = 10.0
MOST_ASKED: Final = 200
FRESH_MS: Final = 60_000
"""How long an answer, or that there was none, is held to."""

_log = get_logger("session_timeouts")


class ConfigsClient(Protocol):
    """What the sampler asks of a cluster. Both methods may raise KafkaError, OSError or RuntimeError."""

    def session_timeouts(self, groups: Collection[str]) -> Mapping[str, int]:
        """Group → session timeout of its consumer-protocol members, in ms; without those nothing was said of."""
        ...

    def close(self) -> None:
        """Let go of all connections; a call under way in another thread ends with an error."""
        ...


class SessionTimeoutSampler:
    """The thread that asks, and passes it to the board.

    Args:
        board: where the groups are, and the answers go.
        connect: makes a client; called again after a failure.
        clock_ms: the wall clock, in milliseconds.
    """

    def __init__(self, board: Board, connect: Callable[[], ConfigsClient], clock_ms: Callable[[], int]) -> None:
        self._board = board
        self._clock_ms = clock_ms
        self._connection = Connection(connect)
        self._outage = Outage(_log, "session_timeouts", clock_ms)
        self._asked_ms: dict[str, int] = {}
        thread = Repeating("session-timeouts", CHECK_EVERY_SECONDS, self.check, self._connection.drop)
        self.start, self.stop, self._stopping = thread.start, thread.stop, thread.stopping

    def check(self) -> None:
        """Ask about those whose turn it is. Never raises."""
        now_ms = self._clock_ms()
        waited_for = self._waited_for()
        known = {group: ms for group, ms in self._board.findings.session_timeouts_ms.items() if group in waited_for}
        self._asked_ms = {group: ms for group, ms in self._asked_ms.items() if group in waited_for}
        due = [group for group in waited_for if now_ms - self._asked_ms.get(group, -FRESH_MS) >= FRESH_MS][:MOST_ASKED]
        if due:
            self._asked_ms.update(dict.fromkeys(due, now_ms))
            try:
                known.update(self._connection.client.session_timeouts(due))
                self._outage.succeeded()
            except Exception as error:  # noqa: BLE001 - whatever a client throws must not end the looking
                if not self._stopping.is_set():
                    self._outage.failed(error)
                self._connection.drop()
        self._board.findings.set_session_timeouts(known)

    def _waited_for(self) -> dict[str, None]:
        """Groups with a member that is away and of which the log does not tell for how long it may be."""
        return dict.fromkeys(sorted(self._board.sums().awaiting))

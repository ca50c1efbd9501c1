"""What brokers can do and allow, asked every half a minute: where no group can be upgraded, nothing blocks an upgrade.

`upgrade_blocked` is concluded from the log, which does not tell what its brokers can do. It is held back while some
broker is known to convert no group, and no more once all do: then it is said of the groups that a broker would still
refuse. What they can do and have finalized needs no permission. Their configurations do (DESCRIBE_CONFIGS on the
cluster): where they are not said, they are asked for once an hour, as brokers log each refusal. While brokers do not
answer, what they said before holds.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any, Final, Protocol

from coordinator_model.gates.verdict import BrokerSettings
from coordinator_model.migration import upgrade_blockers
from coordinator_model.state.events import event_view
from coordinator_model.state.findings import Position, events_of
from streaming.base.logging_setup import get_logger
from streaming.base.outage import Outage
from streaming.base.threads import Connection, Repeating
from streaming.board.board import Board

CHECK_EVERY_SECONDS: Final = 2.0
FRESH_MS: Final = 30_000
"""How long an answer is held to."""

_log = get_logger("broker_watch")


class BrokersClient(Protocol):
    """What the watch asks of a cluster. Both methods may raise KafkaError, OSError or RuntimeError."""

    def brokers(self) -> BrokerSettings:
        """What brokers that are up can do and allow."""
        ...

    def close(self) -> None:
        """Let go of all connections; a call under way in another thread ends with an error."""
        ...


class BrokerWatch:
    """The thread that asks, and passes it to the board.

    Args:
        board: where the groups are, and the answers go.
        connect: makes a client; called again after a failure.
        publish: takes events, each with its id.
        clock_ms: the wall clock, in milliseconds.
    """

    def __init__(
        self,
        board: Board,
        connect: Callable[[], BrokersClient],
        publish: Callable[[Sequence[Mapping[str, Any]]], object],
        clock_ms: Callable[[], int],
    ) -> None:
        self._board = board
        self._publish = publish
        self._clock_ms = clock_ms
        self._connection = Connection(connect)
        self._outage = Outage(_log, "broker_abilities", clock_ms)
        self._asked_ms = -FRESH_MS
        thread = Repeating("broker-watch", CHECK_EVERY_SECONDS, self.check, self._connection.drop)
        self.start, self.stop, self._stopping = thread.start, thread.stop, thread.stopping

    def check(self) -> None:
        """Ask, if it is time to. Never raises for what brokers answer."""
        now_ms = self._clock_ms()
        if now_ms - self._asked_ms < FRESH_MS:
            return
        try:
            brokers = self._connection.client.brokers()
            self._outage.succeeded()
        except Exception as error:  # noqa: BLE001 - no error of a client may end the looking
            if not self._stopping.is_set():
                self._outage.failed(error)
            self._connection.drop()
            return
        self._asked_ms = now_ms
        held_back = self._board.findings.converts_no_group
        self._board.findings.set_brokers(brokers)
        if held_back and not self._board.findings.converts_no_group and (events := [*self._blocked()]):
            self._publish(events)

    def _blocked(self) -> Iterator[dict[str, Any]]:
        """Events of groups that a broker would refuse, held back while no group could be upgraded."""
        for held in self._board.shown.groups.values():
            if not held.words.blockers:
                continue
            state = held.state
            place = Position(state.partition, state.last_step_offset, state.last_step_ms)
            said = upgrade_blockers.tell(state.membership, tuple(upgrade_blockers.blockers(state.membership)))
            yield from map(event_view, events_of(state.name, place, said))

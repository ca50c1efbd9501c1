"""What others found beside the log: watchers with a clock in hand, and brokers that were asked.

Each finding enters by a method, all of it at once: it is replaced, never changed, so readers need no lock.
"""

from collections.abc import Collection, Iterable, Mapping

from coordinator_model.gates.broker_abilities import ONLINE_UPGRADE, Broker, lacking


class Findings:
    """What is known of the groups of a board that their records do not say.

    Attributes:
        session_timeouts_ms: group → session timeout of its consumer-protocol members, where brokers said it.
        brokers: every broker with what it can do; None while they have not said.
        read_ms: group between two states → when its last step was read, where its timestamp is far from that.
        stuck: groups in a rebalance that is overdue.
        unsettled: groups that do not come to rest.
        unassigned: groups in which no member has held some partitions for longer than is legal.
    """

    def __init__(self) -> None:
        self.session_timeouts_ms: Mapping[str, int] = {}
        self.brokers: Collection[Broker] | None = None
        self.read_ms: Mapping[str, int] = {}
        self.stuck: frozenset[str] = frozenset()
        self.unsettled: frozenset[str] = frozenset()
        self.unassigned: frozenset[str] = frozenset()

    def set_overdue(
        self, stuck: Iterable[str] = (), unsettled: Iterable[str] = (), unassigned: Iterable[str] = ()
    ) -> None:
        """Say which groups the look with a clock in hand found something of, all of them."""
        self.stuck, self.unsettled, self.unassigned = frozenset(stuck), frozenset(unsettled), frozenset(unassigned)

    def set_read_times(self, read_ms: Mapping[str, int]) -> None:
        """Take when the last step of groups between two states was read, of those with a doubtful timestamp, all."""
        self.read_ms = read_ms

    def set_session_timeouts(self, timeouts_ms: Mapping[str, int]) -> None:
        """Take the session timeouts of consumer-protocol members by group, as brokers said, all of them."""
        self.session_timeouts_ms = timeouts_ms

    def set_brokers(self, brokers: Collection[Broker]) -> None:
        """Take what every broker can do, as they said."""
        self.brokers = brokers

    @property
    def converts_no_group(self) -> bool:
        """Whether some broker, and so perhaps the one that leads a group, upgrades none that has members."""
        return bool(lacking(self.brokers or (), ONLINE_UPGRADE))

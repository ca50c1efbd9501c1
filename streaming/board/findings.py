"""What others found beside the log: watchers with a clock in hand, and brokers that were asked.

Each finding enters by a method, all of it at once: it is replaced, never changed, so readers need no lock.
"""

from collections.abc import Iterable, Mapping

from coordinator_model.clocked.not_back import NotBack
from coordinator_model.gates.upgrade import converts_none
from coordinator_model.gates.verdict import BrokerSettings
from coordinator_model.kinds.table import LOOKED_FOR


class Findings:
    """What is known of the groups of a board that their records do not say.

    Attributes:
        session_timeouts_ms: group → session timeout of its consumer-protocol members, where brokers said it.
        brokers: what brokers can do and allow, as far as they said.
        read_ms: group between two states → when its last step was read, where its timestamp is far from that.
        not_back: group that a roll left with fewer members than before → how many, be the alarm open or closed by now.
        not_loaded: offsets partition whose coordinator did not load it → since when (ms).
        loaded_ms: offsets partition of which that was so, and is not any more → when it was found to be over.
        overdue: kind of alarm that only a look with a clock finds → groups that one is open of.
    """

    def __init__(self) -> None:
        self.session_timeouts_ms: Mapping[str, int] = {}
        self.brokers = BrokerSettings()
        self.converts_no_group = False
        """Whether some broker, and so perhaps the one that leads a group, upgrades none that has members."""
        self.read_ms: Mapping[str, int] = {}
        self.not_back: Mapping[str, NotBack] = {}
        self.not_loaded: Mapping[int, int] = {}
        self.loaded_ms: Mapping[int, int] = {}
        self.overdue: Mapping[str, frozenset[str]] = dict.fromkeys(LOOKED_FOR, frozenset())

    def set_overdue(self, groups: Mapping[str, Iterable[str]]) -> None:
        """Say of which groups the look with a clock in hand found something, by kind of alarm, all of them."""
        self.overdue = {kind: frozenset(groups.get(kind, ())) for kind in LOOKED_FOR}

    def set_not_back(self, not_back: Mapping[str, NotBack]) -> None:
        """Say which groups lack members since a roll, all of them."""
        self.not_back = not_back

    def set_not_loaded(self, since_ms: Mapping[int, int], loaded_ms: Mapping[int, int] | None = None) -> None:
        """Say which offsets partitions their coordinator did not load, each since when (ms), all of them.

        And when that was over, of those of which it was so.
        """
        self.not_loaded, self.loaded_ms = since_ms, loaded_ms or {}

    def set_read_times(self, read_ms: Mapping[str, int]) -> None:
        """Take when the last step of groups between two states was read, of those with a doubtful timestamp, all."""
        self.read_ms = read_ms

    def set_session_timeouts(self, timeouts_ms: Mapping[str, int]) -> None:
        """Take the session timeouts of consumer-protocol members by group, as brokers said, all of them."""
        self.session_timeouts_ms = timeouts_ms

    def set_brokers(self, brokers: BrokerSettings) -> None:
        """Take what every broker can do and allows, as they said."""
        self.brokers = brokers
        self.converts_no_group = converts_none(brokers)

"""Whether the share coordinator's log is read, and how far: for all who show lag of share groups.

the topic                                        share lag is
is not looked for (`share_groups.enabled`)       not known: not asked for
was not looked for yet                           not known yet
is not there                                     not known: Kafka makes it with the first share group
may not be read                                  not known: the permission is missing
is written by brokers of 4.0                     not known: an early access, with records of its own
is being read for the first time                 not known yet
was read to the end that it had when it was met  known
"""

from collections.abc import Iterable, Mapping
from typing import Final, Literal

from coordinator_model.records.topics import SHARE_STATE_TOPIC

ShareLogState = Literal["off", "unknown", "absent", "unreadable", "readable"]

_WHY: Final[Mapping[ShareLogState, str]] = {
    "off": "share_groups.enabled is false: how far share groups are is not read",
    "unknown": f"{SHARE_STATE_TOPIC} was not looked for yet",
    "absent": f"there is no {SHARE_STATE_TOPIC}: Kafka makes it with the first share group",
    "unreadable": f"permission READ on the topic {SHARE_STATE_TOPIC} is missing",
}

FOREIGN: Final = (
    f"no record of {SHARE_STATE_TOPIC} can be read: brokers of 4.0, an early access, write others than later releases"
)

POLLED: Final = (
    f"groups are polled (source.kind: admin): how far a share group is stands in {SHARE_STATE_TOPIC}, which is not read"
)


class ShareLogStatus:
    """Written by who looks for the topic, and who reads it; what is shown is replaced, never changed.

    Attributes:
        found: what was last seen of the topic.
        positions: next offset of each of its partitions.
        unread: partitions of which records are yet to be read that were planned before later ones.
    """

    def __init__(self) -> None:
        self.found: ShareLogState = "unknown"
        self.positions: Mapping[int, int] = {}
        self.unread: frozenset[int] = frozenset()
        self._why_not: str | None = None
        self._targets: Mapping[int, int] | None = None
        self._is_read = self._is_foreign = False

    def see(self, found: ShareLogState, why_not: str | None = None) -> None:
        """Take what was seen of the topic, with a reason in place of the usual one."""
        self.found, self._why_not = found, why_not

    def relay(self, why_unknown: str | None) -> None:
        """Take what another monitor says of it, from whose topics a board is filled."""
        self.found, self._why_not, self._is_read = "readable" if why_unknown is None else "off", why_unknown, True

    def follow(self, positions: Mapping[int, int], unread: Iterable[int] = (), *, is_foreign: bool = False) -> None:
        """Take how far it is read, and of which partitions records were planned that could not be read.

        `is_foreign` says that none of its records is what it should be.
        """
        self.positions, self.unread, self._is_foreign = positions, frozenset(unread), is_foreign

    def meet_ends(self, ends: Mapping[int, tuple[int, int]]) -> None:
        """Take where partitions begin and end; the first time that is what is to be read before anything is known."""
        if self._targets is None and ends:
            self._targets = {of: end for of, (begin, end) in ends.items() if begin < end}
        if self._targets is not None and not self._is_read:
            self._is_read = all(self.positions.get(of, 0) >= end for of, end in self._targets.items())

    def start_over(self) -> None:
        """It is read from its beginning again."""
        self.positions, self._targets, self._is_read, self._is_foreign = {}, None, False, False

    @property
    def why_unknown(self) -> str | None:
        """Why nothing is known of share partitions; None where it is."""
        if self.found != "readable":
            return self._why_not or _WHY[self.found]
        if self._is_foreign:
            return FOREIGN
        return None if self._is_read else f"{SHARE_STATE_TOPIC} is still being read"

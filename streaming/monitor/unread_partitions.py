"""Which partitions of the log cannot be read, and since when: what may be in them is not known.

a partition                                        counts from                 until
has no leader                                      the look that showed it     what was written until its leader
answered again has been read
has one that does not answer                       its last answer             the same
is owed: records were planned, and not read        the look that showed it     they have been read
"""

from collections.abc import Collection, Mapping
from typing import Final

from streaming.base.logging_setup import get_logger
from streaming.board.readiness import Positions
from streaming.end_offsets.store import PartitionEnds, Topic

SILENT_MS: Final = 10_000
"""So much older than those of others the answer of a leader may be; a request that fails takes some seconds."""

_log = get_logger("log")


class UnreadPartitions:
    """Follows the partitions from look to look; used by one thread."""

    def __init__(self) -> None:
        self._since: dict[int, int] = {}
        self._told: frozenset[int] = frozenset()

    def look(
        self,
        now_ms: int,
        topic: Topic,
        ends: Mapping[int, PartitionEnds],
        positions: Positions,
        owed: Collection[int],
    ) -> dict[int, int]:
        """Partition → since when (ms) it cannot be read, of those that cannot.

        Args:
            now_ms: the wall clock.
            topic: the log, as the brokers described it last.
            ends: where its partitions end, as their leaders said last.
            positions: how far they are read.
            owed: those of which records that were planned could not be read.
        """
        latest_ms = max((of.sampled_ms for of in ends.values()), default=0)
        for partition in range(topic.partitions):
            end = ends.get(partition)
            if partition not in topic.leaders or partition in owed:
                self._since.setdefault(partition, now_ms)
            elif end is None or end.high_watermark is None:
                continue  # it was not asked yet
            elif end.sampled_ms < latest_ms - SILENT_MS:
                self._since.setdefault(partition, end.sampled_ms)
            elif (
                partition in self._since
                and end.sampled_ms > self._since[partition]
                and positions.membership.get(partition, 0) >= end.high_watermark
                and positions.commits.get(partition, 0) >= (end.last_stable or 0)
            ):
                del self._since[partition]
        self._tell(topic)
        return dict(self._since)

    def _tell(self, topic: Topic) -> None:
        """Log each partition once when it is lost, and once when it is back."""
        unread = frozenset(self._since)
        if unread - self._told:
            _log.warning(
                "partitions_not_read",
                partitions=sorted(unread - self._told),
                without_leader=sorted(set(range(topic.partitions)) - topic.leaders.keys()),
            )
        if self._told - unread:
            _log.info("partitions_read_again", partitions=sorted(self._told - unread))
        self._told = unread

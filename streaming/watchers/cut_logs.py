"""Asks brokers where epochs of leaders ended: a commit beyond the end of its own epoch is of a log that was cut off.

A leader that is elected uncleanly ends the log where it was itself. What groups had read beyond that is gone, and once
the log has grown again their offsets look as any others, with a lag that is too small. A commit names the epoch of the
last record before it, so one that is older than the partition's leader now is asked about once (`OffsetForLeaderEpoch`,
KIP-320, which consumers ask for the same reason): DESCRIBE on the topic is all it takes.
"""

from collections.abc import Callable, Collection, Mapping
from typing import Final, Protocol

import numpy as np
from kafka.errors import KafkaError

from streaming.base.logging_setup import get_logger
from streaming.base.outage import Outage
from streaming.base.persistent_map import GroupMap
from streaming.base.threads import Connection, Repeating
from streaming.board.board_group import BoardGroup
from streaming.board.lag_columns import OffsetTable, table_of
from streaming.end_offsets.store import EndOffsets, Topic, TopicPartition
from streaming.kafka.leader_epochs import LeaderEpochEnd

AT_ONCE: Final = 500
"""Epochs that one round asks about: a broker answers from memory."""

EVERY_SECONDS: Final = 5.0

_log = get_logger("cut_logs")

Epoch = tuple[str, int, int]
"""Topic, partition, leader epoch."""

_NOT_SAID: Final = (1 << 63) - 1
"""In place of the end of an epoch that a leader does not know, or may not tell us."""


class EpochsClient(Protocol):
    """What is asked of a cluster. Every method may raise KafkaError, OSError or RuntimeError."""

    def ends(self, asked: Collection[Epoch], leaders: Mapping[TopicPartition, int], /) -> dict[Epoch, LeaderEpochEnd]:
        """The last record of each epoch or an earlier one; negative where a leader knows none.

        `leaders` maps each partition to the broker that leads it. What another broker has to answer, or this one in a
        moment, is left out.
        """
        ...

    def close(self) -> None:
        """Let go of all connections; a call under way in another thread ends with an error."""
        ...


class CutLogs:
    """The thread that asks.

    Args:
        ends: where answers go, and which leaders there are.
        connect: makes a client; called again after a failure.
        groups: the groups as they are now.
        ready: whether they are what they are at the end of the log; before, nothing is asked.
        clock_ms: the wall clock.
    """

    def __init__(
        self,
        ends: EndOffsets,
        connect: Callable[[], EpochsClient],
        groups: Callable[[], GroupMap[BoardGroup]],
        ready: Callable[[], bool],
        clock_ms: Callable[[], int],
    ) -> None:
        self._ends = ends
        self._connection = Connection(connect)
        self._groups = groups
        self._ready = ready
        self._seen: GroupMap[BoardGroup] = GroupMap()
        self._epochs: dict[str, tuple[str | None, tuple[tuple[int, int], ...]]] = {}
        # Epoch → the furthest offset committed in it, of those that a later leader may have cut off.
        self._furthest: dict[Epoch, int] = {}
        self._answers: dict[Epoch, int] = {}
        self._outage = Outage(_log, "ends_of_epochs", clock_ms)
        self._thread = Repeating("cut-logs", EVERY_SECONDS, self.check, interrupt=self._connection.drop)

    def start(self) -> None:
        """Begin to ask."""
        self._thread.start()

    def stop(self) -> None:
        """End the thread, even out of a question without an answer."""
        self._thread.stop()

    def check(self) -> None:
        """One round. Never raises for the brokers' sake."""
        if not self._ready():
            return
        topics = self._ends.topics
        self._gather(topics)
        leaders = {
            (name, partition): leader for name, topic in topics.items() for partition, leader in topic.leaders.items()
        }
        asked = [epoch for epoch in sorted(self._furthest.keys() - self._answers.keys()) if epoch[:2] in leaders]
        if asked:
            self._ask(asked[:AT_ONCE], leaders)
        cuts: dict[TopicPartition, dict[int, int]] = {}
        for epoch, offset in self._furthest.items():
            end = self._answers.get(epoch)
            if end is not None and end < offset:
                cuts.setdefault(epoch[:2], {})[epoch[2]] = end
        if cuts:
            self._ends.record_cuts(cuts)

    def _ask(self, epochs: list[Epoch], leaders: Mapping[TopicPartition, int]) -> None:
        try:
            answers = self._connection.client.ends(epochs, leaders)
        except (KafkaError, OSError, RuntimeError) as error:
            self._connection.drop()
            self._outage.failed(error)
            return
        self._outage.succeeded()
        # A leader that does not say is let be; there may be another one day.
        self._answers |= {epoch: end.offset if end.offset >= 0 else _NOT_SAID for epoch, end in answers.items()}
        if not answers.keys() >= {*epochs}:
            self._ends.doubt_leaders()

    def _gather(self, topics: Mapping[str, Topic]) -> None:
        """Take the commits of groups that changed; of all groups where a topic has other leaders than it had."""
        epochs = {name: (topic.id, tuple(sorted(topic.leader_epochs.items()))) for name, topic in topics.items()}
        groups = self._groups()
        if epochs != self._epochs:
            changed = {name for name, of in epochs.items() if self._epochs.get(name) != of}
            self._answers = {of: end for of, end in self._answers.items() if of[0] in epochs and of[0] not in changed}
            self._furthest.clear()
            self._epochs, self._seen = epochs, GroupMap()
        self._take(table_of(held for _, _, held in groups.since(self._seen) if held is not None), topics)
        self._seen = groups

    def _take(self, table: OffsetTable, topics: Mapping[str, Topic]) -> None:
        leaders = [topics[name].leader_epochs.get(at, -1) if name in topics else -1 for name, at in table.places]
        epochs = table.leader_epochs
        is_former = (epochs >= 0) & (epochs < np.array(leaders, np.int64)[table.place_of])
        for row in np.flatnonzero(is_former).tolist():
            place = (*table.places[table.place_of[row]], int(epochs[row]))
            self._furthest[place] = max(int(table.offsets[row]), self._furthest.get(place, -1))

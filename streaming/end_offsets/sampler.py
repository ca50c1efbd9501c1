"""Sampling where the logs end: one thread asks the brokers, `EndOffsets` keeps the answers.

Each round asks for the high watermark and for the last stable offset of every partition that some group has to do
with, and of the offsets topic: two requests a broker. Where a transaction stays open in the offsets topic, the record
it began with is read once (`open_transactions.py`). Topics are described again when a name or an id comes up that is
not known, and every half minute; sooner, where something is amiss:

    amiss                                                            described again        asked again
    a partition does not answer                                      at once                at once, of its leader then
    a partition has no leader, or was given another                  with the next round    then
    an end went backwards: a topic recreated, a log cut off          with the next round    then
    another client met another leader (`doubt_leaders`)             at once                as any other
    a topic is missing                                               after five seconds     -

At once is once a second at most.

A round that fails is not the end of anything: the figures grow old, which is shown, and the next round tries again.
"""

import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Final

from streaming.base.logging_setup import get_logger
from streaming.base.outage import Outage
from streaming.base.threads import Background, Connection
from streaming.base.times import now_ms
from streaming.end_offsets.client import OffsetsClient
from streaming.end_offsets.open_transactions import STANDS_MS
from streaming.end_offsets.store import EndOffsets, TopicPartition, Wanted

DESCRIBE_EVERY_MS: Final = 30_000


DESCRIBE_AGAIN_MS: Final = 5_000
"""How soon where a topic is missing: somebody may be about to make it."""


AT_ONCE_MS: Final = 1_000
"""How soon where something is changing."""


SAVE_EVERY_MS: Final = 60_000


SLOWEST_RETRY_MS: Final = 5_000
"""Longest pause between rounds while the brokers do not answer."""


_STOP_SECONDS: Final = 1.0


_log = get_logger("end_offsets")


class EndOffsetSampler:
    """The thread that samples.

    Args:
        ends: where the samples go.
        connect: makes a client; called again after a failure.
        wanted: what the groups have to do with at the moment.
        offsets_topic: the coordinator's log, sampled too; empty where it is not read.
        interval_ms: time between the beginnings of two rounds.
        file: where histories are kept over a restart; None for nowhere.
        clock_ms: the wall clock, in milliseconds.
    """

    def __init__(  # noqa: PLR0913 - what it samples, how, and how often
        self,
        ends: EndOffsets,
        connect: Callable[[], OffsetsClient],
        wanted: Callable[[], Wanted],
        *,
        offsets_topic: str = "__consumer_offsets",
        interval_ms: int = 1_000,
        file: Path | None = None,
        clock_ms: Callable[[], int] = now_ms,
    ) -> None:
        self._ends = ends
        self._connection = Connection(connect)
        self._wanted = wanted
        self._offsets_topic = offsets_topic
        self._interval_ms = interval_ms
        self._file = file
        self._clock_ms = clock_ms
        self._thread = Background("end-offsets", self._run, stop_seconds=_STOP_SECONDS, interrupt=self._connection.drop)
        self._outage = Outage(_log, "end_offsets", clock_ms)
        self._record_outage = Outage(_log, "open_transaction_times", clock_ms)
        self._described_ms: int | None = None
        self._asked = Wanted()
        self._describe_every_ms = DESCRIBE_EVERY_MS
        self._earliest_ms = -DESCRIBE_EVERY_MS
        self._records_failed_ms = -STANDS_MS
        self._saved_ms = clock_ms()

    def start(self) -> None:
        """Load the histories and begin to sample."""
        if self._file is not None:
            try:
                self._ends.load(self._file)
            except ValueError as error:
                _log.warning("end_offset_history_not_loaded", reason=str(error))
        self._thread.start()

    def stop(self) -> None:
        """End the thread, even out of a question without an answer, and keep the histories."""
        self._thread.stopping.set()
        self._ends.ask()
        self._thread.stop()
        self._save()

    def sample(self) -> bool:
        """One round; returns whether it came in. Never raises."""
        try:
            self._round(self._connection.client)
        except Exception as error:  # noqa: BLE001 - whatever a client throws must not end the sampling
            self._failed(error)
            return False
        self._outage.succeeded()
        return True

    def _run(self) -> None:
        while not self._thread.stopping.is_set():
            begun = time.monotonic()
            self.sample()
            if self._clock_ms() - self._saved_ms >= SAVE_EVERY_MS:
                self._save()
            pause_ms = self._interval_ms
            if failures := self._outage.failures:
                pause_ms = max(pause_ms, min(SLOWEST_RETRY_MS, pause_ms << min(failures, 10)))
            self._ends.await_round(max(0.0, pause_ms / 1000 - (time.monotonic() - begun)))

    def _round(self, client: OffsetsClient) -> None:
        wanted = self._wanted()
        wanted = Wanted(wanted.names | ({self._offsets_topic} - {""}), wanted.ids - self._ends.topic_names.keys())
        doubted = self._ends.take_doubt()
        due = self._is_due(AT_ONCE_MS if doubted else self._describe_every_ms)
        news = wanted.names - self._asked.names or wanted.ids - self._asked.ids
        sizes = self._ends.sizes
        if due or news:
            self._describe(client, wanted)
        partitions = self._partitions()
        high_watermarks, last_stable = self._ends_of(client, partitions)
        if (unanswered := partitions.keys() - last_stable.keys()) and self._is_due(AT_ONCE_MS):
            self._describe(client, wanted)
            partitions = self._partitions()
            again = self._ends_of(client, {of: leader for of, leader in partitions.items() if of in unanswered})
            high_watermarks, last_stable = high_watermarks | again[0], last_stable | again[1]
        backwards = self._ends.record(self._clock_ms(), high_watermarks, last_stable)
        self._describe_every_ms = self._pause_ms(
            is_changing=bool(backwards or client.outdated or partitions.keys() - last_stable.keys())
        )
        now_ms = self._clock_ms()
        if news or sizes is not self._ends.sizes or not 0 <= now_ms - self._earliest_ms < DESCRIBE_EVERY_MS:
            self._ends.record_earliest(client.earliest(partitions))
            self._earliest_ms = now_ms
        self._look_up_transactions(client)

    def _look_up_transactions(self, client: OffsetsClient) -> None:
        now_ms = self._clock_ms()
        stands = self._ends.open_transactions(self._offsets_topic, now_ms - STANDS_MS)
        if not stands or 0 <= now_ms - self._records_failed_ms < STANDS_MS:
            return
        # Without an answer the age counts from when the transaction was first seen: no reason to lose the round.
        try:
            written_ms = client.written_ms(stands)
        except Exception as error:  # noqa: BLE001 - as in `sample`
            self._records_failed_ms = now_ms
            if not self._thread.stopping.is_set():
                self._record_outage.failed(error)
            return
        self._record_outage.succeeded()
        self._ends.record_open_since(stands, written_ms)

    def _is_due(self, interval_ms: int) -> bool:
        """Whether topics were described so long ago, or never."""
        return self._described_ms is None or not 0 <= self._clock_ms() - self._described_ms < interval_ms

    def _pause_ms(self, *, is_changing: bool) -> int:
        """How soon topics are described again."""
        topics = self._ends.topics
        if is_changing or any(len(topic.leaders) < topic.partitions for topic in topics.values()):
            return AT_ONCE_MS
        is_missing = self._asked.names - topics.keys() or self._asked.ids - self._ends.topic_names.keys()
        return DESCRIBE_AGAIN_MS if is_missing else DESCRIBE_EVERY_MS

    def _ends_of(
        self, client: OffsetsClient, partitions: Mapping[TopicPartition, int]
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        """High watermarks, and then last stable offsets, of partitions that answer both questions."""
        if not partitions:
            return {}, {}
        high_watermarks = client.ends(partitions, committed=False)
        last_stable = client.ends({of: partitions[of] for of in partitions if of in high_watermarks}, committed=True)
        return {of: high_watermarks[of] for of in last_stable}, last_stable

    def _describe(self, client: OffsetsClient, wanted: Wanted) -> None:
        described = client.describe(wanted.names, ()) if wanted.names else []
        untold = client.untold if wanted.names else frozenset()
        by_id = client.describe((), wanted.ids) if wanted.ids else []
        self._ends.set_topics([*described, *by_id], wanted.names, self._clock_ms(), untold=untold)
        self._asked = wanted
        self._described_ms = self._clock_ms()

    def _partitions(self) -> dict[TopicPartition, int]:
        topics = self._ends.topics.values()
        return {(topic.name, partition): broker for topic in topics for partition, broker in topic.leaders.items()}

    def _failed(self, error: Exception) -> None:
        if not self._thread.stopping.is_set():
            self._outage.failed(error)
        self._described_ms = None
        self._connection.drop()

    def _save(self) -> None:
        self._saved_ms = self._clock_ms()
        if self._file is None or not self._thread.was_started:
            return
        try:
            self._ends.save(self._file)
        except OSError as error:
            _log.warning("end_offset_history_not_saved", file=str(self._file), reason=str(error))

"""A steady load of offset commits: groups without members, each committing all its partitions in one request."""

import threading
import time
from collections.abc import Sequence
from dataclasses import dataclass
from itertools import count
from typing import Final, Self

from confluent_kafka import Consumer, TopicPartition

TOPIC: Final = "load"
PARTITIONS: Final = 100
GROUPS: Final = 100
THREADS: Final = 4

_QUIET: Final = {"log_level": 2, "enable.auto.commit": False, "socket.timeout.ms": 30_000}


@dataclass(slots=True)
class Committed:
    """What of a group was acknowledged: how many rounds; the offset of a partition follows from the last one."""

    rounds: int = 0

    def offset(self, partition: int) -> int:
        """What stands for a partition; every round goes forward."""
        return self.rounds * 10 + partition % 7


class Load:
    """Commits at a rate until it is left; use as a context manager.

    Args:
        bootstrap_servers: the cluster.
        rate: commits a second of all groups together; each request has one for every partition.
    """

    def __init__(self, bootstrap_servers: str, rate: float) -> None:
        self.committed = {f"load-{number:03}": Committed() for number in range(GROUPS)}
        self._servers = bootstrap_servers
        self._pause = PARTITIONS / rate * THREADS
        self._stopped = threading.Event()
        self._failed: BaseException | None = None
        names = sorted(self.committed)
        self._threads = [
            threading.Thread(target=self._run, args=(names[number::THREADS],), daemon=True) for number in range(THREADS)
        ]

    @property
    def acknowledged(self) -> int:
        """Commits that the broker took."""
        return PARTITIONS * sum(of.rounds for of in self.committed.values())

    def __enter__(self) -> Self:
        for thread in self._threads:
            thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._stopped.set()
        for thread in self._threads:
            thread.join()
        if self._failed is not None:
            raise self._failed

    def commit_once(self) -> None:
        """One round of every group."""
        for name, of in self.committed.items():
            consumer = Consumer({"bootstrap.servers": self._servers, "group.id": name, **_QUIET})
            self._commit(consumer, Committed(of.rounds + 1))
            of.rounds += 1
            consumer.close()

    def _run(self, names: Sequence[str]) -> None:
        """Commit for one group after another, each when its time has come; who is late catches up."""
        try:
            consumers = {
                name: Consumer({"bootstrap.servers": self._servers, "group.id": name, **_QUIET}) for name in names
            }
            started = time.monotonic()
            for number in count():
                if self._stopped.wait(max(0.0, started + number * self._pause - time.monotonic())):
                    break
                name = names[number % len(names)]
                self._commit(consumers[name], Committed(self.committed[name].rounds + 1))
                self.committed[name].rounds += 1
            for consumer in consumers.values():
                consumer.close()
        except BaseException as error:  # noqa: BLE001 - reported by who waits for the threads
            self._failed = error

    @staticmethod
    def _commit(consumer: Consumer, wanted: Committed) -> None:
        offsets = [TopicPartition(TOPIC, partition, wanted.offset(partition)) for partition in range(PARTITIONS)]
        for taken in consumer.commit(offsets=offsets, asynchronous=False) or ():
            if taken.error is not None:
                raise RuntimeError(taken.error)

"""Asks a monitor every second for what it must not say: something good of a group whose partition has no leader."""

import json
import threading
import time
from collections import Counter
from contextlib import suppress
from random import Random
from typing import Final, Self

from confluent_kafka import KafkaException

from tests.chaos.scene import OFFSETS, Scene, say
from tests.faults.answers import GATES, OPEN, too_good

NOTICED_SECONDS: Final = 10.0
"""After a leader was lost the monitor may say for so long what it said before."""
EVERY_SECONDS: Final = 1.0
ASKED: Final = 2
"""Groups of a partition that are asked for each time, beside a name that no group has."""


class Sampler:
    """Use as a context manager.

    Attributes:
        wrong: what it said that it must not.
        counts: how often it was asked, and what it answered.
    """

    def __init__(self, scene: Scene, chance: Random) -> None:
        self._scene, self._chance = scene, chance
        self._since: dict[int, float] = {}
        self._ending = threading.Event()
        self._thread = threading.Thread(target=self._run, name="sampler", daemon=True)
        self.wrong: list[str] = []
        self.counts = Counter[str]()

    def __enter__(self) -> Self:
        self._thread.start()
        return self

    def __exit__(self, *_: object) -> None:
        self._ending.set()
        self._thread.join()

    def _run(self) -> None:
        while not self._ending.wait(EVERY_SECONDS):
            self._scene.monitor.look_after()
            with suppress(KafkaException, OSError, AssertionError):
                self._sample()

    def _sample(self) -> None:
        lost = self._without_leader()
        said, asked = [], 0
        with suppress(OSError, AssertionError):
            for partition in lost:
                *known, nobody = self._scene.names_in(partition)
                for name in (*self._chance.sample(known, min(ASKED, len(known))), nobody):
                    said += [f"{what} (partition {partition})" for what in too_good(self._scene.monitor, name)]
                    asked += 1
            said += self._of_all(sorted(lost))
        # Who came back meanwhile may be spoken well of.
        if not lost <= self._without_leader():
            return
        self.counts["groups asked for whose partition had no leader"] += asked
        for what in said:
            say(f"  WRONG: {what}")
        self.wrong += said

    def _of_all(self, lost: list[int]) -> list[str]:
        status, body = self._scene.monitor.get("/ready")
        self.counts[f"/ready {status}"] += 1
        if not lost:
            return []
        wrong = []
        named = json.loads(body).get("without_leader", [])
        if status == 200 and not set(lost) <= set(named):
            wrong.append(f"/ready is 200 and names {named} without leader, {lost} have none")
        for gate in GATES:
            status, body = self._scene.monitor.get(f"/api/v1/gate/{gate}")
            if status == 200 and json.loads(body)["verdict"] == OPEN:
                wrong.append(f"the {gate} gate is open for all groups, {lost} have no leader")
        return wrong

    def _without_leader(self) -> set[int]:
        """Offsets partitions that have had no leader for as long as noticing may take."""
        partitions = self._scene.admin.list_topics(OFFSETS, timeout=5).topics[OFFSETS].partitions
        now = time.monotonic()
        lost = {number for number, of in partitions.items() if of.leader < 0}
        self._since = {number: self._since.get(number, now) for number in lost}
        return {number for number, since in self._since.items() if now - since > NOTICED_SECONDS}

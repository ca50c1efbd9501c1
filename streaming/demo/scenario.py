"""The demo's scenario: what happens to the groups while the monitor watches.

`orders-service` is rolled, member by member, from the classic protocol to the new one and back (KIP-848), as an
operator would do it; a static member of `payments-service` is bounced in between, in every third cycle and in turn;
`audit-trail` falls behind and catches up; `nightly-export` commits without members and, once a cycle, starts over.
Members are Kafka's own consumers. It is a healthy cluster's day in short: no group rebalances more often than restarts
explain, and no process restarts again and again (`make soak-alerts`).
"""

import threading
import time
from collections.abc import Callable, Sequence
from functools import partial
from pathlib import Path
from typing import Final, Self

from streaming.base.errors import MonitorError
from streaming.demo import traffic, verifiable_consumer
from streaming.demo.embedded_broker import DEFAULT_JARS_DIR
from streaming.demo.verifiable_consumer import Protocol, VerifiableConsumer

TOPICS: Final = {"orders": 6, "payments": 3}
SHARES: Final = {"orders": 0.7, "payments": 0.3}

ROLLED_GROUP: Final = "orders-service"
ROLLED_MEMBERS: Final = 3
STATIC_GROUP: Final = "payments-service"
STATIC_MEMBERS: Final = 2
SLOW_GROUP: Final = "audit-trail"
SIMPLE_GROUP: Final = "nightly-export"
GROUPS: Final = (ROLLED_GROUP, STATIC_GROUP, SLOW_GROUP, SIMPLE_GROUP)

# Longer than a bounce takes, shorter than anybody waits for a static member that is gone.
STATIC_SESSION_TIMEOUT_MS: Final = 20_000

# One bounced again within ten minutes, five times, is one that restarts again and again.
BOUNCE_EVERY: Final = 3
"""Cycles from a bounce to the next, of another member."""

_EVERY_ORDER: Final = [("orders", number) for number in range(TOPICS["orders"])]
_POLL_SECONDS: Final = 0.1


class _StoppingError(Exception):
    """The scenario was stopped while it waited."""


class DemoScenario:
    """The groups, and what is done to them, on a thread; use as a context manager or by `start` and `stop`.

    Attributes:
        upgrades: how often the rolled group has been taken to the new protocol as a whole.
        downgrades: how often it has been taken back.
        failure: why it could not go on, or None.
    """

    def __init__(  # noqa: PLR0913 - what the demo and its test set, each with its default
        self,
        bootstrap_servers: str,
        directory: Path,
        *,
        on_step: Callable[[str], None],
        settle_seconds: float = 1.5,
        pause_seconds: float = 120.0,
        jars_dir: Path = DEFAULT_JARS_DIR,
    ) -> None:
        """Prepare; nothing runs yet.

        Args:
            bootstrap_servers: the cluster; its topics are created.
            directory: where members keep their settings and logs.
            on_step: called with a sentence of what happens next, from the scenario's thread.
            settle_seconds: how long the group is left alone after each member, from when the last partition found its
                owner.
            pause_seconds: how long it is left alone between a roll and the next: with less than two minutes there are
                three in five minutes, a storm.
            jars_dir: the jars of one Kafka version.
        """
        self.upgrades = self.downgrades = 0
        self.failure: MonitorError | None = None
        self._bootstrap_servers = bootstrap_servers
        self._directory = directory
        self._on_step = on_step
        self._settle_seconds = settle_seconds
        self._pause_seconds = pause_seconds
        self._member = partial(VerifiableConsumer, bootstrap_servers, jars_dir=jars_dir)
        self._joining = threading.Event()
        self._rolling = threading.Event()
        self._stopping = threading.Event()
        self._rewind = threading.Event()
        self._members: dict[str, VerifiableConsumer] = {}
        self._started = 0
        self._threads: list[threading.Thread] = []

    def start(self, *, at_once: bool = True) -> None:
        """Start traffic; members and rolls follow at once, or when `join` and `roll` are called.

        Raises:
            CannotTellError: the topics cannot be created.
        """
        verifiable_consumer.create_topics(self._bootstrap_servers, TOPICS)
        if at_once:
            self.join()
            self.roll()
        servers, stopping = self._bootstrap_servers, self._stopping
        for name, work in (
            ("produce", partial(traffic.produce, servers, SHARES, stopping)),
            ("consume", partial(traffic.consume_unevenly, servers, SLOW_GROUP, "orders", stopping)),
            ("commit", partial(traffic.commit_only, servers, SIMPLE_GROUP, "payments", self._rewind, stopping)),
        ):
            self._threads.append(traffic.start(work, name, stopping))
        self._threads.append(threading.Thread(target=self._run, name="scenario", daemon=True))
        self._threads[-1].start()

    def join(self) -> None:
        """Let the members of Java begin: five JVMs take two processors for seconds."""
        self._joining.set()

    def roll(self) -> None:
        """Let the rolls begin, once all members are there."""
        self._rolling.set()

    def stop(self) -> None:
        """End all traffic and every member; a second call does nothing."""
        self._stopping.set()
        self._joining.set()
        self._rolling.set()
        for thread in self._threads:
            thread.join()
        self._threads.clear()

    def __enter__(self) -> Self:
        """Start."""
        self.start()
        return self

    def __exit__(self, *_: object) -> None:
        """Stop."""
        self.stop()

    def _run(self) -> None:
        try:
            self._joining.wait()
            self._wait(0)
            self._assemble()
            self._rolling.wait()
            while True:
                self._wait(0)
                self._cycle()
        except _StoppingError:
            pass
        except MonitorError as error:
            self.failure = error
            self._on_step(f"the scenario cannot go on: {error}")
        finally:
            self._end_members()

    def _assemble(self) -> None:
        self._on_step(f"{ROLLED_GROUP}: {ROLLED_MEMBERS} members of the classic protocol join")
        self._on_step(f"{STATIC_GROUP}: {STATIC_MEMBERS} static members of the classic protocol join")
        rolled = [f"{ROLLED_GROUP}-{number + 1}" for number in range(ROLLED_MEMBERS)]
        static = [f"{STATIC_GROUP}-{number + 1}" for number in range(STATIC_MEMBERS)]
        for slot in rolled:
            self._join_rolled(slot, "classic")
        for slot in static:
            self._join_static(slot)
        for slot in [*rolled, *static]:
            self._await_assigned(slot)

    def _cycle(self) -> None:
        self._roll_group("consumer", f"{ROLLED_GROUP}: rolling upgrade to the consumer protocol")
        self.upgrades += 1
        self._wait(self._settle_seconds)
        if self.downgrades % BOUNCE_EVERY == 0:
            self._bounce_static(1 + self.downgrades // BOUNCE_EVERY % STATIC_MEMBERS)
        self._rewind.set()
        self._on_step(f"{SIMPLE_GROUP}: starts over, its next commit goes back to offset 0")
        self._roll_group("classic", f"{ROLLED_GROUP}: rolling downgrade to the classic protocol")
        self.downgrades += 1
        self._on_step(f"{ROLLED_GROUP}: back where it was; the next roll follows in {self._pause_seconds:.0f} s")
        self._wait(self._pause_seconds)

    def _roll_group(self, protocol: Protocol, what: str) -> None:
        self._on_step(what)
        slots = [f"{ROLLED_GROUP}-{number + 1}" for number in range(ROLLED_MEMBERS)]
        self._await_rest(slots)
        for number, slot in enumerate(slots):
            self._on_step(
                f"{ROLLED_GROUP}: member {number + 1} of {ROLLED_MEMBERS} is replaced by one of the {protocol} protocol"
            )
            self._members[slot].stop()
            self._join_rolled(slot, protocol)
            self._await_assigned(slot)
            self._await_rest(slots)

    def _bounce_static(self, number: int) -> None:
        slot = f"{STATIC_GROUP}-{number}"
        self._on_step(f"{STATIC_GROUP}: static member {slot} is bounced; within its session timeout nothing moves")
        self._members[slot].stop()
        self._wait(self._settle_seconds)
        self._join_static(slot)
        self._await_assigned(slot)

    def _join_rolled(self, slot: str, protocol: Protocol) -> None:
        join = partial(self._member, group=ROLLED_GROUP, topic="orders", assignor="cooperative-sticky")
        self._members[slot] = join(name=slot, protocol=protocol, directory=self._own_directory())

    def _join_static(self, slot: str) -> None:
        join = partial(self._member, group=STATIC_GROUP, topic="payments", session_timeout_ms=STATIC_SESSION_TIMEOUT_MS)
        self._members[slot] = join(name=slot, instance_id=slot, directory=self._own_directory())

    def _own_directory(self) -> Path:
        """A new member takes the name of the one it replaces, but not its log."""
        self._started += 1
        return self._directory / f"member-{self._started:04d}"

    def _await_assigned(self, slot: str) -> None:
        """Wait in small steps, so that a stop need not wait for a group that never settles."""
        deadline = time.monotonic() + verifiable_consumer.ASSIGN_SECONDS
        while not self._members[slot].owned and time.monotonic() < deadline and self._members[slot].is_running:
            self._wait(_POLL_SECONDS)
        self._members[slot].await_assigned(timeout_seconds=0)

    def _await_rest(self, slots: Sequence[str]) -> None:
        """Wait until each partition has one owner and has had it for a while, as an operator waits between members.

        A group that never comes to rest is rolled all the same: the monitor beside it has that to show.
        """
        deadline = time.monotonic() + verifiable_consumer.ASSIGN_SECONDS
        while time.monotonic() < deadline:
            members = [self._members[slot] for slot in slots]
            owned = sorted(place for member in members for place in member.owned)
            rested = time.monotonic() - max(member.owned_since for member in members)
            if owned == _EVERY_ORDER and rested >= self._settle_seconds:
                return
            self._wait(_POLL_SECONDS)

    def _wait(self, seconds: float) -> None:
        if self._stopping.wait(seconds):
            raise _StoppingError

    def _end_members(self) -> None:
        for member in self._members.values():
            member.ask_to_stop()
        for member in self._members.values():
            member.stop()
        self._members.clear()

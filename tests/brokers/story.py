"""What happens on the broker of each release, with real members, up to five moments at which all is compared.

Groups: `java` of the release's own consumers, `librdkafka` of two, `static` of one with an instance id, `modern` of two
that speak the consumer protocol, and `behind` and `gone`, which only have offsets. A release has those it can have.
"""

from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Final, Self

from confluent_kafka import Consumer, Producer, TopicPartition

from lab.monitor_process import until
from streaming.demo.verifiable_consumer import create_topics
from tests.brokers.members import Member, librdkafka, of_release
from tests.brokers.node import Node
from tests.brokers.printed import ReleaseTool
from tests.brokers.releases import Release

Expected = dict[str, tuple[str, int] | None]
"""Group → state and number of members; None: there is no such group any more."""

UNCERTAIN: Final = ("", 0)
"""In place of these: whichever it is. What matters is that the monitor says the same as the broker."""

MOMENTS: Final = ("members joined", "at rest", "broker restarted", "member killed", "group deleted")
TOPIC: Final = "orders"
_RETURN_SECONDS: Final = 120.0
_PARTITIONS: Final = 4
_RECORDS: Final = 40
_STABLE: Final = "Stable"


class Story:
    """Plays it; use as a context manager, which ends all members."""

    def __init__(self, release: Release, node: Node, tool: ReleaseTool, directory: Path) -> None:
        self._release, self._node, self._tool, self._directory = release, node, tool, directory
        self._members: dict[str, Member] = {}
        self.servers = node.bootstrap_servers

    def begin(self) -> None:
        """Make the topic, with records that no group has read."""
        create_topics(self.servers, {TOPIC: _PARTITIONS})
        self._produce()

    def moments(self) -> Iterator[tuple[str, Expected]]:
        """Make the next moment come; gives its name, and what the tool will say when it is there."""
        joined, rested, restarted, killed, deleted = MOMENTS
        expected = self._join()
        yield joined, expected
        if self._release.has_static_members:
            self._return_of_static_member()
        self._produce()
        yield rested, expected
        self._node.stop()
        self._node.start()
        if "static" in expected and not self._release.writes_static_returns:
            # The broker knows the member id of before its return, which no process has now, and fences who came back;
            # unless that took longer than a session: then it came as a new member, which was written.
            expected |= {"static": UNCERTAIN}
        yield restarted, expected
        for group in ("java", "librdkafka", "modern"):
            if group in expected:
                self._members[f"{group}-2"].kill()
                expected |= {group: (_STABLE, 1)}
        yield killed, expected
        self._members["java-1"].stop()
        self._tool.run("--delete", "--group", "gone")
        yield deleted, {**expected, "java": ("Empty", 0), "gone": None}

    def __enter__(self) -> Self:
        return self

    def __exit__(self, *_: object) -> None:
        for member in self._members.values():
            with suppress(ProcessLookupError):
                member.stop()

    def _join(self) -> Expected:
        expected: Expected = {}
        for number in (1, 2):
            self._members[f"java-{number}"] = of_release(
                self._release, self.servers, "java", f"java-{number}", TOPIC, self._directory
            )
            self._librdkafka("librdkafka", number)
            if self._release.shows_consumer:
                self._modern(number)
        expected |= {"java": (_STABLE, 2), "librdkafka": (_STABLE, 2)}
        if self._release.shows_consumer:
            expected["modern"] = (_STABLE, 2)
        if self._release.has_static_members:
            self._librdkafka("static", 1, instance_id="static-1")
            expected["static"] = (_STABLE, 1)
        for group in ("behind", "gone"):
            self._commit(group)
            expected[group] = ("Empty", 0)
        return expected

    def _modern(self, number: int) -> None:
        name = f"modern-{number}"
        if self._release.librdkafka_speaks_consumer:
            self._librdkafka("modern", number, consumer=True)
            return
        self._members[name] = of_release(
            self._release, self.servers, "modern", name, TOPIC, self._directory, protocol="consumer"
        )

    def _librdkafka(
        self,
        group: str,
        number: int,
        *,
        consumer: bool = False,
        instance_id: str | None = None,
        directory: Path | None = None,
    ) -> None:
        name = f"{group}-{number}"
        self._members[name] = librdkafka(
            self.servers,
            group,
            name,
            TOPIC,
            directory or self._directory,
            protocol="consumer" if consumer else "classic",
            instance_id=instance_id,
        )

    def _return_of_static_member(self) -> None:
        """A process in the place of another, back before anything else is done: who is on its way is fenced."""
        self._members["static-1"].stop()
        directory = self._directory / "returned"
        directory.mkdir()
        self._librdkafka("static", 1, instance_id="static-1", directory=directory)
        until(self._members["static-1"].is_assigned, _RETURN_SECONDS, "the static member did not come back")

    def _produce(self) -> None:
        producer = Producer({"bootstrap.servers": self.servers, "log_level": 0})
        for number in range(_RECORDS):
            producer.produce(TOPIC, value="x", partition=number % _PARTITIONS)
        assert 0 == producer.flush(30)

    def _commit(self, group: str) -> None:
        """As a simple consumer does, or an admin's reset."""
        simple = Consumer({"bootstrap.servers": self.servers, "group.id": group, "log_level": 0})
        simple.commit(offsets=[TopicPartition(TOPIC, number, number) for number in range(2)], asynchronous=False)
        simple.close()

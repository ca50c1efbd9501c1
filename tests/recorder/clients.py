"""Kafka's own clients of one release: members of every kind in one JVM, each polled by a thread of ours.

A JVM a member would be truer to life, and take a second and a hundred megabytes each; the log shows no difference.
Members that are to die without a word live in a JVM that is killed.
"""

import re
import threading
import time
from collections.abc import Callable, Mapping
from concurrent.futures import Future
from functools import cached_property
from pathlib import Path
from queue import Empty, SimpleQueue
from typing import Any, Final

from py4j.protocol import Py4JError, Py4JJavaError

from streaming.demo import child_processes
from streaming.demo.verifiable_consumer import ASSIGNORS, Assignor, Protocol
from tests.group_tool import GroupTool

PATIENCE_SECONDS: Final = 30.0

_POLL_MS: Final = 100
_STRING: Final = "org.apache.kafka.common.serialization.{}"
_CLASSIC_TIMEOUTS: Final = {"heartbeat.interval.ms": "500", "session.timeout.ms": "6000"}
_OWNED: Final = re.compile(r"([^\s,\[\]]+)-(\d+)")
"""`[orders-0, orders-1]`, as Java prints a set of partitions."""


class ClientJvm(GroupTool):
    """`GroupTool` with the clients beside the tools."""

    def __init__(self, bootstrap_servers: str, *, log: Path, jars_dir: Path) -> None:
        super().__init__(bootstrap_servers, log=log, jars_dir=jars_dir, heap="512m")
        self.servers = bootstrap_servers
        self.java = self._gateway.jvm
        self.kafka = self.java.org.apache.kafka

    def kill(self) -> None:
        """End it, and every member in it, as a machine that fails."""
        child_processes.kill(self._process)

    def set_features(self, levels: Mapping[str, int]) -> None:
        """Raise the cluster's features to levels, unstable ones too where the broker allows it."""
        admin = self.kafka.clients.admin
        for name, level in levels.items():
            update = admin.FeatureUpdate(level, admin.FeatureUpdate.UpgradeType.UPGRADE)
            self.admin.updateFeatures(self.map_of(name, update), admin.UpdateFeaturesOptions()).all().get()

    def configure_group(self, group: str, name: str, value: str) -> None:
        """Set a dynamic configuration of a group."""
        admin, resource = self.kafka.clients.admin, self.kafka.common.config.ConfigResource
        change = admin.AlterConfigOp(admin.ConfigEntry(name, value), admin.AlterConfigOp.OpType.SET)
        changes = self.map_of(resource(resource.Type.GROUP, group), self.list_of(change))
        self.admin.incrementalAlterConfigs(changes).all().get()

    def described(self, kind: str, group: str) -> tuple[str, int]:
        """State of a `Share` or `Streams` group, and how many members it has.

        Raises LookupError if there is none, with Kafka's words: some clients call such a group Dead.
        """
        asked = getattr(self.admin, f"describe{kind}Groups")(self.list_of(group))
        try:
            found = asked.all().get().get(group)
        except Py4JJavaError as error:
            raise LookupError(error.java_exception.getCause().toString()) from None
        state = found.groupState().toString()
        if state == "Dead":
            raise LookupError(state)
        return state, found.members().size()

    def delete_modern(self, kind: str, group: str) -> bool:
        """Delete a `Share` or `Streams` group; False while its delivery state is not where it can be deleted.

        The streams tool would end its JVM afterwards.
        """
        try:
            getattr(self.admin, f"delete{kind}Groups")(self.list_of(group)).all().get()
        except Py4JJavaError:
            return False
        return True

    @cached_property
    def admin(self) -> Any:
        """Kafka's `Admin`."""
        return self.kafka.clients.admin.Admin.create(self.properties({}))

    def map_of(self, key: Any, value: Any) -> Any:
        """As `java.util.Map`."""
        found = self.java.java.util.HashMap()
        found.put(key, value)
        return found

    def properties(self, settings: Mapping[str, str]) -> Any:
        """As `java.util.Properties`, with what every client needs."""
        found = self.java.java.util.Properties()
        for name, value in {"bootstrap.servers": self.servers, **settings}.items():
            found.setProperty(name, value)
        return found

    def list_of(self, *items: Any) -> Any:
        """As `java.util.List`."""
        found = self.java.java.util.ArrayList()
        for item in items:
            found.add(item)
        return found

    def millis(self, count: int) -> Any:
        """As `java.time.Duration`."""
        return self.java.java.time.Duration.ofMillis(count)


class Member:
    """A consumer on a thread: only this thread calls it, as Kafka's consumers demand.

    Attributes:
        owned: (topic, partition) it owns by its own account; a share consumer gives none.
        error: what ended it, if something did.
    """

    def __init__(self, name: str, jvm: ClientJvm, create: Callable[[], Any], *, tells_owned: bool = True) -> None:
        """`create` makes the consumer and subscribes it."""
        self.name = name
        self.owned: set[tuple[str, int]] = set()
        self.error: str | None = None
        self._jvm, self._create, self._tells_owned = jvm, create, tells_owned
        self._asked: SimpleQueue[tuple[Callable[[Any], Any], Future[Any]]] = SimpleQueue()
        self._paused = self._leaves = False
        self._over = threading.Event()
        self._thread = threading.Thread(target=self._run, name=name, daemon=True)
        self._thread.start()

    def do(self, action: Callable[[Any], Any]) -> Any:
        """Call the consumer from its thread, between two polls. Raises what the call raises, or TimeoutError."""
        answer: Future[Any] = Future()
        self._asked.put((action, answer))
        return answer.result(PATIENCE_SECONDS)

    def commit(self) -> None:
        """Commit how far it has read."""
        self.do(lambda consumer: consumer.commitSync())

    def pause(self) -> None:
        """Stop polling, as an application that is busy; heartbeats go on."""
        self._paused = True

    def resume(self) -> None:
        """Poll again."""
        self._paused = False

    def close(self) -> None:
        """Leave as an application does that is shut down; a second call does nothing."""
        self._leaves = True
        self.abandon()

    def abandon(self) -> None:
        """Stop calling it: its JVM is about to be killed."""
        self._over.set()
        self._thread.join(PATIENCE_SECONDS)

    def await_owned(self, count: int) -> None:
        """Wait until it owns as many partitions. Raises TimeoutError."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while len(self.owned) != count:
            if time.monotonic() > deadline or self.error:
                raise TimeoutError(f"{self.name}: owns {sorted(self.owned)}, expected {count}; {self.error or ''}")
            time.sleep(0.05)

    def _run(self) -> None:
        try:
            consumer = self._create()
            pause = self._jvm.millis(_POLL_MS)
            while not self._over.is_set():
                self._answer(consumer)
                if not self._paused:
                    consumer.poll(pause)
                if self._tells_owned:
                    owned = consumer.assignment().toString()
                    self.owned = {(topic, int(number)) for topic, number in _OWNED.findall(owned)}
            if self._leaves:
                consumer.close()
        except (Py4JError, OSError) as error:
            # A member whose JVM was killed under it ends here, and so does one that the broker refuses.
            self.error = str(error.java_exception) if isinstance(error, Py4JJavaError) else repr(error)

    def _answer(self, consumer: Any) -> None:
        try:
            action, answer = self._asked.get(timeout=_POLL_MS / 1000 if self._paused else 0.001)
        except Empty:
            return
        try:
            answer.set_result(action(consumer))
        except Py4JError as error:
            answer.set_exception(error)


def consumer(
    jvm: ClientJvm,
    group: str,
    name: str,
    topics: tuple[str, ...] = (),
    *,
    protocol: Protocol = "classic",
    assignor: Assignor = "range",
    instance_id: str | None = None,
    pattern: str | None = None,
    settings: Mapping[str, str] | None = None,
) -> Member:
    """A `KafkaConsumer`; a pattern is the broker's business in the consumer protocol, else the client's."""
    given = {
        "group.id": group,
        "client.id": name,
        "group.protocol": protocol,
        "key.deserializer": _STRING.format("StringDeserializer"),
        "value.deserializer": _STRING.format("StringDeserializer"),
        "auto.offset.reset": "earliest",
        "enable.auto.commit": "false",
        "metadata.max.age.ms": "2000",
    }
    if protocol == "classic":
        given |= {**_CLASSIC_TIMEOUTS, "partition.assignment.strategy": ASSIGNORS[assignor]}
    if instance_id is not None:
        given["group.instance.id"] = instance_id

    def create() -> Any:
        made = jvm.kafka.clients.consumer.KafkaConsumer(jvm.properties({**given, **(settings or {})}))
        if pattern is None:
            made.subscribe(jvm.list_of(*topics))
        elif protocol == "classic":
            made.subscribe(jvm.java.java.util.regex.Pattern.compile(pattern))
        else:
            made.subscribe(jvm.kafka.clients.consumer.SubscriptionPattern(pattern))
        return made

    return Member(name, jvm, create)


def share_consumer(jvm: ClientJvm, group: str, name: str, topic: str) -> Member:
    """A `KafkaShareConsumer`, which does not say what it was assigned."""
    given = {
        "group.id": group,
        "client.id": name,
        "key.deserializer": _STRING.format("StringDeserializer"),
        "value.deserializer": _STRING.format("StringDeserializer"),
    }

    def create() -> Any:
        made = jvm.kafka.clients.consumer.KafkaShareConsumer(jvm.properties(given))
        made.subscribe(jvm.list_of(topic))
        return made

    return Member(name, jvm, create, tells_owned=False)


class StreamsMember:
    """A Kafka Streams application of one thread: it counts by key, behind a repartition topic, its store in memory."""

    def __init__(
        self, jvm: ClientJvm, group: str, name: str, topic: str, state_dir: Path, *, protocol: str, standbys: int = 0
    ) -> None:
        """Start it; `group` is its application id, protocol `streams` or `classic`."""
        self.name = name
        streams = jvm.kafka.streams
        builder = streams.StreamsBuilder()
        # `as` is a word of Python's own.
        store = getattr(streams.kstream.Materialized, "as")(streams.state.Stores.inMemoryKeyValueStore("counts"))
        builder.stream(topic).repartition().groupByKey().count(store)
        settings = {
            "application.id": group,
            "client.id": name,
            "state.dir": str(state_dir / name),
            "group.protocol": protocol,
            "default.key.serde": _STRING.format("Serdes$StringSerde"),
            "default.value.serde": _STRING.format("Serdes$StringSerde"),
            "auto.offset.reset": "earliest",
            "commit.interval.ms": "1000",
            "replication.factor": "1",
        }
        if protocol == "classic":
            settings |= {"num.standby.replicas": str(standbys), **_CLASSIC_TIMEOUTS}
        self._jvm = jvm
        self._streams = streams.KafkaStreams(builder.build(), jvm.properties(settings))
        self._streams.start()

    def await_running(self) -> None:
        """Wait until it has tasks. Raises TimeoutError."""
        deadline = time.monotonic() + PATIENCE_SECONDS
        while str(self._streams.state()) != "RUNNING":
            if time.monotonic() > deadline:
                raise TimeoutError(f"{self.name}: {self._streams.state()}")
            time.sleep(0.1)

    def close(self) -> None:
        """Leave as an application does that is shut down."""
        self._streams.close(self._jvm.kafka.streams.KafkaStreams.CloseOptions().leaveGroup(True))

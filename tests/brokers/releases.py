"""The Kafka releases that `make brokers` tries, and what each needs to run."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Final

from tests.recorder.versions import jars_of

_BOTH_PROTOCOLS: Final = {"group.coordinator.rebalance.protocols": "classic,consumer"}
_FIRST_KRAFT: Final = (3, 6)
"""The first that is run without ZooKeeper here; 3.3 could be."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """A release, as it is installed or with the consumer protocol turned on.

    Attributes:
        version: as in `kafka_2.13-VERSION.jar`.
        scala: the Scala it is published for.
        with_consumer: settings that turn the consumer protocol on where the release leaves it off.
    """

    version: str
    scala: str = "2.13"
    with_consumer: Mapping[str, str] = field(default_factory=dict)

    @property
    def name(self) -> str:
        """`3.9.2`, or `3.9.2-consumer` with the protocol turned on."""
        return f"{self.version}-consumer" if self.with_consumer else self.version

    @property
    def number(self) -> tuple[int, int]:
        """Major and minor."""
        major, minor, _ = self.version.split(".")
        return int(major), int(minor)

    @property
    def needs_zookeeper(self) -> bool:
        """Whether it is run with ZooKeeper."""
        return self.number < _FIRST_KRAFT

    @property
    def needs_java_11(self) -> bool:
        """Whether Java 17 does not run it."""
        return self.number < (3, 0)

    @property
    def has_static_members(self) -> bool:
        """KIP-345."""
        return self.number >= (2, 3)

    @property
    def writes_static_returns(self) -> bool:
        """Whether the log has the member id of a static member that came back (KAFKA-10284)."""
        return self.number >= (2, 7)

    @property
    def has_cooperative_sticky(self) -> bool:
        """KIP-429."""
        return self.number >= (2, 4)

    @property
    def speaks_consumer(self) -> bool:
        """Whether members may speak the consumer protocol, as it runs here."""
        return self.number >= (4, 0) or bool(self.with_consumer)

    @property
    def shows_consumer(self) -> bool:
        """Whether its own tool describes such groups: 3.7's calls them not found."""
        return self.speaks_consumer and self.number >= (3, 8)

    @property
    def has_consumer(self) -> bool:
        """Whether its own Java consumer speaks the consumer protocol."""
        return self.number >= (3, 7)

    @property
    def librdkafka_speaks_consumer(self) -> bool:
        """Whether librdkafka does with it: since 2.12 that asks for version 1 of the heartbeat, which 4.0 brought."""
        return self.number >= (4, 0)

    def jars(self) -> Path:
        """The folder with its jars, fetched unless they are there. Raises RuntimeError: not all are to be had."""
        return jars_of(self.version, scala=self.scala, log4j_1=self.number < (3, 2))


RELEASES: Final = (
    Release(version="2.0.1", scala="2.12"),
    Release(version="2.4.1"),
    Release(version="2.8.2"),
    Release(version="3.3.2"),
    Release(version="3.6.2"),
    Release(version="3.7.2"),
    Release(
        version="3.7.2",
        with_consumer={
            **_BOTH_PROTOCOLS,
            "group.coordinator.new.enable": "true",
            "unstable.api.versions.enable": "true",
        },
    ),
    Release(version="3.8.1"),
    Release(version="3.8.1", with_consumer=_BOTH_PROTOCOLS),
    Release(version="3.9.2"),
    Release(version="3.9.2", with_consumer={**_BOTH_PROTOCOLS, "group.consumer.migration.policy": "bidirectional"}),
    Release(version="4.0.2"),
    Release(version="4.1.1"),
    Release(version="4.2.1"),
)
BY_NAME: Final[Mapping[str, Release]] = {release.name: release for release in RELEASES}

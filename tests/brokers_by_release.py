"""Brokers of each release, by the ApiVersions that kafka-python has recorded of real ones."""

from collections.abc import Iterable
from typing import Final

from kafka.protocol.broker_version_data import BROKER_API_VERSIONS

from coordinator_model.gates.broker_abilities import Broker
from coordinator_model.gates.verdict import BrokerSettings


def api_versions(release: str) -> dict[int, tuple[int, int]]:
    """API key → (lowest, highest) version that brokers of a release serve."""
    return dict(BROKER_API_VERSIONS[tuple(map(int, release.split(".")))])


def broker(id_: int, release: str) -> Broker:
    """One of that release."""
    return Broker.of(id_, release, api_versions(release))


def brokers(releases: Iterable[str]) -> tuple[Broker, ...]:
    """One of each, with ids from 1 on."""
    return tuple(broker(number, release) for number, release in enumerate(releases, 1))


ALLOWING: Final = BrokerSettings(
    asked=True,
    brokers=brokers(["4.3", "4.3", "4.3"]),
    consumer_protocol=True,
    migration_policy="bidirectional",
    consumer_max_size=500,
    classic_max_size=500,
)
"""Brokers that say everything, and convert groups."""

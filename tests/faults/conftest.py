"""One broker for all modules of faults that need no broker of their own."""

from collections.abc import Iterator

import pytest

from streaming.demo.embedded_broker import EmbeddedBroker
from tests.faults.compaction import EAGER_CLEANER


@pytest.fixture(scope="package")
def servers(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Bootstrap servers of a broker whose cleaner is eager where a topic lets it."""
    directory = tmp_path_factory.mktemp("broker")
    with EmbeddedBroker(directory, offsets_partitions=1, properties=EAGER_CLEANER) as broker:
        yield broker.bootstrap_servers

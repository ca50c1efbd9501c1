"""Makes the archive of Kafka's classes beside its jars: `python -m lab.kafka_classes`, once (`make classes`).

Exit status: 0 it is made; 2 no usable Java, or no jars; 3 it did not come about.

A broker runs, and a consumer at it: what the broker has loaded until its end, its tools and clients load as well.
"""

import sys
import tempfile
from pathlib import Path
from typing import Final

from streaming.base.errors import CannotTellError, MonitorError
from streaming.demo.embedded_broker import EmbeddedBroker
from streaming.demo.verifiable_consumer import VerifiableConsumer, create_topics
from streaming.spark import cds_archive, kafka_jars

_NAME: Final = "rehearsal"


class _Rehearsing(EmbeddedBroker):
    """A broker that writes its classes down as it ends."""

    _GRACE_SECONDS = 300.0

    def __init__(self, data_dir: Path, made: Path) -> None:
        super().__init__(data_dir)
        self._made = made

    def _node(self, settings: Path) -> list[str]:
        java, *rest = super()._node(settings)
        return [java, f"-XX:ArchiveClassesAtExit={self._made}", *rest]


def make(archive: Path) -> None:
    """Make the archive, in half a minute.

    Raises:
        UsageError: no usable Java, or no jars.
        CannotTellError: it did not come about; why.
    """
    # A JVM that uses one writes none.
    archive.unlink(missing_ok=True)
    with tempfile.TemporaryDirectory(prefix="rehearsal-", dir=archive.parent) as scratch:
        directory = Path(scratch)
        made = directory / "made.jsa"
        with _Rehearsing(directory / "broker", made) as broker:
            create_topics(broker.bootstrap_servers, {_NAME: 1})
            with VerifiableConsumer(
                broker.bootstrap_servers, group=_NAME, topic=_NAME, name=_NAME, directory=directory
            ) as consumer:
                consumer.await_assigned()
        cds_archive.keep(made, archive)


def main() -> int:
    """Make the archive of the jars that `make setup` has fetched; returns the exit status."""
    try:
        make(cds_archive.beside(kafka_jars.DIRECTORY.resolve()))
    except (MonitorError, OSError) as error:
        sys.stderr.write(f"error: {error}\n")
        return error.exit_status if isinstance(error, MonitorError) else CannotTellError.exit_status
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""Other monitors of consumer groups: where to get each, how it is started beside ours, and what its page calls offsets.

None of them is part of this project. One that is installed is measured; the settings here are its own defaults, but for
addresses, and for what makes it do the work that ours does: offsets from the log where it can, as fresh as it has them,
with a series for each partition.
"""

import json
import os
import shutil
import socket
from collections.abc import Callable, Mapping
from contextlib import closing
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

import yaml

from streaming.base.errors import UsageError
from streaming.demo.embedded_broker import HOST

BROKER_VERSION: Final = "3.6.0"
"""What a client in Go is to speak: any version that today's brokers still answer, and that it knows."""


@dataclass(frozen=True, slots=True)
class Start:
    """How a program is started: its arguments, variables of its environment, and the files that it reads."""

    arguments: tuple[str, ...] = ()
    environment: Mapping[str, str] = field(default_factory=dict)
    files: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class Shown:
    """Where a page of metrics has committed offsets: the samples' name, and the label that holds the group."""

    sample: str
    group: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Peer:
    """Another monitor.

    Attributes:
        name: what it calls itself.
        programs: names of its program on PATH.
        variable: of the environment; names the program wherever it is.
        releases: where to get it.
        offsets: what its page shows of committed offsets, one by one or as sums.
        start: (bootstrap servers, port, directory for its files) → how to start it with its page on that port.
    """

    name: str
    programs: tuple[str, ...]
    variable: str
    releases: str
    offsets: Shown
    start: Callable[[str, int, Path], Start]

    def path(self, environment: Mapping[str, str] = os.environ) -> str | None:
        """The program, if it is installed.

        Raises:
            UsageError: the variable names something that cannot be run.
        """
        given = environment.get(self.variable)
        if given:
            found = shutil.which(given)
            if found is None:
                raise UsageError(f"{self.variable}: found {given!r}, accepted: the path of {self.name}'s program")
            return str(Path(found).resolve())
        path = environment.get("PATH")
        return next((found for name in self.programs if (found := shutil.which(name, path=path))), None)

    @property
    def how_to_get_it(self) -> str:
        """For a run that has to do without it."""
        return (
            f"skipped, not found: {self.name}: get it from {self.releases}, "
            f"then put {self.programs[0]!r} on PATH or set {self.variable} to its path"
        )


def free_port() -> int:
    """A port that nothing listens on."""
    with closing(socket.create_server((HOST, 0))) as listening:
        port: int = listening.getsockname()[1]
        return port


def _kminion(servers: str, port: int, directory: Path) -> Start:
    config: dict[str, Any] = {
        "logger": {"level": "warn"},
        "kafka": {"brokers": [servers]},
        "minion": {"consumerGroups": {"scrapeMode": "offsetsTopic", "granularity": "partition"}},
        "exporter": {"host": HOST, "port": port},
    }
    return Start(
        environment={"CONFIG_FILEPATH": str(directory / "kminion.yaml")}, files={"kminion.yaml": yaml.safe_dump(config)}
    )


def _burrow(servers: str, port: int, directory: Path) -> Start:
    sections: dict[str, dict[str, Any]] = {
        "logging": {"level": "warn"},
        "client-profile.bench": {"client-id": "bench", "kafka-version": BROKER_VERSION},
        "cluster.bench": {"class-name": "kafka", "servers": [servers], "client-profile": "bench"},
        "consumer.bench": {"class-name": "kafka", "cluster": "bench", "servers": [servers], "client-profile": "bench"},
        # Seconds; by default its page is up to 10 s old.
        "evaluator.bench": {"class-name": "caching", "expire-cache": 1},
        "httpserver.bench": {"address": f"{HOST}:{port}"},
    }
    # Strings and lists of them are written in TOML as in JSON.
    lines = [
        line
        for name, options in sections.items()
        for line in (f"[{name}]", *(f"{option}={json.dumps(value)}" for option, value in options.items()))
    ]
    return Start(arguments=("--config-dir", str(directory)), files={"burrow.toml": "\n".join(lines) + "\n"})


def _kafka_exporter(servers: str, port: int, _directory: Path) -> Start:
    return Start(
        arguments=(
            f"--kafka.server={servers}",
            f"--web.listen-address={HOST}:{port}",
            f"--kafka.version={BROKER_VERSION}",
        )
    )


PEERS: Final = (
    Peer(
        name="KMinion",
        programs=("kminion",),
        variable="KMINION",
        releases="https://github.com/redpanda-data/kminion/releases",
        # Single offsets are not on its page.
        offsets=Shown(sample="kminion_kafka_consumer_group_topic_offset_sum", group="group_id"),
        start=_kminion,
    ),
    Peer(
        name="Burrow",
        programs=("burrow", "Burrow"),
        variable="BURROW",
        releases="https://github.com/linkedin/Burrow/releases",
        offsets=Shown(sample="burrow_kafka_consumer_current_offset", group="consumer_group"),
        start=_burrow,
    ),
    Peer(
        name="kafka_exporter",
        programs=("kafka_exporter",),
        variable="KAFKA_EXPORTER",
        releases="https://github.com/danielqsj/kafka_exporter/releases",
        offsets=Shown(sample="kafka_consumergroup_current_offset", group="consumergroup"),
        start=_kafka_exporter,
    ),
)

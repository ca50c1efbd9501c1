"""`python -m tests.recorder VERSION [FAMILY…] [--out DIR]`: records real groups of one release.

For each family of scenarios a recording of what the broker wrote of its groups, and beside it a JSON file with what
Kafka's own tools said of each of them at its end. Nothing moves while they are asked: they are asked before and after
the log is read, and have to say the same. Jars are fetched first, into `.cache/versions`.
"""

import argparse
import json
import logging
import subprocess
import sys
import time
import traceback
from collections.abc import Iterator, Sequence
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, contextmanager
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Final

from streaming.demo.embedded_broker import EmbeddedBroker
from tests.group_tool import GroupTool
from tests.recorder.clients import ClientJvm
from tests.recorder.recordings import FOLDER
from tests.recorder.scenarios import FAMILIES
from tests.recorder.scene import Cluster, Scenario, Scene
from tests.recorder.truth import Truth, described
from tests.recorder.versions import BY_NAME, KafkaVersion, jars_of

AT_ONCE: Final = 5
"""Scenarios at a time: most of each is waiting for heartbeats."""
ATTEMPTS: Final = 5

# Sessions as short as a scenario wants them, by default longer than a recording takes, and a coordinator that looks for
# what has expired every few seconds.
PROPERTIES: Final = {
    "group.consumer.min.session.timeout.ms": "3000",
    "group.consumer.session.timeout.ms": "600000",
    "group.consumer.max.session.timeout.ms": "600000",
    "offsets.retention.check.interval.ms": "8000",
    "group.coordinator.append.linger.ms": "5",
}
OFFSETS_PARTITIONS: Final = 5


def main(arguments: Sequence[str] | None = None) -> int:
    """Record; the exit status is 1 if a scenario did not come off."""
    parser = argparse.ArgumentParser(prog="python -m tests.recorder", description="Record groups of one Kafka release.")
    parser.add_argument("version", choices=BY_NAME)
    parser.add_argument("families", nargs="*", metavar="family", help=f"of {', '.join(FAMILIES)}; all if none is given")
    parser.add_argument("--out", type=Path, metavar="DIR", help="instead of tests/recordings/VERSION")
    options = parser.parse_args(arguments)
    version = BY_NAME[options.version]
    possible = {family: [of for of in scenarios if of.is_for(version)] for family, scenarios in FAMILIES.items()}
    wanted = {family: possible[family] for family in options.families or FAMILIES if possible[family]}
    # Members in a JVM that was killed end as they shall; py4j would tell each call that failed.
    logging.disable(logging.CRITICAL)
    with TemporaryDirectory(prefix="recorder-") as directory, ExitStack() as ends:
        cluster = ends.enter_context(running(version, Path(directory)))
        failed = play(cluster, [scenario for scenarios in wanted.values() for scenario in scenarios], ends)
        out = options.out or FOLDER / version.name
        out.mkdir(parents=True, exist_ok=True)
        for family, scenarios in wanted.items():
            record(cluster, [scenario.group for scenario in scenarios if scenario.group not in failed], out / family)
    return 1 if failed else 0


@contextmanager
def running(version: KafkaVersion, directory: Path) -> Iterator[Cluster]:
    """A broker of a release, its clients, and the tools that describe its groups."""
    jars_dir = jars_of(version.name)
    broker = EmbeddedBroker(
        directory / "broker",
        jars_dir=jars_dir,
        offsets_partitions=OFFSETS_PARTITIONS,
        properties={**PROPERTIES, **version.properties},
    )
    with broker, ExitStack() as ends:
        servers = broker.bootstrap_servers

        def new_jvm(name: str) -> ClientJvm:
            return ClientJvm(servers, log=directory / f"{name}.log", jars_dir=jars_dir)

        jvm = ends.enter_context(new_jvm("clients"))
        jvm.set_features(version.features)
        tool: GroupTool = jvm
        if version.described_by is not None:
            tool = GroupTool(servers, log=directory / "tool.log", jars_dir=jars_of(version.tools))
            ends.enter_context(tool)
        yield Cluster(version, servers, jvm, tool, directory, new_jvm)


def play(cluster: Cluster, scenarios: Sequence[Scenario], ends: ExitStack) -> set[str]:
    """Let scenarios happen, several at a time; returns the groups of those that did not come off."""
    failed = set()

    def one(scenario: Scenario) -> None:
        scene = Scene(cluster, scenario.group)
        ends.callback(scene.close)
        started = time.monotonic()
        try:
            scenario.play(scene)
        except Exception:  # noqa: BLE001 - whatever it is, the other scenarios go on
            failed.add(scenario.group)
            say(f"{scenario.group} did not come off\n{traceback.format_exc()}")
        say(f"{scenario.group} {time.monotonic() - started:.1f} s")

    with ThreadPoolExecutor(AT_ONCE) as pool:
        list(pool.map(one, scenarios))
    return failed


def record(cluster: Cluster, groups: Sequence[str], path: Path) -> None:
    """Write PATH.ndjson.gz and PATH.truth.json. Raises RuntimeError if groups do not come to rest."""
    recording = path.with_suffix(".ndjson.gz")
    command = [sys.executable, "-m", "streaming", "record", "--bootstrap-server", cluster.servers]
    command += ["--out", str(recording), *(word for group in groups for word in ("--group", group))]
    for _ in range(ATTEMPTS):
        before: Truth = described(cluster, groups)
        subprocess.run(command, check=True)  # noqa: S603 - no shell takes part
        if before == described(cluster, groups):
            path.with_suffix(".truth.json").write_text(json.dumps(before, indent=1, ensure_ascii=False) + "\n", "utf-8")
            return
    raise RuntimeError(f"{path.name}: its groups do not come to rest")


def say(text: str) -> None:
    """Tell how it goes."""
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main())

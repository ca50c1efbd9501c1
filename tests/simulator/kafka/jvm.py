"""Kafka's group coordinator in a JVM of its own: it is given seeds, and writes a recording for each."""

import json
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any, Final, Literal

from streaming.spark.java import command
from tests.kafka_oracle import KAFKA_JARS
from tests.kafka_replay.judge import compile_java

SOURCES: Final = sorted(Path(__file__).parent.glob("*.java"))
MAIN_CLASS: Final = "org.apache.kafka.coordinator.group.LawfulHistories"

Kind = Literal["plain", "old", "clocks"]
"""`old`: classic members' subscriptions are of older versions; `clocks`: those of brokers are set meanwhile."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Deed:
    """What was done to a group, or to all (""), and when.

    Attributes:
        at_ms: since the history began, whatever the brokers' clocks said.
        who: an instance id; of a clock that was set, by how many milliseconds it is ahead.
        offset: of the record that was written next.
    """

    at_ms: int
    group: str
    what: str
    who: str | None
    offset: int


@dataclass(frozen=True, slots=True, kw_only=True)
class LawfulHistory:
    """A history and what was done in it.

    Attributes:
        groups: name → kind of group.
        phases: name → phase of its migration at the end, of those that were rolled.
    """

    seed: int
    kind: Kind
    path: Path
    records: int
    groups: dict[str, str]
    phases: dict[str, str]
    done: tuple[Deed, ...]


class Histories:
    """The JVM, ready for one seed after the other."""

    def __init__(self, process: "Popen[str]", directory: Path) -> None:
        self._process = process
        self._directory = directory

    def of(self, seed: int, kind: Kind = "plain") -> LawfulHistory:
        """The history of a seed; its file is the same for all, so it is to be read before the next."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        path = self._directory / "history.ndjson"
        self._process.stdin.write(f"{seed} {kind} {path}\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"seed {seed}: the JVM ended: {(self._directory / 'stderr').read_text('utf-8')}"
        said: dict[str, Any] = json.loads(line)
        return LawfulHistory(
            seed=seed,
            kind=kind,
            path=path,
            records=said["records"],
            groups=said["groups"],
            phases=said["phases"],
            done=tuple(
                Deed(at_ms=ms, group=group, what=what, who=who, offset=offset)
                for ms, group, what, who, offset in said["done"]
            ),
        )


@contextmanager
def lawful_histories(directory: Path) -> Iterator[Histories]:
    """Compiled into `directory`, where the recordings are written, too; the JVM ends with the context."""
    compile_java(*SOURCES, into=directory)
    words = command(KAFKA_JARS, MAIN_CLASS, heap="256m", also=[directory])
    words.insert(1, "-Dlog4j2.level=OFF")
    with (
        (directory / "stderr").open("wb") as stderr,
        Popen(words, stdin=PIPE, stdout=PIPE, stderr=stderr, text=True, encoding="utf-8") as process,  # noqa: S603 - no shell takes part
    ):
        try:
            yield Histories(process, directory)
        finally:
            process.terminate()

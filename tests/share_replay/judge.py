"""Kafka's share coordinator in a JVM of its own: it is asked or given a log, and says what it wrote and holds."""

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, Popen
from typing import Any, Final

from coordinator_model.state.findings import Position
from streaming.spark.java import command
from tests.histories import LogRecord
from tests.kafka_oracle import KAFKA_JARS
from tests.kafka_replay.judge import compile_java

SOURCE: Final = Path(__file__).with_name("ShareReplay.java")
MAIN_CLASS: Final = "org.apache.kafka.coordinator.share.ShareReplay"

Entry = list[Any]
"""`ShareReplay.java` lists them."""
SHOW: Final[Entry] = ["show"]
LOAD: Final[Entry] = ["load"]

HeldShare = dict[str, dict[str, Any]]
"""`group:topic id:partition` → what is held of it."""


def record(of: LogRecord) -> Entry:
    """A record of a log that is given."""
    value = None if of.value is None else b64encode(of.value).decode("ascii")
    return ["record", of.place.offset, of.place.timestamp_ms, b64encode(of.key).decode("ascii"), value]


@dataclass(frozen=True, slots=True)
class Shown:
    """What Kafka held where it was asked to show it.

    Attributes:
        held: of each share partition.
        start: where its log began.
        end: and ended.
        read: how many records of `Said.log` there were.
    """

    held: HeldShare
    start: int
    end: int
    read: int


@dataclass(frozen=True, slots=True)
class Said:
    """An answer. `log` has all that was ever written, also what was pruned or lost later."""

    shown: tuple[Shown, ...]
    log: tuple[LogRecord, ...]
    unknown_types: tuple[int, ...]
    failed: str | None


class ShareJudge:
    """The JVM, ready for one log after the other."""

    def __init__(self, process: "Popen[str]", said: Path) -> None:
        self._process = process
        self._said = said

    def ask(self, entries: Sequence[Entry], *, partition: int = 0, records_per_snapshot: int = 500) -> Said:
        """What Kafka makes of these, in a partition of the log that is empty at first."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        request = {"records_per_snapshot": records_per_snapshot, "entries": list(entries)}
        self._process.stdin.write(json.dumps(request, separators=(",", ":")) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the JVM ended: {self._said.read_text('utf-8')}"
        answer = json.loads(line)
        failed = answer["failed"]
        return Said(
            shown=tuple(Shown(of["state"], of["start"], of["end"], of["read"]) for of in answer["shown"]),
            log=tuple(
                LogRecord(
                    Position(partition, offset, time_ms), b64decode(key), None if value is None else b64decode(value)
                )
                for offset, time_ms, key, value in answer["log"]
            ),
            unknown_types=tuple(answer["unknown_types"]),
            failed=None if failed is None else f"entry {failed['at']}: {failed['error']}",
        )


@contextmanager
def share_judge(directory: Path) -> Iterator[ShareJudge]:
    """A judge compiled into `directory`, whose JVM ends with the context."""
    compile_java(SOURCE, into=directory)
    words, said = command(KAFKA_JARS, MAIN_CLASS, heap="256m", also=[directory]), directory / "stderr"
    words.insert(1, "-Dlog4j2.level=OFF")
    with (
        said.open("wb") as stderr,
        Popen(words, stdin=PIPE, stdout=PIPE, stderr=stderr, text=True, encoding="utf-8") as process,  # noqa: S603 - no shell takes part
    ):
        try:
            yield ShareJudge(process, said)
        finally:
            process.terminate()

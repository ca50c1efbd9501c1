"""Kafka's group coordinator in a JVM of its own: it is given logs, and says what it holds after each."""

import hashlib
import json
import os
import shutil
import subprocess
from base64 import b64encode
from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from subprocess import PIPE, Popen
from tempfile import mkdtemp
from typing import Any, Final

from streaming.spark.java import command, find_java
from tests.kafka_oracle import KAFKA_JARS

JUDGE_JARS: Final = KAFKA_JARS.parent / "judge"
SOURCE: Final = Path(__file__).with_name("KafkaReplay.java")
MAIN_CLASS: Final = "org.apache.kafka.coordinator.group.KafkaReplay"
_COMPILED: Final = KAFKA_JARS.parents[1] / "compiled"
_COMPILE_SECONDS: Final = 240

NO_PRODUCER: Final = -1
Entry = list[Any]
"""One entry of a log, or a place to look at: `KafkaReplay.java` lists them."""
SHOW: Final[Entry] = ["show"]

Held = dict[str, Any]
"""`groups`: name → what is held of it; `offsets`: name → committed offsets."""


def record(offset: int, key: bytes, value: bytes | None, producer: int = NO_PRODUCER) -> Entry:
    """A record; within a transaction if it has a producer."""
    return ["record", offset, producer, _base64(key), None if value is None else _base64(value)]


def end(producer: int, *, committed: bool) -> Entry:
    """The marker that ends a producer's transaction."""
    return ["end", producer, committed]


@dataclass(frozen=True, slots=True)
class Failure:
    """Why loading ended, and at which entry."""

    at: int
    error: str


@dataclass(frozen=True, slots=True)
class Verdict:
    """What Kafka held at each SHOW that it came to."""

    shown: list[Held]
    unknown_types: list[int]
    failed: Failure | None


class Judge:
    """The JVM, ready for one log after the other."""

    def __init__(self, process: "Popen[str]", said: Path) -> None:
        self._process = process
        self._said = said

    def load(self, log: Sequence[Entry]) -> Verdict:
        """What Kafka makes of the log of one offsets partition."""
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps(log, separators=(",", ":")) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, f"the JVM ended: {self._said.read_text('utf-8')}"
        answer = json.loads(line)
        failed = answer["failed"]
        for held in answer["shown"]:
            for group in held["groups"].values():
                for member in group["members"].values():
                    _note_newest_epoch(member)
        return Verdict(answer["shown"], answer["unknown_types"], failed and Failure(failed["at"], failed["error"]))


def compile_java(*sources: Path, into: Path) -> None:
    """Compile sources against Kafka with the Eclipse compiler, which asks for a Java runtime only.

    It takes some seconds of a core, so that what was compiled is kept in `.cache`, by what it was compiled from.
    """
    (compiler,) = JUDGE_JARS.glob("ecj-*.jar")
    jars = os.pathsep.join(str(jar) for jar in sorted(KAFKA_JARS.glob("*.jar")))
    # Not --release: a runtime lacks the file that describes other releases.
    options = ["-source", "17", "-target", "17", "-proc:none", "-classpath", jars]
    texts = [source.name.encode() + source.read_bytes() for source in sources]
    kept = _COMPILED / hashlib.sha256(b"\0".join([*texts, *map(str.encode, [compiler.name, *options])])).hexdigest()
    if not kept.exists():
        _COMPILED.mkdir(parents=True, exist_ok=True)
        made = Path(mkdtemp(dir=_COMPILED))
        _compile(compiler, [*options, "-d", str(made)], sources)
        with suppress(OSError):  # another process was first
            made.rename(kept)
        shutil.rmtree(made, ignore_errors=True)
    shutil.copytree(kept, into, dirs_exist_ok=True)


def _compile(compiler: Path, options: list[str], sources: Sequence[Path]) -> None:
    done = subprocess.run(  # noqa: S603 - no shell takes part
        [str(find_java()), "-XX:TieredStopAtLevel=1", "-jar", str(compiler), *options, *map(str, sources)],
        capture_output=True,
        text=True,
        timeout=_COMPILE_SECONDS,
        check=False,
    )
    assert 0 == done.returncode, done.stderr


@contextmanager
def kafka_judge(directory: Path) -> Iterator[Judge]:
    """A judge compiled into `directory`, whose JVM ends with the context."""
    compile_java(SOURCE, into=directory)
    words, said = command(KAFKA_JARS, MAIN_CLASS, heap="256m", also=[directory]), directory / "stderr"
    with (
        said.open("wb") as stderr,
        Popen(words, stdin=PIPE, stdout=PIPE, stderr=stderr, text=True, encoding="utf-8") as process,  # noqa: S603 - as above
    ):
        try:
            yield Judge(process, said)
        finally:
            process.terminate()


def _note_newest_epoch(member: dict[str, Any]) -> None:
    """Put partitions in place of partition → epoch, and the newest epoch beside them, as a replica keeps it."""
    if member.get("pending_revocation") is None:
        return
    newest = -1
    for parts in (member["assigned"], member["pending_revocation"]):
        # Tasks stand under their role; only active ones have epochs.
        of_topics = parts["active"] if parts.keys() == {"active", "standby", "warmup"} else parts
        for topic, epochs in of_topics.items():
            newest = max(newest, *epochs.values())
            of_topics[topic] = [int(partition) for partition in epochs]
    member["newest_partition_epoch"] = newest


def _base64(data: bytes) -> str:
    return b64encode(data).decode("ascii")

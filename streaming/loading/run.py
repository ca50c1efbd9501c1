"""A rehearsal of brokers from end to end: a log written to a broker of each release, which restarts and loads it.

    first start    the offsets topic is made, with as many partitions as the log has; records are written
    second start   its own loader reads them; then it is asked what it has

Nothing of it outlives the call, unless a directory is given to keep it in.
"""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Final

from streaming.base.errors import CannotTellError, MonitorError
from streaming.base.times import now_ms
from streaming.loading import asked, loader_words
from streaming.loading.compared import FORMAT, LoadingJson, release_view
from streaming.loading.loader_words import Failure, LoaderSaid
from streaming.loading.log_writer import LogWriter
from streaming.loading.release_broker import ReleaseBroker
from streaming.loading.source import Source
from streaming.recording.file_format import RecordedRecord
from streaming.spark import release_jars

_LOOK_SECONDS: Final = 0.2
_LOAD_SECONDS: Final = 600.0
"""How long a loader may take at most, beyond what it takes to start."""
_EMPTY_SECONDS: Final = 10.0
"""How long to wait for the loader's word on partitions without a record."""
_OFFSET_COMMITS: Final = (0, 1)
"""Types of records."""
_WRITTEN: Final = 0.5
"""Share of a release's time that writing takes, about."""


def rehearse(  # noqa: PLR0913 - what is rehearsed, how, and who is informed
    source: Source,
    releases: Sequence[str],
    *,
    jars: Path | None = None,
    broker_settings: Mapping[str, str] | None = None,
    keep: Path | None = None,
    lacking: Mapping[str, str] | None = None,
    say: Callable[[str], None] = lambda _text: None,
    advance: Callable[[float], None] = lambda _share: None,
) -> LoadingJson:
    """Load the log by a broker of each release, one after the other, and return the report.

    A release that could not be tried is in the report with the reason, in `cannot_tell`.

    Args:
        source: the log.
        releases: which, each with its jars there, but for those that lack them.
        jars: where they are, if not where they are fetched to.
        broker_settings: settings that win over the rehearsal's own.
        keep: a directory for what each broker wrote.
        lacking: release → why its jars are not there.
        say: called with what is begun.
        advance: called with the share that is done, 0 to 1.
    """
    views = []
    for number, release in enumerate(releases):
        if lacking and release in lacking:
            views.append(_untold(release, lacking[release]))
            continue
        say(f"Kafka {release}: writing {sum(source.records.values())} records")

        def of_release(share: float, number: int = number) -> None:
            advance((number + share) / len(releases))

        try:
            with _directory(keep, release) as directory:
                views.append(_loaded(source, release, directory, jars, broker_settings or {}, say, of_release))
        except MonitorError as error:
            views.append(_untold(release, str(error)))
    return {
        "format": FORMAT,
        "cluster_id": source.cluster_id,
        "time": now_ms(),
        "read_at": source.read_at_ms,
        "kafka_version": source.header.kafka_version,
        "records": sum(source.records.values()),
        "not_rehearsed": list(source.not_rehearsed),
        "not_compared": list(source.not_compared),
        "releases": views,
    }


def _untold(release: str, why: str) -> LoadingJson:
    return {"release": release, "loads": None, "partitions": [], "cannot_tell": why}


def _loaded(  # noqa: PLR0913 - as above
    source: Source,
    release: str,
    directory: Path,
    jars: Path | None,
    settings: Mapping[str, str],
    say: Callable[[str], None],
    advance: Callable[[float], None],
) -> LoadingJson:
    begun = time.monotonic()
    broker = ReleaseBroker(
        directory / "broker",
        jars_dir=release_jars.place(release, jars),
        offsets_partitions=source.header.offsets_topic_partitions,
        properties=settings,
    )
    with broker, LogWriter(broker) as writer:
        total = sum(source.records.values())
        for done, record in enumerate(source.read()):
            writer.write(record)
            if not done % 1000:
                advance(_WRITTEN * done / total)
    say(f"Kafka {release}: loading")
    restarted = time.monotonic()
    with broker:
        said = awaited(broker, set(source.records), source.header.offsets_topic_partitions)
        load_seconds = time.monotonic() - restarted
        answers = asked.ask(broker.bootstrap_servers, source.groups)
    advance(1.0)
    view = release_view(release, source, said, answers, _places(source, said, writer.offsets), time.monotonic() - begun)
    return {**view, "load_seconds": round(load_seconds, 3), "bytes": _size(directory)}


def awaited(broker: ReleaseBroker, partitions: set[int], all_of_them: int) -> LoaderSaid:
    """What the loader said, once it is through with all partitions that have records.

    Raises:
        CannotTellError: it is not, in all that time.
    """
    deadline = time.monotonic() + _LOAD_SECONDS
    through: float | None = None
    while True:
        said = loader_words.said(broker.log_file.read_text("utf-8", "replace"))
        if partitions <= said.heard_of:
            # Of an empty one nothing is to be learnt; but while it loads, no group is listed.
            through = through or time.monotonic()
            if len(said.heard_of) >= all_of_them or time.monotonic() > through + _EMPTY_SECONDS:
                return said
        if time.monotonic() > deadline or broker.has_ended:
            missing = min(partitions - said.heard_of)
            raise CannotTellError(
                f"rehearsal: its broker {'ended' if broker.has_ended else 'was not done'} before partition {missing} "
                f"was loaded: {broker.last_words()}"
            )
        time.sleep(_LOOK_SECONDS)


def _places(source: Source, said: LoaderSaid, offsets: Mapping[int, list[int]]) -> dict[int, RecordedRecord]:
    """Of each partition that failed the record at which it did: where the broker said, or where it must have been."""
    wanted: dict[tuple[int, int], int] = {}
    for partition, failure in said.failed.items():
        known = offsets.get(partition, [])
        if failure.offset is not None and failure.offset < len(known):
            wanted[partition, known[failure.offset]] = partition
    guessed = {of: failure for of, failure in said.failed.items() if failure.offset is None}
    found: dict[int, RecordedRecord] = {}
    for record in source.read():
        guess = guessed.get(record.partition)
        if (record.partition, record.offset) in wanted or _is_meant(record, guess):
            found.setdefault(record.partition, record)
    return found


def _is_meant(record: RecordedRecord, failure: Failure | None) -> bool:
    """Whether a record is what a loader without offsets, before 3.4.1, speaks of: a type or a value version."""
    number = None if failure is None else loader_words.unknown_version(failure)
    if number is None:
        return False
    is_type, version = number
    type_ = int.from_bytes(record.key[:2], signed=True)
    if is_type:
        return type_ == version
    return type_ in _OFFSET_COMMITS and record.value is not None and int.from_bytes(record.value[:2]) == version


def _size(directory: Path) -> int:
    return sum(of.stat().st_size for of in directory.rglob("*.log") if of.is_file())


@contextmanager
def _directory(keep: Path | None, release: str) -> Iterator[Path]:
    """Where a broker writes: it goes with the rehearsal, or is kept."""
    if keep is not None:
        directory = keep / release
        directory.mkdir(parents=True, exist_ok=True)
        yield directory
        return
    directory = Path(tempfile.mkdtemp(prefix="group-monitor-rehearsal-"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)

"""Recordings of real brokers, each loaded by a broker of the release that wrote it, bytes untouched."""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, Final

from streaming.loading import run, source
from streaming.loading.compared import LoadingJson
from streaming.recording.file_format import RecordedRecord, open_new_recording, open_recording
from tests.brokers.releases import RELEASES
from tests.loading_logs import RECORDINGS, group_of, numbered
from tests.recorder.versions import VERSIONS

_FIRST: Final = (3, 3)
"""The first that a rehearsal runs."""
_WRITTEN_BEFORE: Final = "3.3.2"
"""Which loads what older ones wrote, as they need ZooKeeper."""


@dataclass(slots=True, kw_only=True)
class OwnLog:
    """What one broker loads at once: recordings that share no group.

    Attributes:
        release: that loads it.
        partitions: of the offsets topic.
        settings: of the broker, beside the rehearsal's.
        files: the recordings, in the order in which they are written.
        groups: all that they name.
    """

    release: str
    partitions: int
    settings: Mapping[str, str] = field(default_factory=dict)
    files: list[Path] = field(default_factory=list)
    groups: set[str] = field(default_factory=set)

    @property
    def name(self) -> str:
        """Release and recordings."""
        return f"{self.release}: {', '.join(str(of.relative_to(RECORDINGS)) for of in self.files)}"


def own_logs(releases: Iterable[str] = ()) -> list[OwnLog]:
    """All recordings there are, in as few logs as may be; of some releases, or of all."""
    wanted = set(releases)
    found: list[OwnLog] = []
    for release, settings, file in _recordings():
        if not wanted or release in wanted:
            _add(found, release, settings, file)
    return found


def _recordings() -> Iterator[tuple[str, Mapping[str, str], Path]]:
    for version in VERSIONS:
        for file in sorted((RECORDINGS / version.name).glob("*.ndjson.gz")):
            yield version.name, version.properties, file
    yield VERSIONS[-1].name, {}, RECORDINGS / "scenarios.ndjson"
    for release in RELEASES:
        file = RECORDINGS / "moments" / f"{release.name}.ndjson.gz"
        yield (
            (release.version, release.with_consumer, file) if release.number >= _FIRST else (_WRITTEN_BEFORE, {}, file)
        )


def _add(found: list[OwnLog], release: str, settings: Mapping[str, str], file: Path) -> None:
    with open_recording(file) as recording:
        partitions, groups = recording.header.offsets_topic_partitions, {group_of(record) for record in recording}
    for log in found:
        is_alike = (log.release, log.partitions) == (release, partitions) and settings.items() <= log.settings.items()
        if is_alike and not log.groups & groups:
            break
    else:
        log = OwnLog(release=release, partitions=partitions, settings=settings)
        found.append(log)
    log.files.append(file)
    log.groups |= groups


def written(log: OwnLog, file: Path) -> Path:
    """One recording of all of a log; returns where it is."""
    with open_recording(log.files[0]) as first, open_new_recording(file, first.header) as made:
        for record in numbered(_following(log.files)):
            made.write(record)
    return file


def _following(files: Iterable[Path]) -> Iterator[RecordedRecord]:
    for file in files:
        with open_recording(file) as recording:
            yield from recording


def loaded(log: OwnLog, scratch: Path) -> dict[str, Any]:
    """What the release makes of its log, in numbers: a row of `loading.json`."""
    made = source.of_recording(written(log, scratch / "own.ndjson.gz"), lambda _share: None)
    (view,) = run.rehearse(made, [log.release], broker_settings=log.settings)["releases"]
    row: dict[str, Any] = {
        "release": log.release,
        "recordings": [str(of.relative_to(RECORDINGS)) for of in log.files],
        "records": sum(made.records.values()),
        "groups": len(made.groups),
        "offsets": sum(len(of.offsets) for of in made.groups.values()),
    }
    if "cannot_tell" in view:
        return {**row, "cannot_tell": view["cannot_tell"]}
    changed = [f"{of['group']}: was {of['was']}, is {of['is']}" for of in view["groups_changed"]]
    return {
        **row,
        **different(view),
        "which": [*view["groups_missing"], *changed, *view["groups_more"]],
        "not_compared": list(made.not_compared),
        "failed": [of["said"] for of in view["partitions"] if not of["loaded"]],
    }


def different(view: LoadingJson) -> dict[str, int]:
    """How many groups and offsets one has and the other has not, or as another, by design or not."""
    return {
        "groups_different": sum(len(view[of]) for of in ("groups_missing", "groups_changed", "groups_more")),
        "offsets_different": sum(view[of] for of in ("offsets_missing", "offsets_different", "offsets_more")),
    }

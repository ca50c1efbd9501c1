"""Recordings of the story on each release, and what the release's own tool printed at each of its moments.

`tests/recordings/moments/RELEASE.ndjson.gz` is the log at the end. `RELEASE.truth.json.gz` says of each moment where
each partition of the log ended then (`until`), and holds the tables of each group as text: a log cut there has to
replay into what they say.
"""

import gzip
import json
from dataclasses import asdict, dataclass
from functools import cache
from pathlib import Path
from typing import Any, Final

from tests.brokers.printed import Printout
from tests.histories import History, recording
from tests.recorder.recordings import FOLDER as RECORDINGS

FOLDER: Final = RECORDINGS / "moments"


@dataclass(frozen=True, slots=True)
class Moment:
    """One moment of the story.

    Attributes:
        name: of `story.MOMENTS`.
        until: partition of the log → its end.
        printed: group → the tables of the tool.
    """

    name: str
    until: dict[int, int]
    printed: dict[str, Printout]


def recorded() -> list[str]:
    """The releases there are recordings of."""
    return sorted(path.name.removesuffix(".truth.json.gz") for path in FOLDER.glob("*.truth.json.gz"))


def log_of(name: str, folder: Path = FOLDER) -> Path:
    """The recording of a release."""
    return folder / f"{name}.ndjson.gz"


def save(name: str, moments: list[Moment], folder: Path = FOLDER) -> None:
    """Write what the tool printed."""
    held = [asdict(moment) for moment in moments]
    folder.mkdir(parents=True, exist_ok=True)
    text = json.dumps(held, indent=1, ensure_ascii=False) + "\n"
    (folder / f"{name}.truth.json.gz").write_bytes(gzip.compress(text.encode(), mtime=0))


def load(name: str, folder: Path = FOLDER) -> list[Moment]:
    """What the tool printed, moment by moment."""
    held = json.loads(gzip.decompress((folder / f"{name}.truth.json.gz").read_bytes()))
    return [Moment(of["name"], {int(number): end for number, end in of["until"].items()}, of["printed"]) for of in held]


def views_at(log: Path, moment: Moment) -> dict[str, dict[str, Any]]:
    """The GROUP views of a recording as it was at a moment."""
    whole = _whole(log)
    then = [record for record in whole.records if record.place.offset < moment.until[record.place.partition]]
    return History(tuple(then), whole.topic_names).replayed().views


@cache
def _whole(log: Path) -> History:
    return recording(log)

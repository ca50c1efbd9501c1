"""What `make brokers` found, a row a release (`results.json`); a run replaces the rows of those that it tried."""

import json
from collections.abc import Iterable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any, Final

from tests.brokers.releases import RELEASES

FILE: Final = Path(__file__).with_name("results.json")


@dataclass(frozen=True, slots=True, kw_only=True)
class Result:
    """One release.

    Attributes:
        release: its name in `releases.RELEASES`.
        skipped: why it could not be tried; None where it was.
        runs_on: Java, and ZooKeeper where it has one.
        check: exit status of `check`, and what of it was not ok: name and detail.
        monitor: moment → differences between the running monitor and the release's tool.
        recording: moment → differences between what `record` wrote, replayed, and the tool.
        upgrades: what gate and plan said of each kind of group, and what the broker did (`upgrades.Attempt`).
        downgrade: exit status of `gate downgrade` to the release, and its reasons.
        failed: what ended the trial before its end, in one line.
    """

    release: str
    skipped: str | None = None
    runs_on: str = ""
    check: tuple[int, list[str]] = (0, [])
    monitor: dict[str, list[str]] = field(default_factory=dict)
    recording: dict[str, list[str]] = field(default_factory=dict)
    upgrades: list[dict[str, Any]] = field(default_factory=list)
    downgrade: tuple[int, list[str]] = (0, [])
    failed: str | None = None

    @property
    def is_right(self) -> bool:
        """Whether all that was tried came out as it has to."""
        differences = [*self.monitor.values(), *self.recording.values()]
        return self.failed is None and not any(differences) and all(of["right"] for of in self.upgrades)


def load(file: Path = FILE) -> list[Result]:
    """What was found so far, in the order of the releases."""
    held = json.loads(file.read_text("utf-8"))["results"] if file.is_file() else []
    rows = {row["release"]: Result(**row) for row in held}
    return [rows[release.name] for release in RELEASES if release.name in rows]


def save(found: Iterable[Result], file: Path = FILE) -> None:
    """Put these in the place of what was found of the same releases before, but a skipped one in that of no other."""
    rows = {row.release: row for row in load(file)}
    rows |= {row.release: row for row in found if row.skipped is None or row.release not in rows}
    held = {"results": [asdict(rows[release.name]) for release in RELEASES if release.name in rows]}
    file.write_text(json.dumps(held, indent=1, ensure_ascii=False) + "\n", encoding="utf-8")

"""What real brokers make of logs of the group coordinator: which release loads which, and what helps.

    python -P -m tests.brokers.loading [--which 4.0.0,4.3.1] [--parts logs,own,remedies,again,size]

    logs        `tests/loading_logs.py`, by each release
    own         recordings of real brokers, by the release that wrote them
    remedies    what was seen to help where a release does not load a log
    again       whether such a log is loaded before and after the cleaner, where the fault is of a moment
    size        what a rehearsal of a million records costs, beside a broker that loads them

What it finds it puts into `loading.json`, in the place of what was found of the same releases before, and the tables
into docs/before-brokers-restart.md, which it prints. Jars that are missing are fetched. Ends with 1 where a release
loses something that it wrote itself, or one cannot be tried.
"""

import argparse
import sys
import tempfile
import time
from collections.abc import Callable, Iterable, Iterator
from pathlib import Path
from typing import Any, Final

from streaming.base.errors import CannotTellError
from streaming.loading import run, source
from streaming.loading.compared import UNKNOWN_FAULT, LoadingJson
from streaming.spark import release_jars
from tests import loading_logs
from tests.brokers import loading_own, loading_page, loading_remedies, loading_size
from tests.brokers.releases import BY_NAME

RELEASES: Final = (
    *("3.4.0", "3.4.1", "3.8.1-consumer", "3.9.2", "3.9.2-consumer"),
    *("4.0.0", "4.0.2", "4.1.1", "4.2.0", "4.2.1", "4.3.1"),
)
"""As they are installed, or with the consumer protocol turned on."""

Rows = Iterator[dict[str, Any]]


def main() -> int:
    """Try them; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.brokers.loading")
    parser.add_argument("--which", default="", help="releases, with commas between them; by default all")
    parser.add_argument("--parts", default=",".join(_PARTS), help=f"of {', '.join(_PARTS)}, with commas between them")
    options = parser.parse_args()
    named = {release for release in options.which.split(",") if release}
    if unknown := [part for part in options.parts.split(",") if part not in _PARTS]:
        parser.error(f"--parts: found {', '.join(unknown)}, accepted: {', '.join(_PARTS)}")
    is_well = True
    for part in options.parts.split(","):
        with tempfile.TemporaryDirectory(prefix="group-monitor-loading-") as scratch:
            for row in _PARTS[part](named, Path(scratch)):
                _say(f"{part}: {row}")
                loading_page.save(part, [row])
                is_well = is_well and _is_well(part, row)
    sys.stdout.write(loading_page.tables())
    loading_page.write()
    return 0 if is_well else 1


def _logs(named: set[str], scratch: Path) -> Rows:
    _wanted((name.partition("-")[0] for name in RELEASES), named)
    made = source.of_recording(loading_logs.write(scratch / "logs.ndjson.gz"), lambda _share: None)
    for name in RELEASES:
        release, _, turned_on = name.partition("-")
        if named and release not in named:
            continue
        begun = time.monotonic()
        settings = BY_NAME[name].with_consumer if turned_on else {}
        (view,) = run.rehearse(made, [release], broker_settings=settings)["releases"]
        seconds = round(time.monotonic() - begun, 1)
        yield {"release": release, "name": name, **_of_logs(view, made), "seconds": seconds}


def _of_logs(view: LoadingJson, made: source.Source) -> dict[str, Any]:
    """What a release makes of each log, and of the partitions that loaded what is lost all the same."""
    if "cannot_tell" in view:
        return {"cannot_tell": view["cannot_tell"]}
    logs = {}
    for name, (places, _) in loading_logs.logs().items():
        of_log = [of for of in view["partitions"] if of["partition"] in places]
        failed = [of for of in of_log if not of["loaded"]]
        logs[name] = {
            "partitions": len(of_log),
            "failed": len(failed),
            "known": sorted({of["known"] or UNKNOWN_FAULT for of in failed}),
            "unknown": sorted({of["said"] for of in failed if of["known"] is None}),
        }
    gone = {of["partition"]: of["offsets"] for of in view["partitions"] if not of["loaded"]}
    return {
        "logs": logs,
        "groups_lost": sum(made.groups[name].partition not in gone for name in view["groups_missing"])
        + sum(not of["by_design"] for of in view["groups_changed"]),
        "groups_forgotten": sum(of["by_design"] for of in view["groups_changed"]),
        "offsets_lost": view["offsets_missing"] - sum(gone.values()) + view["offsets_different"],
    }


def _own(named: set[str], scratch: Path) -> Rows:
    logs = loading_own.own_logs(named)
    _wanted((log.release for log in logs), named)
    for log in logs:
        yield loading_own.loaded(log, scratch)


def _remedies(named: set[str], scratch: Path) -> Rows:
    for release in _wanted(loading_remedies.RELEASES, named):
        yield from loading_remedies.tried(release, scratch / release)


def _again(named: set[str], scratch: Path) -> Rows:
    for release in _wanted(loading_remedies.AGAIN, named):
        yield from loading_remedies.loaded_again(release, scratch / release)


def _size(named: set[str], scratch: Path) -> Rows:
    for release in _wanted(loading_size.RELEASES, named):
        yield loading_size.measured(release, scratch / release)


_PARTS: Final[dict[str, Callable[[set[str], Path], Rows]]] = {
    "logs": _logs,
    "own": _own,
    "remedies": _remedies,
    "again": _again,
    "size": _size,
}


def _wanted(releases: Iterable[str], named: set[str]) -> list[str]:
    """The named ones of these, or all, with their jars."""
    wanted = [release for release in dict.fromkeys(releases) if not named or release in named]
    for release, why in release_jars.fetch(release_jars.missing(wanted), _say).items():
        raise CannotTellError(f"Kafka {release}: {why}")
    return wanted


def _is_well(part: str, row: dict[str, Any]) -> bool:
    return "cannot_tell" not in row and (part != "own" or not (row["groups_different"] or row["offsets_different"]))


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main())

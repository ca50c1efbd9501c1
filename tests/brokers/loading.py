"""Which release loads which log: `tests/loading_logs.py`, and recordings in their own release, by real brokers.

    python -P -m tests.brokers.loading [--which 4.0.0,4.3.1]

Jars that are missing are fetched. Ends with 1 where a release loses something that it wrote itself, or one cannot be
tried. The table is printed, for docs/before-brokers-restart.md.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from streaming.loading import run, source
from streaming.spark import release_jars
from tests import loading_logs

RELEASES: Final = ("3.4.0", "3.4.1", "3.9.2", "4.0.0", "4.0.2", "4.1.1", "4.2.0", "4.2.1", "4.3.1")

LOADS: Final = "loads"


def cells(view: dict[str, Any], logs: dict[str, range]) -> dict[str, str]:
    """Log → what the release makes of it: `loads`, or the fault, with how many of its partitions fail."""
    found = {}
    for name, places in logs.items():
        of_log = [of for of in view["partitions"] if of["partition"] in places]
        failed = [of for of in of_log if not of["loaded"]]
        known = ", ".join(sorted({of["known"] or "unknown fault" for of in failed}))
        found[name] = f"**fails**: {len(failed)} of {len(of_log)} ({known})" if failed else LOADS
    return found


def _print(line: str) -> None:
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


def main() -> int:
    """Rehearse them; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.brokers.loading")
    parser.add_argument("--which", default=",".join(RELEASES), help="releases, with commas between them")
    parser.add_argument("--keep", type=Path, help="a directory for what each broker wrote")
    options = parser.parse_args()
    releases = options.which.split(",")
    release_jars.fetch(release_jars.missing(releases), _say)
    _print(
        "| release | "
        + " | ".join(loading_logs.logs("4.3.1"))
        + " | groups lost of its own | offsets lost, different | seconds |"
    )
    wrong = 0
    with tempfile.TemporaryDirectory(prefix="group-monitor-loading-") as scratch:
        for release in releases:
            begun = time.monotonic()
            logs = {name: places for name, (places, _) in loading_logs.logs(release).items()}
            file = loading_logs.write(Path(scratch) / f"{release}.ndjson.gz", release=release)
            made = source.of_recording(file, lambda _share: None)
            (view,) = run.rehearse(made, [release], keep=options.keep)["releases"]
            if "cannot_tell" in view:
                _print(f"| {release} | {view['cannot_tell']} |")
                wrong += 1
                continue
            shown = cells(view, logs)
            lost = sorted(lost_of(view, made, logs.get("own", range(0))))
            wrong += len(lost)
            words = [shown.get(name, "-") for name in (*loading_logs.logs("4.3.1"),)]
            words += [", ".join(lost) or "0", offsets_lost(view), f"{time.monotonic() - begun:.0f}"]
            _print(f"| {release} | " + " | ".join(words) + " |")
    return min(wrong, 1)


def offsets_lost(view: dict[str, Any]) -> str:
    """How many offsets are missing that did not go with a partition, and how many are others."""
    gone = sum(of["offsets"] for of in view["partitions"] if not of["loaded"])
    return f"{view['offsets_missing'] - gone}, {view['offsets_different']}"


def lost_of(view: dict[str, Any], made: source.Source, places: range) -> set[str]:
    """Groups of some partitions that are missing or changed, though not by design."""
    changed = {of["group"] for of in view["groups_changed"] if not of["by_design"]}
    return {name for name in {*view["groups_missing"], *changed} if made.groups[name].partition in places}


if __name__ == "__main__":
    sys.exit(main())

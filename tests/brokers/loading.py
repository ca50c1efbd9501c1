"""Which release loads which log of the group coordinator: `tests/loading_logs.py`, by real brokers.

    python -P -m tests.brokers.loading [--which 4.0.0,4.3.1]

What it finds it puts into `loading.json`, in the place of what was found of the same releases before, and the table
into docs/before-brokers-restart.md, which it prints. Jars that are missing are fetched. Ends with 1 where one cannot be
tried.
"""

import argparse
import sys
import tempfile
import time
from pathlib import Path
from typing import Any, Final

from streaming.loading import run, source
from streaming.loading.compared import UNKNOWN_FAULT, LoadingJson
from streaming.spark import release_jars
from tests import loading_logs
from tests.brokers import loading_page

RELEASES: Final = ("3.4.0", "3.4.1", "3.9.2", "4.0.0", "4.0.2", "4.1.1", "4.2.0", "4.2.1", "4.3.1")


def main() -> int:
    """Try them; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m tests.brokers.loading")
    parser.add_argument("--which", default=",".join(RELEASES), help="releases, with commas between them")
    releases = parser.parse_args().which.split(",")
    release_jars.fetch(release_jars.missing(releases), _say)
    is_well = True
    with tempfile.TemporaryDirectory(prefix="group-monitor-loading-") as scratch:
        for release in releases:
            row = tried(release, Path(scratch))
            _say(str(row))
            loading_page.save("logs", [row])
            is_well = is_well and "cannot_tell" not in row
    sys.stdout.write(loading_page.tables())
    loading_page.write()
    return 0 if is_well else 1


def tried(release: str, scratch: Path) -> dict[str, Any]:
    """What a release makes of all logs: a row of `loading.json`."""
    begun = time.monotonic()
    made = source.of_recording(loading_logs.write(scratch / f"{release}.ndjson.gz"), lambda _share: None)
    (view,) = run.rehearse(made, [release])["releases"]
    return {"release": release, **_of_logs(view, made), "seconds": round(time.monotonic() - begun, 1)}


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


def _say(text: str) -> None:
    sys.stderr.write(f"{text}\n")


if __name__ == "__main__":
    sys.exit(main())

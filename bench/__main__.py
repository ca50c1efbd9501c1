"""`python -m bench [PART…] [--groups N] …`: see the package's docstring."""

import argparse
import sys
import tempfile
import traceback
from collections.abc import Sequence
from pathlib import Path
from typing import Final

from bench import results
from bench.figures import Outcome
from bench.parts import BY_DEFAULT, PARTS, named, sized
from bench.stage import note, open_stage
from streaming.demo.embedded_broker import DEFAULT_JARS_DIR

MEASURES: Final = sorted({name for part in PARTS.values() for name in part.full})
"""What the size of a part may consist of; each is an option."""


def main(arguments: Sequence[str] | None = None) -> int:
    """Run parts, print what they found, and keep it; returns the exit status."""
    default = f"all but {', '.join(name for name in PARTS if name not in BY_DEFAULT)}"
    parser = argparse.ArgumentParser(prog="python -m bench", description="Measure the monitor on this machine.")
    parser.add_argument("parts", nargs="*", metavar="PART", help=f"one or more of: {', '.join(PARTS)} ({default})")
    parser.add_argument("--tiny", action="store_true", help="at a size that shows only that it works; keeps no results")
    parser.add_argument("--out", type=Path, metavar="FILE", help=f"where results go ({results.RESULTS.name})")
    parser.add_argument("--directory", type=Path, metavar="DIR", help="for logs and state while it runs (a new one)")
    for name in MEASURES:
        parser.add_argument(f"--{name}", type=float, metavar="N", help="instead of the part's own")
    options = parser.parse_args(arguments)
    for name in options.parts:
        if not named(name):
            parser.error(f"PART: found {name!r}, accepted: {', '.join(PARTS)}")
    given = {name: _whole(getattr(options, name)) for name in MEASURES if getattr(options, name) is not None}
    parts = [part for name in options.parts for part in named(name)] or BY_DEFAULT
    sizes = {name: sized(PARTS[name], tiny=options.tiny, given=given) for name in parts}
    # Figures of another size than the published one replace none.
    out = options.out or (None if options.tiny or given else results.RESULTS)
    return _run(sizes, out, options.directory)


def _run(sizes: dict[str, dict[str, float]], out: Path | None, directory: Path | None) -> int:
    outcomes: dict[str, Outcome] = {}
    failed: list[str] = []
    scratch = directory or Path(tempfile.mkdtemp(prefix="bench-"))
    with open_stage(scratch, jars_dir=DEFAULT_JARS_DIR) as stage:
        for name, size in sizes.items():
            note(f"{name} {size}")
            try:
                outcomes[name] = PARTS[name].run(stage, size)
            except Exception:  # noqa: BLE001 - a part that fails must not take along those after it
                sys.stderr.write(traceback.format_exc())
                failed.append(name)
                stage.stop()
                continue
            if out is not None:
                results.store({name: outcomes[name]}, out)
    if outcomes:
        sys.stdout.write(results.table(outcomes) + "\n")
    if failed:
        sys.stderr.write(f"error: without figures: {', '.join(failed)}\n")
    return 1 if failed else 0


def _whole(value: float) -> float:
    return int(value) if value.is_integer() else value


if __name__ == "__main__":
    sys.exit(main())

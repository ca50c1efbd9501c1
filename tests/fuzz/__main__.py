"""`make fuzz`: damaged records en masse, then every target under libFuzzer; prints a table, fails on a finding.

`FUZZ="--minutes 30"` gives the mass thirty minutes, and all targets together as much; `FUZZ="--targets log --keep"`
runs one, and adds what reached something new to the corpus.
"""

import argparse
import os
import re
import resource
import subprocess
import sys
import tempfile
from base64 import b64encode
from pathlib import Path
from typing import Final

from tests.fuzz import corpus, mass
from tests.fuzz.targets import TARGETS

MASS: Final = "mass"
LONGEST: Final = 4_096
HANG_SECONDS: Final = 60
MEMORY_MIB: Final = 1_024
NICE: Final = 19
_COUNTED: Final = re.compile(r"^stat::number_of_executed_units:\s+(\d+)", re.MULTILINE)
_EACH_SECOND: Final = re.compile(r"^stat::average_exec_per_sec:\s+(\d+)", re.MULTILINE)
_MEMORY: Final = re.compile(r"^stat::peak_rss_mb:\s+(\d+)", re.MULTILINE)


def main() -> int:
    """Fuzz; returns 1 where a property did not hold."""
    parser = argparse.ArgumentParser(prog="make fuzz", description=__doc__)
    parser.add_argument("--inputs", type=int, default=0, help="inputs for each; 0 for as many as time allows")
    parser.add_argument("--minutes", type=float, default=6.0, help="time for the mass, and for all targets together")
    parser.add_argument("--targets", default=",".join([MASS, *TARGETS]), help="targets, by comma")
    parser.add_argument("--seed", type=int, default=1, help="of the mass")
    parser.add_argument("--keep", action="store_true", help="add what reached something new to the corpus")
    options = parser.parse_args()
    names = options.targets.split(",")
    os.nice(NICE)
    failed = total = 0
    sys.stdout.write(f"{'target':<10} {'inputs':>12} {'per second':>11} {'peak MiB':>9}  corpus\n")
    if MASS in names:
        names.remove(MASS)
        total += _mass(options.inputs or sys.maxsize, 60 * options.minutes, options.seed)
    seconds = max(1, round(60 * options.minutes / max(len(names), 1)))
    for name in names:
        with tempfile.TemporaryDirectory(prefix="fuzz-") as made:
            count, found = _fuzz(name, Path(made), options.inputs, seconds, keep=options.keep)
        total += count
        failed += found
    sys.stdout.write(f"{'all':<10} {total:>12,}\n")
    return 1 if failed else 0


def _mass(inputs: int, seconds: float, seed: int) -> int:
    """Decode damaged records; returns how many. What a decoder raises goes on, with its stack."""
    count, took = 0, 0.0
    for count, took in mass.decoded(inputs, seconds, seed):  # noqa: B007 - the last are wanted
        pass
    peak = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss // 1024
    sys.stdout.write(f"{MASS:<10} {count:>12,} {count / max(took, 1e-9):>11,.0f} {peak:>9,}  seed {seed}\n")
    sys.stdout.flush()
    return count


def _fuzz(name: str, directory: Path, inputs: int, seconds: int, *, keep: bool) -> tuple[int, int]:
    """Fuzz one target; returns how many inputs, and how many findings, 0 or 1."""
    known, new = directory / "known", directory / "new"
    known.mkdir()
    new.mkdir()
    for number, data in enumerate({*corpus.read(name), *corpus.seeds(name)}):
        (known / f"{number}").write_bytes(data)
    limits = [f"-runs={inputs}"] if inputs else [f"-max_total_time={seconds}"]
    said, status = _engine(name, directory, *limits, "-print_final_stats=1", str(new), str(known))
    figures = [int(match[1]) if (match := each.search(said)) else 0 for each in (_COUNTED, _EACH_SECOND, _MEMORY)]
    kept = corpus.read(name)
    if status != 0:
        sys.stderr.write(said[-4_000:])
        for artifact in directory.glob("*-*"):
            sys.stderr.write(f"{name}: {artifact.name}: {b64encode(artifact.read_bytes()).decode()}\n")
    elif keep:
        merged = directory / "merged"
        merged.mkdir()
        said, merge_status = _engine(name, directory, "-merge=1", str(merged), str(known), str(new))
        if merge_status == 0:
            corpus.write(name, {path.read_bytes() for path in merged.iterdir()})
            kept = corpus.read(name)
    sys.stdout.write(f"{name:<10} {figures[0]:>12,} {figures[1]:>11,} {figures[2]:>9,}  {len(kept)} kept\n")
    sys.stdout.flush()
    return figures[0], int(status != 0)


def _engine(name: str, directory: Path, *arguments: str) -> tuple[str, int]:
    # To merge, libFuzzer starts itself by its name, which has to be a program.
    again = directory / "again"
    again.write_text(f'#!/bin/sh\nexec "{sys.executable}" -m tests.fuzz.engine "{again}" {name} "$@"\n', "utf-8")
    again.chmod(0o700)
    limits = (f"-max_len={LONGEST}", f"-timeout={HANG_SECONDS}", f"-rss_limit_mb={MEMORY_MIB}")
    done = subprocess.run(  # noqa: S603 - our own module
        [str(again), f"-artifact_prefix={directory}/found-", *limits, *arguments],
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        check=False,
    )
    return done.stdout.decode("utf-8", "replace"), done.returncode


if __name__ == "__main__":
    sys.exit(main())

"""What the image's final stage copies and installs, in bytes: `python -m supply.image_size`.

There is no image to weigh: the sum is read off the Dockerfile's last stage and the stages that it is made from.

    installed            weighed as
    apt-get install      Installed-Size of Debian's package metadata, of the package alone (apt-cache)
    COPY of a file       the file
    COPY --from=build    /opt/group-monitor: packages of requirements.run.lock as they are installed here (RECORD), the
                         broker's jars, the archive of classes, the packages of this repository

What the base image brings, and what Debian's packages depend on, is not counted. What cannot be weighed here is a dash,
and the sum then a lower bound.
"""

import re
import subprocess
import sys
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.metadata import PackageNotFoundError, distribution
from pathlib import Path
from typing import Final

from supply.components import ROOT

DOCKERFILE: Final = ROOT / "Dockerfile"
RUN_LOCK: Final = ROOT / "requirements.run.lock"
BUILT: Final = "/opt/group-monitor"
OURS: Final = ("coordinator_model", "streaming", "dashboards", "release/group_monitor")

_PINNED: Final = re.compile(r"^([A-Za-z0-9._-]+)==", re.MULTILINE)
_FROM: Final = re.compile(r"FROM\s+(?P<image>\S+)(?:\s+AS\s+(?P<name>\S+))?", re.IGNORECASE)
_INSTALL: Final = re.compile(r"apt-get install\s+(?P<words>[^&|;]+)")
_COPY: Final = re.compile(r"COPY\s+(?:--from=(?P<stage>\S+)\s+)?(?P<paths>.+)")


@dataclass(frozen=True, slots=True)
class Stage:
    """What the last stage holds beside the base image `base`: Debian packages, files, and directories of a stage."""

    base: str
    debian: tuple[str, ...]
    files: tuple[str, ...]
    built: tuple[str, ...]


def final_stage(dockerfile: str) -> Stage:
    """Read what the last stage installs and copies, the stages that it is made from included.

    Raises:
        ValueError: there is no stage.
    """
    stages: dict[str, tuple[str, list[str]]] = {}
    last = ""
    for line in dockerfile.replace("\\\n", " ").splitlines():
        if begins := _FROM.match(line):
            last = begins["name"] or str(len(stages))
            stages[last] = (begins["image"], [])
        elif last and not line.startswith("#"):
            stages[last][1].append(line)
    if not stages:
        raise ValueError("Dockerfile: found no FROM, accepted: at least one stage")
    debian: list[str] = []
    files: list[str] = []
    built: list[str] = []
    of = last
    while of in stages:
        of, lines = stages[of]
        for line in lines:
            for found in _INSTALL.finditer(line):
                debian += [word for word in found["words"].split() if not word.startswith("-")]
            if copied := _COPY.match(line):
                (built if copied["stage"] else files).extend(copied["paths"].split()[:-1])
    return Stage(of, tuple(debian), tuple(files), tuple(built))


def sizes(stage: Stage) -> Iterator[tuple[str, int | None]]:
    """What the stage holds → bytes, None where this machine does not know."""
    for package in stage.debian:
        yield f"{package} (Debian, without what it depends on)", _debian(package)
    for directory in stage.built:
        if directory != BUILT:
            yield directory, None
            continue
        for name in sorted(set(_PINNED.findall(RUN_LOCK.read_text("utf-8")))):
            yield f"{name} (Python)", _installed(name)
        yield "jars of conf/ivy.xml, kafka", _directory(ROOT / ".cache" / "jars" / "kafka")
        yield "archive of the JVM's classes", _directory(ROOT / ".cache" / "classes")
        found = [_directory(ROOT / name, "*.pyc") or 0 for name in OURS]
        yield "packages of this repository", sum(found)
    for file in stage.files:
        yield file, _directory(ROOT / file)


def _debian(package: str) -> int | None:
    try:
        shown = subprocess.run(["apt-cache", "show", package], capture_output=True, text=True, check=False).stdout  # noqa: S603, S607 - Debian's own, by PATH
    except OSError:
        return None
    found = re.search(r"^Installed-Size: (\d+)", shown, re.MULTILINE)
    return None if found is None else 1024 * int(found[1])


def _installed(name: str) -> int | None:
    try:
        files = distribution(name).files or []
    except PackageNotFoundError:
        return None
    located = [Path(str(file.locate())) for file in files if file.suffix != ".pyc"]
    return sum(path.stat().st_size for path in located if path.is_file())


def _directory(path: Path, without: str = "") -> int | None:
    if not path.exists():
        return None
    files = [path] if path.is_file() else [file for file in path.rglob("*") if file.is_file()]
    return sum(file.stat().st_size for file in files if not (without and file.match(without)))


def table(found: list[tuple[str, int | None]], most: int = 12) -> str:
    """The largest items, the rest in one line, and the sum; in MB of 1,000,000 bytes."""
    ordered = sorted(found, key=lambda item: -(item[1] or 0))
    known = [size for _, size in found if size is not None]
    unknown = [name for name, size in found if size is None]
    lines = [f"{size / 1e6:8.1f} MB  {name}" for name, size in ordered[:most] if size is not None]
    rest = [size for _, size in ordered[most:] if size is not None]
    lines += [f"{sum(rest) / 1e6:8.1f} MB  {len(rest)} more"] if rest else []
    lines += [f"       \u2013     {name}" for name in unknown]
    bound = "at least " if unknown else ""
    return "\n".join([*lines, f"{sum(known) / 1e6:8.1f} MB  {bound}in all, beside the base image"])


def main() -> int:
    """Print the table; returns the exit status."""
    stage = final_stage(DOCKERFILE.read_text("utf-8"))
    sys.stdout.write(f"{table(list(sizes(stage)))} ({stage.base})\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

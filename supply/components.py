"""Everything that is of others: packages of the lock, jars that a JVM of ours may load, files kept in the checkout."""

import hashlib
import re
import zipfile
from collections.abc import Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
LOCK: Final = ROOT / "requirements.lock"
IVY_CACHE: Final = ROOT / ".cache" / "ivy"
JAR_DIRECTORIES: Final = tuple(ROOT / ".cache" / "jars" / name for name in ("spark", "kafka", "judge"))
"""Those that `make setup` fills: one for each configuration of conf/ivy.xml that it fetches."""

_PAGE: Final = ROOT / "streaming" / "web" / "page"
_PINNED: Final = re.compile(r"^([A-Za-z0-9._-]+)==([^ ;\\]+)")
_SHA256: Final = re.compile(r"--hash=sha256:([0-9a-f]{64})")
_JAR_NAME: Final = re.compile(r"^(?P<artifact>.+)-(?P<version>\d[^-]*(?:-[A-Za-z][\w.]*)?)\.jar$")


@dataclass(frozen=True, slots=True, order=True)
class Package:
    """A package of the lock.

    Attributes:
        name: as the registry spells it.
        version: the one pinned.
        sha256: of each file of that version that may be installed, sorted.
    """

    name: str
    version: str
    sha256: tuple[str, ...]


@dataclass(frozen=True, slots=True, order=True)
class Jar:
    """A jar.

    Attributes:
        group: its Maven group id; empty where neither the jar nor what fetched it says.
        artifact, version: as in its Maven coordinates.
        sha256: of the file.
    """

    group: str
    artifact: str
    version: str
    sha256: str


@dataclass(frozen=True, slots=True, order=True)
class Kept:
    """A file of somebody else's that the checkout holds as it was released.

    Attributes:
        name, version: as the npm registry has them.
        file: where it stands.
        licence: SPDX identifier; the text stands beside the file.
        sha256: of the file.
    """

    name: str
    version: str
    file: str
    licence: str
    sha256: str


def kept() -> list[Kept]:
    """uPlot, which draws the page's charts: dist/uPlot.iife.min.js and dist/uPlot.min.css of its release."""
    script = _PAGE / "uplot.js"
    named = re.search(r"uPlot \(v([\d.]+)\)", script.read_text("utf-8")[:200])
    assert named is not None  # noqa: S101 - its first line says so
    return [
        Kept("uplot", named[1], str(file.relative_to(ROOT)), "MIT", hashlib.sha256(file.read_bytes()).hexdigest())
        for file in (script.with_suffix(".css"), script)
    ]


def packages(lock: str) -> list[Package]:
    """The packages pinned in the text of a lock, sorted; one that is pinned for several platforms stands several times.

    Raises:
        ValueError: a line that pins nothing stands where a package should.
    """
    found: list[Package] = []
    for entry in re.split(r"\n(?=[A-Za-z0-9])", lock):
        if not entry.strip() or entry.lstrip().startswith("#"):
            continue
        pinned = _PINNED.match(entry)
        if pinned is None:
            raise ValueError(f"requirements.lock: found {entry.split()[0]!r}, accepted: NAME==VERSION")
        found.append(Package(pinned[1], pinned[2], tuple(sorted(_SHA256.findall(entry)))))
    return sorted(found)


def jars() -> list[Jar]:
    """Every jar that `make setup` has fetched, and those that Spark brings along, sorted; the same one once."""
    directories = [*JAR_DIRECTORIES, _spark_jars()]
    groups = {path.name: path.parents[2].name for path in IVY_CACHE.glob("*/*/*/*.jar")}
    return sorted({_jar(path, groups) for directory in directories for path in directory.glob("*.jar")})


def _spark_jars() -> Path:
    # Found without being imported: Spark itself is not needed here.
    spark = find_spec("pyspark")
    assert spark is not None  # noqa: S101 - the lock has it
    assert spark.origin is not None  # noqa: S101 - it is a package with an __init__
    return Path(spark.origin).parent / "jars"


def _jar(path: Path, groups: dict[str, str]) -> Jar:
    digest = hashlib.sha256(path.read_bytes()).hexdigest()
    named = _JAR_NAME.match(path.name)
    artifact, version = (named["artifact"], named["version"]) if named else (path.stem, "")
    for group, own_artifact, own_version in _coordinates(path):
        # A jar that has others inside it says theirs, too.
        if own_artifact == artifact:
            return Jar(group, own_artifact, own_version, digest)
    return Jar(groups.get(path.name, ""), artifact, version, digest)


def _coordinates(path: Path) -> Iterator[tuple[str, str, str]]:
    with zipfile.ZipFile(path) as archive:
        for name in archive.namelist():
            if name.startswith("META-INF/maven/") and name.endswith("/pom.properties"):
                lines = archive.read(name).decode("utf-8", errors="replace").splitlines()
                given = dict(line.strip().split("=", 1) for line in lines if "=" in line)
                yield given.get("groupId", ""), given.get("artifactId", ""), given.get("version", "")

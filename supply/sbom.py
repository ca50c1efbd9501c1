"""Writes the software bill of materials (CycloneDX 1.6, JSON): `python -m supply.sbom`.

The same lock and jars make the same bytes: it has no time, its serial number is made of what it lists, and components
stand in order.
"""

import argparse
import sys
import uuid
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Final

from cyclonedx.model import HashAlgorithm, HashType
from cyclonedx.model.bom import Bom
from cyclonedx.model.component import Component, ComponentType
from cyclonedx.model.license import DisjunctiveLicense
from cyclonedx.output.json import JsonV1Dot6
from packageurl import PackageURL

from supply import components
from supply.components import Jar, Kept, Package

OUT: Final = components.ROOT / ".cache" / "sbom.cdx.json"
_NAMESPACE: Final = uuid.UUID("6c0b2ac5-6c8d-4b27-8b1e-0f6f3f1f0f52")
"""Of our serial numbers; chosen once, at random."""


def bill(packages: Iterable[Package], jars: Iterable[Jar], kept: Iterable[Kept] = ()) -> str:
    """The document."""
    listed = [*map(_of_package, packages), *map(_of_jar, jars), *map(_of_kept, kept)]
    names = "\n".join(sorted(f"{component.purl} {_digests(component)}" for component in listed))
    bom = Bom(components=listed, serial_number=uuid.uuid5(_NAMESPACE, names))
    bom.metadata.timestamp = None  # type: ignore[assignment]  # the format lets it be left out, and then it is the same
    bom.metadata.component = Component(name="group-monitor", type=ComponentType.APPLICATION, bom_ref="group-monitor")
    bom.register_dependency(bom.metadata.component, listed)
    return JsonV1Dot6(bom).output_as_string(indent=1) + "\n"


def _of_package(package: Package) -> Component:
    # A version that is pinned for several platforms has the files of each.
    purl = PackageURL("pypi", None, package.name, package.version)
    return Component(
        name=package.name,
        version=package.version,
        type=ComponentType.LIBRARY,
        bom_ref=str(purl),
        purl=purl,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=digest) for digest in package.sha256],
    )


def _of_jar(jar: Jar) -> Component:
    purl = PackageURL("maven" if jar.group else "generic", jar.group or None, jar.artifact, jar.version or None)
    return Component(
        group=jar.group or None,
        name=jar.artifact,
        version=jar.version or None,
        type=ComponentType.LIBRARY,
        # Spark and the broker bring the same coordinates as different files now and then.
        bom_ref=f"{purl}#{jar.sha256[:12]}",
        purl=purl,
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=jar.sha256)],
    )


def _of_kept(kept: Kept) -> Component:
    purl = PackageURL("npm", None, kept.name, kept.version)
    return Component(
        name=kept.name,
        version=kept.version,
        type=ComponentType.LIBRARY,
        bom_ref=f"{purl}#{kept.file}",
        purl=purl,
        licenses=[DisjunctiveLicense(id=kept.licence)],
        hashes=[HashType(alg=HashAlgorithm.SHA_256, content=kept.sha256)],
    )


def _digests(component: Component) -> str:
    return " ".join(sorted(str(each.content) for each in component.hashes))


def main(arguments: Sequence[str] | None = None) -> int:
    """Write it; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m supply.sbom", description="Write the bill of materials.")
    parser.add_argument("--out", type=Path, default=OUT, help=f"where to ({OUT.name} below .cache)")
    out = parser.parse_args(arguments).out
    packages, jars = components.packages(components.LOCK.read_text("utf-8")), components.jars()
    kept = components.kept()
    out.parent.mkdir(parents=True, exist_ok=True)
    out.write_text(bill(packages, jars, kept), encoding="utf-8")
    sys.stdout.write(f"{out}: {len(packages)} packages, {len(jars)} jars, {len(kept)} files of others\n")
    return 0


if __name__ == "__main__":
    sys.exit(main())

"""`make package`: the source archive, and the wheel that is built from it.

    dist/group_monitor-VERSION.tar.gz             the checkout, tests included, without git's own files
    dist/group_monitor-VERSION-py3-none-any.whl   packages, page, dashboards, rules and conf/, inside group_monitor/

Both come from setuptools; what stands where is in setup.py and MANIFEST.in. The checkout stays as it is.
"""

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
_BUILD: Final = """
import sys; from setuptools.build_meta import build_sdist
print(build_sdist(sys.argv[1], {"--global-option": ["--quiet", "egg_info", "--egg-base", sys.argv[2]]}))
"""


def build(out: Path) -> Path:
    """Make source archive and wheel in `out`; returns the wheel.

    Raises:
        SystemExit: one of them cannot be built.
    """
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="package-") as scratch:
        archive = out / _ran(sys.executable, "-c", _BUILD, str(out.resolve()), scratch).split()[-1]
        pip = [sys.executable, "-m", "pip", "--disable-pip-version-check", "wheel", "--no-deps", "--no-index"]
        _ran(*pip, "--no-build-isolation", "--wheel-dir", scratch, str(archive))
        (made,) = Path(scratch).glob("*.whl")
        wheel = out / made.name
        wheel.write_bytes(made.read_bytes())
    return wheel


def _ran(*command: str) -> str:
    """What a command prints that ends well."""
    done = subprocess.run(command, cwd=ROOT, capture_output=True, text=True, check=False)  # noqa: S603 - our own words
    if done.returncode != 0:
        raise SystemExit(f"error: the package: {done.stderr.strip().splitlines()[-1]}")
    return done.stdout


def main() -> None:
    """Build, and say what is there."""
    parser = argparse.ArgumentParser(prog="make package", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    out = parser.parse_args().out
    build(out)
    sys.stdout.write("".join(f"{path}\n" for path in sorted(out.iterdir())))


if __name__ == "__main__":
    main()

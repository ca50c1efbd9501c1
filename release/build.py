"""`make package`: the wheel with everything the monitor needs beside its Python packages.

    dist/group_monitor-VERSION-py3-none-any.whl   packages, page, dashboards, rules; in streaming/ also conf/
    dist/submit.py                                what spark-submit runs

The wheel is made of a copy of the checkout into which the configuration is laid, so the checkout stays as it is.
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parent.parent
PACKAGES: Final = ("coordinator_model", "streaming", "dashboards")
FILES: Final = ("pyproject.toml", "README.md")
_BUILD: Final = "import sys; from setuptools.build_meta import build_wheel; print(build_wheel(sys.argv[1]))"


def build(out: Path) -> Path:
    """Make the wheel in `out`, and lay `submit.py` beside it; returns the wheel.

    Raises:
        SystemExit: the wheel cannot be built.
    """
    out.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(prefix="package-") as scratch:
        copy = Path(scratch)
        for package in PACKAGES:
            shutil.copytree(ROOT / package, copy / package, ignore=shutil.ignore_patterns("__pycache__"))
        for name in FILES:
            shutil.copy(ROOT / name, copy)
        shutil.copytree(ROOT / "conf", copy / "streaming" / "conf")
        done = subprocess.run(  # noqa: S603 - our own words
            [sys.executable, "-c", _BUILD, str(out.resolve())], cwd=copy, capture_output=True, text=True, check=False
        )
    if done.returncode != 0:
        raise SystemExit(f"error: the wheel: {done.stderr.strip().splitlines()[-1]}")
    shutil.copy(ROOT / "release" / "submit.py", out)
    return out / done.stdout.split()[-1]


def main() -> None:
    """Build, and say what is there."""
    parser = argparse.ArgumentParser(prog="make package", description=__doc__)
    parser.add_argument("--out", type=Path, default=ROOT / "dist")
    wheel = build(parser.parse_args().out)
    sys.stdout.write(f"{wheel}\n{wheel.parent / 'submit.py'}\n")


if __name__ == "__main__":
    main()

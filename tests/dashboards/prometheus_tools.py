"""Prometheus's own tools where they are installed: promtool as a judge, and a server of our own."""

import shutil
import socket
import subprocess
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Final
from urllib.error import URLError
from urllib.request import urlopen

import pytest

_HOW: Final = (
    "not installed; the package `prometheus` brings it (Debian: apt install prometheus; brew install prometheus)"
)
_PATIENCE_SECONDS: Final = 30.0

needs_promtool: Final = pytest.mark.skipif(shutil.which("promtool") is None, reason=f"promtool is {_HOW}")
needs_prometheus: Final = pytest.mark.skipif(shutil.which("prometheus") is None, reason=f"prometheus is {_HOW}")


def promtool(*arguments: str, cwd: Path | None = None) -> str:
    """What promtool says against it; empty if it agrees."""
    done = subprocess.run(["promtool", *arguments], cwd=cwd, capture_output=True, text=True, timeout=60, check=False)  # noqa: S603, S607 - our own arguments; where it is installed is its package's business
    return "" if done.returncode == 0 else done.stdout + done.stderr


@contextmanager
def running_prometheus(directory: Path, configuration: str = "{}") -> Iterator[str]:
    """The address of a new Prometheus on loopback, which scrapes nothing unless its configuration (YAML) says so."""
    config = directory / "prometheus.yml"
    config.write_text(configuration, encoding="utf-8")
    with socket.socket() as listener:
        listener.bind(("127.0.0.1", 0))
        address = f"127.0.0.1:{listener.getsockname()[1]}"
    process = subprocess.Popen(  # noqa: S603 - as above
        [  # noqa: S607 - as above
            "prometheus",
            f"--config.file={config}",
            f"--storage.tsdb.path={directory / 'data'}",
            f"--web.listen-address={address}",
            "--log.level=error",
        ],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.DEVNULL,
    )
    try:
        _wait(f"http://{address}/-/ready", process)
        yield f"http://{address}"
    finally:
        process.terminate()
        process.wait(timeout=_PATIENCE_SECONDS)


def _wait(url: str, process: subprocess.Popen[bytes]) -> None:
    until = time.monotonic() + _PATIENCE_SECONDS
    while time.monotonic() < until and process.poll() is None:
        try:
            with urlopen(url, timeout=1):  # noqa: S310 - loopback, as above
                return
        except (URLError, OSError):
            time.sleep(0.05)
    raise AssertionError(f"no Prometheus at {url} (exit status {process.poll()})")

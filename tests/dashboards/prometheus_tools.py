"""Prometheus's own tools where they are installed: promtool as a judge, and servers of our own on loopback."""

import json
import subprocess
import time
from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final
from urllib.error import URLError
from urllib.parse import urlencode
from urllib.request import urlopen

from streaming.demo import child_processes
from streaming.demo.embedded_broker import HOST, _free_ports
from tests.left_out import needs, program

_PATIENCE_SECONDS: Final = 30.0

ALERTMANAGER: Final = program("alertmanager")

needs_promtool: Final = needs("promtool")
needs_prometheus: Final = needs("prometheus")
needs_alertmanager: Final = needs("alertmanager")


def promtool(*arguments: str, cwd: Path | None = None, page: str | None = None) -> str:
    """What promtool says against it, or against a page of metrics; empty if it agrees."""
    done = subprocess.run(  # noqa: S603 - our own arguments
        ["promtool", *arguments],  # noqa: S607 - where it is installed is its package's business
        cwd=cwd,
        input=page,
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )
    return "" if done.returncode == 0 else done.stdout + done.stderr


@contextmanager
def running_prometheus(directory: Path, configuration: str = "{}") -> Iterator[str]:
    """The address of a new Prometheus on loopback, which scrapes nothing unless its configuration (YAML) says so."""
    config = directory / "prometheus.yml"
    config.write_text(configuration, encoding="utf-8")
    address = f"{HOST}:{_free_ports(1)[0]}"
    command = [
        "prometheus",
        f"--config.file={config}",
        f"--storage.tsdb.path={directory / 'data'}",
        f"--web.listen-address={address}",
        "--log.level=error",
    ]
    with _running("Prometheus", command, address, directory / "prometheus.log") as url:
        yield url


@contextmanager
def running_alertmanager(directory: Path, configuration: str) -> Iterator[str]:
    """The address of a new Alertmanager on loopback, which forms no cluster; its configuration is YAML."""
    assert ALERTMANAGER is not None
    config = directory / "alertmanager.yml"
    config.write_text(configuration, encoding="utf-8")
    address = f"{HOST}:{_free_ports(1)[0]}"
    command = [
        ALERTMANAGER,
        f"--config.file={config}",
        f"--storage.path={directory / 'alertmanager'}",
        f"--web.listen-address={address}",
        "--cluster.listen-address=",
        "--log.level=error",
    ]
    with _running("Alertmanager", command, address, directory / "alertmanager.log") as url:
        yield url


def answer(prometheus: str, expr: str) -> list[dict[str, Any]]:
    """What a Prometheus answers to an instant query: series with `metric` and `value`.

    Raises:
        HTTPError: it refuses the query.
    """
    body = urlencode({"query": expr}).encode()
    with urlopen(f"{prometheus}/api/v1/query", data=body, timeout=10) as response:  # noqa: S310 - loopback
        result: list[dict[str, Any]] = json.load(response)["data"]["result"]
    return result


@contextmanager
def _running(name: str, command: Sequence[str], address: str, log: Path) -> Iterator[str]:
    process = child_processes.start(command, log=log)
    url = f"http://{address}"
    try:
        until = time.monotonic() + _PATIENCE_SECONDS
        while not _is_ready(url):
            assert process.poll() is None, f"{name} ended: {log.read_text('utf-8')}"
            assert time.monotonic() < until, f"no {name} at {url}: {log.read_text('utf-8')}"
            time.sleep(0.05)
        yield url
    finally:
        child_processes.stop(process)


def _is_ready(url: str) -> bool:
    try:
        with urlopen(f"{url}/-/ready", timeout=1):  # noqa: S310 - loopback, as above
            return True
    except (URLError, OSError):
        return False

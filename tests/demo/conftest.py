"""One demo, run as a newcomer runs it, by the first command of "Migrating 300 groups".

A browser follows its roll while a Prometheus scrapes it and is asked; then the page's other commands are run.
"""

import shutil
from collections.abc import Iterator, Mapping
from concurrent.futures import Future, ThreadPoolExecutor
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Final

import pytest

from lab.monitor_process import ROOT, CommandProcess, until
from tests.dashboards.prometheus_tools import answer, running_prometheus
from tests.demo.followed import arguments, commands, write_files
from tests.demo.queries import Asked, ask, scraping
from tests.page.conftest import browser, open_page

__all__ = ["browser", "open_page"]

UP_SECONDS: Final = 180.0


@dataclass(frozen=True)
class Demo:
    """A demo that runs, the address it printed, and what Prometheus answers, if there is a Prometheus."""

    process: CommandProcess
    address: str
    asking: Future[Asked] | None
    directory: Path
    """Where it was started."""
    environment: Mapping[str, str]
    """For commands beside it."""


@pytest.fixture(scope="package")
def demo(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Demo]:
    directory = tmp_path_factory.mktemp("demo")
    with ExitStack() as stack:
        write_files(directory)
        environment = {"TMPDIR": str(directory), "COLUMNS": "80"}
        command = (*arguments(commands()[0]), "--set", "http.port=0")
        process = stack.enter_context(
            CommandProcess(directory / "demo", *command, environment=environment, cwd=directory)
        )
        until(
            lambda: bool(process.output_lines()) or process.exit_status is not None, UP_SECONDS, "no address is printed"
        )
        assert process.exit_status is None, process.error_lines()
        address = process.output_lines()[0].split()[1].rstrip("/")
        asking = None
        if shutil.which("prometheus") is not None:
            prometheus = stack.enter_context(running_prometheus(directory, scraping(address.removeprefix("http://"))))
            asking = stack.enter_context(ThreadPoolExecutor(1)).submit(_ask_once_scraped, prometheus)
        beside = {**environment, "GROUP_MONITOR_URL": address, "PYTHONPATH": str(ROOT)}
        yield Demo(process, address, asking, directory, beside)


def _ask_once_scraped(prometheus: str) -> Asked:
    until(lambda: bool(answer(prometheus, "group_monitor_ready")), UP_SECONDS, "nothing is scraped")
    return ask(prometheus)

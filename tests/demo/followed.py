"""Commands of a page of the documentation, as they stand there, run one after the other by somebody who follows it."""

import json
import re
import shlex
import subprocess
import sys
import time
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.request import urlopen

from lab.monitor_process import ROOT, CommandProcess, until

PAGE: Final = ROOT / "docs" / "migrating-many-groups.md"
PROGRAM: Final = "group-monitor"

AGAIN: Final = re.compile(
    r"of \d+ members rolled|a roll of it is under way|a rebalance is under way|without members of the \w+ protocol|"
    r"wait until it is back",
    re.IGNORECASE,
)
"""How a command says that it met the demo's group in the middle of a roll, or rolled: the page says to ask again."""

PATIENCE_SECONDS: Final = 420.0
"""A roll, two minutes of rest, and the roll back, on a slow machine."""

COMMAND_SECONDS: Final = 300.0
_AGAIN_SECONDS: Final = 2.0


@dataclass(frozen=True)
class Ran:
    """How a command ended, and what it printed."""

    status: int
    output: str
    errors: str


def commands() -> list[str]:
    """Every line with a prompt of the page, in its order."""
    blocks = re.findall(r"^```console\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    return [line.removeprefix("$ ") for block in blocks for line in block.splitlines() if line.startswith("$ ")]


def write_files(directory: Path) -> None:
    """Write every file that the page shows: a block of YAML whose first line is its name, as a comment."""
    blocks = re.findall(r"^```yaml\n# (\S+)\n(.*?)^```$", PAGE.read_text("utf-8"), re.MULTILINE | re.DOTALL)
    for name, text in blocks:
        (directory / name).write_text(text, "utf-8")


def arguments(command: str) -> list[str]:
    """What follows the program's name."""
    program, *rest = shlex.split(command)
    assert program == PROGRAM, command
    return rest


def begun(address: str) -> bool:
    """Whether the demo has said *ready*, as the page asks for, and all members of its groups are there."""
    try:
        with urlopen(f"{address}/api/v1/plan", timeout=10) as answer:  # noqa: S310 - our own server
            plan = json.load(answer)
    except OSError:
        return False
    readiness = {each["group"]: each["readiness"] for each in plan["groups"]}
    at_start = {"audit-trail": "done", "nightly-export": "out_of_scope", "payments-service": "ready"}
    return plan["ready"] and at_start.items() <= readiness.items() and readiness.get("orders-service") != "unknown"


def run(command: str, directory: Path, environment: Mapping[str, str]) -> Ran:
    """Run a command that ends; one that met the group in the middle of a roll is run again."""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while True:
        ended = subprocess.run(  # noqa: S603 - our own interpreter and module
            [sys.executable, "-P", "-m", "streaming", *arguments(command)],
            cwd=directory,
            env=dict(environment),
            stdin=subprocess.DEVNULL,
            capture_output=True,
            text=True,
            timeout=COMMAND_SECONDS,
            check=False,
        )
        ran = Ran(ended.returncode, ended.stdout, ended.stderr)
        if ran.status == 0 or not AGAIN.search(ran.output + ran.errors) or time.monotonic() > deadline:
            return ran
        time.sleep(_AGAIN_SECONDS)


def run_until(command: str, word: str, directory: Path, environment: Mapping[str, str]) -> Ran:
    """Run a command that ends with Ctrl-C, which it gets once it has printed a word."""
    place = directory / "watched"
    with CommandProcess(place, *arguments(command), environment=environment, cwd=directory) as process:
        until(
            lambda: word in process.output.read_text("utf-8") or process.exit_status is not None,
            PATIENCE_SECONDS,
            f"{command} prints no {word}",
        )
        process.interrupt()
        status = process.await_end(COMMAND_SECONDS)
        return Ran(status, process.output.read_text("utf-8"), "\n".join(process.error_lines()))


def without(name: str) -> Iterator[str]:
    """Commands of the page but the one of this name."""
    return (command for command in commands() if arguments(command)[0] != name)

"""Real shells, asked to complete a line of ours by a script that they have read."""

import os
import pty
import select
import subprocess
import sys
import time
from collections.abc import Mapping
from pathlib import Path
from typing import Final

ROOT: Final = Path(__file__).resolve().parents[3]
PATIENCE_SECONDS: Final = 60.0

# How it starts with nobody's settings, and what it has to load first.
_ON_A_TERMINAL: Final = {
    "bash": (("bash", "--norc", "--noprofile", "-i"), ":"),
    "zsh": (("zsh", "-f", "-i"), "autoload -Uz compinit; compinit -u -D"),
}


def completes(shell: str, script: Path, line: str, expected: str, url: str) -> None:
    """Assert that a shell makes one line of another.

    Args:
        shell: bash or zsh, where the tab key is pressed on a terminal; or fish, which is asked what it offers.
        script: what it reads first; the program is put beside it, and found by the shell.
        line: the program's name and the beginning of what follows.
        expected: the line as it has to become.
        url: of the monitor whose groups are completed.
    """
    environment = {**_with_program(script.parent), "GROUP_MONITOR_URL": url, "TERM": "dumb"}
    if shell == "fish":
        ask = f"source '{script}'; complete --do-complete '{line}'"
        said = subprocess.run(  # noqa: S603 - our own words
            ["fish", "--no-config", "-c", ask],  # noqa: S607 - of the path, as the user's would be
            env=environment,
            capture_output=True,
            text=True,
            timeout=PATIENCE_SECONDS,
            check=True,
        )
        offers = [offer.partition("\t")[0] for offer in said.stdout.splitlines()]
        assert ([expected.rsplit(maxsplit=1)[-1]], "") == (offers, said.stderr)
    else:
        command, load = _ON_A_TERMINAL[shell]
        _completes_on_tab(command, f"{load}; source '{script}'", line, expected, environment)


def _completes_on_tab(
    command: tuple[str, ...], setup: str, line: str, expected: str, environment: Mapping[str, str]
) -> None:
    ours, theirs = pty.openpty()
    process = subprocess.Popen(  # noqa: S603 - as above
        command, env=environment, stdin=theirs, stdout=theirs, stderr=theirs, start_new_session=True
    )
    os.close(theirs)
    try:
        # The quotes tell what is answered from the echo of what was typed.
        os.write(ours, f"{setup}; echo re''ady\n".encode())
        _await(ours, "ready\r\n")
        os.write(ours, f"{line}\t".encode())
        _await(ours, expected)
    finally:
        process.kill()
        process.wait()
        os.close(ours)


def _await(terminal: int, text: str) -> None:
    shown = ""
    deadline = time.monotonic() + PATIENCE_SECONDS
    while text not in shown:
        assert time.monotonic() < deadline, f"{text!r} was not shown: {shown[-2000:]}"
        if select.select([terminal], [], [], 0.5)[0]:
            shown += os.read(terminal, 65_536).decode("utf-8", "replace")


def _with_program(directory: Path) -> dict[str, str]:
    program = directory / "group-monitor"
    program.write_text(f'#!/bin/sh\nexec "{sys.executable}" -P -m streaming "$@"\n', "utf-8")
    program.chmod(0o755)
    path = os.pathsep.join([str(directory), os.environ["PATH"]])
    return {**os.environ, "PATH": path, "PYTHONPATH": str(ROOT)}

"""`groups`: what groups a running monitor sees."""

import os
import sys
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from streaming.cli import common, group_text
from streaming.errors import MonitorError
from streaming.http_client import DEFAULT_URL, MonitorClient

Url = Annotated[
    str,
    typer.Option(
        "--url",
        metavar="U",
        envvar="GROUP_MONITOR_URL",
        help="Address of the monitor. Credentials: GROUP_MONITOR_TOKEN, or GROUP_MONITOR_USERNAME and …_PASSWORD.",
    ),
]
CaFile = Annotated[Path | None, typer.Option("--ca-file", metavar="FILE", help="PEM file with certificates to trust.")]


COMPLETION_SECONDS: Final = 1.0
"""Who presses the tab key waits for it."""


def complete_group(incomplete: str) -> list[str]:
    """Names of groups of the monitor that GROUP_MONITOR_URL names, for shells; none where it does not answer."""
    try:
        client = MonitorClient(os.environ.get("GROUP_MONITOR_URL") or DEFAULT_URL, timeout_seconds=COMPLETION_SECONDS)
        names = [str(group["group"]) for group in client.groups()]
    except MonitorError:
        return []
    return sorted(name for name in names if name.startswith(incomplete) and name.isprintable())


def groups(url: Url = DEFAULT_URL, ca_file: CaFile = None, json: common.Json = False) -> None:
    """List the groups a running monitor sees, one line each; on a terminal, what needs a look first."""
    found = sorted(MonitorClient(url, ca_file).groups(), key=lambda group: str(group["group"]))
    if json:
        common.print_json({"groups": found})
    elif found and sys.stdout.isatty():
        _show(found)
    elif found:
        common.print_line(group_text.groups_table(found))
    else:
        common.note("no groups")


def _show(found: list[dict[str, Any]]) -> None:
    from rich.console import Console  # imported late: only a terminal needs it

    from streaming.cli import group_pictures

    console = Console()
    console.print(group_pictures.groups_picture(found, console.width))
    console.print(group_pictures.summary_line(found))

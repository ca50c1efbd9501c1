"""`describe`: one group as a running monitor sees it."""

import sys
import time
from typing import Annotated, Any

import typer

from streaming.cli import common, group_text
from streaming.cli.groups import CaFile, Url, complete_group
from streaming.http_client import DEFAULT_URL, MonitorClient


def describe(
    group: Annotated[str, typer.Argument(metavar="G", help="Name of the group.", autocompletion=complete_group)],
    url: Url = DEFAULT_URL,
    ca_file: CaFile = None,
    json: common.Json = False,
) -> None:
    """Describe one group: state, members, assignments, offsets and lag; on a terminal, with a matrix and events."""
    client = MonitorClient(url, ca_file)
    found = client.group(group)
    if json:
        common.print_json(found)
    elif sys.stdout.isatty():
        _show(found, client.events(group))
    else:
        common.print_line("\n\n".join(group_text.group_text(found)))


def _show(found: dict[str, Any], events: list[dict[str, Any]]) -> None:
    from rich.console import Console  # imported late: only a terminal needs it

    from streaming.cli import group_pictures

    console = Console()
    console.print(group_pictures.group_picture(found, events, console.width, time.time_ns() // 1_000_000))

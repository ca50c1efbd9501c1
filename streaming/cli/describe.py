"""`describe`: one group as a running monitor sees it."""

import sys
from typing import Annotated, Any

import typer

from streaming.base.times import now_ms
from streaming.cli.client import DEFAULT_URL, MonitorClient
from streaming.cli.groups import CaFile, Url, complete_group
from streaming.cli.render import output, plain


def describe(
    group: Annotated[str, typer.Argument(metavar="G", help="Name of the group.", autocompletion=complete_group)],
    url: Url = DEFAULT_URL,
    ca_file: CaFile = None,
    json: output.Json = False,
) -> None:
    """Describe one group: state, members, assignments, offsets and lag; on a terminal, with a matrix and events."""
    client = MonitorClient(url, ca_file)
    found = client.group(group)
    if json:
        output.print_json(found)
    elif sys.stdout.isatty():
        _show(found, client.events(group))
    else:
        output.print_line("\n\n".join(plain.group_text(found)))


def _show(found: dict[str, Any], events: list[dict[str, Any]]) -> None:
    from rich.console import Console  # imported late: only a terminal needs it

    from streaming.cli.render import rich_view

    console = Console()
    console.print(rich_view.group_picture(found, events, console.width, now_ms()))

"""`describe`: one group as a running monitor sees it."""

import sys
from typing import Annotated, Any

import typer

from streaming.base.times import now_ms
from streaming.cli.client import DEFAULT_URL, MonitorClient
from streaming.cli.groups import CaFile, Url, complete_group, refuse_doubt
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
    refuse_doubt("describe", found.get("doubt"))


def _show(found: dict[str, Any], events: list[dict[str, Any]]) -> None:
    from rich.console import Console  # imported late: only a terminal needs it

    from streaming.cli.render import rich_view

    console = Console()
    made = lambda: rich_view.group_picture(found, events, console.width, now_ms())  # noqa: E731 - made only if it is shown
    console.print(rich_view.believed(made, found.get("doubt")))

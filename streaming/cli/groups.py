"""`groups`: what groups a running monitor sees."""

from pathlib import Path
from typing import Annotated

import typer

from streaming.cli import common, group_text
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


def groups(url: Url = DEFAULT_URL, ca_file: CaFile = None, json: common.Json = False) -> None:
    """List the groups a running monitor sees, one line each."""
    found = sorted(MonitorClient(url, ca_file).groups(), key=lambda group: str(group["group"]))
    if json:
        common.print_json({"groups": found})
    elif found:
        common.print_line(group_text.groups_table(found))
    else:
        common.note("no groups")

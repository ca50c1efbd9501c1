"""`watch`: groups or one group of a running monitor, again and again."""

import sys
import time
from typing import Annotated

import typer

from streaming.cli import common, group_text
from streaming.cli.groups import CaFile, Url
from streaming.http_client import DEFAULT_URL, MonitorClient


def watch(
    group: Annotated[str | None, typer.Argument(metavar="[G]", help="Name of a group; all groups without it.")] = None,
    url: Url = DEFAULT_URL,
    ca_file: CaFile = None,
    interval: Annotated[
        float, typer.Option("--interval", metavar="SECONDS", min=0.1, help="Time between two looks.")
    ] = 1.0,
    json: common.Json = False,
) -> None:
    """Watch groups live in the terminal until Ctrl-C; piped, print what changed."""
    client = MonitorClient(url, ca_file)
    if json or not sys.stdout.isatty():
        _print_changes(client, group, interval, as_json=json)
        return
    from rich.live import Live  # imported late: only a terminal needs it
    from rich.text import Text

    with Live(screen=True, auto_refresh=False) as live:
        while True:
            live.update(Text(_text(client, group), no_wrap=True), refresh=True)
            time.sleep(interval)


def _text(client: MonitorClient, group: str | None) -> str:
    if group is not None:
        return "\n\n".join(group_text.group_text(client.group(group)))
    return group_text.groups_table(sorted(client.groups(), key=lambda found: str(found["group"])))


def _print_changes(client: MonitorClient, group: str | None, interval: float, *, as_json: bool) -> None:
    last: object = None
    while True:
        if as_json:
            found: object = client.group(group) if group is not None else {"groups": client.groups()}
        else:
            found = _text(client, group)
        if found != last:
            if as_json:
                common.print_json(found)
            else:
                common.print_line(str(found) + "\n")
            sys.stdout.flush()
            last = found
        time.sleep(interval)

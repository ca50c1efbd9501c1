"""`watch`: groups or one group of a running monitor, again and again."""

import sys
import time
from typing import TYPE_CHECKING, Annotated, Any

import typer

from streaming.base.doubt import cannot_tell, unread_of
from streaming.base.errors import CannotTellError
from streaming.base.times import now_ms
from streaming.cli.client import DEFAULT_URL, MonitorClient
from streaming.cli.groups import CaFile, Url, complete_group
from streaming.cli.render import output, plain

if TYPE_CHECKING:
    from rich.console import RenderableType


def watch(
    group: Annotated[
        str | None,
        typer.Argument(metavar="[G]", help="Name of a group; all groups without it.", autocompletion=complete_group),
    ] = None,
    url: Url = DEFAULT_URL,
    ca_file: CaFile = None,
    interval: Annotated[
        float, typer.Option("--interval", metavar="SECONDS", min=0.1, help="Time between two looks.")
    ] = 1.0,
    json: output.Json = False,
) -> None:
    """Watch groups live in the terminal until Ctrl-C; piped, print what changed."""
    client = MonitorClient(url, ca_file)
    if json or not sys.stdout.isatty():
        _print_changes(client, group, interval, as_json=json)
        return
    _show_live(client, group, interval)


def _show_live(client: MonitorClient, group: str | None, interval: float) -> None:
    from rich.console import Console  # imported late: only a terminal needs it
    from rich.console import Group as Stacked
    from rich.live import Live
    from rich.text import Text

    console = Console()
    shown: RenderableType = _picture(client, group, console.width)
    picture, seen_at = shown, time.monotonic()
    with Live(console=console, screen=True, auto_refresh=False) as live:
        while True:
            live.update(shown, refresh=True)
            time.sleep(interval)
            try:
                shown = picture = _picture(client, group, console.width)
                seen_at = time.monotonic()
            except CannotTellError:
                # It may come back: what was seen stays, and is said to be old.
                silent = f"no word from the monitor for {time.monotonic() - seen_at:.0f} s; trying again"
                shown = Stacked(Text(silent, style="bold red"), picture)


def _picture(client: MonitorClient, group: str | None, width: int) -> "RenderableType":
    from rich.console import Group as Stacked
    from rich.text import Text

    from streaming.cli.render import rich_view

    if group is not None:
        of, happened = client.group(group), client.events(group)
        return rich_view.believed(lambda: rich_view.group_picture(of, happened, width, now_ms()), of.get("doubt"))
    found = client.found()
    groups, doubt = found["groups"], found.get("doubt")
    events = rich_view.event_lines(client.events(), with_group=True)
    summary = [rich_view.summary_line(groups, unread_of(found)), Text()] if doubt is None else []
    return rich_view.believed(
        lambda: Stacked(*summary, *events, Text(), rich_view.groups_picture(groups, width)), doubt
    )


def _text(client: MonitorClient, group: str | None) -> str:
    found = client.found() if group is None else client.group(group)
    doubt = found.get("doubt")
    head = [cannot_tell(each) for each in (unread_of(found) if doubt is None else [doubt])]
    if group is not None:
        return "\n\n".join([*head, *plain.group_text(found)])
    return "\n\n".join([*head, plain.groups_table(sorted(found["groups"], key=lambda each: str(each["group"])))])


def _all(client: MonitorClient) -> dict[str, Any]:
    found = client.found()
    return {name: found.get(name) for name in ("groups", "doubt", "unread")}


def _print_changes(client: MonitorClient, group: str | None, interval: float, *, as_json: bool) -> None:
    last: object = None
    while True:
        if as_json:
            found: object = client.group(group) if group is not None else _all(client)
        else:
            found = _text(client, group)
        if found != last:
            if as_json:
                output.print_json(found)
            else:
                output.print_line(str(found) + "\n")
            sys.stdout.flush()
            last = found
        time.sleep(interval)

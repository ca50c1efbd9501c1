"""`history`: what happened to a group, and how it was at a time."""

import sys
from collections.abc import Mapping, Sequence
from itertools import groupby
from pathlib import Path
from typing import Annotated, Any

import typer

from streaming.base.errors import NoSuchGroupError, UsageError
from streaming.base.times import ACCEPTED_AGO, now_ms, time_ms, time_text
from streaming.cli.client import DEFAULT_URL, MonitorClient
from streaming.cli.groups import CaFile, Url, complete_group, refuse_doubt
from streaming.cli.render import output, plain

DEFAULT_LIMIT = 1_000
MOST_EVENTS = 10_000


def history(  # noqa: PLR0913 - a command's options are its arguments
    group: Annotated[str, typer.Argument(metavar="G", help="Name of the group.", autocompletion=complete_group)],
    at: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="The group as it was then: ISO-8601, epoch ms or '10 minutes ago'."),
    ] = None,
    since: Annotated[str | None, typer.Option(metavar="TIME", help="Events from then on.")] = None,
    until: Annotated[str | None, typer.Option(metavar="TIME", help="Events up to then.")] = None,
    limit: Annotated[
        int, typer.Option(metavar="N", min=1, max=MOST_EVENTS, help="The latest so many events.")
    ] = DEFAULT_LIMIT,
    config: Annotated[
        Path | None,
        typer.Option(
            "--config", metavar="FILE", help="Read the files of this configuration's history; no monitor runs."
        ),
    ] = None,
    directory: Annotated[
        Path | None, typer.Option("--dir", metavar="DIR", help="Read the files of a history; no monitor needs to run.")
    ] = None,
    record: Annotated[
        Path | None,
        typer.Option("--record", metavar="OUT", help="Cut a recording of the group out of the files, up to --until."),
    ] = None,
    url: Url = DEFAULT_URL,
    ca_file: CaFile = None,
    json: output.Json = False,
) -> None:
    """What happened to a group, the oldest first; or, with --at, how it was. From a running monitor, or its files."""
    at_ms, since_ms, until_ms = _times(at, since, until, now_ms())
    files = _directory(config, directory)
    if record is not None:
        if files is None or at_ms is not None or since_ms is not None:
            accepted = "--dir or --config, and --until if not all"
            raise UsageError(f"--record: found with other options than it takes, accepted: {accepted}")
        count = _Files(files).cut(group, until_ms, record)
        output.note(f"{count} records in {record}")
        return
    source = _Monitor(MonitorClient(url, ca_file)) if files is None else _Files(files)
    if at_ms is not None:
        _show_group(source.group_at(group, at_ms), at_ms, as_json=json)
    else:
        _show_events(group, source.events(group, since_ms, until_ms, limit), limit, as_json=json)
        refuse_doubt("history", source.doubt)


class _Monitor:
    """A running monitor that keeps a history; `doubt` is why the last events may not be all."""

    def __init__(self, client: MonitorClient) -> None:
        self._client = client
        self.doubt: Mapping[str, Any] | None = None

    def group_at(self, group: str, at_ms: int) -> dict[str, Any]:
        return self._client.history(group, at=at_ms)

    def events(self, group: str, since_ms: int | None, until_ms: int | None, limit: int) -> list[dict[str, Any]]:
        found = self._client.history(group, since=since_ms, until=until_ms, limit=limit)
        self.doubt = found.get("doubt")
        return list(found["events"])


class _Files:
    """The files of a history."""

    def __init__(self, directory: Path) -> None:
        from streaming.history.queries import History  # imported late: only who reads files waits for pyarrow

        if not directory.is_dir():
            raise UsageError(
                f"--dir: found {str(directory)!r}, accepted: a directory that a monitor keeps a history in"
            )
        self._directory = directory
        self._history = History(directory)
        self.doubt: None = None

    def group_at(self, group: str, at_ms: int) -> dict[str, Any]:
        return self._history.group_at(group, at_ms)

    def events(self, group: str, since_ms: int | None, until_ms: int | None, limit: int) -> list[dict[str, Any]]:
        return self._history.events(group, since_ms=since_ms, until_ms=until_ms, limit=limit)

    def cut(self, group: str, until_ms: int | None, out: Path) -> int:
        """Write a recording of a group's records; returns how many."""
        from streaming.history.log_archive import header, until  # imported late, as above
        from streaming.recording.file_format import open_new_recording

        head = header(self._directory)
        records = self._history.records(group)
        if not records:
            raise NoSuchGroupError(f"group: found no records of {group!r} in the history, accepted: a group it knows")
        with open_new_recording(out, head, "--record") as recording:
            for each in until(records, until_ms):
                recording.write(each)
        return recording.records


def _directory(config: Path | None, directory: Path | None) -> Path | None:
    """Where the files are that are to be read; None to ask a monitor."""
    if config is not None and directory is not None:
        raise UsageError("--dir: found with --config, accepted: one of them")
    if config is None:
        return directory
    from streaming.config.loading import load  # imported late, with all it needs

    return load(config).history_dir


def _times(at: str | None, since: str | None, until: str | None, asked_ms: int) -> tuple[int | None, ...]:
    found = tuple(_time(name, text, asked_ms) for name, text in (("at", at), ("since", since), ("until", until)))
    at_ms, *span = found
    if at_ms is not None and span != [None, None]:
        raise UsageError("--at: found with --since or --until, accepted: either a moment or a span of time")
    if at_ms is not None and at_ms > asked_ms:
        raise UsageError(f"--at: found {at!r}, which is yet to come, accepted: a time of the past")
    return found


def _time(name: str, text: str | None, asked_ms: int) -> int | None:
    if text is None:
        return None
    try:
        return time_ms(text, asked_ms)
    except ValueError:
        raise UsageError(f"--{name}: found {text!r}, accepted: {ACCEPTED_AGO}") from None


def _show_group(found: dict[str, Any], at_ms: int, *, as_json: bool) -> None:
    output.note(f"as of {time_text(found['as_of'])}, asked for {time_text(at_ms)}")
    if as_json:
        output.print_json(found)
    elif sys.stdout.isatty():
        from rich.console import Console  # imported late: only a terminal needs it

        from streaming.cli.render import rich_view

        console = Console()
        console.print(rich_view.group_picture(found, [], console.width, at_ms))
    else:
        output.print_line("\n\n".join(plain.group_text(found)))


def _show_events(group: str, events: Sequence[dict[str, Any]], limit: int, *, as_json: bool) -> None:
    if as_json:
        output.print_json({"group": group, "events": events})
    elif sys.stdout.isatty():
        _draw_events(events)
    else:
        for event in events:
            output.print_line(plain.event_text(event))
    if not events:
        output.note("no events in that time")
    elif len(events) == limit:
        output.note(f"the latest {limit} events; --limit and --until lead to earlier ones")


def _draw_events(events: Sequence[dict[str, Any]]) -> None:
    from rich.console import Console  # imported late: only a terminal needs it
    from rich.text import Text

    from streaming.cli.render import rich_view

    console = Console()
    for day, of_day in groupby(events, key=lambda event: time_text(event["time"]).partition("T")[0]):
        console.print(Text(day, style="bold"))
        # Read from above to below, as it happened.
        for line in rich_view.event_lines(list(of_day)[::-1], with_group=False):
            console.print(line)

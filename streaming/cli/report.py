"""`report`: what a roll cost a group, beside its rehearsal."""

from contextlib import suppress
from pathlib import Path
from typing import Annotated, Any

import typer

from streaming.base.errors import CannotTellError, NoSuchGroupError, UsageError
from streaming.base.times import ACCEPTED_AGO, now_ms, time_ms
from streaming.cli.client import DEFAULT_URL, MonitorClient
from streaming.cli.groups import CaFile, Url, complete_group
from streaming.cli.rehearse import Html, Markdown, refuse_two_forms, show
from streaming.cli.render import output

_MOST_EVENTS = 10_000


def report(  # noqa: PLR0913 - a command's options are its arguments
    group: Annotated[str, typer.Argument(metavar="G", help="Name of the group.", autocompletion=complete_group)],
    since: Annotated[
        str, typer.Option("--since", metavar="TIME", help="When the roll began: ISO-8601, epoch ms or '1 hour ago'.")
    ],
    until: Annotated[
        str | None, typer.Option("--until", metavar="TIME", help="When it was over; without it, up to the last record.")
    ] = None,
    recording: Annotated[
        Path | None, typer.Option("--from", metavar="RECORDING", help="Measure a recording's records.")
    ] = None,
    directory: Annotated[
        Path | None,
        typer.Option("--dir", metavar="DIR", help="Measure the records of a history kept with history.records."),
    ] = None,
    rehearsal: Annotated[
        Path | None, typer.Option("--rehearsal", metavar="FILE", help="Show this one, of `rehearse --keep`, beside it.")
    ] = None,
    markdown: Markdown = False,
    html: Html = None,
    url: Url = DEFAULT_URL,
    ca_file: CaFile = None,
    json: output.Json = False,
) -> None:
    """Report what a roll cost: rebalances and why, moved partitions, seconds without an owner, alarms."""
    if recording is not None and directory is not None:
        raise UsageError("--dir: found with --from, accepted: one of them")
    refuse_two_forms(json=json, markdown=markdown)
    asked_ms = now_ms()
    since_ms = _time("--since", since, asked_ms)
    until_ms = None if until is None else _time("--until", until, asked_ms)
    if until_ms is not None and until_ms <= since_ms:
        raise UsageError(f"--until: found {until!r}, accepted: a time after --since")
    from streaming.reports import forms  # imported late: a mistake above is shown at once
    from streaming.reports.measure import REHEARSAL_FORMAT

    beside = None
    if rehearsal is not None:
        beside = forms.read_rehearsal(rehearsal, REHEARSAL_FORMAT, "a file that rehearse --keep wrote")
    if recording is not None:
        found = _of_recording(recording, group, since_ms, until_ms)
    elif directory is not None:
        found = _of_history(directory, group, since_ms, until_ms)
        _add_lag(found, MonitorClient(url, ca_file))
    else:
        client = MonitorClient(url, ca_file)
        found = _of_monitor(client, group, since_ms, asked_ms if until_ms is None else until_ms)
        _add_lag(found, client)
    found["rehearsal"] = beside
    show(found, forms, json=json, markdown=markdown, html=html)
    if recording is None and directory is None:
        raise CannotTellError(
            "report: found events only, accepted: the log's records, by --from RECORDING or --dir of a history kept "
            "with history.records"
        )
    if not found["complete"]:
        raise CannotTellError(f"report: found a part, {found['unknown'][0]}")


def _add_lag(report: dict[str, Any], client: MonitorClient) -> None:
    """What the monitor knows of the group's lag; files of a history may be read without one."""
    from streaming.reports.rolled import add_lag  # imported late, as above

    with suppress(CannotTellError, NoSuchGroupError):
        add_lag(report, client.lag(report["group"]))


def _time(option: str, text: str, asked_ms: int) -> int:
    try:
        return time_ms(text, asked_ms)
    except ValueError:
        raise UsageError(f"{option}: found {text!r}, accepted: {ACCEPTED_AGO}") from None


def _of_recording(file: Path, group: str, since_ms: int, until_ms: int | None) -> dict[str, Any]:
    from streaming.recording.file_format import open_recording  # imported late, as above
    from streaming.reports.rolled import of_records

    with open_recording(file, "--from") as reader:
        return of_records(reader.header, reader, group, since_ms, until_ms)


def _of_history(directory: Path, group: str, since_ms: int, until_ms: int | None) -> dict[str, Any]:
    from streaming.history.log_archive import header, read_until_ms  # imported late, as above
    from streaming.history.queries import History
    from streaming.reports.rolled import of_records

    if not directory.is_dir():
        raise UsageError(f"--dir: found {str(directory)!r}, accepted: a directory that a monitor keeps a history in")
    known = read_until_ms(directory)  # before the records: they may be more, never less
    return of_records(header(directory), History(directory).records(group), group, since_ms, until_ms, known)


def _of_monitor(client: MonitorClient, group: str, since_ms: int, until_ms: int) -> dict[str, Any]:
    """Events from the history where one is kept, else those the monitor has in its window."""
    from streaming.reports.rolled import add_doubt, of_events  # imported late, as above

    doubt = client.group(group)["doubt"]
    try:
        events = list(client.history(group, since=since_ms, until=until_ms, limit=_MOST_EVENTS)["events"])
    except CannotTellError:
        events = [event for event in client.events(group, limit=1_000) if since_ms <= event["time"] <= until_ms]
    return add_doubt(of_events(events, group, since_ms, until_ms), doubt)

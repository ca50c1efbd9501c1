"""`dashboards`: Grafana dashboards and Prometheus rules, as files or straight into a Grafana.

The one door from the command line to the package `dashboards`.
"""

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from streaming.base.errors import CheckFailed, UsageError
from streaming.cli.groups import CaFile
from streaming.cli.render import output

if TYPE_CHECKING:
    from streaming.cli.grafana_push import Step

DEFAULT_FOLDER: Final = "Kafka groups"

app = typer.Typer(help="Grafana dashboards and Prometheus rules.", rich_markup_mode=None)


def build(
    out: Annotated[
        Path | None,
        typer.Option("--out", metavar="DIR", help="Where to write; dashboards/generated unless said otherwise."),
    ] = None,
    check: Annotated[bool, typer.Option("--check", help="Compare with what is there, and write nothing.")] = False,
    runbook_url: Annotated[
        str | None,
        typer.Option(
            "--runbook-url",
            metavar="U",
            help="Where the runbook is published, for alerts' links; its board in Grafana unless said otherwise.",
        ),
    ] = None,
    grafana_url: Annotated[
        str | None,
        typer.Option(
            "--grafana-url", metavar="U", help="Where Grafana is, for alerts' links; without it they have none."
        ),
    ] = None,
) -> None:
    """Write dashboards (JSON) and alert rules (YAML) into a directory."""
    from dashboards import build as builder  # imported late, with the SDK

    for option, link in (("--runbook-url", runbook_url), ("--grafana-url", grafana_url)):
        if link is not None and not link.startswith(("http://", "https://")):
            raise UsageError(f"{option}: found {link!r}, accepted: a whole address, http://… or https://…")
    directory = builder.GENERATED if out is None else out
    made = builder.files(runbook_url, grafana_url)
    if check:
        stale = builder.differing(made, directory)
        if stale:
            raise CheckFailed(f"--check: found {', '.join(stale)} stale in {directory}; run {builder.COMMAND}")
        return
    try:
        written = builder.write(made, directory)
    except OSError as error:
        raise UsageError(f"--out: found {str(directory)!r} ({error.strerror}), accepted: a directory") from None
    output.note(f"{len(written)} of {len(made)} files written in {directory}")


def push(  # noqa: PLR0913 - a command's options are its arguments
    url: Annotated[
        str,
        typer.Option(
            "--url",
            metavar="U",
            envvar="GRAFANA_URL",
            help="Address of Grafana. Credentials: GRAFANA_TOKEN, or GRAFANA_USERNAME and GRAFANA_PASSWORD.",
        ),
    ],
    folder: Annotated[
        str, typer.Option("--folder", metavar="TITLE", help="Folder for the dashboards; made if there is none.")
    ] = DEFAULT_FOLDER,
    prometheus_url: Annotated[
        str | None,
        typer.Option(
            "--prometheus-url", metavar="U", help="Make a data source of this Prometheus, addressed as from Grafana."
        ),
    ] = None,
    dry_run: Annotated[bool, typer.Option("--dry-run", help="Show what would be done, and do nothing.")] = False,
    ca_file: CaFile = None,
    json: output.Json = False,
) -> None:
    """Put the dashboards into a Grafana; what is there already and equal is left alone."""
    from dashboards.build import boards  # imported late, with the SDK
    from streaming.cli.grafana_push import Grafana

    grafana = Grafana(url, ca_file, dry_run=dry_run)
    try:
        with output.progress(f"pushing to {url}") as advance:
            made = boards()
            steps: list[Step] = []
            for step in grafana.push(made, folder, prometheus_url):
                steps.append(step)
                advance(len(steps) / (len(made) + 2))
    finally:
        grafana.close()
    _print(steps, dry_run=dry_run, as_json=json)


def _print(steps: "Sequence[Step]", *, dry_run: bool, as_json: bool) -> None:
    if as_json:
        reported = [{"kind": of.kind, "name": of.name, "action": of.action, "url": of.address} for of in steps]
        output.print_json({"dry_run": dry_run, "steps": reported})
        return
    title = "WOULD BE" if dry_run else "ACTION"
    rows = [[step.kind, step.name, step.action, step.address or "-"] for step in steps]
    output.print_line(output.table(["WHAT", "NAME", title, "ADDRESS"], rows))


app.command("build")(output.guarded(build))
app.command("push")(output.guarded(push))

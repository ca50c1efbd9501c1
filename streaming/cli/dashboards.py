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
    from dashboards.settings import Settings
    from streaming.cli.grafana_push import Step

DEFAULT_FOLDER: Final = "Kafka groups"

Sets = Annotated[
    list[str] | None,
    typer.Option(
        "--set",
        metavar="NAME=VALUE",
        help="A limit, or another of `dashboards settings`; may be repeated, and counts before --values.",
    ),
]
Values = Annotated[
    Path | None, typer.Option("--values", metavar="FILE", help="YAML or JSON with such names and their values.")
]

app = typer.Typer(help="Grafana dashboards and Prometheus rules.", rich_markup_mode=None)


def build(  # noqa: PLR0913 - a command's options are its arguments
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
    sets: Sets = None,
    values: Values = None,
) -> None:
    """Write dashboards (JSON) and alert rules (YAML) into a directory."""
    from dashboards import build as builder  # imported late, with the SDK

    settings = _settings(sets, values)
    for option, link in (("--runbook-url", runbook_url), ("--grafana-url", grafana_url)):
        if link is not None:
            settings = _with(settings, option, option.removeprefix("--").replace("-", "_"), link)
    directory = builder.GENERATED if out is None else out
    made = builder.files(settings)
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


def push(  # noqa: PLR0913 - as above
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
    sets: Sets = None,
    values: Values = None,
    ca_file: CaFile = None,
    json: output.Json = False,
) -> None:
    """Put the dashboards into a Grafana; what is there already and equal is left alone."""
    from dashboards.build import boards  # imported late, with the SDK
    from streaming.cli.grafana_push import Grafana

    settings = _settings(sets, values)
    grafana = Grafana(url, ca_file, dry_run=dry_run)
    try:
        with output.progress(f"pushing to {url}") as advance:
            made = boards(settings=settings)
            steps: list[Step] = []
            for step in grafana.push(made, folder, prometheus_url):
                steps.append(step)
                advance(len(steps) / (len(made) + 2))
    finally:
        grafana.close()
    _print(steps, dry_run=dry_run, as_json=json)


def settings(json: output.Json = False) -> None:
    """What `--set` and `--values` of `build` and `push` take: names, defaults, and what each is for."""
    from dashboards.settings import listed  # imported late, as above

    if json:
        output.print_json({each.name: {"default": each.default, "meaning": each.meaning} for each in listed()})
        return
    rows = [[each.name, str(each.default) or "-", each.meaning] for each in listed()]
    output.print_line(output.table(["NAME", "DEFAULT", "MEANING"], rows))


def _settings(sets: Sequence[str] | None, values: Path | None) -> "Settings":
    """What a file and single options set, in this order.

    Raises:
        UsageError: a file that is none, or a setting that is refused.
    """
    from dashboards.settings import DEFAULTS  # imported late, as above

    found = DEFAULTS
    for name, value in _of_file(values).items():
        found = _with(found, "--values", name, value)
    for each in sets or ():
        name, is_there, text = each.partition("=")
        if not is_there:
            raise UsageError(f"--set: found {each!r}, accepted: NAME=VALUE")
        found = _with(found, "--set", name.strip(), text)
    return found


def _with(settings: "Settings", option: str, name: str, value: object) -> "Settings":
    from dashboards.settings import SettingError  # imported late, as above

    try:
        return settings.with_value(name, value)
    except SettingError as error:
        own = option.removeprefix("--").replace("-", "_") == name
        raise UsageError(f"{option}{str(error).removeprefix(name) if own else f': {error}'}") from None


def _of_file(file: Path | None) -> dict[str, object]:
    if file is None:
        return {}
    import yaml  # imported late, as above

    try:
        found = yaml.safe_load(file.read_text(encoding="utf-8"))
    except (OSError, UnicodeDecodeError, yaml.YAMLError) as error:
        reason = " ".join(str(getattr(error, "strerror", None) or error).split())
        raise UsageError(f"--values: found {str(file)!r} ({reason}), accepted: YAML with NAME: VALUE") from None
    if not isinstance(found or {}, dict):
        raise UsageError(f"--values: found {str(file)!r} with no mapping, accepted: YAML with NAME: VALUE")
    return {str(name): value for name, value in (found or {}).items()}


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
app.command("settings")(output.guarded(settings))

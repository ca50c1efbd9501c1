"""`rehearse brokers`: the offsets log, loaded by a real broker of each release before any broker restarts on it."""

import os
import shutil
import tempfile
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, Final

import typer

from streaming.base.errors import CannotTellError, CheckFailed, UsageError
from streaming.cli.demo import may_fetch
from streaming.cli.rehearse import Html, Markdown, refuse_two_forms, refuse_unwritable, say, settings_of, show, write
from streaming.cli.render import output

if TYPE_CHECKING:
    from streaming.loading.source import Source

REPORT: Final = "report.json"
"""In the directory of `--keep`."""


def rehearse_brokers(  # noqa: PLR0913 - a command's options are its arguments
    context: typer.Context,
    release: Annotated[
        list[str] | None,
        typer.Option(
            "--release",
            metavar="R",
            help="A release, as 4.2.1; may be repeated. By default every patch release of the brokers' minor release.",
        ),
    ] = None,
    recording: Annotated[
        Path | None, typer.Option("--from", metavar="RECORDING", help="Rehearse the log of a recording.")
    ] = None,
    config: Annotated[
        Path | None, typer.Option("--config", metavar="FILE", help="Configuration: the brokers whose log is read.")
    ] = None,
    bootstrap_server: Annotated[
        str | None, typer.Option("--bootstrap-server", metavar="S", help="Brokers whose log is read, HOST:PORT.")
    ] = None,
    broker_config: Annotated[
        list[str] | None,
        typer.Option("--broker-config", metavar="NAME=VALUE", help="A setting of your brokers; may be repeated."),
    ] = None,
    jars: Annotated[
        Path | None,
        typer.Option(
            "--jars", metavar="DIR", help="Jars of the releases, in folders named as they are; nothing is fetched."
        ),
    ] = None,
    keep: Annotated[
        Path | None,
        typer.Option("--keep", metavar="DIR", help="Keep report.json, and the data and log of each broker, there."),
    ] = None,
    markdown: Markdown = False,
    html: Html = None,
    json: output.Json = False,
    yes: Annotated[bool, typer.Option("--yes", help="Fetch missing jars of Kafka without asking.")] = False,
) -> None:
    """Load the offsets log by a real broker of each release, on this machine alone: what fails, and what is lost."""
    settings = settings_of("--broker-config", broker_config or [])
    refuse_two_forms(json=json, markdown=markdown)
    refuse_unwritable("--html", html)
    if recording is not None and (config is not None or bootstrap_server is not None):
        raise UsageError("--from: found with --config or --bootstrap-server, accepted: alone")
    if recording is None and config is None and bootstrap_server is None:
        raise UsageError("--from: found none, accepted: a recording, or --config or --bootstrap-server")
    if jars is not None and not jars.is_dir():
        raise UsageError(f"--jars: found {str(jars)!r}, accepted: a directory")
    if keep is not None and ((keep.exists() and not keep.is_dir()) or not os.access(_there(keep), os.W_OK)):
        raise UsageError(f"--keep: found {str(keep)!r}, accepted: a directory that can be written")
    from streaming.loading import forms, releases  # imported late, with all they need

    named = releases.named(release or [])
    os.umask(0o077)  # the log names groups, clients and hosts
    output.set_up_logging(context, clients_silent=True)
    scratch = Path(tempfile.mkdtemp(prefix="group-monitor-rehearsal-"))
    try:
        source = _source(recording, config, bootstrap_server, scratch)
        chosen = named or releases.of_brokers(source.header.kafka_version)
        if keep is not None and (kept := [of for of in chosen if (keep / of).exists()]):
            raise UsageError(f"--keep: found {str(keep / kept[0])!r}, accepted: a directory without it")
        output.note(f"rehearsing {', '.join(chosen)}, on this machine alone")
        lacking = _provide_jars(chosen, jars, yes=yes)
        report = _rehearsed(source, chosen, jars, settings, keep, lacking)
    finally:
        shutil.rmtree(scratch, ignore_errors=True)
    if keep is not None:
        write("--keep", keep / REPORT, output.json_text(report, indent=1) + "\n")
    show(report, forms, json=json, markdown=markdown, html=html)
    _end(report)


def _source(recording: Path | None, config: Path | None, bootstrap_server: str | None, scratch: Path) -> "Source":
    from streaming.loading import source  # imported late, as above

    with output.progress("reading the log") as advance:
        if recording is not None:
            return source.of_recording(recording, advance)
        from streaming.config.loading import load
        from streaming.kafka.preflight import preflight

        loaded = load(config, overrides={"kafka.bootstrap_servers": bootstrap_server})
        preflight(loaded, all_of_it=True)
        return source.of_brokers(loaded.kafka, scratch / "log.ndjson.gz", advance)


def _rehearsed(  # noqa: PLR0913 - of one command's options
    source: "Source",
    releases: list[str],
    jars: Path | None,
    settings: dict[str, str],
    keep: Path | None,
    lacking: dict[str, str],
) -> dict[str, Any]:
    from streaming.loading.run import rehearse  # imported late, as above

    with output.progress("rehearsing") as advance:
        return rehearse(
            source,
            releases,
            jars=jars,
            broker_settings=settings,
            keep=keep,
            lacking=lacking,
            say=say,
            advance=advance,
        )


def _provide_jars(releases: list[str], given: Path | None, *, yes: bool) -> dict[str, str]:
    """See that the jars of all releases are there, fetched once that may be; returns why those of a release are not.

    Raises:
        CannotTellError: those of none are there, or they may not be fetched.
    """
    from streaming.spark import java, release_jars  # imported late, as above

    try:
        java.find_java()
    except UsageError as error:
        raise CannotTellError(str(error)) from error
    missing = release_jars.missing(releases, given)
    if not missing:
        return {}
    of_all = ", ".join(missing)
    if given is not None:
        accepted = f"a folder with kafka_2.13-{missing[0]}.jar and the jars it needs, or folders named as releases"
        why = f"--jars: found none of Kafka {of_all} in {str(given)!r}, accepted: {accepted}"
        return _unless_all(dict.fromkeys(missing, why), releases)
    what = f"the jars of Kafka {of_all} ({release_jars.MEGABYTES} MB each, from Maven's central registry)"
    if not may_fetch(what, release_jars.DIRECTORY, yes=yes):
        raise CannotTellError(f"jars: found none of Kafka {of_all}, accepted: --yes, which fetches {what}, or --jars")
    return _unless_all(release_jars.fetch(missing, output.note), releases)


def _unless_all(lacking: dict[str, str], releases: list[str]) -> dict[str, str]:
    """Those that lack their jars. Raises CannotTellError where no release is left."""
    if len(lacking) == len(releases):
        raise CannotTellError(lacking[releases[0]])
    return lacking


def _end(report: dict[str, Any]) -> None:
    """End with 1 if a release fails or loses something, before 3 if one could not be tried.

    Raises:
        CannotTellError: one release could not be tried, and the others are well.
    """
    from streaming.loading.compared import is_lost  # imported late, as above

    tried = [of for of in report["releases"] if "cannot_tell" not in of]
    if any(is_lost(of) for of in tried):
        raise typer.Exit(CheckFailed.exit_status)
    for of in report["releases"]:
        if "cannot_tell" in of:
            raise CannotTellError(f"Kafka {of['release']}: {of['cannot_tell']}")


def _there(directory: Path) -> Path:
    """The directory, or the nearest above it that is there."""
    return next(of for of in (directory, *directory.absolute().parents) if of.exists())

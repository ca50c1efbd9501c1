"""`demo`: an embedded broker, real members, and the job."""

import os
import sys
from pathlib import Path
from typing import Annotated

import typer

from streaming.base.errors import UsageError
from streaming.cli.render import output
from streaming.cli.run import ConfigFile, SettingOptions, load_config

Seconds = Annotated[
    float | None,
    typer.Option(
        "--seconds",
        metavar="N",
        min=1,
        envvar="DEMO_SECONDS",
        help="End after so many seconds, or once all is shown, for which a slow machine has as long again.",
    ),
]
BootstrapServer = Annotated[
    str | None,
    typer.Option(
        "--bootstrap-server",
        metavar="S",
        help="Run the demo's members only, on this cluster (HOST:PORT), where they create topics and groups; "
        "watch them with `run`.",
    ),
]


def demo(  # noqa: PLR0913 - a command's options are its arguments
    context: typer.Context,
    config: ConfigFile = None,
    settings: SettingOptions = None,
    seconds: Seconds = None,
    bootstrap_server: BootstrapServer = None,
    yes: Annotated[
        bool, typer.Option("--yes", help="Fetch the jars of Kafka that an installed wheel lacks, without asking.")
    ] = False,
) -> None:
    """Show it all at once: embedded Kafka, real members and a rolling upgrade, watched by the monitor."""
    output.set_up_logging(context, clients_silent=True)
    if bootstrap_server is not None and (config is not None or settings):
        raise UsageError("--bootstrap-server: found with --config or --set, accepted: alone, as no monitor is started")
    loaded = load_config(config, settings)
    provide_jars(yes=yes)
    os.umask(0o077)  # as of `run`: what it writes is this account's alone
    output.note("demo: starting" if bootstrap_server is None else "demo: starting members")
    try:
        from streaming.demo.run import demo as run_demo  # imported last: Spark takes seconds, a mistake above none
        from streaming.demo.run import members

        if bootstrap_server is None:
            run_demo(loaded, seconds)
        else:
            members(bootstrap_server, seconds)
    except KeyboardInterrupt:
        # Ctrl-C is the demo's proper end, however early; but not where it had a time in which to show something.
        if seconds is not None:
            raise


def provide_jars(*, yes: bool) -> None:
    """See that the jars of Kafka are there; a wheel comes without, and fetches them once it may.

    Raises:
        UsageError: it may not: there is no terminal to ask on, or no was the answer.
        CannotTellError: they cannot be fetched.
    """
    from streaming.spark import java, kafka_jars  # imported late, as above

    if not kafka_jars.must_be_fetched():
        java.command(kafka_jars.DIRECTORY, "kafka.Kafka")  # refuses where there is no Java, or no jars
        return
    what = f"jars of Kafka ({kafka_jars.MEGABYTES} MB, from Maven's central registry)"
    if not may_fetch(what, kafka_jars.DIRECTORY, yes=yes):
        raise UsageError(
            f"jars: found none in {str(kafka_jars.DIRECTORY)!r}, accepted: --yes, which fetches the {what}"
        )
    output.note(f"Fetching {what} into {kafka_jars.DIRECTORY} (once)")
    kafka_jars.fetch()


def may_fetch(what: str, into: Path, *, yes: bool) -> bool:
    """Whether jars may be fetched: `--yes` says so, or who sits at the terminal."""
    may_ask = sys.stdin.isatty() and sys.stderr.isatty()
    return yes or (may_ask and typer.confirm(f"Fetch {what} into {into}?", default=True, err=True))

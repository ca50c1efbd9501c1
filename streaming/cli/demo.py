"""`demo`: an embedded broker, real members, and the job."""

from typing import Annotated

import typer

from streaming.cli import common
from streaming.cli.run import ConfigFile, Settings, load_config
from streaming.errors import UsageError

Seconds = Annotated[
    float | None,
    typer.Option("--seconds", metavar="N", min=1, envvar="DEMO_SECONDS", help="End by itself after so many seconds."),
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


def demo(
    context: typer.Context,
    config: ConfigFile = None,
    settings: Settings = None,
    seconds: Seconds = None,
    bootstrap_server: BootstrapServer = None,
) -> None:
    """Show it all at once: embedded Kafka, real members and a rolling upgrade, watched by the monitor."""
    common.set_up_logging(context, clients_silent=True)
    if bootstrap_server is not None and (config is not None or settings):
        raise UsageError("--bootstrap-server: found with --config or --set, accepted: alone, as no monitor is started")
    loaded = load_config(config, settings)
    from streaming.demo_run import demo as run_demo  # imported last: Spark takes seconds, a mistake above none
    from streaming.demo_run import members

    if bootstrap_server is None:
        run_demo(loaded, seconds)
    else:
        members(bootstrap_server, seconds)

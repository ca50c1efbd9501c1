"""`demo`: an embedded broker, real members, and the job."""

from typing import Annotated

import typer

from streaming.cli import common
from streaming.cli.run import ConfigFile, Settings, load_config

Seconds = Annotated[
    float | None,
    typer.Option("--seconds", metavar="N", min=1, envvar="DEMO_SECONDS", help="End by itself after so many seconds."),
]


def demo(context: typer.Context, config: ConfigFile = None, settings: Settings = None, seconds: Seconds = None) -> None:
    """Show it all at once: embedded Kafka, real members and a rolling upgrade, watched by the monitor."""
    common.set_up_logging(context, clients_silent=True)
    loaded = load_config(config, settings)
    from streaming.demo_run import demo as run_demo  # imported last: Spark takes seconds, a mistake above none

    run_demo(loaded, seconds)

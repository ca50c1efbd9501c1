"""`demo`: an embedded broker, real members, and the job."""

import typer

from streaming.cli import common
from streaming.cli.run import ConfigFile, Settings, load_config


def demo(context: typer.Context, config: ConfigFile = None, settings: Settings = None) -> None:
    """Show it all at once: embedded Kafka, real members and a rolling upgrade, watched by the monitor."""
    common.set_up_logging(context)
    loaded = load_config(config, settings)
    from streaming.job import demo as demo_job  # imported last: Spark takes seconds, a mistake above none

    demo_job(loaded)

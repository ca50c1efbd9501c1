"""`serve`: page, metrics and API from the topics that a monitor writes."""

import typer

from streaming.cli.render import output
from streaming.cli.run import ConfigFile, SettingOptions, load_config


def serve(context: typer.Context, config: ConfigFile = None, settings: SettingOptions = None) -> None:
    """Serve page, metrics and API from the Kafka topics a monitor writes, without Spark, until Ctrl-C."""
    output.set_up_logging(context, clients_silent=True)
    loaded = load_config(config, settings)
    from streaming.base.descriptors import raise_limit  # imported late, with all it needs
    from streaming.monitor.topic_follower import run

    raise_limit()
    run(loaded)

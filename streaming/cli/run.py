"""`run`: the streaming job."""

import os
import sys
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from streaming.base.errors import UsageError
from streaming.cli.render import output

if TYPE_CHECKING:
    from streaming.config.loading import Config

ConfigFile = Annotated[
    Path | None,
    typer.Option("--config", metavar="FILE", help="Configuration (YAML); conf/reference.yaml has all of it."),
]
SettingOptions = Annotated[
    list[str] | None,
    typer.Option("--set", metavar="OPTION=VALUE", help="Set one option, e.g. http.port=0; may be repeated."),
]


def run(
    context: typer.Context,
    config: Annotated[
        list[Path] | None,
        typer.Option(
            "--config",
            metavar="FILE",
            help="Configuration (YAML); conf/reference.yaml has all of it. Once more: another cluster, same process.",
        ),
    ] = None,
    settings: SettingOptions = None,
    standby: Annotated[
        bool, typer.Option("--standby", help="Wait while another monitor has state.dir, then take over from it.")
    ] = False,
    rebuild: Annotated[
        bool,
        typer.Option(
            "--rebuild", help="Forget the checkpoint in state.dir, and read the coordinator's log from its beginning."
        ),
    ] = False,
) -> None:
    """Run the monitor: read the coordinator's log, serve page, metrics and API until Ctrl-C."""
    output.set_up_logging(context, clients_silent=True)
    os.umask(0o077)  # state, spool, history and logs hold names, hosts and metadata: they are this account's alone
    loaded = [load_config(path, settings) for path in config or ()] or [load_config(None, settings)]
    brokers = ", ".join(config.kafka.bootstrap_servers for config in loaded)
    # The first second goes by with what follows. In a log, a start that is refused is one line, and no more.
    if sys.stderr.isatty():
        output.note(f"asking {brokers} …")
    from streaming.base.descriptors import LOW, raise_limit  # imported late, with all they need
    from streaming.base.logging_setup import get_logger
    from streaming.base.version import release
    from streaming.kafka.preflight import preflight

    polled = _is_polled(loaded, standby=standby, rebuild=rebuild)
    if len(loaded) == 1:
        preflight(loaded[0])
    open_files = raise_limit()
    get_logger("start").info("starting", version=release(), brokers=brokers, open_files=open_files.soft)
    if open_files.is_low:
        get_logger("start").warning("open_files_low", found=open_files.hard, accepted=f"{LOW} or more (ulimit -Hn)")
    for each in loaded:
        _warn_of_open_state(each)
    if polled:
        from streaming.monitor.polled import run as run_polled  # imported last, as below; no Spark is started

        run_polled(loaded[0])
        return
    from streaming.monitor.several import (
        run as run_monitors,  # imported last: Spark takes seconds, a mistake above none
    )

    run_monitors(loaded, standby=standby, rebuild=rebuild)


def _warn_of_open_state(config: "Config") -> None:
    """Log where others may write to what the monitor believes of its own."""
    from streaming.base.logging_setup import get_logger  # imported late, as above
    from streaming.checkpoint.location import open_to_others

    if (found := open_to_others(config.state.dir, config.checkpoint_location)) is not None:
        get_logger("state").warning("state_open_to_others", reason=found)


def _is_polled(loaded: "list[Config]", *, standby: bool, rebuild: bool) -> bool:
    """Whether groups are polled; raises UsageError where that does not go with the rest."""
    if all(config.source.kind == "log" for config in loaded):
        return False
    if len(loaded) > 1:
        raise UsageError(f"source.kind: found admin with {len(loaded)} of --config, accepted: a process of its own")
    for name, given in (("--standby", standby), ("--rebuild", rebuild)):
        if given:
            raise UsageError(f"{name}: found with source.kind admin, which keeps no checkpoint, accepted: without")
    return True


def load_config(path: Path | None, settings: list[str] | None) -> "Config":
    """Read the configuration with `--set` on top.

    Raises:
        UsageError: a setting is not OPTION=VALUE, or the configuration does not hold.
    """
    from streaming.config.loading import load  # imported late, with all it needs

    overrides: dict[str, object] = {}
    for setting in settings or ():
        name, equals, value = setting.partition("=")
        if not equals:
            raise UsageError(f"--set: found {name!r}, accepted: OPTION=VALUE, e.g. http.port=0")
        overrides[name] = value
    return load(path, overrides=overrides)

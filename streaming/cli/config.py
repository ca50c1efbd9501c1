"""`config`: a short configuration file to begin with, and the JSON Schema of all options."""

import json
from pathlib import Path
from typing import Annotated, Final

import typer

from streaming.base.errors import UsageError
from streaming.cli.render import output

DEFAULT_FILE: Final = Path("monitor.yaml")

_TEXT: Final = """\
# All that is needed; every other option has a default (group-monitor config schema lists them).
cluster:
  name: {cluster}
kafka:
  bootstrap_servers: {servers}
state:
  dir: {state}
"""

app = typer.Typer(help="A configuration file to begin with, and the schema of it.", rich_markup_mode=None)


def init(
    file: Annotated[
        Path, typer.Argument(metavar="FILE", help="File to write, monitor.yaml unless named.")
    ] = DEFAULT_FILE,
    bootstrap_server: Annotated[
        str,
        typer.Option("--bootstrap-server", metavar="S", help="The cluster's brokers, HOST:PORT, with commas between."),
    ] = "127.0.0.1:9092",
    cluster: Annotated[
        str, typer.Option("--cluster", metavar="NAME", help="Name of the cluster, on every metric.")
    ] = "local",
) -> None:
    """Write a short configuration file; one that is there is left as it is."""
    from streaming.config.loading import load  # imported late, with all that a configuration needs

    loaded = load(None, {}, {"cluster.name": cluster, "kafka.bootstrap_servers": bootstrap_server})
    values = {"cluster": cluster, "servers": bootstrap_server, "state": str(loaded.state.dir)}
    # JSON's texts are YAML's, too, and a name that looks like a number stays a name.
    text = _TEXT.format(**{name: json.dumps(value, ensure_ascii=False) for name, value in values.items()})
    try:
        with file.open("x", encoding="utf-8") as made:
            made.write(text)
    except FileExistsError:
        raise UsageError(f"FILE: found {str(file)!r}, accepted: a file that is not there yet") from None
    except OSError as error:
        raise UsageError(
            f"FILE: found {str(file)!r} ({error.strerror}), accepted: a file that can be written"
        ) from None
    output.note(f"{file} written; now: group-monitor check --config {file}")


def schema() -> None:
    """Print the JSON Schema of the configuration file: for editors, and for checks before a roll-out."""
    from streaming.config.schema import json_schema  # imported late, as above

    output.print_json(json_schema())


app.command("init")(output.guarded(init))
app.command("schema")(output.guarded(schema))

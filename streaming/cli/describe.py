"""`describe`: one group as a running monitor sees it."""

from typing import Annotated

import typer

from streaming.cli import common, group_text
from streaming.cli.groups import CaFile, Url
from streaming.http_client import DEFAULT_URL, MonitorClient


def describe(
    group: Annotated[str, typer.Argument(metavar="G", help="Name of the group.")],
    url: Url = DEFAULT_URL,
    ca_file: CaFile = None,
    json: common.Json = False,
) -> None:
    """Describe one group: state, members, assignments, offsets and lag."""
    found = MonitorClient(url, ca_file).group(group)
    if json:
        common.print_json(found)
    else:
        common.print_line("\n\n".join(group_text.group_text(found)))

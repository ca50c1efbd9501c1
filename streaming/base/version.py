"""Which release this is: what the installation says, or in a checkout its own project file."""

import tomllib
from importlib.metadata import PackageNotFoundError, version
from typing import Final

from streaming.base.places import ROOT

NAME: Final = "group-monitor"
_PROJECT: Final = ROOT / "pyproject.toml"


def release() -> str:
    """The version, as 0.1.0."""
    # A checkout is asked first: a wheel of another release may be installed beside it.
    if _PROJECT.is_file():
        project = tomllib.loads(_PROJECT.read_text("utf-8"))["project"]
        if project["name"] == NAME:
            return str(project["version"])
    try:
        return version(NAME)
    except PackageNotFoundError:
        return "unknown"

"""Writes `conf/reference.yaml` from the declarations of the options: `python -m streaming.config.reference [--check]`.

The file is committed, and a test and `--check` compare it with what would be written.
"""

import inspect
import json
import sys
import textwrap
from pathlib import Path
from typing import Final

from pydantic.fields import FieldInfo

from streaming.base.places import ROOT
from streaming.config.loading import accepted_by, is_secret
from streaming.config.section import Section
from streaming.config.sections import Config

REFERENCE: Final = ROOT / "conf" / "reference.yaml"

_INTRODUCTION: Final = """\
Every option with its default, what it means and what it accepts. Written by `python -m streaming.config.reference`
from the declarations in streaming/config/sections.py and the modules beside it; change those, not this file.

What is left out has its default. Unknown options are refused. An environment variable GROUP_MONITOR__SECTION__OPTION
wins over the file, a flag over both. ${env:NAME} stands for the environment variable NAME,
${file:PATH} for what is in a file; secrets come only so."""


def reference_yaml() -> str:
    """Render the reference: valid YAML that loads as the defaults."""
    lines = [*_comment(_INTRODUCTION, 0)]
    for name, field in Config.model_fields.items():
        lines.append("")
        lines.extend(_section(name, field.annotation, 0))
    return "\n".join(lines) + "\n"


def _section(name: str, section: object, depth: int) -> list[str]:
    assert isinstance(section, type)  # noqa: S101 - the root holds sections only
    assert issubclass(section, Section)  # noqa: S101 - as above
    lines = [*_comment(inspect.cleandoc(section.__doc__ or ""), depth), f"{_indent(depth)}{name}:"]
    for option, field in section.model_fields.items():
        if isinstance(field.annotation, type) and issubclass(field.annotation, Section):
            lines.extend(_section(option, field.annotation, depth + 1))
        else:
            lines.extend(_option(option, field, depth + 1))
    return lines


def _option(name: str, field: FieldInfo, depth: int) -> list[str]:
    default = field.default
    value = json.dumps(str(default) if isinstance(default, Path) else default, ensure_ascii=False)
    accepted = "${env:NAME} or ${file:PATH}" if is_secret(field) else accepted_by(field)
    return [*_comment(f"{field.description} Accepted: {accepted}.", depth), f"{_indent(depth)}{name}: {value}"]


def _comment(text: str, depth: int) -> list[str]:
    prefix = f"{_indent(depth)}# "
    lines: list[str] = []
    for paragraph in text.split("\n\n"):
        if lines:
            lines.append(prefix.rstrip())
        lines.extend(
            textwrap.wrap(paragraph, 118, initial_indent=prefix, subsequent_indent=prefix, break_on_hyphens=False)
        )
    return lines


def _indent(depth: int) -> str:
    return "  " * depth


def main(arguments: list[str]) -> int:
    """Write the file, or with `--check` say whether it is up to date; returns the exit status."""
    if "--check" not in arguments:
        REFERENCE.write_text(reference_yaml(), encoding="utf-8")
        return 0
    if REFERENCE.is_file() and REFERENCE.read_text(encoding="utf-8") == reference_yaml():
        return 0
    sys.stderr.write("error: conf/reference.yaml is not up to date, run: python -m streaming.config.reference\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

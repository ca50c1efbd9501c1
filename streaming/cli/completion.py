"""`--show-completion SHELL` and `--install-completion SHELL`: what a shell reads to complete our words.

Typer has both as flags: they look for the shell among the processes above this one, and not at the word that follows.
So a shell that is named is served here, by Typer's scripts; one that is not is found by Typer.
"""

from collections.abc import Sequence
from typing import Final

from typer.completion import (  # type: ignore[attr-defined] # typer's flags import them from there themselves
    get_completion_script,
    install,
)

from streaming.base.errors import UsageError
from streaming.cli.render.output import print_line

SHELLS: Final = ("bash", "zsh", "fish")

_OPTIONS: Final = ("--show-completion", "--install-completion")
_PROGRAM: Final = "group-monitor"
_VARIABLE: Final = "_GROUP_MONITOR_COMPLETE"


def asked(arguments: Sequence[str]) -> tuple[str, str] | None:
    """The option and the shell, if a script is asked for and a shell is named.

    Args:
        arguments: of the program, without the common options.

    Raises:
        UsageError: a shell there is no script for, or more than a shell.
    """
    option, _, shell = arguments[0].partition("=") if arguments else ("", "", "")
    words = [*([shell] if shell else []), *arguments[1:]]
    if option not in _OPTIONS or not words:
        return None
    if len(words) > 1 or words[0] not in SHELLS:
        raise UsageError(f"{option}: found {' '.join(words)!r}, accepted: {', '.join(SHELLS)}")
    return option, words[0]


def answer(option: str, shell: str) -> None:
    """Print the script of a shell, or put it where that shell looks for it."""
    if option == "--show-completion":
        print_line(get_completion_script(prog_name=_PROGRAM, complete_var=_VARIABLE, shell=shell))
    else:
        _, path = install(shell=shell, prog_name=_PROGRAM, complete_var=_VARIABLE)
        print_line(f"{shell} completes {_PROGRAM} in terminals opened from now on, by {path}")

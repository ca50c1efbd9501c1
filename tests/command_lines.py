"""Whether a command line is one that `group-monitor` accepts, without doing what it says."""

import shlex
from collections.abc import Sequence
from typing import Any

import typer.main

from streaming.__main__ import app
from streaming.base.errors import UsageError
from streaming.cli import completion


def refused(words: Sequence[str]) -> str:
    """What is wrong with `group-monitor` followed by these words: command, option or argument; empty if nothing."""
    command: Any = typer.main.get_command(app)
    left = list(words)
    try:
        if completion.asked(words) is not None:
            return ""
        while hasattr(command, "commands"):
            options = {option: parameter for parameter in command.params for option in parameter.opts}
            while left and left[0] in options:
                flag = options[left[0]].is_flag
                del left[: 1 if flag else 2]
                if not left:
                    return ""
            name = left.pop(0) if left else "nothing"
            if name not in command.commands:
                return f"{shlex.join(words)}: found {name!r}, accepted: {', '.join(command.commands)}"
            command = command.commands[name]
        command.make_context(command.name, left)
    except typer.Exit:
        pass
    except UsageError as error:
        return f"{shlex.join(words)}: {error}"
    except typer.TyperException as error:
        return f"{shlex.join(words)}: {error.format_message()}"
    return ""

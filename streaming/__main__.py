"""The command line, `group-monitor`: commands, common options, and how a process ends.

Exit status: 0 done or passed, 1 the thing checked does not hold, 2 usage, configuration or input error, 3 cannot tell.
Whatever goes wrong is one line on standard error; `--debug` adds the traceback. Every command is one file in
`streaming/cli/`, and imports what is heavy only when it runs.
"""

import re
import sys
import traceback
from collections.abc import Callable, Sequence
from typing import Annotated, Any, Final

import typer
import typer.core
import typer.main

from streaming.base.errors import CannotTellError, MonitorError, UsageError, words
from streaming.base.secret_masking import masked
from streaming.base.signals import interrupt_on_end_signals
from streaming.base.text import printable, printable_lines
from streaming.cli import (
    check,
    completion,
    config,
    dashboards,
    decode,
    demo,
    describe,
    gate,
    groups,
    history,
    plan,
    record,
    rehearse,
    rehearse_brokers,
    replay,
    report,
    run,
    serve,
    watch,
)
from streaming.cli.render.output import CommonOptions, guarded, print_line

COMMANDS: Final[dict[str, Callable[..., None]]] = {
    "demo": demo.demo,
    "run": run.run,
    "serve": serve.serve,
    "check": check.check,
    "replay": replay.replay,
    "record": record.record,
    "decode": decode.decode,
    "groups": groups.groups,
    "describe": describe.describe,
    "watch": watch.watch,
    "history": history.history,
    "gate": gate.gate,
    "plan": plan.plan,
    "rehearse": rehearse.rehearse,
    "rehearse brokers": rehearse_brokers.rehearse_brokers,
    "report": report.report,
}

_LOG_LEVELS: Final = ("debug", "info", "warning", "error")
_LOG_FORMATS: Final = ("text", "json")
_INTERRUPTED: Final = 130
_REFUSED: Final = re.compile(
    r"Invalid value for '(?P<name>[^']+)': (?:Input should be |.* is not one of )(?P<accepted>.*?)(?:, unable .*)?\.?"
)


class _Command(typer.core.TyperCommand):
    """A command, which another one may follow whose name has a word more."""

    def make_context(self, info_name: str | None, args: list[str], parent: Any = None, **extra: Any) -> Any:  # noqa: ANN401 - as Typer has them
        """Of the command of two words, where there is one."""
        both = " ".join([self.name or "", *args[:1]])
        if len(args) > 0 and both in COMMANDS:
            commands: Any = typer.main.get_command(app)
            return commands.commands[both].make_context(both, args[1:], parent=parent, **extra)
        return super().make_context(info_name, args, parent=parent, **extra)


app = typer.Typer(
    name="group-monitor",
    help="Monitor Kafka groups from the group coordinator's own log.",
    rich_markup_mode=None,
    pretty_exceptions_enable=False,
    context_settings={"help_option_names": ["-h", "--help"]},
)
for _name, _command in COMMANDS.items():
    app.command(_name, cls=_Command)(guarded(_command))
app.add_typer(dashboards.app, name="dashboards")
app.add_typer(config.app, name="config")


def _show_version(wanted: bool) -> None:
    if wanted:
        from streaming.base.version import NAME, release  # imported late: no command but this needs it

        print_line(f"{NAME} {release()}")
        raise typer.Exit


@app.callback()
def common(
    context: typer.Context,
    debug: Annotated[bool, typer.Option("--debug", help="Log everything, and show the traceback of an error.")] = False,
    log_level: Annotated[str, typer.Option(metavar="LEVEL", help="debug, info, warning or error.")] = "info",
    log_format: Annotated[str, typer.Option(metavar="FORMAT", help="text (key=value) or json.")] = "text",
    version: Annotated[  # noqa: ARG001 - answered before anything else
        bool, typer.Option("--version", help="Show which release this is.", is_eager=True, callback=_show_version)
    ] = False,
) -> None:
    """Monitor Kafka groups from the group coordinator's own log."""
    for name, value, accepted in (("level", log_level, _LOG_LEVELS), ("format", log_format, _LOG_FORMATS)):
        if value not in accepted:
            raise UsageError(f"--log-{name}: found {value!r}, accepted: {', '.join(accepted)}")
    context.obj = CommonOptions(debug, log_level, log_format)


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command.

    Args:
        arguments: without the program's name; None for those of the process.

    Returns:
        The exit status.
    """
    common_ones, rest = _common_options_apart(sys.argv[1:] if arguments is None else arguments)
    given = [*common_ones, *rest]
    debug = "--debug" in given
    try:
        interrupt_on_end_signals()
        if (asked := completion.asked(rest)) is not None:
            completion.answer(*asked)
            return 0
        # Without standalone mode, an exit is returned and an error raised, both for us to handle.
        status = app(args=given or ["--help"], prog_name="group-monitor", standalone_mode=False)
        return (status if isinstance(status, int) else 0) if given else UsageError.exit_status
    except MonitorError as error:
        return _failed(str(error), error.exit_status, debug=debug)
    except typer.TyperException as error:
        return _failed(_of_typer(error), UsageError.exit_status, debug=debug)
    except (KeyboardInterrupt, typer.Abort):
        return _INTERRUPTED
    except Exception as error:  # noqa: BLE001 - the last place that can turn it into one line
        text = " ".join(f"{type(error).__name__}: {words(error)}".split())
        return _failed(f"unexpected {text} (--debug shows where)", CannotTellError.exit_status, debug=debug)


def _of_typer(error: typer.TyperException) -> str:
    """In one line; of a value that is refused also what it is, which its cause, pydantic's error, knows."""
    text = " ".join(error.format_message().split())
    refused, errors = _REFUSED.fullmatch(text), getattr(error.__cause__, "errors", None)
    if refused is None or errors is None:
        return text
    accepted = refused["accepted"].replace("'", "")
    return f"{refused['name']}: found {errors()[0]['input']!r}, accepted: {accepted}"


def common_options_first(arguments: Sequence[str]) -> list[str]:
    """Move the common options in front of the command, so that they may stand anywhere."""
    first, rest = _common_options_apart(arguments)
    return [*first, *rest]


def _common_options_apart(arguments: Sequence[str]) -> tuple[list[str], list[str]]:
    first: list[str] = []
    rest: list[str] = []
    remaining = iter(arguments)
    for argument in remaining:
        name = argument.partition("=")[0]
        if argument == "--":
            rest.extend([argument, *remaining])
        elif argument == "--debug":
            first.append(argument)
        elif name in ("--log-level", "--log-format"):
            first.append(argument)
            if name == argument:
                first.extend([value] if (value := next(remaining, None)) is not None else [])
        else:
            rest.append(argument)
    return first, rest


def _failed(message: str, status: int, *, debug: bool) -> int:
    if debug:
        sys.stderr.write(printable_lines(masked(traceback.format_exc())))
    sys.stderr.write(printable(masked(f"error: {message}")) + "\n")
    return status


if __name__ == "__main__":
    sys.exit(main())

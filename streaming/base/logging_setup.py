"""Logging set-up: key=value lines that people can grep, or JSON lines, on standard error.

Libraries that log through the standard library (kafka-python, uvicorn, py4j) are rendered by the same processors, so
one line looks like another. Standard output is left to what a command was asked to show.
"""

import logging
import sys
from collections.abc import Callable
from contextvars import copy_context
from pathlib import Path
from typing import Final, Literal, ParamSpec, TextIO, TypeVar

import structlog

from streaming.base.log_limit import LEFT_OUT, LineLimit
from streaming.base.secret_masking import masked

LogFormat = Literal["text", "json"]
P = ParamSpec("P")
R = TypeVar("R")

LEVELS: Final = ("debug", "info", "warning", "error")

# Chatty at levels that do not concern the reader of a monitor: they speak one level later than we do.
NOISY_LOGGERS: Final = ("kafka", "py4j", "uvicorn", "uvicorn.access", "uvicorn.error", "asyncio")


def configure(level: str = "info", log_format: LogFormat = "text") -> None:
    """Send the log of this process to standard error; a second call replaces the first.

    Args:
        level: one of `LEVELS`.
        log_format: "text" for key=value lines, "json" for one JSON object a line.
    """
    shared: list[structlog.typing.Processor] = [
        structlog.contextvars.merge_contextvars,
        structlog.stdlib.add_log_level,
        structlog.stdlib.add_logger_name,
        structlog.processors.TimeStamper(fmt="iso", utc=True),
        structlog.processors.format_exc_info,
    ]
    structlog.configure(
        processors=[
            structlog.stdlib.filter_by_level,
            *shared,
            structlog.stdlib.ProcessorFormatter.wrap_for_formatter,
        ],
        logger_factory=structlog.stdlib.LoggerFactory(),
        wrapper_class=structlog.stdlib.BoundLogger,
        cache_logger_on_first_use=False,
    )
    handler = _Bounded(sys.stderr)
    handler.setFormatter(
        _Discreet(
            foreign_pre_chain=shared,
            processors=[structlog.stdlib.ProcessorFormatter.remove_processors_meta, _renderer(log_format)],
        )
    )
    handler.addFilter(_is_meant)
    handler.addFilter(handler.limit)
    root = logging.getLogger()
    root.handlers[:] = [handler]
    root.setLevel(level.upper())
    quieter = logging.DEBUG if level == "debug" else max(logging.WARNING, root.level)
    for name in NOISY_LOGGERS:
        logging.getLogger(name).setLevel(quieter)
    # Warns of itself whenever the machine is busy.
    logging.getLogger("kafka.net.selector").setLevel(max(logging.ERROR, quieter))


def get_logger(name: str) -> structlog.stdlib.BoundLogger:
    """A logger of our own, called `streaming.NAME` in the lines it writes; what is given as keywords becomes fields."""
    logger: structlog.stdlib.BoundLogger = structlog.stdlib.get_logger(f"streaming.{name}")
    return logger


def with_fields(function: Callable[P, R]) -> Callable[P, R]:
    """A function for another thread to call: in what it logs are the fields that are bound in this one, now."""
    bound = copy_context()

    def run(*arguments: P.args, **named: P.kwargs) -> R:
        return bound.copy().run(function, *arguments, **named)

    return run


def silence_clients() -> None:
    """Keep Kafka's client quiet where a command reports its failures itself, in one line."""
    logging.getLogger("kafka").setLevel(logging.CRITICAL + 1)


def _is_meant(record: logging.LogRecord) -> bool:
    """Whether a line is for readers: py4j writes what it raises as well, to the root logger, past its own level."""
    return record.name != "root" or "py4j" not in Path(record.pathname).parts


class _Bounded(logging.StreamHandler[TextIO]):
    """Writes as its base does, but only so many lines of a kind (`log_limit.py`); at its end says what it left out."""

    def __init__(self, stream: TextIO) -> None:
        super().__init__(stream)
        self.limit = LineLimit(_say_left_out)

    def close(self) -> None:
        self.limit.close()
        super().close()


def _say_left_out(logger: str, kind: str, lines: int) -> None:
    get_logger("log").warning(LEFT_OUT, of=logger, kind=kind, lines=lines)


class _Discreet(structlog.stdlib.ProcessorFormatter):
    """Renders as its base does, but never a secret: libraries log their settings."""

    def format(self, record: logging.LogRecord) -> str:
        return masked(super().format(record))


def _renderer(log_format: LogFormat) -> structlog.typing.Processor:
    if log_format == "json":
        return structlog.processors.JSONRenderer()
    return structlog.processors.LogfmtRenderer(
        key_order=["timestamp", "level", "logger", "event"], drop_missing=True, bool_as_flag=False
    )

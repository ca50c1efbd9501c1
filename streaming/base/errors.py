"""What a command can end with besides success: three exceptions, one exit status each.

The statuses are part of the command line's surface: 1 the thing checked does not hold, 2 usage, configuration or input
error, 3 cannot tell. Messages are one line that names the option, file or line, what was found and what is accepted.
"""

from typing import Final


class MonitorError(Exception):
    """An end of a command that is shown to the user in one line, without a traceback.

    Attributes:
        exit_status: what the process ends with.
    """

    exit_status = 1

    def __init__(self, message: str) -> None:
        # Texts of other libraries end up in these messages; some of them bring line breaks along.
        super().__init__(" ".join(message.split()))


class CheckFailed(MonitorError):
    """The thing asked about was looked at and does not hold."""

    exit_status = 1


class UsageError(MonitorError):
    """An option, a configuration or an input file is not what is accepted."""

    exit_status = 2


class NoSuchGroupError(UsageError):
    """The group that was named does not exist."""


class CannotTellError(MonitorError):
    """The answer is out of reach: no access, data incomplete, not caught up."""

    exit_status = 3


_OF_PY4J: Final = "An error occurred while calling "
"""How py4j begins; what occurred is in the next line."""


def words(error: BaseException) -> str:
    """What an error says; Spark's ask a JVM for that, which may be gone."""
    try:
        return str(error)
    except Exception:  # noqa: BLE001 - whatever keeps it from saying more
        return "its words went with Spark's JVM"


def first_line(error: BaseException) -> str:
    """What is worth telling of an error that may bring more lines, or a Java stack, along."""
    text = words(error) or type(error).__name__
    _, traceback, stack = text.partition("Traceback (most recent call last):\n")
    if traceback:
        # Of Python below a JVM: frames are indented, and the first line that is not is the error.
        said = [line for line in stack.splitlines() if line and not line[0].isspace()]
        return (said or text.splitlines())[0][:500]
    lines = text.splitlines()
    causes = [line for line in lines if line.startswith("Caused by:")]
    if causes:
        return causes[-1].removeprefix("Caused by: ")[:500]
    is_of_py4j = lines[0].startswith(_OF_PY4J) and lines[1:] and lines[1].startswith(": ")
    return (lines[1].removeprefix(": ") if is_of_py4j else lines[0])[:500]

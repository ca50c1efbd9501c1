"""How an error of a client library is reported: in one line, with what was asked of which broker, and which kind of no.

Each library has one door, which all its calls go through: `any_release.py` for kafka-python, `librdkafka.py` for
librdkafka. An error keeps its type, by which it is caught; what is no error of the library (KeyError, struct.error …)
becomes one.
"""

from dataclasses import dataclass
from typing import Final, Literal

ErrorKind = Literal["refused", "away", "unknown request", "other"]
"""It may not be asked by us; somebody else, or the same in a moment, would answer; there is no such request."""

WORDS: Final[dict[ErrorKind, str]] = {
    "refused": "refused",
    "away": "no answer for now",
    "unknown request": "not known to this release",
    "other": "failed",
}


@dataclass(frozen=True, slots=True)
class Asked:
    """The request (Kafka's name, or the library's method), the broker that got it, and its release, as far as known."""

    request: str
    broker: object = None
    release: str | None = None

    def __str__(self) -> str:
        """As in "ListGroups of broker 2, Kafka 3.6"."""
        of = "brokers" if self.broker is None else f"broker {self.broker}"
        return f"{self.request} of {of}" + ("" if self.release is None else f", Kafka {self.release}")

    def with_kind(self, kind: ErrorKind) -> str:
        """What is added to the error's own text."""
        return f"({self}: {WORDS[kind]})"


def in_words(error: BaseException) -> str:
    """An error that is none of a client library's, in one line, as Python tells it at the end of a traceback."""
    return " ".join(f"{type(error).__name__}: {error}".rstrip(": ").split())

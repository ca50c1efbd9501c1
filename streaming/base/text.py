"""Text that is safe to print: names and metadata are the clients' own."""

import hashlib
from typing import Final

LONGEST: Final = 256
"""Bytes of a name that are shown where each more is paid for by all: in labels and columns."""
SURELY_SHORT: Final = LONGEST // 4
"""Characters of a name that has no more bytes, whatever they are."""


def cut(name: str) -> str:
    """A name as labels and columns have it: beyond `LONGEST` bytes the whole characters of them, and a hash of it all.

    What is cut has more bytes than what is not, so two names never look alike.
    """
    if len(name) <= SURELY_SHORT:
        return name
    found = name.encode("utf-8", "backslashreplace")
    if len(found) <= LONGEST:
        return name
    begins = found[:LONGEST].decode("utf-8", "ignore")
    return f"{begins}~{hashlib.sha256(name.encode('utf-8', 'surrogatepass')).hexdigest()[:32]}"


def printable(text: str) -> str:
    """Names and metadata are the clients' own; what could steer a terminal is shown by its code."""
    return text if text.isprintable() else "".join(c if c.isprintable() else f"\\x{ord(c):02x}" for c in text)


def printable_lines(text: str) -> str:
    """The same for a text of several lines, whose ends are ours: what is the clients' was made printable before."""
    return "\n".join(map(printable, text.split("\n")))

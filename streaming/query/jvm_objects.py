"""Objects of the JVM in Python: given back when they are done with, not when Python's collector comes by."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any


@contextmanager
def borrowed(lent: Any) -> Iterator[Any]:  # noqa: ANN401 - an object of Java
    """An object of the JVM, which may free it after the block.

    py4j has the JVM keep what Python has a reference to, and an object of which a method was called refers to itself:
    of a Dataset, with all its plans, that lasted until Python's collector came by, a minute or more.
    """
    try:
        yield lent
    finally:
        lent._detach()  # noqa: SLF001 - what JavaGateway.detach does, without asking for the gateway

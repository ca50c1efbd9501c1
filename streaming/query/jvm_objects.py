"""Objects of the JVM in Python: given back when they are done with, not when Python's collector comes by."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from py4j.protocol import Py4JError, Py4JNetworkError


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


def is_no_answer(error: Exception) -> bool:
    """Whether the JVM is gone, or did not answer in time: that says nothing of what it was asked for."""
    return isinstance(error, Py4JNetworkError) or (type(error) is Py4JError and "Trace:" not in str(error))

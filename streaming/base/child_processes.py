"""Work shared out among children of this process, forked for it: each answers once.

A child ends with its answer, or when the process it is to answer is gone.
"""

import os
import sys
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, TypeVar

if TYPE_CHECKING:
    from multiprocessing.connection import Connection

_Share = TypeVar("_Share")
_Answer = TypeVar("_Answer")


def may_fork() -> bool:
    """Whether a process that has threads can be relied on to fork: elsewhere than on Linux it cannot."""
    return sys.platform == "linux"


@contextmanager
def answered_by_children(answer: Callable[[_Share], _Answer], shares: Sequence[_Share]) -> Iterator[Iterator[_Answer]]:
    """Have each share answered by a child process; an answer is waited for when it is asked for.

    Asking raises RuntimeError if the child has failed, or is gone. Children that are left end with the context.
    """
    if not shares:
        yield iter(())
        return
    # Only a first catch-up, or a long break, needs it.
    import multiprocessing

    context = multiprocessing.get_context("fork")
    children: list[Any] = []
    readers: list[Connection] = []
    try:
        for share in shares:
            reader, writer = context.Pipe(duplex=False)
            readers.append(reader)
            child = context.Process(target=_run, args=(answer, share, writer, readers))
            child.start()
            children.append(child)
            writer.close()
        yield map(_received, readers)
    finally:
        for reader in readers:
            reader.close()
        for child in children:
            child.kill()
            child.join()


@contextmanager
def taken_by_turns(shares: Sequence[_Share]) -> Iterator[Callable[[], Iterator[_Share]]]:
    """Shares, 256 at most, for this process and the children that it forks meanwhile.

    Yields what each of them calls to take one after the other, until all are taken; a share is taken once.
    """
    # Of what is in a pipe each byte is read once, and no process that is killed keeps others from it, as with a lock.
    reading, writing = os.pipe()
    os.write(writing, bytes(range(len(shares))))
    os.close(writing)
    try:
        yield lambda: (shares[ord(number)] for number in iter(lambda: os.read(reading, 1), b""))
    finally:
        os.close(reading)


def _run(
    answer: Callable[[_Share], _Answer], share: _Share, writer: "Connection", readers: "Sequence[Connection]"
) -> None:
    # Who holds the other end keeps a child waiting whose parent is gone.
    for reader in readers:
        reader.close()
    found: tuple[_Answer | None, str]
    try:
        found = answer(share), ""
    except Exception as error:  # noqa: BLE001 - raised by the parent instead
        found = None, f"{type(error).__name__}: {error}"
    writer.send(found)


def _received(reader: "Connection") -> Any:  # noqa: ANN401 - the answer
    try:
        answer, failure = reader.recv()
    except EOFError:
        failure = "it is gone"
    if failure:
        raise RuntimeError(f"a child process that had a share of the work: {failure}")
    return answer

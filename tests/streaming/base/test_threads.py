"""The thread that looks again and again, and the connection it asks over."""

import threading
import time
from dataclasses import dataclass, field

import pytest
from structlog.testing import capture_logs

from streaming.base.threads import Connection, Repeating

PATIENCE_SECONDS = 10


@dataclass
class Client:
    """A client that knows whether it was closed; closing may fail."""

    closed: threading.Event = field(default_factory=threading.Event)
    fails: bool = False

    def close(self) -> None:
        self.closed.set()
        if self.fails:
            raise OSError("gone")


def test_client_is_made_once_and_again_after_it_was_dropped() -> None:
    """Until it is dropped everyone gets the same; one that cannot be closed is dropped all the same."""
    connection = Connection(lambda: Client(fails=True))

    first = connection.client
    same = connection.client
    connection.drop()
    connection.drop()

    assert first is same
    assert first.closed.is_set()
    assert first is not connection.client


def test_look_that_fails_is_not_the_last() -> None:
    """It is logged with the thread's name, and the next one comes."""
    done, looks = threading.Event(), iter([OSError("once"), None])

    def look() -> None:
        if (error := next(looks, None)) is not None:
            raise error
        done.set()

    repeating = Repeating("looker", 0.01, look)
    with capture_logs() as reported:
        repeating.start()
        assert done.wait(PATIENCE_SECONDS)
        repeating.stop()

    assert [("look_failed", "looker")] == [(line["event"], line["thread"]) for line in reported]


def test_stopping_ends_a_look_that_nobody_answers() -> None:
    """The connection is closed under it, which ends the question; then the thread ends."""
    connection, asked = Connection(Client), threading.Event()

    def ask() -> None:
        asked.set()
        connection.client.closed.wait(PATIENCE_SECONDS)

    repeating = Repeating("asker", 0.0, ask, connection.drop)
    connection.client  # noqa: B018 - made before the thread asks for it
    repeating.start()
    assert asked.wait(PATIENCE_SECONDS)
    begun = time.monotonic()
    repeating.stop()

    assert time.monotonic() - begun < PATIENCE_SECONDS / 2
    assert "asker" not in [thread.name for thread in threading.enumerate()]


def test_what_was_never_started_can_be_stopped() -> None:
    """A monitor that fails while it starts stops all there is."""
    Repeating("idle", 1.0, pytest.fail).stop()

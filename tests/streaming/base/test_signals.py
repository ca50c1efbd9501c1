"""How a command ends that is asked to: by Ctrl-C, by a service manager, by a terminal that is closed."""

import logging
import os
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path
from typing import Final

import pytest
from py4j.java_gateway import GatewayConnection, GatewayParameters

from streaming.base import logging_setup
from streaming.spark import callbacks

ROOT: Final = Path(__file__).resolve().parents[3]


class TestHangUp:
    """SIGHUP."""

    def test_ends_a_command(self, tmp_path: Path) -> None:
        """As SIGTERM does, quietly."""
        running, _ = started(tmp_path, [])
        running.send_signal(signal.SIGHUP)
        _, errors = running.communicate(timeout=60)

        assert (130, b"") == (running.returncode, errors)

    def test_is_ignored_where_it_was_at_the_start(self, tmp_path: Path) -> None:
        """`nohup` is believed; SIGTERM ends it."""
        running, _ = started(tmp_path, ["nohup"])
        running.send_signal(signal.SIGHUP)
        time.sleep(0.5)
        after = running.poll()
        running.terminate()
        running.communicate(timeout=60)

        assert (None, 130) == (after, running.returncode)


class TestPy4j:
    """What a call into the JVM leaves of itself when Ctrl-C breaks it off."""

    def test_says_nothing_in_the_log(self, capsys: pytest.CaptureFixture[str]) -> None:
        """Its traceback goes to the root logger; what anybody else says there is shown."""
        logging_setup.configure()
        for path, text in (("/lib/py4j/java_gateway.py", "KeyboardInterrupt while"), ("/lib/other.py", "shown")):
            logging.getLogger().handle(logging.LogRecord("root", logging.ERROR, path, 1, text, None, None))

        said = capsys.readouterr().err
        assert (False, True) == ("KeyboardInterrupt" in said, "shown" in said)

    def test_closes_its_connection(self) -> None:
        """The interrupt is what arrives, and no AttributeError."""
        callbacks.close_when_interrupted()
        connection = GatewayConnection(GatewayParameters())
        connection.socket.close()
        connection.socket, other = socket.socketpair()
        connection.stream, connection.is_connected = connection.socket.makefile("rb"), True
        with other:
            connection.shutdown_socket(1, 2)

            assert (False, -1) == (connection.is_connected, connection.socket.fileno())


def started(directory: Path, prefix: list[str]) -> tuple[subprocess.Popen[bytes], int]:
    """A command that waits for more of its input, once it does; and the end that it waits for."""
    pipe = directory / "endless.ndjson"
    os.mkfifo(pipe)
    command = [*prefix, sys.executable, "-m", "streaming", "replay", str(pipe)]
    running = subprocess.Popen(command, cwd=ROOT, stdout=subprocess.PIPE, stderr=subprocess.PIPE)  # noqa: S603 - our own
    return running, os.open(pipe, os.O_WRONLY)  # waits until the command has opened its end

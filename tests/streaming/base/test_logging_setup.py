"""The log: its two forms, whose lines are in it, and what is never in it."""

import json
import logging
from collections.abc import Iterator

import pytest

from streaming.base import logging_setup, secret_masking
from streaming.config.loading import load

SECRET = 'pass"word\\planted'  # noqa: S105 - planted, with what a log line has to escape


@pytest.fixture(autouse=True)
def root_logger_as_before() -> Iterator[None]:
    root = logging.getLogger()
    before = root.handlers[:], root.level
    yield
    root.handlers[:], root.level = before


def test_lines_are_key_and_value(capsys: pytest.CaptureFixture[str]) -> None:
    """A line has its time, level, logger and event, then what was given with it."""
    logging_setup.configure()
    logging_setup.get_logger("job").info("batch finished", batch_id=7, note="two words")

    line = capsys.readouterr().err
    assert line.startswith("timestamp=")
    assert line.endswith('level=info logger=streaming.job event="batch finished" batch_id=7 note="two words"\n')


def test_lines_are_json_on_request(capsys: pytest.CaptureFixture[str]) -> None:
    """With the json format each line is an object."""
    logging_setup.configure(log_format="json")
    logging_setup.get_logger("job").warning("late", seconds=3)

    reported = json.loads(capsys.readouterr().err)
    assert ("late", "warning", 3) == (reported["event"], reported["level"], reported["seconds"])


def test_level_and_chatty_libraries(capsys: pytest.CaptureFixture[str]) -> None:
    """Below the level nothing is written, and libraries are heard from warnings on, in the same form."""
    logging_setup.configure("info")
    logging_setup.get_logger("job").debug("unheard")
    logging.getLogger("kafka.net").info("unheard")
    logging.getLogger("kafka.net").warning("connection %s", "lost")

    (line,) = capsys.readouterr().err.splitlines()
    assert line.endswith('level=warning logger=kafka.net event="connection lost"')


def test_silenced_clients_say_nothing(capsys: pytest.CaptureFixture[str]) -> None:
    """Where a command shows failures itself, the client library does not log them again."""
    logging_setup.configure("info")
    logging_setup.silence_clients()
    logging.getLogger("kafka.net.manager").error("no broker")

    assert "" == capsys.readouterr().err


@pytest.mark.parametrize("log_format", ["text", "json"])
def test_secrets_of_a_configuration_are_in_no_line(
    capsys: pytest.CaptureFixture[str], log_format: logging_setup.LogFormat
) -> None:
    """A library that logs its settings does not give away what was configured."""
    load(None, {"GROUP_MONITOR__HTTP__TOKEN": SECRET})
    logging_setup.configure("debug", log_format)
    logging.getLogger("kafka.net").debug("starting with %s", {"sasl_plain_password": SECRET})
    logging_setup.get_logger("job").info("starting", token=SECRET)

    said = capsys.readouterr().err
    assert 2 == said.count(secret_masking.MASK)
    assert "planted" not in said


def test_too_short_to_be_hidden() -> None:
    """A secret of three characters would blot out half of every line."""
    secret_masking.hide("abc")

    assert "abcdef" == secret_masking.masked("abcdef")


def test_one_secret_in_another() -> None:
    """Neither leaves a rest of the other."""
    secret_masking.hide("hunter22")
    secret_masking.hide("hunter22-and-more")

    assert f"<{secret_masking.MASK}>" == secret_masking.masked("<hunter22-and-more>")

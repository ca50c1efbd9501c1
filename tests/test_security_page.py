"""What docs/security.md shows is a configuration, and what it promises has the tests it names."""

import ast
import re
from pathlib import Path
from typing import Final

import pytest

from streaming.config.kafka_sections import KafkaSecuritySection
from streaming.config.loading import Config, load
from streaming.web import access, connection_limits, rate_limit, routes, server, shared_pages, unread_answers

ROOT: Final = Path(__file__).resolve().parent.parent
TEXT: Final = (ROOT / "docs" / "security.md").read_text("utf-8")
SHOWN_DIRECTORY: Final = "/etc/group-monitor"
SNIPPETS: Final = re.findall(r"```yaml\n(.*?)```", TEXT, re.DOTALL)


@pytest.mark.parametrize("snippet", SNIPPETS, ids=lambda snippet: snippet.split(":")[0])
def test_configurations_are_accepted(snippet: str, tmp_path: Path) -> None:
    """Each as it stands, once the files and variables are there that it refers to."""
    directory = tmp_path / "files"
    directory.mkdir()
    for name in re.findall(rf"{SHOWN_DIRECTORY}/([\w.-]+)", snippet):
        (directory / name).write_text("content of a file")
    file = tmp_path / "monitor.yaml"
    file.write_text(snippet.replace(SHOWN_DIRECTORY, str(directory)))

    config = load(file, dict.fromkeys(re.findall(r"\$\{env:(\w+)\}", snippet), "planted-in-the-test"))
    assert config != Config()


def test_every_mechanism_is_shown() -> None:
    """By example or by name."""
    mechanisms = re.findall(r"'([A-Z0-9-]+)'", str(KafkaSecuritySection.model_fields["sasl_mechanism"].annotation))

    assert len(mechanisms) == 5
    assert [] == [name for name in mechanisms if name not in TEXT]


@pytest.mark.parametrize("named", re.findall(r"`(tests/[\w/.]+::\w+)`", TEXT))
def test_promises_have_their_tests(named: str) -> None:
    """The test stands where the page says."""
    file, _, test = named.partition("::")
    names = {node.name for node in ast.walk(ast.parse((ROOT / file).read_text("utf-8"))) if hasattr(node, "name")}

    assert test in names


def test_limits_are_those_of_the_code() -> None:
    """Each number of the table."""
    rows = dict(re.findall(r"^\| ([^|]+) \| ([^|]+) \| [^|]+ \|$", TEXT, re.MULTILINE))

    assert (
        f"{connection_limits.MOST_CONNECTIONS}, of them {connection_limits.MOST_OF_ONE_ADDRESS} from one address"
        == rows["connections"]
    )
    assert (
        f"{routes.MOST_STREAMS}, of them {routes.MOST_STREAMS_OF_ONE_ADDRESS} from one address" == rows["event streams"]
    )
    assert f"{connection_limits.HEAD_SECONDS:g} s" == rows["from connecting, or the last answer, to a whole request"]
    assert f"{connection_limits.HANDSHAKE_SECONDS:g} s" == rows["a TLS handshake"]
    read = f"an answer that is not read: the next {connection_limits.READ_BYTES // 1024} KB, or its rest"
    assert f"{connection_limits.READ_SECONDS:g} s" == rows[read]
    assert f"{connection_limits.LONGEST_HEAD // 1024} KB" == rows["what is sent before the last request is answered"]
    most = server.MOST_PROBES
    assert f"{most.in_all}, of them {most.of_one_address} from one address" == rows["connections of `http.probe_port`"]
    held = f"{unread_answers.MOST_UNREAD >> 20} MB in all, a slice of {unread_answers.SLICE // 1024} KB"
    assert rows["answers that are not taken yet"].startswith(held)
    assert str(connection_limits.MOST_LINES) == rows["lines of a head"]
    assert 4 == shared_pages.MADE_AT_ONCE
    assert f"503 after {shared_pages.WAIT_SECONDS:g} s" in TEXT
    assert f"each counts as {access.COST_OF_WRONG_CREDENTIALS:g} requests" == rows["wrong credentials"]
    assert 5.0 == rate_limit.BURST_SECONDS
    assert "five seconds' worth at once" in rows["requests of one address"]
    assert f"128 KB, {access.LONGEST_QUERY // 1000} KB" == rows["a request's head, a query"]

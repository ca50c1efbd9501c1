"""Distinctive secrets in every option that takes one, a monitor that runs and fails with them, and where they got to.

The monitor reads a cluster that lets it in by OAUTHBEARER over TLS, with Spark's page and event log on and everything
logged; then its permission is taken away and given back. Whatever was written or served is searched.
"""

import json
import re
from collections.abc import Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from urllib.error import HTTPError
from urllib.request import Request, urlopen

import pytest

from lab.monitor_process import CommandProcess, MonitorProcess, marked_processes, until
from streaming.demo.embedded_broker import _free_ports
from streaming.kafka.permissions import PERMISSIONS, READ_LOG
from tests.integration.secured_broker import CLIENT_SECRET, SecuredBroker
from tests.integration.test_permissions import GROUP, somebody_s_group

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(400)]

TOKEN: Final = "planted-page-token-Hj4"  # noqa: S105 - of a server that lives as long as the test
PAGE_PASSWORD: Final = "planted-page-password-Lm2"  # noqa: S105 - as above
STORE_KEY: Final = "planted-store-key-Rt8"
ODD_VALUE: Final = "planted-odd-value-Yb5"
ENVIRONMENT: Final = {"PAGE_TOKEN": TOKEN, "PAGE_PASSWORD": PAGE_PASSWORD, "STORE_KEY": STORE_KEY, "ODD": ODD_VALUE}
WRONG_TOKEN: Final = "planted-wrong-token-Bn6"  # noqa: S105 - as above

SPARK_PAGES: Final = (
    "environment/", "jobs/", "stages/", "storage/", "executors/", "SQL/", "StreamingQuery/",
    "executors/threadDump/?executorId=driver",
)  # fmt: skip
OUR_PAGES: Final = ("/", "/metrics", "/ready", "/api/v1/overview", "/api/v1/groups", "/api/v1/events", "/nowhere")


@dataclass(frozen=True)
class Reported:
    """What was written and served (place → text), the secrets, and what the monitor reported of its troubles."""

    texts: dict[str, str]
    secrets: tuple[str, ...]
    groups: list[str]
    error_lines: list[str]
    exit_statuses: tuple[int, int]


@pytest.fixture(scope="module")
def reported(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Reported]:
    directory = tmp_path_factory.mktemp("secrets")
    # What is looked through is below this; beside it stand the secrets themselves.
    written = directory / "written"
    with SecuredBroker(directory / "cluster") as broker:
        broker.allow(PERMISSIONS)
        somebody_s_group(broker.open_servers)
        (ui_port,) = _free_ports(1)
        config = configuration(directory, written, broker, ui_port)
        with CommandProcess(
            written / "check", "--debug", "check", "--no-spark", "--config", str(config), environment=ENVIRONMENT
        ) as check:
            checked = check.await_end(90)
        with Running(written / "run", config) as monitor:
            monitor.await_ready()
            texts = served(monitor, ui_port)
            groups = [group["group"] for group in json.loads(texts["/api/v1/groups"])["groups"]]
            broker.forbid(READ_LOG)
            # Only who has something to read is refused.
            somebody_s_group(broker.open_servers)
            until(lambda: any("accepted: READ" in line for line in monitor.error_lines()), 60, "no word of READ")
            broker.allow([READ_LOG])
            until(lambda: any("brokers_reachable_again" in line for line in monitor.error_lines()), 90, "not again")
            texts |= {f"{place} again": text for place, text in served(monitor, ui_port).items()}
            texts["process list"] = "\n".join(command for _, command in marked_processes(monitor._mark))
            monitor.terminate()
            ended = monitor.await_end(30)
        for path in written.rglob("*"):
            if path.is_file():
                texts[str(path.relative_to(written))] = path.read_bytes().decode("utf-8", errors="replace")
        key = broker.client_files[1].read_text().splitlines()[1]
        secrets = (CLIENT_SECRET, *ENVIRONMENT.values(), WRONG_TOKEN, key, *broker.tokens.granted)
        yield Reported(texts, secrets, groups, monitor.error_lines(), (checked, ended))


def test_the_monitor_ran(reported: Reported) -> None:
    """It was let in by its tokens, saw the group, and everything that is searched was there."""
    assert ((0, 0), [GROUP]) == (reported.exit_statuses, reported.groups)
    for place in ("process list", "environment/", "run/errors", "check/output", "state/spark.log", "/metrics"):
        assert reported.texts[place], place
    for part in ("state/checkpoint/offsets/", "state/checkpoint/metadata", "event-log/"):
        assert [place for place in reported.texts if place.startswith(part)], part
    assert len(reported.secrets) > 7


def test_no_secret_is_anywhere(reported: Reported) -> None:
    """Not in a log, an error, Spark's page or event log, a checkpoint, an answer, or a process list."""
    found = {
        place: secret[:12] for place, text in reported.texts.items() for secret in reported.secrets if secret in text
    }

    assert {} == found


def test_a_permission_taken_away_is_reported_in_a_line(reported: Reported) -> None:
    """Which one it is, once; and that all is well again when it was given back."""
    (line,) = [line for line in reported.error_lines if "brokers_unreachable" in line]

    assert re.search(r"kafka\.security: found the permission .* on __consumer_offsets, accepted: READ", line)


class Running(MonitorProcess):
    """A monitor with a configuration that is there already, and the secrets in its environment."""

    def __init__(self, directory: Path, config: Path) -> None:
        CommandProcess.__init__(self, directory, "--debug", "run", "--config", str(config), environment=ENVIRONMENT)
        self._url = None


def configuration(directory: Path, written: Path, broker: SecuredBroker, ui_port: int) -> Path:
    """Every option that takes a secret has one, by reference."""
    secret_file = directory / "client-secret"
    secret_file.write_text(f"{CLIENT_SECRET}\n")
    certificate, key = broker.client_files
    security = {
        **{name: str(value) for name, value in broker.options("OAUTHBEARER").items()},
        "oauth_client_secret": f"${{file:{secret_file}}}",
        "certificate_file": str(certificate),
        "key_file": str(key),
    }
    event_log = written / "event-log"
    event_log.mkdir(parents=True)
    config = directory / "monitor.yaml"
    spark_conf = {
        "spark.hadoop.fs.s3a.secret.key": "${env:STORE_KEY}",
        "spark.hadoop.odd.name": "${env:ODD}",
        "spark.eventLog.enabled": "true",
        "spark.eventLog.compress": "false",
        "spark.eventLog.dir": event_log.as_uri(),
    }
    # JSON is YAML.
    sections = {
        "cluster": {"name": "tested"},
        "kafka": {"bootstrap_servers": broker.servers["SASL"], "security": security},
        "state": {"dir": str(written / "state")},
        "http": {"port": 0, "token": "${env:PAGE_TOKEN}", "username": "ops", "password": "${env:PAGE_PASSWORD}"},
        "spark": {"driver_memory": "1g", "ui": True, "ui_port": ui_port, "conf": spark_conf},
    }
    config.write_text(json.dumps(sections))
    return config


def served(monitor: MonitorProcess, ui_port: int) -> dict[str, str]:
    """What the monitor and Spark's own page answer, errors included."""
    texts = {path: body(monitor.url + path, f"Bearer {TOKEN}") for path in OUR_PAGES}
    texts["refused"] = body(f"{monitor.url}/metrics", f"Bearer {WRONG_TOKEN}")
    spark = f"http://127.0.0.1:{ui_port}/"
    texts |= {page: body(spark + page) for page in SPARK_PAGES}
    (application,) = json.loads(body(f"{spark}api/v1/applications"))
    for part in ("environment", "jobs", "stages", "sql?details=true&length=50"):
        texts[f"application {part}"] = body(f"{spark}api/v1/applications/{application['id']}/{part}")
    for execution in json.loads(texts["application sql?details=true&length=50"])[:5]:
        number = execution["id"]
        texts[f"execution {number}"] = body(f"{spark}SQL/execution/?id={number}")
    return texts


def body(url: str, authorization: str = "") -> str:
    request = Request(url, headers={"Authorization": authorization} if authorization else {})  # noqa: S310 - loopback
    try:
        with urlopen(request, timeout=30) as answer:  # noqa: S310 - loopback
            return str(answer.read().decode())
    except HTTPError as refused:
        return f"{refused.headers}{refused.read().decode()}"

"""The demo as a newcomer runs it, and both its ends: on its own, and by Ctrl-C."""

import re
import time
from dataclasses import dataclass, replace
from pathlib import Path
from typing import Final
from urllib.request import urlopen

import pytest
from confluent_kafka.admin import AdminClient

from coordinator_model.state.events import SEVERITIES
from lab.monitor_process import END_SECONDS, READY_SECONDS, CommandProcess, until
from streaming.demo.embedded_broker import EmbeddedBroker
from streaming.demo.scenario import GROUPS, ROLLED_GROUP

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(600)]

SHORTEST_SECONDS: Final = 90
"""Broker, members, Spark and one roll there and back take a minute of two cores of their own."""

SLOWER: Final = 7
"""So many times as long as the first event takes, the roll is done on any machine: members join only then."""

FIRST_SECONDS: Final = 180.0
LONGEST_SECONDS: Final = 480.0

_EVENT_LINE: Final = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\dT[\d:.]+Z) (?P<kind>[a-z_]+) (?P<group>\S+)( (?P<detail>.*))?"
)


@dataclass(frozen=True)
class Ended:
    """A demo that is over: how, after what time, what it said, and what it left."""

    status: int
    seconds: float
    lines: list[str]
    error_lines: list[str]
    left: list[str]
    scratch: list[Path]
    page: str = ""
    first_event_seconds: float = 0.0
    given_seconds: int = 0


@pytest.fixture(scope="module")
def interrupted(tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """A demo that got Ctrl-C as soon as it had shown an event; `seconds` is how long it took to end."""
    directory = tmp_path_factory.mktemp("interrupted")
    begun = time.monotonic()
    with started(directory) as demo:
        until(lambda: len(demo.output_lines()) > 1 or demo.exit_status is not None, FIRST_SECONDS, "no event is shown")
        first = time.monotonic() - begun
        demo.interrupt()
        return replace(ended(demo, directory, time.monotonic()), first_event_seconds=first)


@pytest.fixture(scope="module")
def by_itself(interrupted: Ended, tmp_path_factory: pytest.TempPathFactory) -> Ended:
    """A demo that was given a time."""
    directory = tmp_path_factory.mktemp("by-itself")
    given = max(SHORTEST_SECONDS, round(SLOWER * interrupted.first_event_seconds))
    begun = time.monotonic()
    with started(directory, "--seconds", str(given)) as demo:
        page = asked(demo)
        return replace(ended(demo, directory, begun), page=page, given_seconds=given)


def test_ends_by_itself(by_itself: Ended) -> None:
    """Exit status 0 says that all groups, the upgrade and the downgrade were seen; the time is the one asked for."""
    assert 0 == by_itself.status, by_itself.error_lines
    assert by_itself.given_seconds - 1 < by_itself.seconds < by_itself.given_seconds + 2 * END_SECONDS


def test_first_address_is_the_page_s(by_itself: Ended) -> None:
    """The first line names the page, and the page answered there."""
    assert re.fullmatch(r"page http://127\.0\.0\.1:\d+/  metrics http://127\.0\.0\.1:\d+/metrics", by_itself.lines[0])
    assert "<html" in by_itself.page


def test_every_other_line_is_an_event(by_itself: Ended) -> None:
    """`time kind group detail`, of kinds there are and groups there are."""
    events = [_EVENT_LINE.fullmatch(line) for line in by_itself.lines[1:]]

    assert [] == [line for line, event in zip(by_itself.lines[1:], events, strict=True) if event is None]
    assert {event["kind"] for event in events if event} <= SEVERITIES.keys()
    assert set(GROUPS) == {event["group"] for event in events if event}


def test_the_roll_is_reported_in_its_order(by_itself: Ended) -> None:
    """There and back: four events of the rolled group, in this order."""
    reported = [line.split()[1] for line in by_itself.lines[1:] if f" {ROLLED_GROUP}" in line and "grade_" in line]

    assert ["upgrade_started", "upgrade_completed", "downgrade_started", "downgrade_completed"] == reported[:4]


def test_what_it_does_is_distinguished(by_itself: Ended) -> None:
    """Steps are on standard error, marked as such, and nothing else is."""
    assert [] == [line for line in by_itself.error_lines if not line.startswith("demo: ")]
    assert any("rolling upgrade" in line for line in by_itself.error_lines)


def test_leaves_nothing(by_itself: Ended) -> None:
    """No process, and no file."""
    assert ([], []) == (by_itself.left, by_itself.scratch)


def test_ctrl_c_ends_all_of_it(interrupted: Ended) -> None:
    """Members, broker, Spark and page: all gone in seconds, without a word, and no file is left."""
    assert (0, [], []) == (interrupted.status, interrupted.left, interrupted.scratch)
    assert interrupted.seconds < 2 * END_SECONDS
    assert [] == [line for line in interrupted.error_lines if not line.startswith("demo: ")]


def test_ctrl_c_before_it_is_up(tmp_path: Path) -> None:
    """Pressed while the broker is starting it ends what there is, and says nothing of it."""
    with started(tmp_path) as demo:
        until(lambda: any("kafka.Kafka" in command for command in demo.left_over()), 60, "no broker is started")
        demo.interrupt()
        early = ended(demo, tmp_path, time.monotonic())

    assert (0, [], []) == (early.status, early.left, early.scratch)
    assert [] == [line for line in early.error_lines if not line.startswith("demo: ")]


def test_members_alone_on_a_cluster_of_one_s_own(tmp_path: Path) -> None:
    """With `--bootstrap-server` topics and groups are made there, and neither broker nor monitor is started."""
    with (
        EmbeddedBroker(tmp_path / "broker") as broker,
        started(tmp_path, "--bootstrap-server", broker.bootstrap_servers, own_port=False) as demo,
    ):
        admin = AdminClient({"bootstrap.servers": broker.bootstrap_servers, "log_level": 2})
        until(
            lambda: set(GROUPS) <= {group.group_id for group in admin.list_consumer_groups().result().valid},
            FIRST_SECONDS,
            lambda: f"not all groups are there: {demo.error_lines()}",
        )
        running = " ".join(demo.left_over())
        demo.interrupt()
        alone = ended(demo, tmp_path, time.monotonic())

    assert ("VerifiableConsumer" in running, "kafka.Kafka" in running, "pyspark" in running) == (True, False, False)
    assert (0, [], [], []) == (alone.status, alone.lines, alone.left, alone.scratch)
    assert [] == [line for line in alone.error_lines if not line.startswith("demo: ")]


def started(directory: Path, *arguments: str, own_port: bool = True) -> CommandProcess:
    """A demo, on any free port unless it opens none, with its scratch files below the directory."""
    (directory / "scratch").mkdir()
    environment = {"TMPDIR": str(directory / "scratch"), "COLUMNS": "80"}
    port = ("--set", "http.port=0") if own_port else ()
    return CommandProcess(directory / "demo", "demo", *port, *arguments, environment=environment)


def ended(demo: CommandProcess, directory: Path, begun: float) -> Ended:
    """How it ended, once it has; `begun` is when the time to measure began."""
    status = demo.await_end(LONGEST_SECONDS)
    return Ended(
        status=status,
        seconds=time.monotonic() - begun,
        lines=demo.output_lines(),
        error_lines=demo.error_lines(),
        left=demo.left_over(),
        scratch=list((directory / "scratch").glob("group-monitor-demo-*")),
    )


def asked(demo: CommandProcess) -> str:
    """The page at the first address that is printed."""
    until(lambda: bool(demo.output_lines()) or demo.exit_status is not None, READY_SECONDS, "no address is printed")
    assert demo.exit_status is None, demo.error_lines()
    address = next(word for word in demo.output_lines()[0].split() if word.startswith("http"))
    with urlopen(address, timeout=10) as response:  # noqa: S310 - an address of our own
        page: str = response.read().decode("utf-8")
    return page

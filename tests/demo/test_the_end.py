"""The demo's end by Ctrl-C, after all that it is to show: what it had said until then, and that nothing of it is left.

The last module of the package: who comes after it finds no demo.
"""

import re
import time
from concurrent.futures import wait
from typing import Final

import pytest

from coordinator_model.state.events import SEVERITIES
from lab.monitor_process import END_SECONDS, until
from streaming.demo.scenario import GROUPS, ROLLED_GROUP
from tests import demo_end
from tests.demo.conftest import UP_SECONDS, Demo
from tests.demo_end import Ended

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(600)]

ROLL: Final = ("upgrade_started", "upgrade_completed", "downgrade_started", "downgrade_completed")
ROLLED_SECONDS: Final = UP_SECONDS + 240.0

_EVENT_LINE: Final = re.compile(
    r"(?P<time>\d{4}-\d\d-\d\dT[\d:.]+Z) (?P<kind>[a-z_]+) (?P<group>\S+)( (?P<detail>.*))?"
)


@pytest.fixture(scope="module")
def ended(demo: Demo) -> Ended:
    process = demo.process
    until(
        lambda: ROLL[-1] in rolled(process.output_lines()) or process.exit_status is not None,
        ROLLED_SECONDS,
        lambda: f"no roll there and back: {process.output_lines()}",
    )
    if demo.asking is not None:
        wait([demo.asking])
    begun = time.monotonic()
    process.interrupt()
    return demo_end.ended(process, demo.directory, begun, 8 * END_SECONDS)


def rolled(lines: list[str]) -> list[str]:
    """Kinds of the events of conversions of the group that is rolled, in their order."""
    return [line.split()[1] for line in lines[1:] if f" {ROLLED_GROUP}" in line and "grade_" in line]


def test_ctrl_c_ends_all_of_it(ended: Ended) -> None:
    """Members, broker, Spark and page: all gone in seconds, with exit status 0, and no file is left."""
    assert (0, [], []) == (ended.status, ended.left, ended.scratch)
    assert ended.seconds < 2 * END_SECONDS


def test_first_line_is_the_address(ended: Ended) -> None:
    """Of the page and of the metrics; that the page answers there the other modules see."""
    assert re.fullmatch(r"page http://127\.0\.0\.1:\d+/  metrics http://127\.0\.0\.1:\d+/metrics", ended.lines[0])


def test_every_other_line_is_an_event(ended: Ended) -> None:
    """`time kind group detail`, of kinds there are and of all groups there are."""
    events = [_EVENT_LINE.fullmatch(line) for line in ended.lines[1:]]

    assert [] == [line for line, event in zip(ended.lines[1:], events, strict=True) if event is None]
    assert {event["kind"] for event in events if event} <= SEVERITIES.keys()
    assert set(GROUPS) == {event["group"] for event in events if event}


def test_the_roll_is_reported_in_its_order(ended: Ended) -> None:
    """There and back: four events of the rolled group, in this order."""
    assert list(ROLL) == rolled(ended.lines)[: len(ROLL)]


def test_what_it_does_is_distinguished(ended: Ended) -> None:
    """Steps are on standard error, marked as such, and nothing else is, not even of the end."""
    assert [] == [line for line in ended.error_lines if not line.startswith("demo: ")]
    assert any("rolling upgrade" in line for line in ended.error_lines)

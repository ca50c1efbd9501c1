"""Every command of "Migrating 300 groups", as it stands there, on the demo that the first of them started."""

import os
import re
from concurrent.futures import ThreadPoolExecutor
from typing import Final

import pytest

from lab.monitor_process import until
from tests.demo.conftest import UP_SECONDS, Demo
from tests.demo.followed import Ran, begun, commands, run, run_until, without

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(900)]

DEMO: Final = "demo"
WATCH: Final = "group-monitor watch orders-service"
REHEARSED: Final = "rehearse"
REPORT: Final = "group-monitor report orders-service --since '10 minutes ago'"

EXPECTED: Final[dict[str, tuple[int, tuple[str, ...]]]] = {
    "group-monitor plan": (0, ("4 groups: ", "orders-service", "client_library", "check by hand")),
    "group-monitor plan --csv": (
        0,
        ("wave,group,readiness,reasons,remedies,", "payments-service,ready,", ",team-orders,not before the sale"),
    ),
    "group-monitor plan --markdown --match 'orders-*'": (0, ("1 group: ", "| orders-service | ", "| team-orders | ")),
    "group-monitor rehearse upgrade --group orders-service --keep-names --keep rehearsal.json": (
        0,
        ("Rehearsal: upgrade of orders-service", "went through", ", from classic to consumer"),
    ),
    "group-monitor rehearse downgrade --group audit-trail --html downgrade.html": (
        0,
        ("Rehearsal: downgrade of group-1", "went through", "from consumer to classic"),
    ),
    "group-monitor gate upgrade --group orders-service": (0, ("upgrade: open",)),
    "group-monitor describe orders-service": (0, ("orders-service", "MEMBER", "COMMITTED")),
    WATCH: (130, ("orders-service", "MEMBER")),
    f"{REPORT} --dir history --rehearsal rehearsal.json": (0, ("Roll of orders-service", "rehearsal", "rebalances")),
    f"{REPORT} --dir history --html roll.html": (0, ("Roll of orders-service", "longest without an owner")),
    f"{REPORT} --markdown": (3, ("# Roll of orders-service", "not known")),
}
"""Command of the page → its exit status, and some of what it prints.

How many members are rehearsed depends on the moment: one may be away, as the demo rolls the group.
"""


@pytest.fixture(scope="module")
def followed(demo: Demo) -> dict[str, Ran]:
    """All of them; the two rehearsals beside those before the reports, as they mostly wait."""
    environment = {**os.environ, **demo.environment}
    until(lambda: begun(demo.address), UP_SECONDS, "the demo is not ready")
    with ThreadPoolExecutor(2) as pool:
        rehearsals = {
            command: pool.submit(run, command, demo.directory, environment)
            for command in without(DEMO)
            if REHEARSED in command.split()
        }
        found: dict[str, Ran] = {}
        for command in without(DEMO):
            if command.startswith("group-monitor report"):
                found |= {rehearsed: running.result() for rehearsed, running in rehearsals.items()}
            if command == WATCH:
                found[command] = run_until(command, "orders-service", demo.directory, demo.environment)
            elif command not in rehearsals:
                found[command] = run(command, demo.directory, environment)
    return found


def test_page_and_test_have_the_same_commands() -> None:
    """A command that is added to the page, or changed there, is one that has to be expected here."""
    assert DEMO in commands()[0]
    assert list(EXPECTED) == list(without(DEMO))


@pytest.mark.parametrize("command", EXPECTED)
def test_a_command_does_what_the_page_says(command: str, followed: dict[str, Ran]) -> None:
    """Exit status and some words.

    A rehearsal that went through with an alarm, on a slow machine, ends as one; a report of a roll under way says so.
    """
    status, words = EXPECTED[command]
    ran = followed[command]
    if REHEARSED in command.split() and not re.search(r"alarms +none", ran.output):
        status = 1
    if command.startswith(REPORT) and "not complete: the group was being rolled" in ran.output:
        status = 3

    assert status == ran.status, (ran.output, ran.errors)
    assert [] == [word for word in words if word not in ran.output], ran.output


def test_files_that_the_page_names_are_written(demo: Demo, followed: dict[str, Ran]) -> None:
    """The rehearsal that is kept, and two reports of one file each."""
    assert all(ran.output for ran in followed.values())
    for name in ("downgrade.html", "roll.html"):
        assert (demo.directory / name).read_text("utf-8").startswith("<!doctype html>")
    assert '"group-rehearsal/1"' in (demo.directory / "rehearsal.json").read_text("utf-8")

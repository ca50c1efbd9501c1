"""Monitors that know nothing of each other: of two clusters in one process, and of one cluster (`east_and_west`)."""

from typing import Final

import pytest

from tests.integration.east_and_west import ALL_OF_EAST, CLASSIC, CONSUMER, DOOMED, SIMPLE, WESTERN, Reported, names_in

NEVER: Final = {
    "nowhere": """event=monitor_waits reason="kafka.bootstrap_servers: found '127.0.0.1:1', none reachable""",
    "foreign": 'event=monitor_ended reason="state.dir: found ',
}
"""Monitor that never ran → what is said of it."""
ALL: Final = (*NEVER, "east", "again", "west")

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(900)]


def test_each_monitor_speaks_of_its_own_cluster(reported: Reported) -> None:
    """In one process with one Spark, each has an address of its own, its own groups, and its name on every figure."""
    eastern = {CLASSIC, CONSUMER, SIMPLE, DOOMED}

    assert {name: {name} for name in ("east", "again", "west")} == reported.labels
    assert {"east": eastern, "again": eastern, "west": {WESTERN}} == reported.groups_of


def test_two_monitors_of_one_cluster_say_the_same(reported: Reported) -> None:
    """The same groups with the same members, offsets and lag, and the same events under the same ids."""
    first, second = reported.twice

    assert {CLASSIC, CONSUMER, SIMPLE, DOOMED} == first["groups"].keys()
    assert first["groups"] == second["groups"]
    assert len(first["events"]) > len(first["groups"])
    assert first["events"] == second["events"]


def test_monitors_leave_no_trace_in_the_cluster(reported: Reported) -> None:
    """Three read there at once, one writes topics: no group of theirs is coordinated, nor in the coordinator's log."""
    assert {CLASSIC, CONSUMER, SIMPLE, DOOMED} == reported.coordinated
    assert ALL_OF_EAST == names_in(reported.log)


def test_a_cluster_that_is_away_holds_up_no_other(reported: Reported) -> None:
    """Commits to the other cluster are shown meanwhile, by monitors that are ready and have nothing to say."""
    assert [200, 200] == reported.outage["ready"]
    assert {"east": [], "again": []} == reported.outage["lines"]
    east, again, west = reported.outage["sampled"]
    assert max(east, again) < west


def test_what_is_known_of_a_cluster_that_is_away_stays(reported: Reported) -> None:
    """Its page, metrics and groups; that it was away, and is back, is reported once by each part of its monitor."""
    lines = [line for line in reported.errors["both"] if line.endswith(" cluster=west")]
    happened = [line.partition("event=")[2].split()[0] for line in lines]

    assert [200, 200, 200] == reported.outage["west"]
    assert ["end_offsets_unavailable", "end_offsets_available_again"] == [of for of in happened if "end_offsets" in of]
    # Whether the query itself failed, then or when they came back, depends on what it was at.
    others = [of for of in happened if "end_offsets" not in of]
    # So does whether brokers were to be asked what they can do.
    assert {*others} <= {
        *("brokers_unreachable", "query_failed", "brokers_reachable_again"),
        *("broker_abilities_unavailable", "broker_abilities_available_again"),
    }
    assert others.count("brokers_unreachable") <= 1
    assert others.count("broker_abilities_unavailable") <= 1


def test_a_monitor_that_cannot_start_holds_up_no_other(reported: Reported) -> None:
    """One without brokers waits for them, one with another cluster's state ends: a line each, and no address."""
    lines = {name: [line for line in reported.errors["both"] if line.endswith(f" cluster={name}")] for name in NEVER}

    assert {"east", "again", "west"} == {line.rpartition("  cluster ")[2] for line in reported.addresses}
    assert {name: [True] for name in NEVER} == {name: [NEVER[name] in of for of in lines[name]] for name in NEVER}
    assert len(reported.errors["both"]) == sum(
        f" cluster={of}" in line for line in reported.errors["both"] for of in ALL
    )

"""Conversions as real brokers of several versions wrote them: what was kept, who was awaited or translated for."""

from functools import cache
from pathlib import Path
from typing import Any, Final

import pytest

from tests.histories import Reported, recording

RECORDINGS: Final = Path(__file__).parent / "recordings"
RELEASES: Final = sorted(path.parent.name for path in RECORDINGS.glob("*/conversions.ndjson.gz"))
FROM_4_0: Final = [release for release in RELEASES if int(release.split(".")[0]) >= 4]
"""3.9 served the protocol as a preview: it replaces no static member that has not left, and refuses fewer upgrades."""


@cache
def replayed(release: str, scenario: str) -> Reported:
    """A scenario as a broker of a release recorded it."""
    return recording(RECORDINGS / release / f"{scenario}.ndjson.gz").replayed()


def details(reported: Reported, kind: str) -> dict[str, dict[str, Any]]:
    """Group → detail of the last event of a kind."""
    return {event.group: dict(event.detail) for event in reported.events if event.kind == kind}


def test_brokers_of_several_releases_were_recorded() -> None:
    """Each wrote these records in its own layouts."""
    assert {"3.9.1", "4.0.2", "4.1.1", "4.2.1"} <= set(RELEASES)


@pytest.mark.parametrize("release", FROM_4_0)
def test_online_downgrade_hands_over_the_targets_and_keeps_the_offsets(release: str) -> None:
    """By the last upgraded member's leaving, member by member, and by static members in place."""
    completed = details(replayed(release, "conversions"), "downgrade_completed")
    online = {group: detail for group, detail in completed.items() if detail["online"]}

    assert {"downgraded-by-leaving", "static-members-downgraded-in-place"} <= online.keys()
    for detail in online.values():
        assert (True, [], []) == (
            detail["assignments_kept"],
            detail["members_not_given_their_target"],
            detail["members_not_at_their_target"],
        )
        assert ({}, {}, 1) == (detail["offsets_back"], detail["leftover_records"], len(detail["last_upgraded_members"]))
        assert detail["offsets"] > 0


@pytest.mark.parametrize("release", FROM_4_0)
def test_member_of_a_roll_is_awaited_and_comes(release: str) -> None:
    """In the recorded rolls each old member goes first; static ones are replaced in place, and no one is awaited."""
    reported = replayed(release, "conversions")
    awaited = {group: of["replacements_awaited"] for group, of in details(reported, "upgrade_completed").items()}

    assert (1, 0) == (awaited["upgraded-member-by-member"], awaited["static-members-upgraded-in-place"])
    assert 2 == reported.view("upgraded-member-by-member")["migration"]["upgraded_members"]


@pytest.mark.parametrize("release", RELEASES)
def test_member_that_is_translated_for_has_what_it_is_to_have(release: str) -> None:
    """A cooperative one that has rejoined: it owned something when it did, which an eager one does not."""
    (member,) = (
        of["classic_protocol"]
        for of in replayed(release, "conversions").view("upgrade-half-way")["members"]
        if of["protocol"] == "classic"
    )

    assert ("settled", "cooperative", False) == (
        member["situation"],
        member["rebalance_protocol"],
        member["rebalance_protocol_inferred"],
    )
    assert ({}, {}) == (member["revokes"], member["waits_for"])
    assert member["keeps"]


@pytest.mark.parametrize("release", RELEASES)
def test_active_tasks_of_kafka_streams_are_the_partitions_that_members_were_assigned(release: str) -> None:
    """A subtopology of one source topic reads the partition of its number; the two members stand by for each other."""
    members = replayed(release, "classic").view("streams-application")["members"]

    assert 2 == len(members)
    for member in members:
        tasks = sorted(partition for partitions in member["tasks"]["active"].values() for partition in partitions)
        assert tasks == sorted(partition for partitions in member["assigned"].values() for partition in partitions)
    standby = [member["tasks"]["standby"] for member in members]
    assert [{"1": [0]}, {"1": [1]}] == sorted(standby, key=str)


@pytest.mark.parametrize("release", FROM_4_0)
def test_group_that_a_broker_refused_to_upgrade_was_reported_of_before(release: str) -> None:
    """The scenario has a consumer-protocol member knock at a Kafka Streams application; nothing of it is in the log."""
    reported = replayed(release, "conversions")

    assert {"upgrade-that-is-refused"} == details(reported, "upgrade_blocked").keys()
    assert "blocked" == reported.view("upgrade-that-is-refused")["migration"]["phase"]


def test_broker_of_3_9_converts_what_later_ones_refuse() -> None:
    """The same application, reported as blocked before, is a consumer group afterwards: the older broker let it."""
    reported = replayed("3.9.1", "conversions")

    assert {"upgrade-that-is-refused"} == details(reported, "upgrade_blocked").keys()
    assert "upgraded" == reported.view("upgrade-that-is-refused")["migration"]["phase"]

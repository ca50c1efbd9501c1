"""What would keep a group from being upgraded, reported before anyone rolls, once, and only where somebody might."""

from typing import Any

import pytest

from coordinator_model.migration import upgrade_blockers
from coordinator_model.replica import Replica
from lab.builders import (
    RecordBytes,
    assignment,
    first_fields,
    group_metadata,
    group_metadata_tombstone,
    member,
    new_group_metadata,
    offset_commit,
    sticky_user_data,
    subscription,
)
from lab.coordinator_events import consumer_join, converted_to_consumer
from tests.cooperative_groups import AGAIN, FIRST, JAVA
from tests.cooperative_groups import generation as cooperative
from tests.histories import Reported, at, history


def generation(number: int, *, protocol: str = "own", protocol_type: str = "consumer", **of_member: Any) -> RecordBytes:
    """A generation of one member that was assigned t/0."""
    joined = member("c", {"t": [0]}, **of_member)
    return group_metadata("g", generation=number, protocol=protocol, protocol_type=protocol_type, members=[joined])


def custom(number: int, protocol: str = "own") -> RecordBytes:
    """A generation whose assignor put user data into the assignment."""
    return generation(number, protocol=protocol, assignment_bytes=assignment({"t": [0]}, user_data=b"mine"))


def reported_of(reported: Reported) -> list[tuple[int, str, list[str]]]:
    """(time, severity, reasons) of what was reported to be in the way."""
    return [
        (event.time_ms, event.severity, event.detail["reasons"])
        for event in reported.events
        if event.kind == "upgrade_blocked" and "cleared" not in event.detail
    ]


# -- what is reported -------------------------------------------------------------------------------------------------


def test_user_data_of_a_custom_assignor_is_reported_once() -> None:
    """However many generations it lasts; with the assignor and the members it is about."""
    reported = history(at(0, custom(1)), at(1_000, custom(2)), at(2_000, custom(3))).replayed()

    assert [(0, "warning", ["assignment_user_data"])] == reported_of(reported)
    assert [{"reasons": ["assignment_user_data"], "protocol": "own", "members": ["c"]}] == reported.details(
        "upgrade_blocked"
    )
    assert ("blocked", ["assignment_user_data"]) == phase(reported)


def phase(reported: Reported) -> tuple[str, list[str]]:
    """Phase and blockers."""
    view = reported.view("g")["migration"]
    return view["phase"], view["blockers"]


@pytest.mark.parametrize(
    "of_member",
    [
        {"subscription_bytes": b"\0"},
        {"subscription_bytes": first_fields(version=1)},
        {"subscription_bytes": first_fields(version=4)},
        {"assignment_bytes": b"\0"},
        {"subscription_bytes": b"?", "assignment_bytes": b"?"},
    ],
)
def test_malformed_embedded_protocol_is_reported(of_member: dict[str, Any]) -> None:
    """A broker that cannot parse a subscription or an assignment does not convert the group."""
    reported = history(at(0, generation(1, **of_member))).replayed()

    assert [(0, "warning", ["malformed_embedded_protocol"])] == reported_of(reported)


def test_group_that_becomes_blocked_is_reported_then() -> None:
    """The generation in which the assignor was deployed."""
    reported = history(at(0, generation(1)), at(1_000, custom(2))).replayed()

    assert [(1_000, "warning", ["assignment_user_data"])] == reported_of(reported)


def test_second_reason_is_reported_by_itself() -> None:
    """What was reported before is not reported again."""
    both = group_metadata(
        "g",
        generation=2,
        protocol="own",
        members=[
            member("c", assignment_bytes=assignment({"t": [0]}, user_data=b"mine")),
            member("d", subscription_bytes=b"?"),
        ],
    )
    reported = history(at(0, custom(1)), at(1_000, both)).replayed()

    assert [
        (0, "warning", ["assignment_user_data"]),
        (1_000, "warning", ["malformed_embedded_protocol"]),
    ] == reported_of(reported)
    assert ["d"] == reported.details("upgrade_blocked")[-1]["members"]


def test_reason_that_went_and_came_back_is_reported_again() -> None:
    """It goes without a word, and is news when it comes back."""
    reported = history(at(0, custom(1)), at(1_000, generation(2)), at(2_000, custom(3))).replayed()

    assert [0, 2_000] == [time for time, _, _ in reported_of(reported)]
    assert {0, 1_000, 2_000} == reported.kinds().keys()
    (over,) = (event for event in reported.events if event.kind == "upgrade_blocked" and event.time_ms == 1_000)
    assert ("info", True) == (over.severity, over.detail["cleared"])


def test_kafka_streams_application_is_reported_as_information() -> None:
    """Its assignor always puts user data there: it moves to the streams protocol, not to the consumer protocol."""
    reported = history(at(0, custom(1, protocol="stream"))).replayed()

    assert [(0, "info", ["assignment_user_data"])] == reported_of(reported)
    assert {} == reported.alarms()


# -- what is not ------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("protocol_type", ["connect", "sr", "mine"])
def test_group_of_another_protocol_type_is_not_reported(protocol_type: str) -> None:
    """Connect workers are in such a group for ever: that they cannot become consumers is no news."""
    reported = history(at(0, generation(1, protocol_type=protocol_type, protocol="sessioned"))).replayed()

    assert [] == reported_of(reported)
    assert ("classic", []) == phase(reported)
    assert "protocol_type" == reported.view("g")["migration"]["out_of_scope"]


@pytest.mark.parametrize("protocol", ["range", "roundrobin", "sticky", "cooperative-sticky"])
@pytest.mark.parametrize("version", [0, 1, 2, 3])
def test_consumers_of_kafka_are_not_blocked(protocol: str, version: int) -> None:
    """Whatever version of the embedded protocol they use, and whatever user data is in their subscriptions."""
    joined = subscription(version=version, user_data=b"\0\0\0\1")
    reported = history(at(0, generation(1, protocol=protocol, subscription_bytes=joined))).replayed()

    assert [] == reported_of(reported)
    assert ("classic", []) == phase(reported)


USER_DATA = "assignment_user_data"
LIBRDKAFKA = "librdkafka_cooperative_sticky"


@pytest.mark.parametrize(
    ("clients", "blocked", "could_lead"),
    [
        pytest.param([FIRST, FIRST], [LIBRDKAFKA], [], id="first-generation"),
        pytest.param([AGAIN, FIRST], [USER_DATA, LIBRDKAFKA], [], id="rejoined"),
        pytest.param([AGAIN, JAVA], [USER_DATA, LIBRDKAFKA], [], id="leads-java"),
        pytest.param([FIRST], [], [], id="alone"),
        pytest.param([JAVA, AGAIN], [], ["m1"], id="led-by-java"),
        pytest.param([JAVA, FIRST, AGAIN], [], ["m1", "m2"], id="led-by-java-at-first"),
        pytest.param([JAVA, JAVA], [], [], id="java"),
    ],
)
def test_leader_of_librdkafka_on_cooperative_sticky_blocks(
    clients: list[str], blocked: list[str], could_lead: list[str]
) -> None:
    """A real broker decided so: it refuses a group whose assignments have user data, or will once members rejoin."""
    reported = history(at(0, cooperative(5, clients))).replayed()
    group = reported.states["g"].membership.classic_group

    assert blocked == phase(reported)[1]
    assert [(0, "warning", blocked)] == reported_of(reported) or not blocked
    assert group is not None
    assert could_lead == [member.member_id for member in upgrade_blockers.may_lead(group)]


def test_user_data_that_was_foreseen_is_no_news() -> None:
    """Members have rejoined as it was said: the group is blocked for both reasons, and was reported once."""
    reported = history(at(0, cooperative(1, [FIRST, FIRST])), at(1_000, cooperative(2, [AGAIN, AGAIN]))).replayed()

    assert [(0, "warning", [LIBRDKAFKA])] == reported_of(reported)
    assert ("blocked", [USER_DATA, LIBRDKAFKA]) == phase(reported)


def test_static_members_of_librdkafka_may_be_upgraded_before_any_rejoins() -> None:
    """One that is back in time makes no one rejoin; once they have rejoined, they are refused as others are."""
    first, again = (history(at(0, cooperative(5, [of, of], static=True))).replayed() for of in (FIRST, AGAIN))
    group = first.states["g"].membership.classic_group

    assert ("classic", []) == phase(first)
    assert group is not None
    assert ["m0", "m1"] == [member.member_id for member in upgrade_blockers.may_lead(group)]
    assert ("blocked", [USER_DATA, LIBRDKAFKA]) == phase(again)


def test_client_with_user_data_of_its_own_that_gives_none_is_not_librdkafka() -> None:
    """Others join as librdkafka's members do, and hand nothing on: their groups convert."""
    members = [
        member(
            f"m{number}",
            {"t": [number]},
            subscription_bytes=subscription(["t"], user_data=sticky_user_data({"t": [number]}, 4)),
        )
        for number in range(2)
    ]
    reported = history(
        at(0, group_metadata("g", generation=5, protocol="cooperative-sticky", members=members))
    ).replayed()
    group = reported.states["g"].membership.classic_group

    assert ("classic", []) == phase(reported)
    assert group is not None
    assert [] == upgrade_blockers.may_lead(group)


@pytest.mark.parametrize("protocol", ["range", "roundrobin"])
def test_members_of_librdkafka_on_other_assignors_are_not_blocked(protocol: str) -> None:
    """They have no user data that a leader could hand on."""
    members = [
        member(
            f"m{number}",
            subscription_bytes=subscription(["t"], user_data=b""),
            assignment_bytes=assignment({"t": [number]}, user_data=b"", version=0),
        )
        for number in range(2)
    ]
    reported = history(at(0, group_metadata("g", generation=5, protocol=protocol, members=members))).replayed()

    assert ("classic", []) == phase(reported)


def test_member_that_the_leader_left_out_blocks_nothing() -> None:
    """Its assignment has no bytes at all, which is lawful."""
    reported = history(at(0, generation(1, assignment_bytes=b""))).replayed()

    assert [] == reported_of(reported)


def test_group_without_members_is_not_blocked() -> None:
    """It converts offline, whatever assignor it had; nor is one that only commits."""
    reported = history(at(0, new_group_metadata("g")), at(1, offset_commit("h", "t", 0, 1))).replayed()

    assert [] == reported_of(reported)
    assert ("classic", []) == phase(reported)


def test_group_that_empties_each_night_is_reported_once() -> None:
    """An empty group is not seen to be rid of its assignor."""
    nights = [
        at(day * 2_000 + part * 1_000, record)
        for day in range(5)
        for part, record in enumerate((custom(2 * day + 1), group_metadata("g", generation=2 * day + 2)))
    ]
    reported = history(*nights).replayed()

    assert [0] == [time for time, _, _ in reported_of(reported)]


def test_next_group_of_the_name_is_reported_of_again() -> None:
    """What was said went with the group."""
    reported = history(
        at(0, custom(1)), at(1_000, group_metadata("g", generation=2)), at(2_000, group_metadata_tombstone("g"))
    )
    again = history(
        at(0, custom(1)),
        at(1_000, group_metadata("g", generation=2)),
        at(2_000, group_metadata_tombstone("g")),
        at(3_000, custom(1)),
    )

    assert [0] == [time for time, _, _ in reported_of(reported.replayed())]
    assert [0, 3_000] == [time for time, _, _ in reported_of(again.replayed())]


def test_group_that_got_rid_of_its_assignor_converts_in_silence() -> None:
    """Nothing is left to be said when it is a consumer group."""
    reported = history(
        at(0, custom(1)),
        at(1_000, generation(2, protocol="range")),
        at(
            2_000,
            *converted_to_consumer("g", generation=2, members={"c": {"t": [0]}}),
            *consumer_join("g", "n", epoch=3, targets={"n": {"t": [0]}, "c": {}}, assigned={}),
        ),
    ).replayed()

    assert [0] == [time for time, _, _ in reported_of(reported)]
    assert {} == reported.states["g"].alarms


# -- while catching up ------------------------------------------------------------------------------------------------


def test_reason_of_the_past_is_not_reported() -> None:
    """It was gone before reading caught up."""
    log = history(at(0, custom(1)), at(1_000, generation(2)), at(2_000, generation(3)))

    assert [] == reported_of(log.replayed(live_from=2))
    assert not log.replayed(live_from=2).states["g"].withheld


def test_reason_that_still_holds_is_reported_when_reading_has_caught_up() -> None:
    """With the next record of the group, or without one when the group is judged."""
    log = history(at(0, custom(1)), at(1_000, custom(2)))
    behind = log.replayed(live_from=2)

    assert [] == reported_of(behind)
    assert behind.states["g"].withheld
    assert [(1_000, "warning", ["assignment_user_data"])] == reported_of(log.replayed(live_from=1))

    replica = Replica(live_from=2)
    for record in log.records:
        replica.replay(record.place, record.key, record.value)
    replica.settle()

    assert [("upgrade_blocked", 1_000)] == [(event.kind, event.time_ms) for event in replica.judge("g")]
    assert [] == replica.judge("g")


def test_restart_does_not_tell_again() -> None:
    """What was reported is kept with the group, cut wherever a batch ends."""
    log = history(at(0, custom(1)), at(1_000, custom(2)), at(2_000, custom(3)))

    for size in (1, 2):
        assert [0] == [time for time, _, _ in reported_of(log.replayed_in_batches([size] * 3))]

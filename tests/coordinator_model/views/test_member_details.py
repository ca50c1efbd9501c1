"""What the log says of a member, and why it waits: in words, of whom, and in no word where it waits for nothing."""

import json
import random
from pathlib import Path
from typing import Any

import pytest

from lab.builders import (
    consumer_group_current_assignment,
    consumer_group_epoch,
    consumer_group_member_subscription,
    consumer_group_regular_expression,
    group_metadata,
    member,
    subscription,
)
from lab.coordinator_events import consumer_join, consumer_moves, speaks_classic, static_goes_away
from tests.histories import Moment, at, history

SCHEMA = json.loads((Path(__file__).parents[3] / "docs/schemas/group-state.schema.json").read_text())
ALONE = at(0, *consumer_join("g", "a", epoch=2, targets={"a": {"t": [0, 1]}}))
B_JOINS = at(1_000, *consumer_join("g", "b", epoch=3, targets={"a": {"t": [0]}, "b": {"t": [1]}}, assigned={}))
A_REVOKES = at(
    2_000, *consumer_moves("g", "a", epoch=2, previous_epoch=2, state=1, assigned={"t": [0]}, pending={"t": [1]})
)
A_REVOKED = at(3_000, *consumer_moves("g", "a", epoch=3, previous_epoch=2, assigned={"t": [0]}))
B_RECEIVES = at(4_000, *consumer_moves("g", "b", epoch=3, previous_epoch=3, assigned={"t": [1]}))


def waits(moments: list[Moment], member_id: str) -> Any:
    """`waiting` of a member after these moments."""
    return history(*moments).replayed().member("g", member_id)["waiting"]


@pytest.mark.parametrize(
    ("moments", "member_id", "situation", "text", "others"),
    [
        ([ALONE, B_JOINS], "a", "behind", "has yet to learn of the target of epoch 3: it is at 2", {}),
        ([ALONE, B_JOINS], "b", "waiting", "waits for t-1, which a has yet to release", {"a": {"t": [1]}}),
        ([ALONE, B_JOINS, A_REVOKES], "a", "revoking", "has yet to revoke t-1", {}),
        (
            [ALONE, B_JOINS, A_REVOKES],
            "b",
            "waiting",
            "waits for t-1, which a has yet to release",
            {"a": {"t": [1]}},
        ),
        (
            [ALONE, B_JOINS, A_REVOKES, A_REVOKED],
            "b",
            "released",
            "is to be given t-1 with its next heartbeat",
            {},
        ),
        ([ALONE, at(1_000, consumer_group_epoch("g", 3))], "a", "awaiting_target", "waits for a target of epoch 3", {}),
        (
            [ALONE, at(1_000, *static_goes_away("g", "a", assigned={"t": [0, 1]}, previous_epoch=2))],
            "a",
            "away",
            "is away: its partitions are kept for it",
            {},
        ),
    ],
)
def test_member_says_why_it_waits_and_for_whom(
    moments: list[Moment], member_id: str, situation: str, text: str, others: dict[str, Any]
) -> None:
    """In words, and as partitions by member."""
    assert {"situation": situation, "text": text, "for": others} == waits(moments, member_id)


@pytest.mark.parametrize(
    ("moments", "member_id"),
    [
        ([ALONE], "a"),
        ([ALONE, B_JOINS, A_REVOKES, A_REVOKED], "a"),
        ([ALONE, B_JOINS, A_REVOKES, A_REVOKED, B_RECEIVES], "a"),
        ([ALONE, B_JOINS, A_REVOKES, A_REVOKED, B_RECEIVES], "b"),
        ([at(0, group_metadata("g", generation=1, members=[member("a", {"t": [0]})]))], "a"),
    ],
)
def test_member_that_has_what_it_is_to_have_waits_for_nothing(moments: list[Moment], member_id: str) -> None:
    """Nor does one of a classic group, of which the log shows finished rounds alone."""
    assert waits(moments, member_id) is None


@pytest.mark.parametrize("seed", range(24))
def test_who_waits_for_another_is_reported_exactly_what_that_one_holds(seed: int) -> None:
    """Some members, each with its partitions, and one that is to have some of all of them."""
    chance = random.Random(seed)
    holders = [f"m{number}" for number in range(chance.randint(1, 5))]
    held = {
        name: {"t": [10 * at_ + number for number in range(chance.randint(1, 4))]} for at_, name in enumerate(holders)
    }
    moments = [
        at(
            number,
            *consumer_join("g", name, epoch=2 + number, targets={each: held[each] for each in holders[: number + 1]}),
        )
        for number, name in enumerate(holders)
    ]
    wanted = {
        name: {"t": sorted(chance.sample(held[name]["t"], chance.randint(1, len(held[name]["t"]))))} for name in holders
    }
    target = {"t": sorted(partition for parts in wanted.values() for partition in parts["t"])}
    joins = at(100, *consumer_join("g", "new", epoch=50, targets={"new": target}, assigned={}))
    found = waits([*moments, joins], "new")

    assert wanted == found["for"]
    assert all(f"which {name} has yet to release" in found["text"] for name in holders)


def test_subscription_rack_assignor_and_timeouts_of_a_consumer_group() -> None:
    """As the member asked; a pattern with the topics it matched, once it did."""
    asks = consumer_group_member_subscription(
        "g",
        "a",
        topics=["u", "t"],
        regex="rx-.*",
        rack_id="r1",
        server_assignor="range",
        rebalance_timeout_ms=60_000,
    )
    log = [ALONE, at(1_000, asks)]
    before = history(*log).replayed()
    after = history(*log, at(2_000, consumer_group_regular_expression("g", "rx-.*", ["rx-b", "rx-a"]))).replayed()
    shown = before.member("g", "a")

    assert {"topics": ["t", "u"], "regex": "rx-.*", "regex_topics": None} == shown["subscription"]
    assert ("r1", "range", 60_000, None) == tuple(
        shown[key] for key in ("rack_id", "assignor", "rebalance_timeout_ms", "session_timeout_ms")
    )
    assert ["rx-a", "rx-b"] == after.member("g", "a")["subscription"]["regex_topics"]
    assert {"rx-.*": ["rx-a", "rx-b"]} == after.view("g")["regexes"]
    assert {} == before.view("g")["regexes"]


def test_claims_of_classic_members_carry_their_generation() -> None:
    """Of a classic group, and of a member that speaks the classic protocol in a consumer group."""
    claimed = subscription(["t"], version=2, owned={"t": [0, 1]}, generation_id=4)
    classic = history(at(0, group_metadata("g", generation=5, members=[member("a", subscription_bytes=claimed)])))
    mixed = history(
        ALONE,
        at(1_000, *consumer_join("g", "c", epoch=3, targets={"c": {}, "a": {"t": [0, 1]}}, classic=speaks_classic())),
    )

    shown = {"assignor": "range", "version": 2, "generation": 4, "owned": {"t": [0, 1]}, "user_data_bytes": None}
    assert [shown] == classic.replayed().member("g", "a")["claims"]
    assert ["range"] == [of["assignor"] for of in mixed.replayed().member("g", "c")["claims"]]
    assert [] == mixed.replayed().member("g", "a")["claims"]


@pytest.mark.parametrize("reported", [True, False])
def test_partitions_say_in_which_epoch_they_were_assigned_where_brokers_do(reported: bool) -> None:
    """From 4.3 on."""
    current = consumer_group_current_assignment("g", "a", epoch=3, assigned={"t": [1, 0]}, epochs=reported)
    shown = history(ALONE, at(1_000, current)).replayed().member("g", "a")

    assert ({"t": {"0": 3, "1": 3}} if reported else {}) == shown["assignment_epochs"]


@pytest.mark.parametrize("protocol_type", ["consumer", "connect", "sr"])
def test_classic_group_says_its_protocol_type(protocol_type: str) -> None:
    """One that is not of consumers is out of scope of the migration, and blocked by nothing."""
    members = [member("a", {"t": [0]})]
    log = at(0, group_metadata("g", generation=1, protocol_type=protocol_type, members=members))
    view = history(log).replayed().view("g")
    out_of_scope = None if protocol_type == "consumer" else "protocol_type"

    assert protocol_type == view["protocol_type"]
    assert ("classic", [], out_of_scope) == tuple(view["migration"][of] for of in ("phase", "blockers", "out_of_scope"))


def test_schema_has_every_field_of_a_member() -> None:
    """Of classic and of consumer groups."""
    fields = SCHEMA["$defs"]["member"]["properties"].keys()
    classic = history(at(0, group_metadata("g", generation=1, members=[member("a", {"t": [0]})]))).replayed()

    assert set() == history(ALONE).replayed().member("g", "a").keys() - fields
    assert set() == classic.member("g", "a").keys() - fields

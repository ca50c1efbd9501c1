"""The plan: what each kind of group needs before it is rolled, and in which order groups are rolled."""

import re
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from coordinator_model.gates.plan import (
    ALARMS,
    LARGEST_WAVE,
    READINESS,
    REASONS,
    PlannedGroup,
    in_waves,
    plan_view,
    planned,
)
from coordinator_model.gates.verdict import BrokerSettings
from lab.builders import group_metadata, member, offset_commit
from lab.coordinator_events import consumer_join, converted_to_classic
from tests.cooperative_groups import AGAIN, FIRST, JAVA, generation
from tests.histories import at, history

DAY_MS = 86_400_000
DOCS: Final = Path(__file__).resolve().parents[3] / "docs"


def of(*moments: Any, settings: BrokerSettings | None = None, name: str = "g", **known: Any) -> PlannedGroup:
    """The plan's line on a group of a log."""
    return planned(history(*moments).replayed().states[name], settings or BrokerSettings(), **known)


def classic(protocol: str = "cooperative-sticky", **fields: Any) -> Any:
    """A stable classic group of one member."""
    members = fields.pop("members", [member("m", {"t": [0]})])
    return group_metadata("g", generation=3, protocol=protocol, members=members, **fields)


@pytest.mark.parametrize("group", [classic(), classic(members=[])])
def test_a_group_that_is_not_read_is_unknown(group: Any) -> None:
    """Whatever it was: it is no part of a wave, and what to wait for is said."""
    found = of(at(0, group), unread=True)

    assert ("unknown", ("partition_unread",), None) == (found.readiness, found.reasons, found.wave)
    assert "partition_unread" not in of(at(0, group)).reasons


def test_a_plain_classic_group_is_ready() -> None:
    """Kafka's own assignor, one topic, no fault: what remains is what the log does not hold."""
    found = of(at(0, classic()))

    assert ("ready", ("client_library",), "cooperative-sticky", "uniform") == (
        found.readiness,
        found.reasons,
        found.assignor,
        found.assignor_after,
    )


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        (BrokerSettings(consumer_protocol=False), "consumer_protocol"),
        (BrokerSettings(migration_policy="disabled"), "migration_policy"),
        (BrokerSettings(migration_policy="downgrade"), "migration_policy"),
        (BrokerSettings(consumer_max_size=0), "group_size"),
    ],
)
def test_brokers_that_refuse_block(settings: BrokerSettings, code: str) -> None:
    """What brokers say no to is blocked, with what to set."""
    found = of(at(0, classic()), settings=settings)

    assert ("blocked", code) == (found.readiness, found.reasons[0])


@pytest.mark.parametrize("policy", ["bidirectional", "UPGRADE", None])
def test_brokers_that_allow_or_are_not_asked_block_nothing(policy: str | None) -> None:
    """A policy that converts groups upwards is no reason, and neither is an unknown one."""
    assert "ready" == of(at(0, classic()), settings=BrokerSettings(migration_policy=policy)).readiness


@pytest.mark.parametrize(
    ("clients", "readiness", "code"),
    [
        ([FIRST, FIRST], "blocked", "librdkafka_cooperative_sticky"),
        ([AGAIN, JAVA], "blocked", "assignment_user_data"),
        ([JAVA, AGAIN], "care", "librdkafka_members"),
        ([FIRST], "ready", "client_library"),
        ([JAVA, JAVA], "ready", "client_library"),
    ],
)
def test_members_of_librdkafka_on_cooperative_sticky(clients: list[str], readiness: str, code: str) -> None:
    """Blocked where they lead, care where they might; one alone is away when its upgraded self comes."""
    found = of(at(0, generation(5, clients)))

    assert (readiness, code) == (found.readiness, found.reasons[0])


@pytest.mark.parametrize("kind", ALARMS)
def test_an_open_alarm_needs_care(kind: str) -> None:
    """What is wrong before a roll is looked into first: afterwards it cannot be distinguished from the roll's own."""
    found = of(at(0, classic()), alarms=[kind])

    assert ("care", kind) == (found.readiness, found.reasons[0])


def test_an_alarm_of_a_group_that_is_not_rolled_is_no_reason() -> None:
    """Share groups and what only commits stay what they are."""
    found = of(at(0, offset_commit("g", "orders", 0, 10)), alarms=["group_unsettled"])

    assert ("out_of_scope", ("commits_only",)) == (found.readiness, found.reasons)


def test_a_custom_assignor_needs_a_decision() -> None:
    """Brokers do not have the assignor of a client."""
    found = of(at(0, classic("team-assignor")))

    assert ("care", "custom_assignor") == (found.readiness, found.reasons[0])


def test_range_of_one_topic_needs_no_care() -> None:
    """Range keeps partitions of several topics together; of one topic there is nothing to keep."""
    assert "ready" == of(at(0, classic("range"))).readiness


def test_range_of_several_topics_needs_a_decision() -> None:
    """Join-like consumers rely on equal partitions of two topics being together."""
    both = {"t": [0], "payments": [0]}

    assert ("care", "range_assignor") == (
        (found := of(at(0, classic("range", members=[member("m", both)])))).readiness,
        found.reasons[0],
    )


def test_what_only_commits_is_out_of_scope() -> None:
    """Committed offsets without a membership are of clients that take part in no protocol."""
    found = of(at(0, offset_commit("g", "orders", 0, 10)))

    assert ("out_of_scope", ("commits_only",)) == (found.readiness, found.reasons)


def test_connect_is_out_of_scope_and_not_blocked() -> None:
    """A group of another protocol type never becomes a consumer group, and that is no fault."""
    workers = group_metadata("g", generation=1, protocol_type="connect", members=[member("worker", {})])

    assert ("out_of_scope", ("protocol_type",)) == (
        (found := of(at(0, workers))).readiness,
        found.reasons,
    )


def test_an_empty_group_is_unknown_and_never_ready() -> None:
    """Without members the log says nothing of the clients: that is not called ready."""
    found = of(at(0, classic()), at(1_000, classic(members=[])))

    assert ("unknown", ("no_members",), None) == (found.readiness, found.reasons, found.wave)


def test_rebalances_a_day_need_an_hour_of_log() -> None:
    """Two rebalances in ten minutes are no figure for a day."""
    assert of(at(0, classic()), observed_ms=600_000).rebalances_a_day is None
    assert of(at(0, classic()), observed_ms=2 * DAY_MS).rebalances_a_day is not None
    assert 3.5 == of(at(0, classic()), observed_ms=2 * DAY_MS, rebalances=7).rebalances_a_day


@pytest.mark.parametrize(
    ("count", "fields", "kind"),
    [
        (1, {}, "range, no static ids, one topic, 1 member"),
        (2, {}, "range, no static ids, one topic, 2 to 5 members"),
        (5, {"instance": "i"}, "range, static ids, one topic, 2 to 5 members"),
        (6, {"topics": ["t", "u"]}, "range, no static ids, several topics, 6 to 20 members"),
        (51, {}, "range, no static ids, one topic, 51 or more members"),
    ],
)
def test_a_kind_is_what_one_rehearsal_stands_for(count: int, fields: dict[str, Any], kind: str) -> None:
    """Assignor, static ids, topics and size; a custom assignor is one of its own."""
    members = [
        member(
            f"m{number}",
            {"t": [number]},
            topics=fields.get("topics", ["t"]),
            instance_id=f"i{number}" if "instance" in fields else None,
        )
        for number in range(count)
    ]

    assert kind == of(at(0, classic("range", members=members))).kind


def test_what_a_killed_static_member_meets_is_said_before_the_roll() -> None:
    """To start it again within its session is no advice: it is refused until that is over. Of dynamic ones: silent."""
    groups = [classic(members=[member("m", {"t": [0]}, instance_id=instance)]) for instance in ("i", None)]
    _, remedy = REASONS["static_members"]

    assert [True, False] == ["static_members" in of(at(0, group)).reasons for group in groups]
    assert "close a member before it is started again" in remedy
    assert "one that was killed is refused until its session is over (UNRELEASED_INSTANCE_ID)" in remedy


@pytest.mark.parametrize("page", ["reading-a-rolling-upgrade.md", "migrating-many-groups.md"])
def test_docs_say_of_killed_static_members_what_the_plan_says(page: str) -> None:
    """Who reads about a roll reads it too."""
    text = " ".join((DOCS / page).read_text("utf-8").split())

    assert re.search(r"\bkilled\b[^.]* refuse[sd]\b[^.]* session", text)


def test_groups_that_are_not_rolled_from_the_classic_protocol_have_no_kind() -> None:
    """There is nothing to rehearse of a group without members."""
    assert of(at(0, classic()), at(1_000, classic(members=[]))).kind is None


def test_one_group_of_each_kind_is_named() -> None:
    """The first in the plan's order, with how many there are of its kind."""
    groups = [line("b", kind="k"), line("a", kind="k"), line("c", kind="other", members=9), line("d", "done")]

    assert [
        {"kind": "k", "groups": 2, "rehearse": "a"},
        {"kind": "other", "groups": 1, "rehearse": "c"},
    ] == plan_view(groups)["kinds"]


def line(name: str, readiness: str = "ready", **fields: Any) -> PlannedGroup:
    """A line of a plan."""
    given: dict[str, Any] = {
        "members": 1,
        "partitions": 0,
        "protocol": "classic",
        "assignor": "range",
        "assignor_after": "uniform",
        **fields,
    }
    return PlannedGroup(group=name, readiness=readiness, reasons=(), **given)


def test_waves_grow_from_one_group() -> None:
    """The first wave is one group, each next one at most twice as large, and none larger than one team can watch."""
    waves = [each.wave for each in in_waves([line(f"g{number:03}") for number in range(100)])]
    sizes = [waves.count(number) for number in sorted({wave for wave in waves if wave is not None})]

    assert [1, 2, 4, 8, 16] == sizes[:5]
    assert LARGEST_WAVE == max(sizes)
    assert 100 == sum(sizes)


def test_small_and_quiet_groups_come_first() -> None:
    """Weight orders a wave: members, rebalances a day, partitions."""
    ordered = in_waves(
        [line("large", members=50), line("busy", rebalances_a_day=8.0), line("wide", partitions=200), line("small")]
    )

    assert ["small", "wide", "large", "busy"] == [each.group for each in ordered]


def test_care_comes_after_ready_whatever_its_size() -> None:
    """A group with something to decide waits for those without."""
    ordered = in_waves([line("small", "care"), line("large", members=90)])

    assert [("large", 1), ("small", 2)] == [(each.group, each.wave) for each in ordered]


def test_a_wave_is_of_one_owner() -> None:
    """One team watches at a time."""
    owners = ("a", "b", None)
    ordered = in_waves([replace(line(f"{owner}{number}"), owner=owner) for owner in owners for number in range(9)])
    by_wave: dict[int | None, set[str | None]] = {}
    for each in ordered:
        by_wave.setdefault(each.wave, set()).add(each.owner)

    assert {1} == {len(owned) for owned in by_wave.values()}


@pytest.mark.parametrize("readiness", ["blocked", "unknown", "done", "out_of_scope"])
def test_what_is_not_rolled_has_no_wave(readiness: str) -> None:
    """A wave is for what can be rolled."""
    assert [None] == [each.wave for each in in_waves([line("g", readiness)])]


def test_waves_are_those_of_all_groups_whichever_are_shown() -> None:
    """Two who look at their own groups speak of the same wave."""
    groups = [line(name, members=number) for number, name in enumerate("abcdefg", start=1)]
    every, some = plan_view(groups), plan_view(groups, {"c", "g"}.__contains__)

    waves = {each["group"]: each["wave"] for each in every["groups"]}
    assert [("c", waves["c"]), ("g", waves["g"])] == [(each["group"], each["wave"]) for each in some["groups"]]
    assert (3, 3) == (every["waves"], some["waves"])
    assert 2 == some["counts"]["ready"]


def test_plan_view_counts_every_readiness() -> None:
    """The counts name each readiness, also those that no group has."""
    found = plan_view([line("a"), line("b", "blocked")])

    assert {**dict.fromkeys(READINESS, 0), "ready": 1, "blocked": 1} == found["counts"]
    assert 1 == found["waves"]


def test_every_reason_has_a_remedy() -> None:
    """A reason without a next step helps no one."""
    assert all(remedy for _, remedy in REASONS.values())


@pytest.mark.parametrize(("after_ms", "readiness"), [(0, "care"), (14_999, "care"), (15_000, "ready")])
def test_group_whose_last_member_rolled_down_is_away_is_not_ready(after_ms: int, readiness: str) -> None:
    """When it leaves, the group is a classic one of the others, and looks at rest before it is back."""
    target = {"a": {"t": [0]}}
    joined = [*consumer_join("g", "a", epoch=2, targets=target), *consumer_join("g", "b", epoch=3, targets={"b": {}})]
    back = converted_to_classic("g", all_members=["a", "b"], generation=3, remaining=target)

    found = of(at(0, *joined), at(3_000, *back), now_ms=3_000 + after_ms)

    assert (readiness, readiness == "care") == (found.readiness, "rebalancing" in found.reasons)

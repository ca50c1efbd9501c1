"""Events in sentences: one for every kind, with what the detail has and without how it is called there."""

import re
from collections import defaultdict
from collections.abc import Iterator, Mapping
from typing import Any, Final

import pytest

from coordinator_model.kinds.sentences import CAUSES
from coordinator_model.kinds.table import ALARMS, KINDS, sentence
from coordinator_model.kinds.words import duration, member, percent, percent_of, ranges
from coordinator_model.rules import rebalance_causes
from coordinator_model.state.events import event_view
from tests.coordinator_model.test_simulated_faults import FAULTS, scene_of
from tests.histories import History, recording
from tests.recorder.recordings import PATHS
from tests.side_by_side import log_of

AN_ID: Final = "orders-1-7b1a3f2e-0c5d-4e6f-8a9b-0c1d2e3f4a5b"

# What neither recordings nor simulated faults show: kind, detail, sentence.
SAID: Final[tuple[tuple[str, Mapping[str, Any], str], ...]] = (
    (
        "group_in_two_partitions",
        {"partitions": [31, 51], "lives_in": 51},
        "Records of the group are in several partitions of the offsets topic: 31, 51; it lives in 51",
    ),
    (
        "rebalance_stuck",
        {
            "waiting_for": "members",
            "members": [{"member_id": AN_ID, "late_ms": 310_000, "will_not_release": {"t": [0, 1, 2]}, "awaits": {}}],
            "rebalancing_ms": 320_400,
            "silent_ms": 1_795_342_106_093,
        },
        (
            "The rebalance is stuck, under way for 5 m 20 s: orders-1 · 3f4a5b has yet to release t 0\u20132 for 5 m "
            "10 s; since 10:09 UTC"
        ),
    ),
    (
        "rebalance_stuck",
        {"state": "CompletingRebalance", "waiting_for": "assignor", "described_members": 3, "rebalancing_ms": 61_000},
        (
            "The rebalance is stuck, under way for 1 m 1 s: the assignor has yet to compute an assignment; nothing "
            "was written since 10:09 UTC"
        ),
    ),
    (
        "partition_unassigned",
        {"partitions": {"t": [3]}, "unassigned_ms": 600_000, "subscribed_members": 1, "members": ["a"]},
        "No member owns t 3, for 10 m 0 s; subscribed: 1 member (a); nobody took or gave up any since 10:09 UTC",
    ),
    (
        "member_fenced",
        {"member_id": "a", "waited_ms": 46_000, "timeout_ms": 45_000, "not_released": {"t": [0]}},
        "a was removed after 46 s (its rebalance timeout is 45 s); it had not released t 0",
    ),
    (
        "static_member_absent",
        {"instance_id": "i", "instance_ids": ["i"], "partitions": {"t": [0]}, "session_timeout_ms": 45_000},
        "Static member i closed, and keeps t 0 until it is back or its session expires, after 45 s",
    ),
    (
        "static_member_absent",
        {"instance_id": "i", "instance_ids": ["i", "j", "k"], "partitions": {"t": [0, 1]}, "away_before": ["k"]},
        "3 static members closed, and keep t 0, 1 until they are back or expire: i, j, k; k of them long before",
    ),
    ("static_member_absent", {"instance_ids": ["i"], "cleared": True}, "i is back, or replaced"),
    (
        "static_member_absent",
        {"instance_ids": ["i", "j"], "cleared": True},
        "All 2 static members are back, or replaced: i, j",
    ),
    (
        "static_member_absent",
        {"instance_ids": ["i", "j", "k"], "not_back": ["j", "k"], "why": "group_deleted", "cleared": True},
        "j, k are not back as the group ends, of 3 static members that closed",
    ),
    (
        "static_member_contended",
        {"instance_id": "i", "replacements": 4, "since": 1_795_342_106_093, "client_hosts": ["/10.0.0.1", "/10.0.0.2"]},
        "Processes take static member i from each other: 4 take-overs within 1 m 0 s; on /10.0.0.1, /10.0.0.2",
    ),
    (
        "migration_stalled",
        {
            "direction": "upgrade",
            "members": 3,
            "upgraded_members": 1,
            "mixed_ms": 2_400_000,
            "classic_members": {AN_ID: "behind", "b": "settled"},
        },
        (
            "The roll has stalled: no member came or went for half an hour, both protocols for 40 m 0 s; 1 of 3 "
            "members on the consumer protocol; still on the classic one: orders-1 · 3f4a5b, b; since 10:09 UTC"
        ),
    ),
    (
        "upgrade_unclean",
        {
            "wrong": ["epoch", "offsets"],
            "generation": 5,
            "first_epoch": 8,
            "offsets_back": {"t/0": {}},
            "members_not_carried_over": [],
        },
        (
            "The upgrade was not clean: its epoch does not go on from the generation and committed offsets went back "
            "or are gone; it began at epoch 8 after generation 5; offsets of t/0"
        ),
    ),
    (
        "members_not_back",
        {
            "members_before": 2,
            "members": 1,
            "missing": 1,
            "missing_ms": 301_000,
            "missing_members": [{"instance_id": None, "client_id": "orders", "client_host": "/10.0.0.7"}],
        },
        (
            "1 member did not come back after the roll, missing for 5 m 1 s; the group has 1 of 2; "
            "last gone: orders on /10.0.0.7; since 10:09 UTC"
        ),
    ),
    (
        "group_unsettled",
        {
            "unsettled_ms": 720_000,
            "epochs": 31,
            "come_and_go": [{"instance_id": None, "client_id": "flaps", "client_host": "/a", "joined": 15, "left": 1}],
        },
        (
            "The group has not settled for 12 m 0 s: 31 epochs; flaps on /a joined 15 times and left 1 time; since "
            "10:09 UTC"
        ),
    ),
    (
        "coordinator_not_loaded",
        {"partition": 7, "since": 1_000, "until": 121_000, "groups": ["g"]},
        (
            "No coordinator worked in partition 7 for 2 m 0 s, or a clock was set ahead; before its end no time runs "
            "for g; since 10:09 UTC"
        ),
    ),
    (
        "coordinator_not_loaded",
        {
            "partition": 7,
            "since": 1_000,
            "said": "NOT_COORDINATOR",
            "broker": 2,
            "groups": ["a", "b"],
            "groups_count": 2,
        },
        (
            "The coordinator of partition 7 did not load it: its leader answers NOT_COORDINATOR, and 2 groups can "
            "neither join nor commit: a, b; since 10:09 UTC"
        ),
    ),
    (
        "coordinator_not_loaded",
        {"partition": 7, "since": 1_000, "until": 121_000, "why": "loaded", "cleared": True},
        "The coordinator of partition 7 has loaded it, after 2 m 0 s",
    ),
    (
        "coordinator_not_loaded",
        {"partition": 7, "since": 1_000, "until": 121_000, "why": "moved", "cleared": True},
        "The coordinator of partition 7 is another one, after 2 m 0 s in which none had loaded it",
    ),
    (
        "coordinator_not_loaded",
        {"partition": 7, "since": 1_000, "until": 121_000, "why": "no_leader", "cleared": True},
        "Partition 7 has no leader any more, after 2 m 0 s in which its coordinator had not loaded it",
    ),
    (
        "log_truncated",
        {"partition": 7, "from_offset": 1_200, "to_offset": 1_203, "groups": ["orders"]},
        "Partition 7 of the log lost 3 records from 1,200 on, and was read again; it changed orders",
    ),
    (
        "offset_rewound",
        {"offsets": {"t/0": {"from": 9, "to": 3}}, "back_ms": 300, "after_handover": True, "former_owner": "a"},
        (
            "Committed offsets went back: t/0 from 9 to 3; and were where they had been after 0.3 s: commits in the "
            "wrong order"
        ),
    ),
    (
        "offset_rewound",
        {"offsets": {"t/0": {"from": 9, "to": 3}, "t/1": {"from": 8, "to": 2}}, "back": {"t": [1]}},
        "Committed offsets went back: t/0 from 9 to 3, t/1 from 8 to 2; back where it had been at once: t 1",
    ),
    (
        "offset_deleted",
        {"topic": "t", "partition": 0, "offset": 9, "age_ms": 90_000, "may_be": ["topic_deleted", "expiry"]},
        "The committed offset of t/0 went, 1 m 30 s after the commit; either the topic was deleted or it expired",
    ),
    (
        "offset_deleted",
        {"partitions": {"t": [0, 1, 2], "u": [0]}, "cause": "group_deleted", "may_be": ["group_deleted", "expiry"]},
        "The committed offsets of t 0\u20132; u 0 went; the group was deleted",
    ),
    (
        "offset_deleted",
        {"partitions": {"t": [0, 1]}, "cause": None, "may_be": ["offset_delete", "expiry"]},
        "The committed offsets of t 0, 1 went; either an admin deleted them or they expired",
    ),
    (
        "duplicate_assignment",
        {
            "partitions": {"t/4": [AN_ID, "b"]},
            "members": [
                {"member_id": AN_ID, "instance_id": None, "client_id": "orders", "client_host": "/10.0.0.1"},
                {"member_id": "b", "instance_id": "orders-1", "client_id": "orders", "client_host": "/10.0.0.2"},
            ],
        },
        "Owned twice: t/4 by orders · 3f4a5b on /10.0.0.1 and orders-1 of orders on /10.0.0.2",
    ),
    (
        "duplicate_assignment",
        {"partitions": {"0/2": ["a", "b"]}, "tasks": True},
        "Owned twice: 0_2 by a and b",
    ),
    (
        "duplicate_assignment_cleared",
        {"partitions": {"0/2": ["a", "b"]}, "tasks": True},
        "One owner again: 0_2",
    ),
    (
        "static_member_restarting",
        {"instance_id": "i", "replacements": 5, "may_be": ["one_process", "two_processes_on_one_host"]},
        (
            "Static member i restarts again and again: 5 take-overs; it may be one process that restarts or two "
            "processes on one host"
        ),
    ),
    (
        "downgrade_started",
        {
            "members": 3,
            "upgraded_members": 2,
            "begun_by": [{"member_id": "b", "instance_id": None, "client_id": "orders", "client_host": "/10.0.0.2"}],
        },
        (
            "The downgrade to the classic protocol began; first with orders · b on /10.0.0.2; 2 of 3 members on the "
            "consumer protocol"
        ),
    ),
    (
        "rebalance_stuck",
        {
            "waiting_for": "partitions",
            "members": [
                {
                    "member_id": "a",
                    "late_ms": 310_000,
                    "will_not_release": {},
                    "awaits": {"0": [2]},
                    "held_by": [
                        {"member_id": "b", "client_id": "c", "client_host": "/10.0.0.2", "partitions": {"0": [2]}}
                    ],
                }
            ],
            "tasks": True,
        },
        "The rebalance is stuck: a waits for 0_2 (c · b on /10.0.0.2 still holds 0_2) for 5 m 10 s; since 10:09 UTC",
    ),
    (
        "epoch_anomaly",
        {
            "rule": "target_overlap",
            "member_id": None,
            "expected": "one owner",
            "found": "two",
            "partitions": {"t/1": ["a", "b"]},
        },
        (
            "Records in partition 7 of the offsets topic contradict each other in the targets of two members on t/1 "
            "by a and b: two, where it has to be one owner; restart its members, one after another, and if it comes "
            "again have a recording of the group for Kafka's developers"
        ),
    ),
    (
        "offset_rewound",
        {"offsets": {"t/0": {"from": 9, "to": 3}}, "may_be_recreated": ["t"]},
        "Committed offsets went back: t/0 from 9 to 3; or t was deleted and made again: commits of it name no topic id",
    ),
    (
        "offset_rewound",
        {"offsets": {"t/0": {"from": 9, "to": -1}}},
        "Committed offsets went back: t/0 from 9 to none (-1)",
    ),
    (
        "offset_rewound",
        {
            "offsets": {"t/0": {"from": 1_200, "to": 3}},
            "after_handover": True,
            "former_owner": AN_ID,
            "present_owner": "b",
            "handover_time": 1_795_342_106_093,
        },
        "Committed offsets went back: t/0 from 1,200 to 3; handed over shortly before from orders-1 · 3f4a5b to b",
    ),
)


def logs() -> Iterator[History]:
    yield from (recording(path) for path in PATHS)
    for script, kind, _ in FAULTS:
        scene = scene_of(1, kind)
        script(scene)
        yield log_of(scene.coordinator)


def fields(detail: object) -> Iterator[str]:
    if isinstance(detail, Mapping):
        for name, item in detail.items():
            yield str(name)
            yield from fields(item)
    elif isinstance(detail, list | tuple):
        for item in detail:
            yield from fields(item)


def event(kind: str, detail: Mapping[str, Any]) -> dict[str, Any]:
    return {"kind": kind, "detail": detail, "time": 1_795_342_166_093, "partition": 7}


def test_every_cause_has_words() -> None:
    """The table has the causes of the rule and no others."""
    assert set(rebalance_causes.CAUSES) == CAUSES.keys()


def test_no_sentence_shows_a_field_or_a_bare_time() -> None:
    """Over all recordings and simulated faults: no name of a detail's field, no milliseconds, nothing not filled in."""
    said: dict[str, set[str]] = defaultdict(set)
    internals: set[str] = set()
    for log in logs():
        for view in map(event_view, log.replayed().events):
            said[str(view["kind"])].add(sentence(view))
            internals |= {name for name in fields(view["detail"]) if "_" in name and name.islower()}
    for kind, detail, _ in SAID:
        said[kind].add(sentence(event(kind, detail)))
        internals |= {name for name in fields(detail) if "_" in name and name.islower()}
    assert len(said) > 25
    assert {"duration_ms", "partitions_moved", "will_not_release"} <= internals
    for kind, sentences in said.items():
        for text in sentences:
            found = {name for name in internals if re.search(rf"\b{re.escape(name)}\b", text)}
            assert set() == found, text
            assert not re.search(r"\d{10}|\d{1,3}(,\d{3}){3}|None|[{}\[\]]", text), text
            assert kind.replace("_", " ").capitalize() != text, f"{kind}: {text}"


@pytest.mark.parametrize(("kind", "detail", "expected"), SAID)
def test_what_only_time_or_brokers_show_is_said_too(kind: str, detail: Mapping[str, Any], expected: str) -> None:
    """Members by names that tell them apart, durations in two units, partitions in runs."""
    assert expected == sentence(event(kind, detail))


@pytest.mark.parametrize(
    ("lost", "expected"),
    [
        (["b"], "A member of the last generation did not come along in the upgrade: b; it may have left just before"),
        (
            [AN_ID, "b"],
            (
                "Members of the last generation did not come along in the upgrade: orders-1 · 3f4a5b, b; they may "
                "have left just before"
            ),
        ),
    ],
)
def test_what_is_inferred_of_an_upgrade_is_no_fact(lost: list[str], expected: str) -> None:
    """Of members that may have left it is not said that they are missing; where more is wrong, that is a fact."""
    detail = {"wrong": ["members"], "generation": 5, "first_epoch": 5, "members_not_carried_over": lost}

    assert expected == sentence({**event("upgrade_unclean", detail), "inferred": True})
    assert "not clean: members are missing" in sentence({**event("upgrade_unclean", detail), "inferred": False})


@pytest.mark.parametrize(
    ("awaited", "expected"),
    [
        (0, "The upgrade is complete: 2 members on the consumer protocol"),
        (1, "The upgrade is complete: 2 members on the consumer protocol; 1 more member is expected to come back"),
        (3, "The upgrade is complete: 2 members on the consumer protocol; 3 more members are expected to come back"),
    ],
)
def test_members_that_a_roll_has_yet_to_bring_back_are_expected(awaited: int, expected: str) -> None:
    """As many as there were before the roll, less those that are there; of none nothing is said."""
    assert expected == sentence(event("upgrade_completed", {"members": 2, "replacements_awaited": awaited}))


@pytest.mark.parametrize("kind", [kind for kind, row in ALARMS.items() if row.cleared is not None])
def test_an_alarm_that_ends_is_another_sentence(kind: str) -> None:
    """With what its end carries, or with nothing: a look's end has no detail."""
    detail: dict[str, Any] = {"partitions": {"t": [1]}, "instance_id": "i", "reasons": ["assignment_user_data"]}
    ended = sentence(event(kind, {**detail, "member_id": "m", "rule": "leader", "cleared": True}))

    assert ended not in (sentence(event(kind, detail)), kind.replace("_", " ").capitalize())


@pytest.mark.parametrize("kind", [*KINDS, "kind_of_a_later_release"])
@pytest.mark.parametrize("detail", [{}, {"members": ["a"], "partitions": 7, "since": "x"}])
def test_a_detail_of_another_release_is_no_error(kind: str, detail: Mapping[str, Any]) -> None:
    """What a history or a topic kept may lack fields, or have others."""
    assert sentence(event(kind, detail))
    assert sentence({**event(kind, detail), "inferred": True})


@pytest.mark.parametrize(
    ("seconds", "expected"),
    [
        (None, "\u2013"),
        (0, "0 s"),
        (0.04, "40 ms"),
        (0.44, "0.4 s"),
        (9.96, "10 s"),
        (12.7, "13 s"),
        (59.7, "1 m 0 s"),
        (200, "3 m 20 s"),
        (7_500, "2 h 5 m"),
        (97_200, "1 d 3 h"),
    ],
)
def test_durations_are_said_as_people_do(seconds: float | None, expected: str) -> None:
    """Two units at most."""
    assert expected == duration(seconds)


def test_names_and_shares_are_short_and_never_too_good() -> None:
    """A member by what sets it apart; a percent more only when it is whole."""
    assert ["i", "c · 3f4a5b", "orders-1 · 3f4a5b", "xMMOwX2GTIyU8a5NneVQmg"] == [
        member(AN_ID, "i"),
        member(AN_ID, None, "c"),
        member(AN_ID),
        member("xMMOwX2GTIyU8a5NneVQmg"),
    ]
    assert [66, 99, 100, 0] == [percent(2, 3), percent(299, 300), percent(300, 300), percent(0, 0)]
    assert [85, 29, 28, 99, 100] == [percent_of(share) for share in (0.8596, 0.29, 0.2899, 0.9999, 1.0)]
    assert "0\u20132, 4, 5, 7" == ranges([7, 0, 1, 2, 5, 4])

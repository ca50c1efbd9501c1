"""May it be rolled now? Every reason of either gate where it holds, and its silence where it does not."""

import re
from collections.abc import Collection
from dataclasses import replace
from itertools import pairwise
from typing import Any

import pytest

from coordinator_model.gates import broker_releases
from coordinator_model.gates.downgrade import downgrade_gate
from coordinator_model.gates.upgrade import upgrade_gate
from coordinator_model.gates.verdict import BrokerSettings, Cluster, LogScan
from lab.builders import (
    RecordBytes,
    assignment,
    consumer_group_current_assignment,
    consumer_group_regular_expression,
    first_fields,
    group_metadata,
    member,
    new_group_metadata,
    offset_commit,
    streams_group_epoch,
    streams_group_member,
    subscription,
)
from lab.coordinator_events import (
    consumer_group_deleted,
    consumer_join,
    consumer_leave,
    converted_to_consumer,
    retarget,
    share_join,
    share_leave,
    speaks_classic,
)
from tests.brokers_by_release import ALLOWING, brokers
from tests.cooperative_groups import AGAIN, FIRST, JAVA, generation
from tests.coordinator_model.migration.test_downgrade_check import BEFORE, NEXT_GENERATION, n_leaves
from tests.histories import History, at, history

SETTLED = BrokerSettings(features={}, static_protocols=())
"""Brokers that have nothing finalized, and nothing in their files."""
NO_CONFIGS = Cluster(group_configs=(), settings=SETTLED, log_scan=LogScan())
UPGRADED = at(0, *consumer_join("g", "n", epoch=2, targets={"n": {"t": [0]}}))
M_JOINS = at(1, *consumer_join("g", "m", epoch=3, targets={"m": {"t": [0]}, "n": {}}, assigned={}))


def upgrade(log: History, cluster: Cluster | None = None, named: Collection[str] = ()) -> dict[str, Any]:
    """The upgrade gate on all groups of a log; brokers that say everything by default."""
    states = log.replayed().states.values()
    return upgrade_gate(states, cluster or Cluster(settings=ALLOWING), named)


def downgrade(
    log: History, cluster: Cluster = NO_CONFIGS, target: str | None = None, named: Collection[str] = ()
) -> dict[str, Any]:
    """The downgrade gate on all groups of a log."""
    return downgrade_gate(log.replayed().states.values(), cluster, target, named)


def reasons(answer: dict[str, Any]) -> list[tuple[str, str, str | None]]:
    """(effect, code, group) of each reason but the note on the log, which every downgrade to no named release has."""
    found = [(of["effect"], of["code"], of["group"]) for of in answer["reasons"]]
    return [of for of in found if of[:2] != ("note", "log_records")]


def classic(*versions: int, protocol: str = "range", **options: Any) -> RecordBytes:
    """A classic group of one member a version of the embedded protocol."""
    members = [
        member(f"m{number}", {"t": [number]}, subscription_bytes=subscription(version=version))
        for number, version in enumerate(versions)
    ]
    return group_metadata("g", generation=1, protocol=protocol, members=members, **options)


# -- upgrade ----------------------------------------------------------------------------------------------------------


def test_group_of_present_day_consumers_may_be_upgraded() -> None:
    """Nothing is noted that is true of every group, as that patterns are not in the log."""
    answer = upgrade(history(at(0, classic(3, 3))))

    assert ("upgrade", "open", {"classic": 1}) == (answer["gate"], answer["verdict"], answer["groups"])
    assert [] == answer["reasons"]


def test_nothing_is_noted_where_there_is_nothing_to_upgrade() -> None:
    """Groups that are upgraded, empty, or only commit."""
    empty, committing = at(0, new_group_metadata("g")), at(0, offset_commit("g", "t", 0, 1))
    for moment in (UPGRADED, empty, committing):
        answer = upgrade(history(moment), Cluster())

        assert ("open", []) == (answer["verdict"], answer["reasons"])


def test_versions_of_the_embedded_protocol_are_noted_member_by_member() -> None:
    """KIP-848 asks for 3; brokers convert any, so it is no reason to wait."""
    answer = upgrade(history(at(0, classic(3, 1, 0))))
    (found,) = (of for of in answer["reasons"] if of["code"] == "embedded_version")

    assert "open" == answer["verdict"]
    assert ("note", "g") == (found["effect"], found["group"])
    assert {"m0": 3, "m1": 1, "m2": 0} == {of["member_id"]: of["embedded_version"] for of in found["members"]}
    assert ("client", "/127.0.0.1") == (found["members"][0]["client_id"], found["members"][0]["client_host"])


@pytest.mark.parametrize("policy", ["disabled", "downgrade", "DISABLED"])
def test_brokers_that_convert_nothing_stop_an_upgrade(policy: str) -> None:
    """Unless there is no one to convert."""
    cluster = Cluster(settings=replace(ALLOWING, migration_policy=policy))

    assert [("stop", "migration_policy", None)] == reasons(upgrade(history(at(0, classic(3))), cluster))
    assert [] == reasons(upgrade(history(UPGRADED), cluster))


@pytest.mark.parametrize("policy", ["bidirectional", "upgrade", "Bidirectional"])
def test_brokers_that_convert_upwards_do_not(policy: str) -> None:
    """In whatever case it is written."""
    cluster = Cluster(settings=replace(ALLOWING, migration_policy=policy))

    assert [] == reasons(upgrade(history(at(0, classic(3))), cluster))


@pytest.mark.parametrize(
    ("enabled", "expected"),
    [
        (False, [("stop", "consumer_protocol", None)]),
        (True, []),
        (None, [("unknown", "broker_configuration", None)]),
    ],
)
def test_brokers_without_the_consumer_protocol_stop_an_upgrade(
    enabled: bool | None, expected: list[tuple[str, str, None]]
) -> None:
    """Not to say is neither to have it disabled nor to have it enabled."""
    settings = replace(ALLOWING, consumer_protocol=enabled)

    assert expected == reasons(upgrade(history(at(0, classic(3))), Cluster(settings=settings)))


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (BrokerSettings(), "ask a monitor that has them"),
        (BrokerSettings(asked=True), "they do not answer"),
        (BrokerSettings(asked=True, brokers=ALLOWING.brokers, consumer_protocol=True), "DESCRIBE_CONFIGS"),
    ],
)
def test_brokers_that_do_not_say_what_they_allow_leave_it_unknown(settings: BrokerSettings, expected: str) -> None:
    """What is missing is named, and how to learn it: a broker may have its policy disabled."""
    answer = upgrade(history(at(0, classic(3))), Cluster(settings=settings))
    (text,) = (of["text"] for of in answer["reasons"] if of["code"] == "broker_configuration")

    assert "cannot_tell" == answer["verdict"]
    assert "group.consumer.migration.policy, group.consumer.max.size" in text
    assert expected in text


def test_only_what_is_not_said_is_named() -> None:
    """The size alone."""
    cluster = Cluster(settings=replace(ALLOWING, consumer_max_size=None))
    (text,) = (
        of["text"]
        for of in upgrade(history(at(0, classic(3))), cluster)["reasons"]
        if of["code"] == "broker_configuration"
    )

    assert "policy" not in text


@pytest.mark.parametrize(("most", "expected"), [(2, []), (1, [("stop", "group_size", "g")])])
def test_group_of_more_members_than_brokers_allow_stops(most: int, expected: list[tuple[str, str, str]]) -> None:
    """As many are allowed."""
    settings = replace(ALLOWING, consumer_max_size=most)

    assert expected == reasons(upgrade(history(at(0, classic(3, 3))), Cluster(settings=settings)))


@pytest.mark.parametrize(
    ("of_member", "code"),
    [
        ({"assignment_bytes": assignment({"t": [0]}, user_data=b"mine")}, "assignment_user_data"),
        ({"subscription_bytes": b"?"}, "malformed_embedded_protocol"),
        ({"subscription_bytes": first_fields()}, "malformed_embedded_protocol"),
        ({"assignment_bytes": b"?"}, "malformed_embedded_protocol"),
    ],
)
def test_what_a_broker_refuses_stops_an_upgrade(of_member: dict[str, Any], code: str) -> None:
    """Naming the members it is about, and no one else."""
    odd = member("odd", {"t": [0]}, **of_member)
    log = history(at(0, group_metadata("g", generation=1, protocol="own", members=[odd, member("c", {"t": [1]})])))
    answer = upgrade(log)

    assert [("stop", code, "g")] == reasons(answer)
    (found,) = (of for of in answer["reasons"] if of["code"] == code)
    assert ["odd"] == [of["member_id"] for of in found["members"]]


@pytest.mark.parametrize(
    ("record", "code"),
    [
        (classic(3, protocol="sessioned", protocol_type="connect"), "protocol_type"),
        (
            group_metadata(
                "g",
                generation=1,
                protocol="stream",
                members=[member("s", assignment_bytes=assignment({"t": [0]}, user_data=b"tasks"))],
            ),
            "assignment_user_data",
        ),
    ],
)
def test_who_is_no_plain_consumer_keeps_nobody_else_from_being_upgraded(record: RecordBytes, code: str) -> None:
    """Connect workers and Kafka Streams applications are noted; asked about by name, they stop."""
    log = history(at(0, record), at(1, group_metadata("h", generation=1, members=[member("c", {"t": [0]})])))

    assert [("note", code, "g")] == reasons(upgrade(log))
    assert "open" == upgrade(log)["verdict"]
    assert [("stop", code, "g")] == reasons(upgrade(log, named=["g", "h"]))


@pytest.mark.parametrize("protocol", ["mine", "Range", "cooperative_sticky"])
def test_assignor_of_the_users_own_is_noted(protocol: str) -> None:
    """A broker converts such a group, and assigns by its own from then on: the operator is to know before."""
    answer = upgrade(history(at(0, classic(3, protocol=protocol))))

    assert ("open", [("note", "custom_assignor", "g")]) == (answer["verdict"], reasons(answer))
    assert f"Its assignor is {protocol}," in next(
        of["text"] for of in answer["reasons"] if of["code"] == "custom_assignor"
    )


@pytest.mark.parametrize("protocol", ["range", "roundrobin", "sticky", "cooperative-sticky"])
def test_assignor_of_kafkas_own_is_not(protocol: str) -> None:
    """Whatever it is."""
    assert [] == reasons(upgrade(history(at(0, classic(3, protocol=protocol)))))


def test_duplicate_assignment_stops_an_upgrade() -> None:
    """Whatever comes of it, it is to be understood first."""
    twice = group_metadata("g", generation=1, members=[member("a", {"t": [0]}), member("b", {"t": [0]})])

    assert [("stop", "duplicate_assignment", "g")] == reasons(upgrade(history(at(0, twice))))


def test_rebalance_of_a_consumer_group_stops_an_upgrade() -> None:
    """Somebody is half way; a share group never concerns who upgrades consumers."""
    moving = history(UPGRADED, M_JOINS)
    sharing = history(
        at(0, *share_join("g", "s", epoch=2, targets={"s": {"t": [0]}})),
        at(1, *share_join("g", "r", epoch=3, targets={"r": {"t": [0]}})),
    )

    assert [("stop", "rebalancing", "g")] == reasons(upgrade(moving))
    assert [] == reasons(upgrade(sharing))


def test_group_that_is_mixed_is_noted() -> None:
    """With the share of members that are upgraded."""
    log = history(
        UPGRADED, at(1, *consumer_join("g", "c", epoch=3, targets={"c": {}, "n": {"t": [0]}}, classic=speaks_classic()))
    )
    (text,) = (of["text"] for of in upgrade(log)["reasons"] if of["code"] == "mixed")

    assert "1 of 2 members use the consumer protocol: the group is downgrading" == text


def test_replica_that_is_behind_cannot_tell() -> None:
    """Neither gate; what would stop it stops it all the same."""
    behind = Cluster(not_caught_up=["partition 3: 7 records"], settings=ALLOWING, group_configs=())

    assert "cannot_tell" == upgrade(history(at(0, classic(3))), behind)["verdict"]
    assert "cannot_tell" == downgrade(history(at(0, classic(3))), behind)["verdict"]
    assert "closed" == downgrade(history(UPGRADED), behind)["verdict"]


def test_partition_that_is_not_read_cannot_tell() -> None:
    """Of a group that may be in it, neither gate; what would stop it stops it all the same."""
    unread = Cluster(unread=["partition 3 has no leader"], settings=ALLOWING, group_configs=())
    answers = [upgrade(history(at(0, classic(3))), unread), downgrade(history(at(0, classic(3))), unread)]

    assert {"cannot_tell"} == {answer["verdict"] for answer in answers}
    assert {"partition_unread"} == {of["code"] for answer in answers for of in answer["reasons"]} & {"partition_unread"}
    assert "closed" == downgrade(history(UPGRADED), unread)["verdict"]


def test_reasons_begin_as_sentences_do() -> None:
    """With a capital; but the name of a feature or a setting stays as it is spelt."""
    features = BrokerSettings(features={"made.up": 1}, static_protocols=("consumer",))
    cluster = Cluster(not_caught_up=["partition 3: 7 records"], settings=features)
    answers = [
        upgrade(history(at(0, classic(0), *consumer_join("n", "n", epoch=2, targets={"n": {"t": [0]}}))), cluster),
        *(downgrade(history(UPGRADED, M_JOINS), cluster, target) for target in (None, "3.3", "3.9", "9.9")),
    ]
    texts = {reason["text"] for answer in answers for reason in answer["reasons"]}

    assert "The monitor is not ready: partition 3: 7 records" in texts
    assert any(text.startswith("made.up is finalized") for text in texts)
    small = {text for text in texts if text[0].islower()}
    assert small == {text for text in small if re.match(r"[a-z]+\.[a-z.]+ ", text)}
    assert len(texts) > 10


def test_groups_of_librdkafka_on_cooperative_sticky_stop_an_upgrade() -> None:
    """With what to do: there is no assignor that its members could be rolled to."""
    answer = upgrade(history(at(0, generation(5, [FIRST, FIRST]))))
    (reason,) = answer["reasons"]

    assert ("closed", "librdkafka_cooperative_sticky") == (answer["verdict"], reason["code"])
    assert "Stop all its members, then start them with group.protocol=consumer" in reason["text"]
    assert ["m0", "m1"] == [of["member_id"] for of in reason["members"]]


@pytest.mark.parametrize(
    ("group", "said"),
    [
        (generation(5, [JAVA, AGAIN]), "Upgrade first a member that is not the leader, app-0 at /127.0.0.1"),
        (generation(5, [FIRST, FIRST], static=True), "Have each member back within its session timeout"),
    ],
)
def test_members_of_librdkafka_that_may_lead_are_noted(group: RecordBytes, said: str) -> None:
    """The gate is open: brokers refuse the group only if the wrong member goes first, or is away for long."""
    answer = upgrade(history(at(0, group)))

    assert ("open", [("note", "librdkafka_members", "g")]) == (answer["verdict"], reasons(answer))
    assert said in answer["reasons"][0]["text"]


# -- downgrade --------------------------------------------------------------------------------------------------------


def test_cluster_of_classic_groups_may_be_downgraded() -> None:
    """With what it is made of."""
    answer = downgrade(history(at(0, classic(3)), at(1, offset_commit("h", "t", 0, 1))))

    assert ("downgrade", "open", []) == (answer["gate"], answer["verdict"], reasons(answer))
    assert "name such a release" in answer["reasons"][0]["text"]
    assert ({"classic": 2}, {}, {}, None) == tuple(
        answer[key] for key in ("groups", "leftover_records", "unknown_records", "target_version")
    )


ONE_OF_EACH = history(
    at(0, *consumer_join("c", "n", epoch=2, targets={"n": {"t": [0]}})),
    at(1, *share_join("s", "m", epoch=2, targets={"m": {"t": [0]}})),
    at(2, streams_group_epoch("x", 2)),
    at(3, new_group_metadata("k")),
)


@pytest.mark.parametrize(
    ("target", "stopped"),
    [
        (None, ["c", "s", "x"]),
        ("2.8", ["c", "s", "x"]),
        ("3.9.1", ["c", "s", "x"]),
        ("4.0", ["s", "x"]),
        ("4.1.0", ["x"]),
        ("4.2", []),
        ("4.3.1", []),
    ],
)
def test_groups_that_the_target_does_not_serve_stop(target: str | None, stopped: list[str]) -> None:
    """By type; the groups are counted whatever the target."""
    answer = downgrade(ONE_OF_EACH, target=target)

    assert stopped == [of["group"] for of in answer["reasons"] if of["code"] == "group_type"]
    assert {"classic": 1, "consumer": 1, "share": 1, "streams": 1} == answer["groups"]
    assert target == answer["target_version"]


@pytest.mark.parametrize(
    ("moments", "said", "unsaid"),
    [
        pytest.param([UPGRADED], "roll its consumers back", "elete", id="consumers"),
        pytest.param(
            [UPGRADED, at(1, *consumer_leave("g", "n", epoch=3))],
            "start one consumer with group.protocol=classic; it becomes classic then and keeps its committed offsets",
            ": delete it",
            id="no-consumers",
        ),
        pytest.param(
            [at(0, streams_group_epoch("g", 2))],
            "start one instance of the application with group.protocol=classic; it becomes classic then",
            ": delete it",
            id="no-streams",
        ),
        pytest.param(
            [at(0, streams_group_member("g", "m"), streams_group_epoch("g", 2))],
            "stop all instances of the application, then start them with group.protocol=classic",
            "elete",
            id="streams",
        ),
        pytest.param(
            [at(0, *share_join("g", "m", epoch=2, targets={"m": {"t": [0]}}))],
            "stop its members, then delete it; a share group does not become classic. Lost are",
            "keeps",
            id="shares",
        ),
        pytest.param(
            [
                at(0, *share_join("g", "m", epoch=2, targets={"m": {"t": [0]}})),
                at(1, *share_leave("g", "m", epoch=3)),
            ],
            "it has no members): delete it; a share group does not become classic. Lost are",
            "keeps",
            id="no-shares",
        ),
    ],
)
def test_what_would_delete_offsets_is_not_advised_where_they_can_be_kept(
    moments: list[Any], said: str, unsaid: str
) -> None:
    """An empty consumer or streams group becomes classic with its first classic join; DeleteGroups takes offsets."""
    answer = downgrade(history(*moments))
    (text,) = (of["text"] for of in answer["reasons"] if of["code"] == "group_type")

    assert said in text
    assert unsaid not in text


def test_group_that_should_have_been_converted_is_reported_so() -> None:
    """Only classic members are left in it, and it still is a consumer group: its brokers do not allow it."""
    log = history(
        UPGRADED,
        at(1, *consumer_join("g", "c", epoch=3, targets={"c": {}, "n": {"t": [0]}}, classic=speaks_classic())),
        at(2, *consumer_leave("g", "n", epoch=4), consumer_group_current_assignment("g", "c", epoch=3)),
    )
    found = reasons(downgrade(log))

    assert ("stop", "not_converted", "g") in found
    assert "group_type" not in {code for _, code, _ in found}
    assert [] == [of for of in reasons(downgrade(log, target="4.0")) if of[1] == "not_converted"]


LEFT_OVER = history(
    at(0, *consumer_join("g", "n", epoch=2, targets={"n": {"t": [0]}})),
    at(500, consumer_group_regular_expression("g", "rx-.*", ["rx-a"])),
    at(1_000, *consumer_leave("g", "n", epoch=3)),
    at(2_000, *consumer_group_deleted("g"), new_group_metadata("g")),
)


@pytest.mark.parametrize(
    ("target", "effect"),
    # 2.8 fails on them; 3.9 passes over them; 4.0 makes a group of them.
    [(None, "stop"), ("2.8", "stop"), ("3.9", "note"), ("4.0", "stop")],
)
def test_records_left_over_stop_unless_the_target_passes_over_them(target: str | None, effect: str) -> None:
    """They are named by type and counted for the cluster."""
    answer = downgrade(LEFT_OVER, target=target)
    (found,) = (of for of in answer["reasons"] if of["code"] == "leftover_records")

    assert (effect, "g") == (found["effect"], found["group"])
    assert "1 of type 16 (consumer group regular expression)" in found["text"]
    assert {"16": 1} == answer["leftover_records"]


@pytest.mark.parametrize(
    ("target", "effect"),
    [(None, "note"), ("3.3", "stop"), ("3.4.0", "stop"), ("3.4.1", None), ("3.9", None), ("4.3", None)],
)
def test_committed_offsets_that_the_target_cannot_read_stop(target: str | None, effect: str | None) -> None:
    """Version 4 is flexible: brokers before 3.4.1 give up the partition that holds one."""
    cluster = replace(NO_CONFIGS, offset_versions={"g": {3: 5, 4: 2}, "h": {3: 1}, "of another question": {4: 9}})
    log = history(at(0, classic(3)), at(1, offset_commit("h", "t", 0, 1)))
    answer = downgrade(log, cluster, target)
    found = [of for of in answer["reasons"] if of["code"] == "offset_version"]

    assert [effect] * (effect is not None) == [of["effect"] for of in found]
    assert all("2 committed offsets are in value version 4, of 1 group: g." in of["text"] for of in found)
    assert {"3": 6, "4": 2} == answer["offset_versions"]


def test_committed_offsets_that_all_can_read_are_not_noted() -> None:
    """Brokers up to 4.0 wrote nothing else."""
    cluster = Cluster(group_configs=(), offset_versions={"g": {0: 1, 1: 2, 3: 5}})

    assert [] == reasons(downgrade(history(at(0, classic(3))), cluster))


@pytest.mark.parametrize(("target", "effect"), [(None, "stop"), ("3.4", "stop"), ("3.5", "note")])
def test_unknown_records_stop_unless_the_target_passes_over_them(target: str | None, effect: str) -> None:
    """KIP-915: since then a type that a broker does not know is a warning."""
    answer = downgrade(history(at(0, classic(3))), replace(NO_CONFIGS, unknown_records={"99": 3}), target)

    assert [(effect, "unknown_records", None)] == reasons(answer)
    assert {"99": 3} == answer["unknown_records"]


@pytest.mark.parametrize(
    ("configs", "target", "expected"),
    [
        (None, None, [("unknown", "group_configs", None)]),
        ([], None, []),
        (["b", "a"], None, [("stop", "group_configs", "a"), ("stop", "group_configs", "b")]),
        (["a"], "3.9", [("stop", "group_configs", "a")]),
        (["a"], "4.0", []),
        (None, "4.0", []),
    ],
)
def test_dynamic_configurations_of_groups_stop(
    configs: list[str] | None, target: str | None, expected: list[tuple[str, str, str | None]]
) -> None:
    """Where the target's controller does not know such."""
    cluster = replace(NO_CONFIGS, group_configs=configs)

    assert expected == reasons(downgrade(history(at(0, classic(3))), cluster, target))


@pytest.mark.parametrize(
    ("settings", "expected"),
    [
        (BrokerSettings(), "ask a monitor that has them"),
        (BrokerSettings(asked=True), "they do not answer"),
        (replace(ALLOWING, brokers=brokers(["4.0"])), "broker 1 (4.0) does not list them (4.1 does). kafka-configs.sh"),
        (ALLOWING, "DESCRIBE_CONFIGS on the cluster"),
    ],
)
def test_why_configurations_of_groups_are_not_known_is_said(settings: BrokerSettings, expected: str) -> None:
    """With what can be done about it on that release."""
    cluster = replace(NO_CONFIGS, group_configs=None, settings=settings)
    answer = downgrade(history(at(0, classic(3))), cluster)
    (text,) = (of["text"] for of in answer["reasons"] if of["code"] == "group_configs")

    assert expected in text


def test_rebalance_stops_a_downgrade() -> None:
    """Of any group that is between two targets."""
    log = history(UPGRADED, M_JOINS)

    assert [("stop", "rebalancing", "g")] == reasons(downgrade(log, target="4.3"))


def test_downgraded_group_says_that_all_is_as_it_was() -> None:
    """What the document has the operator compare by hand."""
    assert [("note", "downgraded", "g")] == reasons(downgrade(history(*BEFORE, n_leaves(), NEXT_GENERATION)))


def test_offsets_that_went_back_in_a_downgrade_stop_the_next_step() -> None:
    """Until they are there again."""
    went_back = (*BEFORE, at(2_500, offset_commit("g", "t", 0, 7)), n_leaves(), NEXT_GENERATION)
    answer = downgrade(history(*went_back))

    assert [("stop", "offsets_changed", "g")] == reasons(answer)
    assert "t/0 was at 10" in answer["reasons"][0]["text"]
    assert [("note", "downgraded", "g")] == reasons(
        downgrade(history(*went_back, at(9_000, offset_commit("g", "t", 0, 10))))
    )


def test_assignment_that_a_downgrade_did_not_keep_is_noted() -> None:
    """The next generation has made another one of it by now."""
    answer = downgrade(history(*BEFORE, n_leaves({"c": {}}), NEXT_GENERATION))

    assert [("note", "assignment_changed", "g")] == reasons(answer)


# -- releases ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("text", "since"),
    [
        ("2.3", (2, 3)),
        ("3.4.0", (2, 3)),
        ("3.4.1", (3, 4, 1)),
        ("3.9", (3, 4, 1)),
        ("4.0.2", (4, 0)),
        ("4.3.1", (4, 2)),
    ],
)
def test_release_is_read_as_numbers(text: str, since: tuple[int, ...]) -> None:
    """A row holds until the next."""
    row = broker_releases.release(text)

    assert row is not None
    assert since == row.since


@pytest.mark.parametrize(
    "text", ["", "4", "4.", "v4.0", "4.0-SNAPSHOT", "2.2", "0.10", "4.0.1.2", "4.1234", " 4.0", "9.9", "4.4", "3.10"]
)
def test_what_is_no_known_release_is_none(text: str) -> None:
    """Nor is one from before the rows begin, one that never was, or one that comes after all that is known."""
    assert None is broker_releases.release(text)


def test_later_releases_read_no_less() -> None:
    """Rows are in order, and none of them takes back what an earlier one has."""
    rows = broker_releases.RELEASES

    assert sorted(row.since for row in rows) == [row.since for row in rows]
    for former, row in pairwise(rows):
        assert set(former.serves) <= set(row.serves)
        assert former.highest_offset_version <= row.highest_offset_version
        assert former.passes_over_unknown_types <= row.passes_over_unknown_types
        assert former.knows_group_configs <= row.knows_group_configs


# -- a roll under way -------------------------------------------------------------------------------------------------

ROLLING = history(
    UPGRADED,
    at(1_000, *consumer_join("g", "c", epoch=3, targets={"c": {}, "n": {"t": [0]}}, classic=speaks_classic())),
    at(2_000, consumer_group_current_assignment("g", "n", epoch=3, assigned={"t": [0]})),
    at(3_000, consumer_group_current_assignment("g", "c", epoch=3)),
)
"""A consumer group with a member of either protocol, at rest since second 3."""


@pytest.mark.parametrize("after_ms", [0, 1, 500, 5_000, 14_999, -2_000])
def test_gate_does_not_open_between_two_restarts_of_a_roll(after_ms: int) -> None:
    """A group of both protocols that came to rest just now: the next restart comes in a moment."""
    cluster = replace(NO_CONFIGS, settings=replace(ALLOWING, features={}, static_protocols=()), now_ms=3_000 + after_ms)

    for answer in (upgrade(ROLLING, cluster), downgrade(ROLLING, cluster, "4.3")):
        assert ("stop", "rebalancing", "g") in reasons(answer)


@pytest.mark.parametrize("after_ms", [15_000, 60_000])
def test_gate_opens_when_a_roll_has_rested(after_ms: int) -> None:
    """A pause of the roll is a pause."""
    cluster = replace(NO_CONFIGS, settings=replace(ALLOWING, features={}, static_protocols=()), now_ms=3_000 + after_ms)

    assert ["open", "open"] == [of["verdict"] for of in (upgrade(ROLLING, cluster), downgrade(ROLLING, cluster, "4.3"))]


def test_group_that_is_not_rolled_is_judged_as_it_is() -> None:
    """Its last rebalance may have ended this very moment."""
    cluster = replace(NO_CONFIGS, now_ms=0)

    assert [] == reasons(downgrade(history(UPGRADED), cluster, "4.3"))


# -- a member that is away --------------------------------------------------------------------------------------------

ROLLED_DOWN = history(*BEFORE, n_leaves())
"""The last member to be rolled down has left at second 3, and the group is classic without it."""
ROLLED_UP = history(
    at(0, group_metadata("g", generation=1, members=[member("a", {"t": [0]}), member("b", {"t": [1]})])),
    at(1_000, group_metadata("g", generation=2, members=[member("b", {"t": [0, 1]})])),
    at(1_500, *converted_to_consumer("g", generation=2, members={"b": {"t": [0, 1]}})),
    at(2_000, *consumer_join("g", "n", epoch=4, targets={"b": {}, "n": {"t": [0, 1]}}, assigned={"t": [0, 1]})),
    at(2_500, consumer_group_current_assignment("g", "b", epoch=4)),
    at(3_000, *consumer_leave("g", "b", epoch=5), *retarget("g", 5, {"n": {"t": [0, 1]}})),
    at(3_000, consumer_group_current_assignment("g", "n", epoch=5, assigned={"t": [0, 1]})),
)
"""The mirror image: the last classic member has left at second 3, and the upgrade is complete without it."""
LEFT = history(
    at(0, group_metadata("g", generation=1, members=[member("a", {"t": [0]}), member("b", {"t": [1]})])),
    at(3_000, group_metadata("g", generation=2, members=[member("a", {"t": [0, 1]})])),
)
"""A group that was never rolled, one member fewer since second 3."""

AWAY = {"rebalancing", "member_away"}


def away(log: History, after_ms: int, named: Collection[str] = ("g",)) -> list[set[tuple[str, str]]]:
    """What either gate says of members that left, so long after second 3."""
    settings = replace(ALLOWING, features={}, static_protocols=())
    cluster = replace(NO_CONFIGS, settings=settings, now_ms=3_000 + after_ms)
    answers = (upgrade(log, cluster, named), downgrade(log, cluster, "4.3", named))
    return [{of[:2] for of in reasons(answer) if of[1] in AWAY} for answer in answers]


@pytest.mark.parametrize("log", [ROLLED_DOWN, ROLLED_UP], ids=["down", "up"])
@pytest.mark.parametrize(
    ("after_ms", "expected"),
    [
        (0, {("stop", "rebalancing")}),
        (14_999, {("stop", "rebalancing")}),
        (15_000, {("note", "member_away")}),
        (600_000, {("note", "member_away")}),
        (600_001, set()),
    ],
)
def test_gate_waits_for_the_last_member_of_a_roll_but_not_for_ever(
    log: History, after_ms: int, expected: set[tuple[str, str]]
) -> None:
    """Held for fifteen seconds where it is scaled down, not restarted; a note says so for as long as it is awaited."""
    assert [expected, expected] == away(log, after_ms)


def test_gate_opens_as_soon_as_the_last_member_of_a_roll_is_back() -> None:
    """By whatever name it comes; nothing is said of it any more."""
    back = at(3_400, group_metadata("g", generation=5, members=[member("c", {"t": [0]}), member("d", {"t": [1]})]))

    assert [set(), set()] == away(history(*BEFORE, n_leaves(), back), 500)


@pytest.mark.parametrize("after_ms", [0, 15_000, 600_000])
def test_group_that_was_not_rolled_is_not_held_for_a_member_that_left(after_ms: int) -> None:
    """One may be restarting, and a group whose members come and go all day could never be rolled: it is noted."""
    assert [{("note", "member_away")}] * 2 == away(LEFT, after_ms)
    assert [set(), set()] == away(LEFT, 600_001)


@pytest.mark.parametrize("log", [ROLLED_DOWN, ROLLED_UP, LEFT], ids=["down", "up", "not-rolled"])
def test_of_groups_that_were_not_named_members_that_left_are_no_news(log: History) -> None:
    """Of a thousand groups one is scaled down at any time. Without a clock nothing is awaited."""
    assert [set(), set()] == away(log, 0, named=())
    for answer in (upgrade(log, named=["g"]), downgrade(log, named=["g"])):
        assert not AWAY & {code for _, code, _ in reasons(answer)}

"""GROUP as its schema has it, held against what Kafka's own tools printed for the same log."""

import json
import re
from functools import cache
from typing import Any, Final

import pytest

from coordinator_model.views.group_view import named
from lab.builders import offset_commit, topic_id
from lab.coordinator_events import consumer_join
from tests.histories import RECORDING, Reported, at, history, recorded

TRUTH: Final[dict[str, dict[str, str]]] = json.loads(RECORDING.with_suffix("").with_suffix(".truth.json").read_text())
"""Group → what `kafka-consumer-groups --describe` printed at the recording's end."""

DESCRIBED: Final = sorted(group for group, said in TRUTH.items() if not said["state"].startswith("\nError"))


@cache
def at_the_end() -> Reported:
    """The recording, replayed."""
    return recorded().replayed()


def table(text: str) -> list[dict[str, str]]:
    """Rows of a table of Kafka's tools; columns begin where their headings do."""
    lines = [line for line in text.splitlines() if line.strip()]
    heads = [(found.group(), found.start()) for found in re.finditer(r"\S+(?: \(ID\))?", lines[0])]
    ends = [start for _, start in heads[1:]] + [None]
    return [
        {name: line[start:end].strip() for (name, start), end in zip(heads, ends, strict=True)} for line in lines[1:]
    ]


def partitions(reported: dict[str, list[int]]) -> str:
    """An assignment as the tools print it."""
    return ";".join(f"{topic}:{','.join(map(str, of))}" for topic, of in reported.items()) or "-"


def test_groups_are_those_that_the_tools_found() -> None:
    """A deleted group is not in the groups; the tools do not find it either."""
    assert DESCRIBED == sorted(at_the_end().views)
    assert "rec-gone" in TRUTH


@pytest.mark.parametrize("group", DESCRIBED)
def test_state_is_as_kafkas_tools_print_it(group: str) -> None:
    """State, epochs and number of members; the epoch columns are empty for classic groups."""
    (reported,) = table(TRUTH[group]["state"])
    view = at_the_end().view(group)

    classic = view["type"] == "classic"
    assert reported["STATE"] == view["state"]
    assert reported["GROUP-EPOCH"] == ("-" if classic else str(view["epoch"]))
    assert reported["TARGET-ASSIGNMENT-EPOCH"] == ("-" if classic else str(view["assignment_epoch"]))
    assert reported["#MEMBERS"] == str(len(view["members"]))


@pytest.mark.parametrize("group", DESCRIBED)
def test_members_are_as_kafkas_tools_print_them(group: str) -> None:
    """Ids, hosts, clients, epochs, what they own and shall own, and whether they are upgraded."""
    reported = {row["CONSUMER-ID"]: row for row in table(TRUTH[group]["members"])}
    members = {member["member_id"]: member for member in at_the_end().view(group)["members"]}

    assert set(reported) == set(members)
    for member_id, row in reported.items():
        member = members[member_id]
        assert (row["HOST"], row["CLIENT-ID"]) == (member["client_host"], member["client_id"])
        assert (row["CURRENT-EPOCH"], row["TARGET-EPOCH"]) == (
            str(member["epoch"]),
            str(at_the_end().view(group)["assignment_epoch"]),
        )
        assert (row["CURRENT-ASSIGNMENT"], row["TARGET-ASSIGNMENT"]) == (
            partitions(member["assigned"]),
            partitions(member["target"]),
        )
        if "UPGRADED" in row:
            assert row["UPGRADED"] == str(member["protocol"] == "consumer").lower()


@pytest.mark.parametrize("group", DESCRIBED)
def test_offsets_are_as_kafkas_tools_print_them(group: str) -> None:
    """Aborted transactional commits were not delivered; a rewound one counts."""
    reported = {(row["TOPIC"], int(row["PARTITION"])): row["CURRENT-OFFSET"] for row in table(TRUTH[group]["offsets"])}

    assert reported == {(of["topic"], of["partition"]): str(of["offset"]) for of in at_the_end().view(group)["offsets"]}


@pytest.mark.parametrize(
    ("group", "phase"),
    [
        ("rec-eager", "classic"),
        ("rec-static", "classic"),
        ("rec-full", "downgraded"),
        ("rec-mixed", "upgrading"),
        ("rec-new", "upgraded"),
        ("rec-simple", "classic"),
    ],
)
def test_phase_of_the_recorded_groups(group: str, phase: str) -> None:
    """As the scenarios were made."""
    assert phase == at_the_end().view(group)["migration"]["phase"]


def test_recorded_log_tells_what_was_done_to_the_groups() -> None:
    """The roll there and back, the rewind, the deletion: each once, and no alarm besides."""
    reported = at_the_end()

    assert {("rec-full", "downgrade_started"): 1} == reported.alarms()
    assert ["rec-simple"] == [event.group for event in reported.events if event.kind == "offset_rewound"]
    assert ["upgrade_started", "upgrade_completed", "downgrade_started", "downgrade_completed"] == [
        event.kind for event in reported.events if event.group == "rec-full" and event.kind.startswith(("up", "down"))
    ]
    assert ["rec-gone"] == [event.group for event in reported.events if event.kind == "group_deleted"]
    assert reported.details("static_member_replaced")


def test_view_of_every_recorded_group_is_json_with_the_contracts_fields() -> None:
    """What the API serves and `replay --json` prints."""
    fields = {
        "group",
        "type",
        "state",
        "epoch",
        "assignment_epoch",
        "protocol",
        "protocol_type",
        "simple",
        "members",
        "offsets",
        "migration",
    }
    for view in at_the_end().views.values():
        assert fields == set(view) - {"static_members", "scaling", "regexes"}
        assert view == json.loads(json.dumps(view))


# -- names ------------------------------------------------------------------------------------------------------------


def test_topics_are_shown_by_name_and_in_order() -> None:
    """Ids sort differently: it is the names people look for."""
    reported = history(at(0, *consumer_join("g", "a", epoch=2, targets={"a": {"u": [1], "t": [0]}}))).replayed()

    assert ["t", "u"] == list(reported.owners("g")["a"])


def test_minus_one_and_minus_two_are_no_offset() -> None:
    """Clients that have read nothing yet commit them; Kafka's tool prints `-`. 0 is an offset."""
    committed = (offset_commit("g", "t", partition, offset) for partition, offset in enumerate((-1, -2, 0)))
    view = history(at(0, *committed)).replayed().view("g")

    assert [None, None, 0] == [each["offset"] for each in view["offsets"]]


def test_offsets_are_shown_in_the_order_given() -> None:
    """By topic and partition, as the replica gives them."""
    reported = history(
        at(0, offset_commit("g", "u", 0, 1), offset_commit("g", "t", 10, 1), offset_commit("g", "t", 9, 1))
    )

    assert ["t/9", "t/10", "u/0"] == list(reported.replayed().offsets("g"))


@pytest.mark.parametrize(
    ("detail", "expected"),
    [
        (topic_id("t"), "t"),
        (f"{topic_id('t')}/3", "t/3"),
        ({"partitions": {f"{topic_id('t')}/3": ("a", "b")}}, {"partitions": {"t/3": ["a", "b"]}}),
        ({"topics": [topic_id("t"), "unheard of"]}, {"topics": ["t", "unheard of"]}),
        ({"count": 3, "online": True, "none": None}, {"count": 3, "online": True, "none": None}),
        ("/127.0.0.1", "/127.0.0.1"),
    ],
)
def test_ids_in_an_events_detail_become_names(detail: Any, expected: Any) -> None:
    """Wherever they stand, alone or before a partition; anything else stays."""
    assert expected == named(detail, {topic_id("t"): "t"})

"""Recordings of brokers of every release, cut at five moments, against what the release's own tool printed then.

`make brokers` makes them: `tests/brokers`.
"""

from pathlib import Path
from typing import Any, Final

import pytest

from tests.brokers import page, results
from tests.brokers.moments import Moment, load, log_of, recorded, views_at
from tests.brokers.printed import differences, said
from tests.brokers.releases import BY_NAME, RELEASES
from tests.brokers.results import Result
from tests.brokers.story import MOMENTS

MARKS: Final = "<!-- Made by `it` of what `make brokers` found -->\n{}<!-- end -->"


PRINTED: Final = {
    "state": """
COORDINATOR (ID)          ASSIGNMENT-STRATEGY  STATE                #MEMBERS
127.0.0.1:9092 (1)        range                Stable               1
""",
    "members": """
CONSUMER-ID     HOST            CLIENT-ID       #PARTITIONS     ASSIGNMENT
a-1             /127.0.0.1      a               3               orders(0,2), bills(1)
""",
    "offsets": """
TOPIC           PARTITION  CURRENT-OFFSET  LOG-END-OFFSET  LAG             CONSUMER-ID     HOST            CLIENT-ID
orders          0          7               10              3               a-1             /127.0.0.1      a
orders          2          -               10              -               a-1             /127.0.0.1      a
""",
}
"""As 2.0 prints them: without the group's name, without epochs, partitions in brackets."""

MEMBER: Final = {
    "member_id": "a-1",
    "instance_id": None,
    "client_id": "a",
    "client_host": "/127.0.0.1",
    "epoch": 4,
    "assigned": {"bills": [1], "orders": [0, 2]},
}
OFFSET: Final = {"topic": "orders", "partition": 0, "offset": 7, "log_end_offset": 10, "lag": 3}
VIEW: Final = {"state": "Stable", "protocol": "range", "epoch": 4, "members": [MEMBER], "offsets": [OFFSET]}

GONE: Final = (
    "Error: Consumer group 'gone' does not exist.",
    """
Error: Executing consumer group command failed due to Group gone not found.
org.apache.kafka.common.errors.GroupIdNotFoundException: Group gone not found.
""",
    """
GROUP           COORDINATOR (ID)          ASSIGNMENT-STRATEGY  STATE           #MEMBERS
gone            127.0.0.1:9092 (1)                             Dead            0
""",
)
"""A group that is not there, in the words of several releases."""


def cases() -> list[Any]:
    return [
        pytest.param(release, moment, id=f"{release}-{moment.name.replace(' ', '-')}")
        for release in recorded()
        for moment in load(release)
    ]


@pytest.mark.parametrize(("release", "moment"), cases())
def test_groups_are_as_the_tool_printed_them(release: str, moment: Moment) -> None:
    """State, members, what they own and committed offsets are those of that moment, and there are no other groups."""
    views = views_at(log_of(release), moment)
    expected = {group: said(printout) for group, printout in moment.printed.items()}

    assert {group for group, of in expected.items() if of is not None} == views.keys()
    assert {} == {
        group: unlike
        for group, of in expected.items()
        if (unlike := differences(of, views.get(group), writes_static_returns=BY_NAME[release].writes_static_returns))
        != []
    }


@pytest.mark.parametrize("release", recorded())
def test_every_moment_is_recorded(release: str) -> None:
    """In the order in which they come."""
    assert list(MOMENTS) == [moment.name for moment in load(release)]


def test_recorded_releases_are_those_that_were_tried() -> None:
    """A row of the table without a recording, or the other way round, is of another run."""
    tried = {of.release for of in results.load() if of.recording}

    assert tried == set(recorded())
    assert tried <= {release.name for release in RELEASES}


class TestWhatIsCompared:
    """A difference is found in any part, and what a release does not print is none."""

    def test_same_is_the_same(self) -> None:
        """With other values beside it."""
        assert [] == differences(said(PRINTED), VIEW)

    @pytest.mark.parametrize(
        ("part", "value"),
        [
            ("state", "PreparingRebalance"),
            ("protocol", "sticky"),
            ("members", []),
            ("members", [{**MEMBER, "assigned": {"orders": [0, 2]}}]),
            ("members", [{**MEMBER, "client_host": "/127.0.0.2"}]),
            ("offsets", [{**OFFSET, "offset": 8}]),
            ("offsets", [{**OFFSET, "lag": 2}]),
            ("offsets", []),
        ],
    )
    def test_other_is_told(self, part: str, value: Any) -> None:
        """In words."""
        assert [] != differences(said(PRINTED), {**VIEW, part: value})

    def test_a_replayed_group_has_no_lag(self) -> None:
        """And is compared without."""
        offsets = [{"topic": "orders", "partition": 0, "offset": 7}]

        assert [] == differences(said(PRINTED), {**VIEW, "offsets": offsets})

    def test_topics_without_names(self) -> None:
        """The tools of 3.8 and 3.9 leave them out: the numbers are compared."""
        nameless = {**PRINTED, "members": PRINTED["members"].replace("orders(0,2), bills(1)", "(0,2), (1)")}
        other = {**MEMBER, "assigned": {"bills": [1], "orders": [0, 3]}}

        assert [] == differences(said(nameless), VIEW)
        assert [] != differences(said(nameless), {**VIEW, "members": [other]})

    def test_an_assignor_that_the_log_does_not_name(self) -> None:
        """A group that takes the broker's default: its name is the broker's, not the log's."""
        assert [] == differences(said(PRINTED), {**VIEW, "protocol": None})

    @pytest.mark.parametrize("printed", GONE)
    def test_a_group_that_is_gone(self, printed: str) -> None:
        """It is None, however a release says so."""
        assert said({"state": printed, "members": "", "offsets": ""}) is None
        assert [] == differences(None, None)
        assert [] != differences(None, VIEW)


def attempt(kind: str, gate: int, broker: str) -> dict[str, Any]:
    right = (gate == 0) == (broker == "converted")
    return {"kind": kind, "gate": (gate, []), "plan": ("ready", []), "broker": broker, "right": right}


def test_table_says_what_came_of_each_release() -> None:
    """Equal moments, what the broker did and what the gate had said; releases that were not tried by name."""
    tried = Result(
        release="4.2.1",
        runs_on="Java 17 or 21",
        monitor={"at rest": [], "member killed": ["state: …"]},
        recording={"at rest": []},
        upgrades=[attempt("java range", 0, "converted"), attempt("librdkafka range", 1, "refused: X")],
    )
    table = page.page(MARKS.format("old"), [tried, Result(release="2.0.1", skipped="no Java 11")])

    assert (
        "| 4.2.1 | Java 17 or 21 | 1 of 2 | 1 of 1 | converted (java range); refused: X (librdkafka range) | "
        "open (java range); closed (librdkafka range) | "
    ) in table
    assert "- 2.0.1: no Java 11\n" in table
    assert "- 2.4.1: not yet\n" in table
    assert "old" not in table


def test_a_release_that_is_skipped_keeps_what_was_found_of_it(tmp_path: Path) -> None:
    """A registry that is out of reach for a day takes nothing away; tried again, a release's row is the new one."""
    file = tmp_path / "results.json"
    found = [Result(release="2.0.1", runs_on="Java 11"), Result(release="2.4.1", skipped="no jars")]
    results.save(found, file)

    results.save([Result(release="2.0.1", skipped="no jars")], file)
    assert [(None, "Java 11"), ("no jars", "")] == [(of.skipped, of.runs_on) for of in results.load(file)]

    results.save([Result(release="2.4.1", runs_on="Java 11")], file)
    assert [None, None] == [of.skipped for of in results.load(file)]


@pytest.mark.parametrize(
    ("gate", "broker", "is_right"),
    [
        (0, "converted", True),
        (1, "refused: X", True),
        (3, "refused: X", True),
        (0, "refused: X", False),
        (1, "converted", False),
    ],
)
def test_a_gate_that_says_other_than_the_broker_is_wrong(gate: int, broker: str, is_right: bool) -> None:
    """Open where the broker refuses, and closed where it converts: the command ends with 1 then."""
    assert is_right is Result(release="4.2.1", upgrades=[attempt("java range", gate, broker)]).is_right

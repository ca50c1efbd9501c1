"""What Kafka's own tool printed at the end of the recording, read as values; and the odd cases of its tables."""

import json
from pathlib import Path
from typing import Final

import pytest

from streaming.base.errors import CannotTellError
from tests import group_tables

TRUTH: Final[dict[str, dict[str, str]]] = json.loads(
    (Path(__file__).parent / "recordings" / "scenarios.truth.json").read_text("utf-8")
)
DESCRIBED: Final = sorted(name for name, texts in TRUTH.items() if "Error:" not in texts["state"])

STATIC_AND_DYNAMIC: Final = """
GROUP           CONSUMER-ID            GROUP-INSTANCE-ID HOST            CLIENT-ID       #PARTITIONS     CURRENT-EPOCH   CURRENT-ASSIGNMENT    TARGET-EPOCH    TARGET-ASSIGNMENT    UPGRADED
g               G0jmKxmYSr-hcVnBVCt2Dg                   /127.0.0.1      b2              3               5               orders:3;payments:0,1 5               orders:3,5           true
g               i-e140c5c6-3442-48df-8 i                 /127.0.0.1      c               0               -               -                     -               -                    false

"""  # noqa: E501 - as the tool prints it


@pytest.mark.parametrize("group", DESCRIBED)
def test_every_described_group_has_one_state(group: str) -> None:
    """The state table of a described group holds that group, and as many members as the members table has rows."""
    (state,) = group_tables.state_rows(TRUTH[group]["state"])

    assert group == state["group"]
    assert state["members"] == len(group_tables.member_rows(TRUTH[group]["members"]))


def test_state_of_a_mixed_group() -> None:
    """A state row gives assignor, state, both epochs and the number of members."""
    assert [
        {
            "group": "rec-mixed",
            "coordinator": "127.0.0.1:19092  (1)",
            "assignor": "uniform",
            "state": "Stable",
            "epoch": 5,
            "assignment_epoch": 5,
            "members": 2,
        }
    ] == group_tables.state_rows(TRUTH["rec-mixed"]["state"])


def test_members_of_a_mixed_group_say_who_is_upgraded() -> None:
    """While both protocols are present, each member's row says whether it speaks the new one."""
    rows = group_tables.member_rows(TRUTH["rec-mixed"]["members"])

    assert {True: {"rec-orders": [3, 4, 5]}, False: {"rec-orders": [0, 1, 2]}} == {
        row["upgraded"]: row["assigned"] for row in rows
    }


def test_members_of_one_protocol_do_not() -> None:
    """A group whose members all speak one protocol has no such column."""
    assert {None} == {row["upgraded"] for row in group_tables.member_rows(TRUTH["rec-new"]["members"])}


def test_offsets_of_a_simple_group_have_no_member() -> None:
    """What only commits has offsets and lag, and no one who owns them."""
    rows = group_tables.offset_rows(TRUTH["rec-simple"]["offsets"])

    assert [(0, 7, 102, 95), (1, 20, 116, 96), (2, 30, 98, 68)] == [
        (row["partition"], row["offset"], row["log_end_offset"], row["lag"]) for row in rows
    ]
    assert {None} == {row["member_id"] for row in rows}


def test_members_table_without_rows() -> None:
    """An empty group has a header and no rows."""
    assert [] == group_tables.member_rows(TRUTH["rec-eager"]["members"])


@pytest.mark.parametrize("what", ["state", "members", "offsets"])
def test_an_error_of_the_tool_is_raised(what: str) -> None:
    """Where the tool prints an error instead of a table, reading it raises with the tool's words."""
    with pytest.raises(CannotTellError, match=r"Group rec-gone not found\."):
        group_tables.rows(TRUTH["rec-gone"][what])


def test_an_empty_cell_is_no_missing_column() -> None:
    """A dynamic member beside a static one has blanks for its instance id; the cells after it keep their columns."""
    dynamic, static = group_tables.member_rows(STATIC_AND_DYNAMIC)

    assert (None, "b2", 3, 5) == (dynamic["instance_id"], dynamic["client_id"], dynamic["partitions"], dynamic["epoch"])
    assert ("i", "c", 0, None) == (static["instance_id"], static["client_id"], static["partitions"], static["epoch"])


def test_assignments_of_several_topics() -> None:
    """Topics are separated by semicolons, partitions by commas; a dash is nothing."""
    dynamic, static = group_tables.member_rows(STATIC_AND_DYNAMIC)

    assert {"orders": [3], "payments": [0, 1]} == dynamic["assigned"]
    assert {} == static["assigned"]
    assert {} == static["target"]


def test_tables_of_several_groups() -> None:
    """One answer may hold many tables; each row is read under its own header."""
    text = TRUTH["rec-new"]["members"] + TRUTH["rec-mixed"]["members"]

    assert ["rec-new", "rec-new", "rec-mixed", "rec-mixed"] == [row["group"] for row in group_tables.member_rows(text)]

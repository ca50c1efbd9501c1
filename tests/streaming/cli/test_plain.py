"""What `describe` and `replay` print of one group."""

from lab import builders
from lab.builders import offset_commit
from lab.coordinator_events import share_join
from streaming.base.text import cut
from streaming.cli.render.output import table
from streaming.cli.render.plain import group_text
from tests.coordinator_model.gates.test_gates import LEFT_OVER
from tests.coordinator_model.migration.test_classic_protocol_members import C2_REJOINS, CLASSIC, FIRST_UPGRADES
from tests.coordinator_model.migration.test_downgrade_check import BEFORE, n_leaves
from tests.histories import at, history


def test_members_on_the_classic_protocol_have_a_table_of_their_own() -> None:
    """State, what each keeps, revokes and waits for; a question mark says that it is inferred."""
    group = history(CLASSIC, FIRST_UPGRADES, C2_REJOINS).replayed().view("g")
    (*_, reported) = group_text(group)
    heads, c1, c2 = (line.split() for line in reported.splitlines())

    assert ["CLASSIC-MEMBER", "STATE", "SINCE", "SITUATION", "REBALANCES", "KEEPS", "REVOKES", "WAITS-FOR"] == heads
    assert ["c1", "PrepareRebalance", "1970-01-01T00:00:01.000Z", "behind", "eager?", "t:0,1", "-", "-"] == c1
    assert [
        *("c2", "CompletingRebalance?", "1970-01-01T00:00:04.000Z", "revoking"),
        *("cooperative", "t:2", "t:3", "-"),
    ] == c2


def test_members_on_the_consumer_protocol_have_none() -> None:
    """Nor have those of a classic group."""
    assert not any("CLASSIC-MEMBER" in part for part in group_text(history(CLASSIC).replayed().view("g")))


def test_what_a_broker_would_refuse_is_a_sentence() -> None:
    """The words of page, gate and events, not the code that the JSON has."""
    member = builders.member("m", assignment_bytes=builders.assignment({"t": [0]}, user_data=b"data"))
    refused = history(at(0, builders.group_metadata("g", generation=1, members=[member])))

    assert "upgrade blocked: a custom assignor's user data is in the assignment" in group_text(
        refused.replayed().view("g")
    )


# -- share and streams groups: as much of them as Kafka's own tools print ---------------------------------------------


def test_share_group_is_shown_with_its_delivery_state() -> None:
    """Initialized topics, those on the way, and those being taken down; only what there is."""
    joined = at(0, *share_join("s", "a", epoch=2, targets={"a": {"t": [0, 1]}}))
    states = [
        builders.share_group_state_partition_metadata("s", initialized={"t": [0, 1, 2]}, initializing={"u": [0]}),
        builders.share_group_state_partition_metadata("s", deleting=["t", "u"]),
        builders.share_group_state_partition_metadata("s"),
    ]
    shown = [list(group_text(history(joined, at(1, state)).replayed().view("s"))) for state in states]

    assert [
        "delivery state: initialized t:0-2, initializing u:0",
        "delivery state: deleting t u",
        "delivery state: -",
    ] == [paragraphs[1] for paragraphs in shown]
    assert "t:0,1" in shown[0][2]


def test_streams_group_is_shown_with_its_topology_and_tasks() -> None:
    """A table of subtopologies, and one of members with process, endpoint, tags and tasks by role."""
    reported = history(
        at(
            0,
            builders.streams_group_member("w", "a", process_id="p1", endpoint=("h", 80), tags={"zone": "z"}),
            builders.streams_group_topology("w", 3, {"sub-0": ["t", "u"]}),
            builders.streams_group_epoch("w", 2, validated_topology_epoch=3),
            builders.streams_group_target_assignment("w", "a", active={"sub-0": [0]}, standby={"sub-0": [2]}),
            builders.streams_group_target_assignment_epoch("w", 2),
            builders.streams_group_current_assignment(
                "w", "a", epoch=1, state=2, active={"sub-0": [0]}, active_pending_revocation={"sub-0": [1]}
            ),
        )
    ).replayed()

    paragraphs = list(group_text(reported.view("w")))
    cells = dict(zip(*(line.split() for line in paragraphs[4].splitlines()), strict=True))

    assert "topology: epoch 3, validated 3" == paragraphs[1]
    assert ["sub-0", "t", "u", "-", "-", "-"] == paragraphs[2].splitlines()[1].split()
    assert {
        "MEMBER": "a",
        "TOPOLOGY-EPOCH": "0",
        "PROCESS-ID": "p1",
        "ENDPOINT": "h:80",
        "TAGS": "zone=z",
        "ACTIVE": "sub-0:0",
        "STANDBY": "-",
        "WARMUP": "-",
        "PENDING-ACTIVE": "sub-0:1",
        "PENDING-STANDBY": "-",
        "PENDING-WARMUP": "-",
        "TARGET-ACTIVE": "sub-0:0",
        "TARGET-STANDBY": "sub-0:2",
        "TARGET-WARMUP": "-",
    } == cells


def test_streams_group_without_a_valid_topology_says_so() -> None:
    """None reported yet, or one that was not found valid."""
    epoch, topology = builders.streams_group_epoch("w", 2), builders.streams_group_topology("w", 0, {})

    assert ["topology: -", "topology: epoch 0, not validated"] == [
        list(group_text(history(at(0, *records)).replayed().view("w")))[1] for records in ((epoch,), (epoch, topology))
    ]


def test_what_a_downgrade_did_not_keep_is_reported() -> None:
    """When it was, and who or what is not as it was before."""
    kept = list(group_text(history(*BEFORE, n_leaves()).replayed().view("g")))
    lost = history(*BEFORE, at(2_500, offset_commit("g", "t", 0, 7)), n_leaves({"c": {}})).replayed()
    under_way = list(group_text(history(*BEFORE).replayed().view("g")))

    assert "downgraded 1970-01-01T00:00:03.000Z; assignments and offsets kept" in kept
    assert (
        "downgraded 1970-01-01T00:00:03.000Z; not given their targets: c; offsets that went back or were deleted: t/0"
    ) in list(group_text(lost.view("g")))
    assert "downgrade under way since 1970-01-01T00:00:01.000Z" in under_way


def test_records_left_over_are_reported_by_type() -> None:
    """How many of which."""
    assert "records left over from a downgrade: 1 of type 16" in list(group_text(LEFT_OVER.replayed().view("g")))


def test_lag_in_seconds_has_milliseconds_and_no_more() -> None:
    """Of groups and of partitions, lower bounds too; a script finds the figure in its column as before."""
    offset = {
        "topic": "t", "partition": 0, "offset": 1, "leader_epoch": -1, "commit_timestamp": None, "metadata": "",
        "log_end_offset": 9, "lag": 8, "lag_seconds": 1.2339999999999, "lag_seconds_at_least": True,
    }  # fmt: skip
    group = history(CLASSIC).replayed().view("g")
    (first, *_, offsets) = group_text({**group, "lag": 8, "max_lag_seconds": 0.30000000000000004, "offsets": [offset]})

    assert "0.3" == first.split()[-1]
    assert [">", "1.234"] == offsets.split()[-2:]


def test_a_long_name_does_not_widen_a_table() -> None:
    """It is cut as in labels, but in the last column, which widens nothing."""
    long = "n" * 32_000
    lines = table(["GROUP", "STATE", "WHY"], [[long, "Stable", long], ["short", "Empty", "none"]]).splitlines()

    assert [cut(long), "Stable", long] == lines[1].split()
    assert len(lines[2]) < 400

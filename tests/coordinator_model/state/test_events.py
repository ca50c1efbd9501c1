"""Events as others see them: the fields, ids that stay, severities from one table."""

import json
from typing import Final

import pytest

from coordinator_model.kinds.table import KINDS
from coordinator_model.state.events import CRITICAL, INFO, MEANINGS, SEVERITIES, WARNING, Event, event_view
from coordinator_model.state.findings import Finding, Position, events_of
from tests.histories import recorded

KINDS_OF_THE_CONTRACT: Final = set(
    """
    group_created group_deleted group_emptied group_in_two_partitions member_joined member_left member_fenced
    rebalance_started rebalance_completed rebalance_stuck rebalance_storm rebalance_rounds_lost duplicate_assignment
    duplicate_assignment_cleared partition_unassigned handover_without_revocation stale_claim
    static_member_absent static_member_returned static_member_replaced static_member_contended
    static_member_restarting group_unsettled poll_interval_exceeded
    upgrade_started upgrade_completed upgrade_unclean upgrade_blocked
    downgrade_started downgrade_completed downgrade_unclean
    migration_stalled members_not_back offset_rewound offset_deleted topic_recreated epoch_anomaly unknown_record
    log_truncated coordinator_not_loaded share_records_archived share_redelivering share_partition_stalled
    """.split()  # noqa: SIM905 - a list literal takes a line a word
)

PLACE: Final = Position(partition=7, offset=42, timestamp_ms=1_000)


def test_vocabulary_is_the_contracts() -> None:
    """No kind is missing, none is made up."""
    assert set(SEVERITIES) == KINDS_OF_THE_CONTRACT
    assert {INFO, WARNING, CRITICAL} == set(SEVERITIES.values())


def test_what_wakes_people_is_critical() -> None:
    """Two owners of a partition, two processes of a name, a rebalance without end, groups without coordinator alone."""
    woken = {"duplicate_assignment", "rebalance_stuck", "static_member_contended", "coordinator_not_loaded"}

    assert woken == {kind for kind, severity in SEVERITIES.items() if severity == CRITICAL}


def test_view_has_the_contracts_fields_and_an_id() -> None:
    """`time` in ms of the log, place of the record that showed it, an object of details."""
    event = Event(
        time_ms=1_000,
        group="g",
        kind="member_left",
        severity=INFO,
        partition=7,
        offset=42,
        detail={"member_id": "a"},
        inferred=True,
    )

    assert {
        "id": "7-42-member_left-0",
        "time": 1_000,
        "group": "g",
        "kind": "member_left",
        "severity": "info",
        "partition": 7,
        "offset": 42,
        "detail": {"member_id": "a"},
        "inferred": True,
    } == event_view(event)


def test_every_kind_has_a_meaning() -> None:
    """In sentences, for people."""
    assert SEVERITIES.keys() == MEANINGS.keys()
    assert all(text[0].isupper() and text.endswith(".") for text in MEANINGS.values())


@pytest.mark.parametrize("kind", [kind for kind, severity in SEVERITIES.items() if severity != INFO])
def test_every_verdict_says_what_it_reads_and_its_limits(kind: str) -> None:
    """In sentences: the page of events has them."""
    for text in (KINDS[kind].reads, KINDS[kind].limits):
        assert not text[:1].islower()
        assert text.endswith(".")


def test_events_of_one_record_and_kind_are_numbered() -> None:
    """So that each has an id of its own."""
    findings = [Finding("member_left"), Finding("member_joined"), Finding("member_left")]

    assert ["7-42-member_left-0", "7-42-member_joined-0", "7-42-member_left-1"] == [
        event.id for event in events_of("g", PLACE, findings)
    ]


@pytest.mark.parametrize(("severity", "expected"), [(None, WARNING), (CRITICAL, CRITICAL), (INFO, INFO)])
def test_severity_is_the_kinds_unless_the_rule_says_another(severity: str | None, expected: str) -> None:
    """The table is the rule, a finding may except itself."""
    (event,) = events_of("g", PLACE, [Finding("offset_rewound", severity=severity)])

    assert expected == event.severity


def test_events_of_a_whole_log_have_ids_of_their_own() -> None:
    """Within and across partitions; consumers drop repeats by them."""
    events = recorded().replayed().events

    assert len(events) == len({event.id for event in events})


def test_events_of_a_whole_log_are_json() -> None:
    """They go to topics, files and pages as such, with the severity of their kind, or as information."""
    views = [event_view(event) for event in recorded().replayed().events]

    assert views == json.loads(json.dumps(views))
    assert all(view["severity"] in (SEVERITIES[str(view["kind"])], INFO) for view in views)

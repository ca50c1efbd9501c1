"""The table of rules says what each rule makes, what it remembers, and when it speaks."""

import json
from collections import Counter
from collections.abc import Iterator
from dataclasses import fields, is_dataclass
from typing import Any, Final

import pytest

from coordinator_model.clocked import table as clocked_table
from coordinator_model.kinds.table import ALARMS, TIME
from coordinator_model.rules import table
from coordinator_model.rules.transition import Transition
from coordinator_model.state.events import INFO, SEVERITIES
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.snapshot import dump_group
from tests.coordinator_model.test_simulated_faults import FAULTS, scene_of
from tests.histories import History, recording
from tests.recorder.recordings import PATHS
from tests.side_by_side import log_of

# Kinds that are no rule's of the table, and who makes them.
MADE_ELSEWHERE: Final[dict[str, str]] = {
    **{
        kind: "the clock"
        for row in clocked_table.CLOCKED_RULES
        for kind in row.kinds
        # opened by a rule, cleared by the clock
        if kind not in ALARMS or ALARMS[kind].ends != TIME
    },
    "offset_rewound": "a commit",
    "offset_deleted": "a commit",
    "topic_recreated": "a commit",
    "unknown_record": "the replica",
    "log_truncated": "a partition that is read again",
    "coordinator_not_loaded": "the clock, of a partition, and who asks its leader",
    "share_records_archived": "the replica of the share coordinator",
    "share_redelivering": "the replica of the share coordinator",
    "share_partition_stalled": "a look with a clock at share partitions (`clocked/share_stalls.py`)",
    "group_in_two_partitions": "the replica of a whole log, or the board",
}


def logs() -> Iterator[History]:
    yield from (recording(path) for path in PATHS)
    for script, kind, _ in FAULTS:
        scene = scene_of(1, kind)
        script(scene)
        yield log_of(scene.coordinator)


def remembered(dumped: str) -> dict[str, str]:
    """Field → its snapshot."""
    body: dict[str, Any] = json.loads(dumped)[1]
    return {name: json.dumps(item) for name, item in body.items()}


class Watched:
    """Runs the table, and notes of each row what it made, changed and did while catching up."""

    def __init__(self) -> None:
        self.kinds: dict[int, set[str]] = {}
        self.changed: dict[int, set[str]] = {}
        self.spoke_early: set[int] = set()
        self.said: set[tuple[str, str, bool]] = set()
        self.details: dict[str, set[str]] = {}
        self.asked: Counter[int] = Counter()

    def run(self, transition: Transition) -> None:
        before = dump_group(transition.state)
        for number, row in enumerate(table.RULES):
            if not row.live_only and transition.step is None:
                continue
            found = list(row.rule(transition))
            after = dump_group(transition.state)
            transition.found += found
            self.asked[number] += 1
            self.kinds.setdefault(number, set()).update(finding.kind for finding in found)
            self.changed.setdefault(number, set())
            if after != before:
                was, is_now = remembered(before), remembered(after)
                self.changed[number] |= {name for name in was | is_now if was.get(name) != is_now.get(name)}
            before = after
            for of in found:
                what = (
                    " cleared" if of.detail.get("cleared") else " contradicting" if "contradicting" in of.detail else ""
                )
                self.details.setdefault(f"{of.kind}{what}", set()).update(of.detail)
                self.said.add((f"{of.kind}{what}", of.severity or SEVERITIES[of.kind], of.inferred))
            if found and not transition.live:
                self.spoke_early.add(number)


@pytest.fixture(scope="module")
def watched() -> Watched:
    """What the rules did over all recordings and all faults, live and while catching up."""
    watched = Watched()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(table, "run", watched.run)
        for log in logs():
            log.replayed()
            log.replayed(live_from=log.end)
    return watched


def name_of(row: table.RuleRow) -> str:
    return "-".join(row.kinds) or getattr(row.rule, "__name__", "")


ROWS: Final = [pytest.param(number, id=name_of(row)) for number, row in enumerate(table.RULES)]


@pytest.mark.parametrize("number", ROWS)
def test_rule_makes_the_kinds_of_its_row_and_no_others(watched: Watched, number: int) -> None:
    """Nothing else is made in any recording and any fault."""
    assert watched.asked[number]
    assert watched.kinds[number] <= {*table.RULES[number].kinds}


@pytest.mark.parametrize("number", ROWS)
def test_rule_changes_what_its_row_says_and_nothing_else(watched: Watched, number: int) -> None:
    """The membership least of all."""
    assert watched.changed[number] <= {*table.RULES[number].remembers}


@pytest.mark.parametrize("number", ROWS)
def test_rule_of_the_live_tail_is_silent_while_catching_up(watched: Watched, number: int) -> None:
    """A compacted log shows states that never were."""
    if table.RULES[number].live_only:
        assert number not in watched.spoke_early


def test_what_rules_remember_are_fields_of_the_state() -> None:
    """A row that names another field is out of date."""
    assert is_dataclass(GroupState)
    known = {field.name for field in fields(GroupState)}

    assert {name for row in table.RULES for name in row.remembers} <= known


def test_rule_that_keeps_an_alarm_makes_one() -> None:
    """What it keeps is shown by the row of its kind (`kinds/table.py`); without one it would be open in secret."""
    keeping = [{*row.kinds} for row in table.RULES if row.kinds and "alarms" in row.remembers]

    # Who is back ends what others opened.
    assert [{"static_member_returned", "static_member_replaced"}] == [of for of in keeping if not of & ALARMS.keys()]


def test_each_kind_of_event_has_its_maker() -> None:
    """Each is in the table, or is made elsewhere by one that is named here."""
    made = {kind for row in table.RULES for kind in row.kinds}

    assert SEVERITIES.keys() == made | MADE_ELSEWHERE.keys()
    assert set() == made & MADE_ELSEWHERE.keys()


INFERRED: Final = {
    "rebalance_rounds_lost",
    "rebalance_storm",
    "stale_claim contradicting",
    "static_member_restarting",
    "upgrade_completed",
}


def test_what_is_inferred_and_what_is_information(watched: Watched) -> None:
    """Of all recordings and faults: what the log does not say outright, and the end of each alarm."""
    assert INFERRED == {kind for kind, _, inferred in watched.said if inferred}
    others = {(kind, severity) for kind, severity, _ in watched.said if severity != SEVERITIES[kind.partition(" ")[0]]}
    ends = {(kind, INFO) for kind, _, _ in watched.said if kind.endswith(" cleared")}
    assert {kind.partition(" ")[0] for kind, _ in ends} <= ALARMS.keys()
    assert {("upgrade_blocked", INFO), ("rebalance_rounds_lost", INFO), *ends} == others


DETAILS: Final = {
    "downgrade_completed": "assignments_kept last_upgraded_members leftover_records members "
    "members_not_at_their_target members_not_given_their_target mixed_ms offsets offsets_back online",
    "downgrade_started": "begun_by members online upgraded_members",
    "downgrade_unclean": "leftover_records record_types",
    "downgrade_unclean cleared": "cleared",
    "duplicate_assignment": "members partitions tasks",
    "duplicate_assignment_cleared": "partitions tasks",
    "epoch_anomaly": "expected found member_id rule",
    "group_created": "simple type",
    "group_deleted": "",
    "group_emptied": "epoch type",
    "handover_without_revocation": "from_member_id generation partitions to_member_id",
    "member_joined": "client_host client_id instance_id member_id protocol",
    "member_left": "client_host client_id instance_id member_id protocol",
    "rebalance_completed": "causes duration_ms epoch generation members partition_count partitions_kept "
    "partitions_moved scaling stickiness sync_ms topics_added topics_removed",
    "rebalance_rounds_lost": "from_generation rounds_lost to_generation",
    "rebalance_started": "causes epoch members partition_count topics_added topics_removed",
    "rebalance_storm": "members rebalances window_ms",
    "stale_claim": "claimed_generation member_id newest_generation partitions",
    "stale_claim cleared": "cleared contradicting member_id",
    "stale_claim contradicting": "claimed_generation contradicting partitions",
    "static_member_replaced": "client_host client_id former_member_id instance_id member_id partitions protocol "
    "rebalance_saved",
    "static_member_restarting": "client_hosts client_ids instance_id may_be member_ids partitions replacements since",
    "static_member_returned": "absent_ms client_host client_id former_member_id instance_id member_id partitions "
    "protocol rebalance_saved",
    "upgrade_blocked": "members protocol reasons",
    "upgrade_blocked cleared": "cleared reasons",
    "upgrade_completed": "members members_before mixed_ms online replacements_awaited",
    "upgrade_started": "assignments_kept assignor_after assignor_before first_epoch generation members members_before "
    "offsets online upgraded_members",
}
"""Kind of event → all that its detail may have, of all recordings and faults."""


def test_details_have_the_keys_that_others_read(watched: Watched) -> None:
    """Consumers of events read them by these names."""
    assert {kind: set(names.split()) for kind, names in DETAILS.items()} == watched.details

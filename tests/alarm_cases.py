"""Which tests hold each alarm: where it is told, and where something only looks like it and it must not be told.

`docs/events.md` is made of this table and of the docstrings of the tests it names.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Cases:
    """Tests as `module.test` below `tests/coordinator_model`, without the `test_` of either."""

    told: tuple[str, ...]
    silent: tuple[str, ...]


ANY_ALARM: Final = (
    "simulated.recorded_log_tells_all_that_the_coordinator_knows",
    "simulated.cleaned_log_ends_in_the_same_groups",
    "simulated.log_cleaned_while_it_is_read_ends_in_the_same_groups",
    "replica.recording_compacted_anywhere_ends_in_the_same_groups",
)
"""Tests in which no alarm may be told but those of what did happen."""

CASES: Final[Mapping[str, Cases]] = {
    "member_fenced": Cases(
        told=("causes.member_gone_after_its_rebalance_timeout_was_fenced",),
        silent=(
            "causes.member_that_leaves_in_time_was_not_fenced",
            "causes.member_with_nothing_to_release_was_not_fenced",
        ),
    ),
    "rebalance_stuck": Cases(
        told=(
            "overdue.member_past_its_rebalance_timeout_is_stuck_and_named_with_what_it_holds",
            "overdue.target_that_is_never_computed_is_a_stuck_assignor",
            "overdue.one_that_waits_in_vain_is_told_when_nobody_holds_it_up",
            "bugs_of_consumer_groups.kafka_16224_commit_that_is_retried_for_ever_holds_a_partition",
        ),
        silent=(
            "overdue.member_within_its_rebalance_timeout_is_not_stuck",
            "overdue.stable_group_is_never_overdue",
            "overdue.time_of_a_member_begins_anew_with_each_record_of_it",
            "overdue.target_that_is_computed_again_and_again_is_no_stuck_assignor",
            "overdue.no_time_runs_from_before_the_coordinator_moved",
            "bugs_of_consumer_groups.kafka_20442_empty_group_keeps_its_epoch_ahead_of_its_target",
        ),
    ),
    "rebalance_storm": Cases(
        told=(
            "rebalances.storm_is_told_once_when_it_begins",
            "rebalances.consumer_groups_storm_too",
            "rebalances.storm_over_and_begun_again_is_told_again",
        ),
        silent=(
            "rebalances.one_rebalance_less_is_no_storm",
            "rebalances.rolling_restart_is_no_storm",
            "rebalances.follow_up_rounds_of_cooperative_rebalances_do_not_count",
            "rebalances.rebalances_of_a_group_rolled_between_the_protocols_do_not_count",
        ),
    ),
    "rebalance_rounds_lost": Cases(
        told=("classic_groups.gap_between_generations_is_rounds_that_never_completed",),
        silent=("classic_groups.first_generation_ever_seen_is_no_gap",),
    ),
    "duplicate_assignment": Cases(
        told=(
            "duplicates.partition_of_two_consumer_members_opens_once_and_clears_once",
            "duplicates.partition_yet_to_be_revoked_is_still_held",
            "duplicates.static_member_away_still_holds_its_partitions",
            "duplicates.partition_assigned_twice_in_one_generation_of_a_classic_group",
            "duplicates.active_task_of_two_streams_members_is_a_duplicate",
            "duplicates.duplicate_that_lasts_into_the_live_tail_is_told_with_the_next_record",
        ),
        silent=(
            "duplicates.gaining_member_written_before_the_losing_one_is_no_duplicate",
            "duplicates.targets_that_overlap_are_no_duplicate",
            "duplicates.member_replaced_in_one_event_is_no_duplicate",
            "duplicates.groups_of_other_protocol_types_have_no_partitions_to_own_twice",
            "duplicates.members_of_a_share_group_share",
            "duplicates.duplicate_before_the_live_tail_is_withheld",
            "duplicates.withheld_duplicate_that_resolves_before_the_live_tail_is_never_told",
        ),
    ),
    "partition_unassigned": Cases(
        told=("unassigned.partition_that_nobody_holds_for_long_is_told_once_with_who_asks_for_it",),
        silent=(
            "unassigned.partition_handed_out_in_time_is_never_told",
            "unassigned.group_without_members_lacks_no_owner",
            "unassigned.what_cannot_be_told_neither_opens_nor_clears",
            "unassigned.recording_of_a_real_broker_lacks_no_owner",
        ),
    ),
    "handover_without_revocation": Cases(
        told=("ownership.cooperative_handover_without_revocation",),
        silent=(
            "ownership.eager_sticky_handover_is_the_rule",
            "ownership.member_without_a_claim_is_not_judged",
        ),
    ),
    "stale_claim": Cases(
        told=(
            "ownership.claim_of_an_older_generation_is_stale",
            "ownership.claims_are_read_where_the_assignor_puts_them",
            "ownership.two_claims_of_the_newest_generation_on_one_partition_contradict",
        ),
        silent=(
            "ownership.claims_of_the_generation_before_are_as_they_should_be",
            "ownership.claims_in_a_record_that_a_downgrade_wrote_are_not_judged",
            "ownership.claims_in_the_first_record_seen_of_a_group_are_not_judged",
        ),
    ),
    "static_member_absent": Cases(
        told=("static_members.member_away_keeps_its_partitions_and_the_group_reconciling",),
        silent=("static_members.rejoin_that_rebalances_is_still_the_same_member",),
    ),
    "static_member_contended": Cases(
        told=("static_members.two_processes_with_one_instance_id_fight",),
        silent=(
            "static_members.restarts_are_no_fight",
            "static_members.returns_of_a_member_that_was_away_are_no_fight",
        ),
    ),
    "upgrade_blocked": Cases(
        told=(
            "upgrade_blockers.user_data_of_a_custom_assignor_is_told_once",
            "upgrade_blockers.malformed_embedded_protocol_is_told",
            "upgrade_blockers.group_that_becomes_blocked_is_told_then",
            "upgrade_blockers.reason_that_still_holds_is_told_when_reading_has_caught_up",
        ),
        silent=(
            "upgrade_blockers.consumers_of_kafka_are_not_blocked",
            "upgrade_blockers.group_of_another_protocol_type_is_not_told",
            "upgrade_blockers.member_that_the_leader_left_out_blocks_nothing",
            "upgrade_blockers.group_without_members_is_not_blocked",
            "upgrade_blockers.reason_of_the_past_is_not_told",
        ),
    ),
    "downgrade_started": Cases(
        told=(
            "migration.downgrade_is_one_story",
            "migration.downgrade_by_static_replacement",
            "migration.roll_that_turns_round_half_way_is_a_downgrade",
        ),
        silent=(
            "migration.downgrade_that_turns_round_is_an_upgrade_again",
            "migration.classic_member_that_joins_early_in_an_upgrade_does_not_turn_it",
            "migration.upgrade_is_one_story",
        ),
    ),
    "downgrade_unclean": Cases(
        told=(
            "migration.records_left_over_by_a_downgrade_are_reported_once",
            "migration.left_over_records_are_reported_when_reading_has_caught_up",
        ),
        silent=(
            "migration.left_over_records_are_gone_with_their_tombstones",
            "consumer_groups.expired_group_may_be_taken_down_in_pieces",
        ),
    ),
    "migration_stalled": Cases(
        told=("overdue.roll_that_nobody_goes_on_with_is_stalled_after_half_an_hour",),
        silent=("overdue.stable_group_is_never_overdue",),
    ),
    "offset_rewound": Cases(
        told=(
            "offsets.offset_that_goes_back_is_a_rewind",
            "offsets.offset_that_goes_back_without_an_id_to_compare_is_a_rewind",
            "handovers.rewind_after_a_hand_over_names_both_owners",
        ),
        silent=(
            "offsets.commit_of_the_same_offset_is_no_rewind",
            "offsets.commit_after_a_tombstone_is_a_first_one",
            "offsets.offset_that_goes_back_into_another_topic_is_no_rewind",
            "rewinds.partition_that_goes_back_after_its_topic_was_told_is_no_rewind",
            "rewinds.rewind_of_a_group_without_members_is_a_reset",
        ),
    ),
    "topic_recreated": Cases(
        told=(
            "rewinds.topic_made_anew_is_told_once_for_all_its_partitions",
            "rewinds.topic_made_anew_after_its_offsets_are_gone",
        ),
        silent=(
            "rewinds.late_commit_of_the_former_topic_tells_nothing",
            "rewinds.commits_without_an_id_tell_nothing_and_hide_nothing",
            "rewinds.ids_are_of_a_topic_and_of_a_group",
        ),
    ),
    "epoch_anomaly": Cases(
        told=(
            "epochs.group_epoch_that_does_not_grow_by_one",
            "epochs.generation_that_goes_back",
            "epochs.member_epoch_beyond_the_target",
            "epochs.classic_record_that_stays_under_a_consumer_group",
            "coherence.broken_rule_is_told_once_with_whom_and_what",
        ),
        silent=(
            "epochs.legal_history_is_no_anomaly",
            "epochs.legal_history_compacted_anywhere_is_no_anomaly",
            "epochs.two_events_of_one_millisecond_are_no_jump",
            "epochs.jump_before_the_live_tail_is_never_told",
            "coherence.legal_history_is_no_anomaly",
            "coherence.nothing_is_asked_of_a_group_in_which_no_record_followed_another",
        ),
    ),
    "unknown_record": Cases(
        told=("replica.unknown_type_is_told_once_and_counted_always",),
        silent=("serde.known_and_unknown_tags_mix", "serde.bytes_behind_key_and_value_are_ignored"),
    ),
}
"""Kind of event beyond information → its tests."""

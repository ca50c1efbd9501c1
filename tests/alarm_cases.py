"""Which tests hold each alarm: where it is reported, and where something only looks like it and it must stay silent.

`docs/events.md` is made of this table and of the docstrings of the tests it names.
"""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final


@dataclass(frozen=True, slots=True, kw_only=True)
class Cases:
    """Tests as `module.test` below `tests/coordinator_model`, without the `test_` of either."""

    reported: tuple[str, ...]
    silent: tuple[str, ...]


ANY_ALARM: Final = (
    "simulated.recorded_log_tells_all_that_the_coordinator_knows",
    "lawful_histories.nothing_is_an_alarm_but_what_was_done",
    "simulated.cleaned_log_ends_in_the_same_groups",
    "simulated.log_cleaned_while_it_is_read_ends_in_the_same_groups",
    "replica.recording_compacted_anywhere_ends_in_the_same_groups",
)
"""Tests in which no alarm may be reported but those of what did happen."""

CASES: Final[Mapping[str, Cases]] = {
    "member_fenced": Cases(
        reported=(
            "rebalance_causes.member_gone_after_its_rebalance_timeout_was_fenced",
            "fencing.member_that_is_gone_after_its_time_was_fenced_and_did_not_leave",
        ),
        silent=(
            "fencing.member_that_is_gone_sooner_left",
            "fencing.member_that_is_gone_hours_later_was_not_removed_by_a_timer",
            "fencing.member_that_has_nothing_to_do_leaves_when_it_likes",
            "rebalance_causes.member_that_leaves_in_time_was_not_fenced",
            "rebalance_causes.member_with_nothing_to_release_was_not_fenced",
        ),
    ),
    "rebalance_stuck": Cases(
        reported=(
            "stuck.member_past_its_rebalance_timeout_is_stuck_and_named_with_what_it_holds",
            "stuck.target_that_is_never_computed_is_a_stuck_assignor",
            "family_unsettled.target_that_a_member_waits_for_in_vain_is_a_stuck_assignor",
            "stuck.one_that_waits_in_vain_is_reported_when_nobody_holds_it_up",
            "bugs_of_consumer_groups.kafka_16224_commit_that_is_retried_for_ever_holds_a_partition",
            "silences.rebalance_that_hangs_where_silence_is_normal_is_reported",
            "silences.what_was_overdue_before_the_gap_is_reported_though_it_follows",
        ),
        silent=(
            "silences.nobody_is_blamed_for_what_did_not_happen_while_no_coordinator_worked",
            "stuck.member_within_its_rebalance_timeout_is_not_stuck",
            "stuck.stable_group_is_never_overdue",
            "family_unsettled.group_with_only_away_members_waits_for_no_assignor",
            "family_unsettled.streams_group_within_its_initial_delay_waits_for_no_assignor",
            "stuck.time_of_a_member_begins_again_with_each_record_of_it",
            "stuck.target_that_is_computed_again_and_again_is_no_stuck_assignor",
            "stuck.no_time_runs_from_before_the_coordinator_moved",
            "simulated_clock.clock_that_is_set_back_makes_no_alarm",
            "simulated_clock.clock_that_is_set_forward_makes_no_alarm",
            "simulated_clock.recording_ends_where_its_clocks_agree",
            "bugs_of_consumer_groups.kafka_20442_empty_group_keeps_its_epoch_ahead_of_its_target",
        ),
    ),
    "rebalance_storm": Cases(
        reported=(
            "rebalances.storm_is_reported_once_when_it_begins",
            "rebalances.consumer_groups_storm_too",
            "rebalances.group_of_both_protocols_storms_too",
            "family_unsettled.mixed_group_that_storms_is_reported",
            "rebalances.storm_over_and_begun_again_is_reported_again",
            "rebalances.group_that_storms_after_it_was_scaled_in_is_measured_by_who_is_left",
        ),
        silent=(
            "rebalances.one_rebalance_less_is_no_storm",
            "rebalances.rolling_restart_is_no_storm",
            "rebalances.group_that_is_scaled_in_storms_no_more_than_the_members_it_had_explain",
            "family_unsettled.roll_of_a_group_up_and_down_is_no_unrest",
            "rebalances.follow_up_rounds_of_cooperative_rebalances_do_not_count",
        ),
    ),
    "rebalance_rounds_lost": Cases(
        reported=(
            "classic_groups.gap_between_generations_is_rounds_that_never_completed",
            "bugs_of_classic_groups.kafka_12890_rounds_that_end_in_nothing",
        ),
        silent=(
            "classic_groups.first_generation_ever_seen_is_no_gap",
            "classic_groups.round_that_is_lost_to_a_member_that_joins_is_information",
            "classic_groups.round_that_its_last_member_left_is_information",
        ),
    ),
    "duplicate_assignment": Cases(
        reported=(
            "duplicate_owners.partition_of_two_consumer_members_opens_once_and_clears_once",
            "duplicate_owners.partition_yet_to_be_revoked_is_still_held",
            "duplicate_owners.static_member_away_still_holds_its_partitions",
            "duplicate_owners.partition_assigned_twice_in_one_generation_of_a_classic_group",
            "duplicate_owners.active_task_of_two_streams_members_is_a_duplicate",
            "duplicate_owners.duplicate_that_lasts_into_the_live_tail_is_reported_with_the_next_record",
        ),
        silent=(
            "duplicate_owners.gaining_member_written_before_the_losing_one_is_no_duplicate",
            "duplicate_owners.targets_that_overlap_are_no_duplicate",
            "duplicate_owners.member_replaced_in_one_event_is_no_duplicate",
            "duplicate_owners.groups_of_other_protocol_types_have_no_partitions_to_own_twice",
            "duplicate_owners.members_of_a_share_group_share",
            "duplicate_owners.duplicate_before_the_live_tail_is_withheld",
            "duplicate_owners.withheld_duplicate_that_resolves_before_the_live_tail_is_never_reported",
        ),
    ),
    "partition_unassigned": Cases(
        reported=(
            "unassigned_partitions.partition_that_nobody_holds_for_long_is_reported_once_with_who_asks_for_it",
            "topic_growth.partition_that_was_there_and_had_no_owner_is_reported",
            "topic_growth.partition_that_appears_and_finds_no_owner_is_reported_from_then_on",
            "unassigned_partitions.group_of_kafka_go_lacks_an_owner_as_any_other",
        ),
        silent=(
            "unassigned_partitions.partition_handed_out_in_time_is_never_reported",
            "unassigned_partitions.group_without_members_lacks_no_owner",
            "unassigned_partitions.what_cannot_be_known_neither_opens_nor_clears",
            "unassigned_partitions.recording_of_a_real_broker_lacks_no_owner",
            "topic_growth.nobody_lacks_partitions_before_they_are_there",
        ),
    ),
    "handover_without_revocation": Cases(
        reported=("ownership_claims.cooperative_handover_without_revocation",),
        silent=(
            "ownership_claims.eager_sticky_handover_is_the_rule",
            "ownership_claims.member_without_a_claim_is_not_judged",
        ),
    ),
    "stale_claim": Cases(
        reported=(
            "ownership_claims.claim_of_an_older_generation_is_stale",
            "ownership_claims.claims_are_read_where_the_assignor_puts_them",
            "ownership_claims.two_claims_of_the_newest_generation_on_one_partition_contradict",
        ),
        silent=(
            "ownership_claims.claims_of_the_generation_before_are_as_they_should_be",
            "ownership_claims.claims_in_a_record_that_a_downgrade_wrote_are_not_judged",
            "ownership_claims.members_of_a_downgraded_group_name_the_epoch_that_each_had_reached",
            "ownership_claims.claims_in_the_first_record_seen_of_a_group_are_not_judged",
        ),
    ),
    "static_member_absent": Cases(
        reported=(
            "static_members.member_away_keeps_its_partitions_and_the_group_reconciling",
            "static_absences.restart_of_a_deployment_is_one_alarm_that_lists_all",
            "static_absences.one_that_stays_away_is_named_and_the_alarm_stays",
            "static_absences.one_that_closes_long_after_another_stayed_away_is_another_restart",
        ),
        silent=(
            "static_members.rejoin_that_rebalances_is_still_the_same_member",
            "static_absences.roll_from_one_to_the_next_is_one_alarm",
            "static_absences.who_was_away_before_the_live_tail_is_not_reported",
        ),
    ),
    "static_member_contended": Cases(
        reported=(
            "static_members.process_that_takes_the_id_back_fights",
            "static_members.loop_that_turns_out_to_be_a_fight_is_reported_as_one",
            "family_static_members.two_processes_that_fence_each_other_for_hours_are_reported_while_it_lasts",
        ),
        silent=(
            "static_members.process_that_restarts_in_a_loop_fights_with_none",
            "static_members.id_that_is_taken_back_once_is_a_warning",
            "static_members.id_taken_back_by_who_had_released_it_is_no_fight",
            "family_static_members.three_quick_restarts_of_thirty_static_members_are_neither",
            "family_static_members.process_that_moves_to_another_host_is_neither",
            "family_static_members.rare_restarts_are_neither",
        ),
    ),
    "static_member_restarting": Cases(
        reported=(
            "static_members.process_that_restarts_in_a_loop_fights_with_none",
            "static_members.member_that_expires_and_joins_again_and_again_restarts_in_a_loop",
            "family_static_members.loop_of_one_host_is_a_warning",
        ),
        silent=(
            "static_members.restarts_are_no_loop",
            "family_static_members.three_quick_restarts_of_thirty_static_members_are_neither",
            "family_static_members.members_that_go_away_and_return_are_neither",
            "family_static_members.rare_restarts_are_neither",
        ),
    ),
    "poll_interval_exceeded": Cases(
        reported=(
            "poll_intervals.member_that_leaves_after_its_poll_interval_again_and_again_is_reported",
            "poll_intervals.member_that_is_gone_and_back_in_one_step_is_reported",
            "poll_intervals.members_of_consumer_groups_exceed_it_too",
            "poll_intervals.static_member_that_is_away_and_returns_each_time_is_reported",
            "poll_intervals.run_before_the_live_tail_is_reported_with_its_next_join",
        ),
        silent=(
            "poll_intervals.rolling_restart_of_many_members_is_none",
            "poll_intervals.job_that_consumes_for_a_minute_now_and_then_is_none",
            "poll_intervals.crash_loop_is_none",
            "poll_intervals.who_comes_from_another_host_is_another_process",
            "poll_intervals.spans_between_leaves_are_about_the_rebalance_timeout",
            "poll_intervals.two_leaves_in_a_row_are_none_yet",
            "poll_intervals.where_members_are_alike_it_takes_five",
        ),
    ),
    "upgrade_unclean": Cases(
        reported=(
            "upgrade_check.upgrade_that_loses_or_moves_something_is_reported_once",
            "upgrade_check.unclean_upgrade_says_in_what",
            "upgrade_check.static_member_that_is_upgraded_in_its_session_is_judged_by_what_its_former_id_was_given",
        ),
        silent=(
            "upgrade_check.lawful_upgrade_is_clean",
            "upgrade_check.static_member_is_missing_for_a_reason_only_once_its_session_may_have_ended",
            "upgrade_check.static_member_that_comes_after_its_session_is_a_new_one",
            "upgrade_check.topic_that_nobody_has_any_more_was_deleted",
            "upgrade_check.members_that_had_rejoined_explain_what_the_log_lacks",
            "upgrade_check.upgrade_before_the_live_tail_is_not_judged",
        ),
    ),
    "upgrade_blocked": Cases(
        reported=(
            "upgrade_blockers.user_data_of_a_custom_assignor_is_reported_once",
            "upgrade_blockers.malformed_embedded_protocol_is_reported",
            "upgrade_blockers.group_that_becomes_blocked_is_reported_then",
            "upgrade_blockers.leader_of_librdkafka_on_cooperative_sticky_blocks",
            "upgrade_blockers.reason_that_still_holds_is_reported_when_reading_has_caught_up",
        ),
        silent=(
            "upgrade_blockers.consumers_of_kafka_are_not_blocked",
            "upgrade_blockers.static_members_of_librdkafka_may_be_upgraded_before_any_rejoins",
            "upgrade_blockers.client_with_user_data_of_its_own_that_gives_none_is_not_librdkafka",
            "upgrade_blockers.members_of_librdkafka_on_other_assignors_are_not_blocked",
            "upgrade_blockers.group_of_another_protocol_type_is_not_reported",
            "upgrade_blockers.member_that_the_leader_left_out_blocks_nothing",
            "upgrade_blockers.group_without_members_is_not_blocked",
            "upgrade_blockers.reason_of_the_past_is_not_reported",
        ),
    ),
    "downgrade_started": Cases(
        reported=(
            "phases.downgrade_is_one_story",
            "phases.downgrade_by_static_replacement",
            "phases.roll_that_turns_round_half_way_is_a_downgrade",
            "simulated_rolls.roll_back_from_half_way_is_reported_once",
        ),
        silent=(
            "phases.downgrade_that_turns_round_is_an_upgrade_again",
            "phases.classic_member_that_joins_early_in_an_upgrade_does_not_turn_it",
            "phases.upgrade_is_one_story",
            "simulated_rolls.members_that_crash_and_restart_turn_no_roll",
            "simulated_rolls.last_classic_member_that_restarts_while_an_upgraded_one_is_down_begins_no_downgrade",
            "simulated_rolls.mixed_group_first_seen_half_way_goes_no_known_way",
        ),
    ),
    "downgrade_unclean": Cases(
        reported=(
            "phases.records_left_over_by_a_downgrade_are_reported_once",
            "phases.left_over_records_are_reported_when_reading_has_caught_up",
        ),
        silent=(
            "phases.left_over_records_are_gone_with_their_tombstones",
            "consumer_groups.expired_group_may_be_taken_down_in_pieces",
        ),
    ),
    "migration_stalled": Cases(
        reported=("stuck.roll_that_nobody_goes_on_with_is_stalled_after_half_an_hour",),
        silent=(
            "silences.roll_does_not_stall_while_no_coordinator_works",
            "stuck.stable_group_is_never_overdue",
        ),
    ),
    "members_not_back": Cases(
        reported=(
            "not_back.member_lost_in_a_hurried_roll_is_reported_once_with_what_is_known_of_it",
            "not_back.group_that_the_roll_emptied_is_reported",
            "not_back.group_that_converts_while_it_is_empty_is_rolled_too",
            "not_back.process_that_was_killed_and_is_still_counted_is_no_member_that_is_back",
            "not_back.member_lost_on_the_way_down_is_reported",
        ),
        silent=(
            "not_back.member_that_is_away_for_four_minutes_restarts",
            "not_back.member_within_a_long_session_may_be_away_for_as_long",
            "not_back.scale_in_before_the_roll_is_none_of_its_losses",
            "not_back.scale_in_before_static_members_are_rolled_in_place_is_none_of_its_losses",
            "not_back.scale_in_after_the_roll_is_none_of_its_losses",
            "not_back.restarts_that_overlap_are_none_that_last",
            "not_back.new_processes_that_come_before_the_former_ones_go_leave_nothing_missing",
        ),
    ),
    "group_unsettled": Cases(
        reported=("family_unsettled.group_in_which_a_member_flaps_for_hours_is_reported",),
        silent=(
            "settling.group_that_is_empty_is_at_rest",
            "family_unsettled.roll_of_a_group_up_and_down_is_no_unrest",
            "family_unsettled.member_that_is_slow_to_let_go_is_no_unrest",
            "family_unsettled.many_members_that_start_one_by_one_are_no_unrest",
            "family_unsettled.restarts_now_and_then_all_day_are_no_unrest",
        ),
    ),
    "offset_rewound": Cases(
        reported=(
            "rewinds.rewind_that_only_looks_like_a_new_topic_may_be_one",
            "rewinds.offset_that_goes_back_in_the_new_topic_is_a_rewind",
            "offset_commits.offset_that_goes_back_is_a_rewind",
            "offset_commits.offset_that_goes_back_without_an_id_to_compare_is_a_rewind",
            "handovers.rewind_after_a_hand_over_names_both_owners",
            "handovers.hand_over_is_remembered_over_later_rebalances",
            "handovers.partition_is_handed_over_when_its_owner_has_let_go_of_it",
            "family_rewinds.former_owner_that_commits_is_reported",
            "family_rewinds.former_owner_is_reported_where_commits_never_name_topic_ids",
            "rewinds.partitions_that_go_back_at_one_moment_are_one_event",
            "rewinds.rewind_of_which_a_part_is_back_is_of_the_rest",
            "rewinds.rewind_after_which_nothing_is_written_is_said_by_the_clock",
        ),
        silent=(
            "rewinds.topic_made_again_is_told_from_a_rewind_by_what_went_with_it",
            "offset_commits.commit_of_the_same_offset_is_no_rewind",
            "offset_commits.commit_after_a_tombstone_is_a_first_one",
            "offset_commits.offset_that_goes_back_into_another_topic_is_no_rewind",
            "rewinds.partition_that_goes_back_after_its_topic_was_reported_is_no_rewind",
            "rewinds.rewind_that_is_back_within_two_seconds_is_information",
            "rewinds.rewind_from_before_the_live_tail_is_not_awaited",
            "rewinds.rewind_of_a_group_without_members_is_a_reset",
            "rewinds.rewind_of_a_group_that_only_commits_is_information",
            "family_rewinds.resets_and_syncs_wake_nobody",
            "family_rewinds.commits_that_go_forward_after_any_hand_over_say_nothing",
            "family_rewinds.owner_that_seeks_back_is_no_former_owner",
        ),
    ),
    "topic_recreated": Cases(
        reported=(
            "rewinds.topic_made_again_is_told_from_a_rewind_by_what_went_with_it",
            "rewinds.id_that_a_topic_has_now_tells_what_a_commit_without_one_is_of",
            "rewinds.topic_recreated_is_reported_once_for_all_its_partitions",
            "rewinds.topic_recreated_after_its_offsets_are_gone",
        ),
        silent=(
            "rewinds.rewind_that_only_looks_like_a_new_topic_may_be_one",
            "rewinds.late_commit_of_the_former_topic_tells_nothing",
            "rewinds.commits_without_an_id_tell_nothing_and_hide_nothing",
            "rewinds.ids_are_of_a_topic_and_of_a_group",
        ),
    ),
    "epoch_anomaly": Cases(
        reported=(
            "epochs.group_epoch_that_does_not_grow_by_one",
            "epochs.generation_that_goes_back",
            "epochs.member_epoch_beyond_the_target",
            "epochs.classic_record_that_stays_under_a_consumer_group",
            "record_consistency.broken_rule_is_reported_once_with_whom_and_what",
        ),
        silent=(
            "epochs.legal_history_is_no_anomaly",
            "epochs.legal_history_compacted_anywhere_is_no_anomaly",
            "epochs.two_events_of_one_millisecond_are_no_jump",
            "epochs.jump_before_the_live_tail_is_never_reported",
            "record_consistency.legal_history_is_no_anomaly",
            "record_consistency.nothing_is_asked_of_a_group_in_which_no_record_followed_another",
        ),
    ),
    "share_redelivering": Cases(
        reported=(
            "share_redelivery.quarter_of_an_hour_of_redeliveries_is_reported_and_its_end",
            "share_redelivery.partitions_of_a_group_are_counted_together",
            "share_redelivery.what_goes_on_is_reported_once",
        ),
        silent=(
            "share_redelivery.less_is_silent",
            "share_redelivery.write_that_is_tried_again_counts_once",
            "share_redelivery.released_records_do_not_count_before_they_are_done",
            "share_redelivery.what_was_before_the_live_tail_does_not_count",
            "share_redelivery.window_that_is_not_over_says_nothing",
        ),
    ),
    "share_partition_stalled": Cases(
        reported=(
            "share_stalls.nothing_that_becomes_done_for_ten_minutes_is_reported_and_its_end",
            "share_stalls.record_that_holds_back_as_many_as_may_be_in_flight_is_reported",
            "share_stalls.partition_that_is_not_initialized_while_records_come_is_reported",
        ),
        silent=(
            "share_stalls.all_done_and_idle_is_silent",
            "share_stalls.record_that_is_slow_while_others_become_done_is_silent",
            "share_stalls.ten_minutes_count_from_when_records_wait",
            "share_stalls.without_a_member_it_is_silent",
            "share_stalls.one_that_is_not_initialized_and_idle_is_silent",
            "share_stalls.what_is_not_known_ends_nothing",
        ),
    ),
    "share_records_archived": Cases(
        reported=(
            "share_records.record_that_no_member_could_process_is_reported_at_the_limit",
            "share_records.rejected_records_next_to_each_other_are_reported_once",
            "share_records.limit_of_a_group_is_its_own",
            "share_records.much_that_is_given_up_within_a_minute_is_told_together",
            "share_records.what_is_left_to_be_said_is_said_at_the_end",
        ),
        silent=(
            "share_records.offset_that_may_have_no_record_is_information",
            "share_records.write_that_is_tried_again_is_no_second_time",
            "share_records.snapshot_of_what_was_given_up_is_no_second_time",
            "share_records.released_and_acknowledged_records_are_not_given_up",
            "share_records.records_skipped_by_a_reset_are_not_given_up",
            "share_records.what_was_given_up_before_the_live_tail_is_not_reported",
        ),
    ),
    "unknown_record": Cases(
        reported=(
            "replica.unknown_type_is_reported_once_and_counted_always",
            "newer_values.newer_value_is_reported_once_and_shown_on_its_group",
            "newer_values.value_that_cannot_be_read_at_all_is_reported_with_its_version",
        ),
        silent=(
            "serde.known_and_unknown_tags_mix",
            "serde.bytes_behind_key_and_value_are_ignored",
            "newer_values.values_of_known_versions_tell_nothing",
        ),
    ),
    "coordinator_not_loaded": Cases(
        reported=(
            "load_watch.coordinator_that_did_not_load_is_reported_once_with_its_groups",
            "load_watch.load_that_never_ends_is_reported",
            "load_watch.what_is_written_as_a_rule_is_missed_without_members_too",
        ),
        silent=(
            "load_watch.quiet_groups_are_no_alarm",
            "load_watch.long_load_is_no_alarm",
            "load_watch.leader_that_moves_is_no_alarm",
            "load_watch.partition_without_leader_has_another_name",
            "load_watch.coordinator_that_writes_has_loaded",
            "load_watch.silence_that_is_the_habit_is_no_alarm",
            "load_watch.what_nobody_misses_is_no_alarm",
            "load_watch.answers_that_are_far_apart_say_nothing_of_the_time_between",
        ),
    ),
    "log_truncated": Cases(
        reported=(
            "read_again.one_event_says_so",
            "log_continuity.a_lost_tail_is_read_again_though_the_log_has_grown_back",
            "log_continuity.a_lost_tail_is_found_at_a_start",
            "log_continuity.other_records_in_the_place_of_those_read_are_found",
        ),
        silent=(
            "log_continuity.a_leader_that_has_all_that_was_read_is_read_on_from",
            "log_continuity.a_lost_tail_of_which_nothing_was_read_is_none",
            "log_continuity.an_epoch_without_records_is_missed_by_nobody",
            "log_continuity.a_message_format_without_epochs_is_read_on",
        ),
    ),
}
"""Kind of event beyond information → its tests."""

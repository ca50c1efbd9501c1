"""What is known of every group now, in the driver's memory.

Reading order: board (what is shown), findings (what others found), health (whether it may be believed); batch_update,
board_group, group_summary; group_columns, lag_columns; then totals, attention, gates, readiness.
May import: base, end_offsets; libraries numpy, pyarrow.
"""

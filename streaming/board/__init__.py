"""What is known of every group now, in the driver's memory.

Reading order: board, batch_update, board_group, group_summary; group_columns, lag_columns; then totals, attention,
gates, readiness.
May import: base, end_offsets; libraries numpy, pyarrow.
"""

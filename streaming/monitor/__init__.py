"""Puts the rooms together: one monitor, several, one of polled groups, or serving only.

Reading order: base_monitor, monitor; parts, several, polled, topic_follower.
May import: base, config, kafka, query, spark, end_offsets, board, watchers, polling, checkpoint, metrics, sinks,
history, otlp, web; libraries kafka, py4j, pyarrow, pyspark, structlog.
"""

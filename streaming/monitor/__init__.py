"""Puts the rooms together: one monitor, several, or serving only.

Reading order: monitor first; several, topic_follower.
May import: base, config, kafka, query, spark, end_offsets, board, watchers, checkpoint, metrics, sinks, history, otlp,
web; libraries kafka, py4j, pyarrow, pyspark, structlog.
"""

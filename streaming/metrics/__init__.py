"""The catalogue of metrics, and the board as Prometheus text.

Reading order: catalogue first; group_metrics, offset_metrics, monitor_metrics; page, exporter.
May import: base, end_offsets, board; libraries isal, numpy, prometheus_client, pyarrow.
"""

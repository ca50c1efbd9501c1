"""The catalogue of metrics, and the board as Prometheus text.

Reading order: catalogue first; group_metrics, offset_metrics, monitor_metrics; exporter.
"""

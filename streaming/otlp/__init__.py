"""What leaves by OTLP over HTTP: the page of metrics, and events as log records; libraries load where it is asked for.

Reading order: connection, metrics_export, events_export.
May import: base, config, board, metrics, sinks; libraries google, opentelemetry, prometheus_client, requests.
"""

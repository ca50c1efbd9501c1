"""The command line: one command a file.

Reading order: client, groups and describe show the shape of a command; render/ draws.
May import: base, checkpoint, config, kafka, spark, recording, reports, sinks, history, otlp, monitor, demo, rehearsal,
loading; libraries dashboards, grafana_client, rich, typer, yaml.
"""

"""The demo: an embedded broker, real members, a rolling upgrade.

Reading order: scenario, run; embedded_broker and verifiable_consumer are the parts.
May import: base, config, query, spark, board, monitor; libraries confluent_kafka, rich.
"""

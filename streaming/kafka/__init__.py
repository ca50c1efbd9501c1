"""How the monitor talks to brokers: settings, credentials, permissions, clients.

Reading order: client_errors, any_release and librdkafka, the doors to the clients; client_settings,
security_settings, permissions, broker_queries, preflight; then plain_consumer, log_bounds, range_reader and
topic_reader, which read; cluster_client, which watchers ask; handshake_probe, producer.
May import: base, config; libraries aws_msk_iam_sasl_signer, confluent_kafka, kafka, pydantic.
"""

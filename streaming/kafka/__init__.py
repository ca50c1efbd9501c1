"""How the monitor talks to brokers: settings, credentials, permissions, clients.

Reading order: client_settings, security_settings, permissions, broker_queries, preflight; then handshake_probe,
producer, topic_reader.
May import: base, config; libraries aws_msk_iam_sasl_signer, confluent_kafka, kafka, pydantic.
"""

"""Layouts of the records in ``__consumer_offsets``, one dataclass per key, value and nested struct: data, no code.

Names, order and defaults are those of the JSON schemas in Apache Kafka 4.3.1's group-coordinator jar, in snake_case;
`coordinator_model.schema` explains the notation. Keys are never flexible; values are from type 3 on.
"""

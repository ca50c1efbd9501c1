"""Every record type of ``__consumer_offsets`` as data, and bytes to records and back.

Reading order: record_types (the registry), serde, then a module for each family. share_state and share_state_types are
those of ``__share_group_state``, whose types are numbered from 0, too.
May import: wire.

A layout has one dataclass for each key, value and nested struct. Names, order and defaults are those of the JSON
schemas in Apache Kafka 4.3.1's group-coordinator jar, in snake_case; `coordinator_model.wire.schema` explains the
notation. Keys are never flexible; values are from type 3 on.
"""

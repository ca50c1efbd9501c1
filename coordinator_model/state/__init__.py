"""What is remembered of a group: data only, no rules.

Reading order: membership (what Kafka holds), rule_memory (what rules remember), group_state (both), offsets,
packed_offsets; events and findings are what is concluded; snapshot writes state down.
May import: kinds.
"""

"""A group's shape, rolled on an embedded real broker with real members.

Reading order: shape, roll, run; members, member_process and wire_member take part.
May import: base, config, kafka, recording, reports, demo; libraries confluent_kafka.
"""

"""What leaves for Kafka topics or disk, with a durable queue in between.

Reading order: outputs, queue, delivery; groups_topic, topic_format and cloud_events are the topics.
May import: base, config, kafka, query, board; libraries kafka.
"""

"""What leaves for Kafka topics or disk, with a durable queue in between.

Reading order: outputs, queue, delivery; groups_topic and topic_format are the topics.
"""

"""The recording format, and making a recording.

Reading order: file_format, recorder.
May import: base, config, kafka; libraries confluent_kafka.
"""

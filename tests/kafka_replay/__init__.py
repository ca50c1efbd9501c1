"""Kafka's own replay as the judge of ours: the same log to both, and what they hold then compared.

    KafkaReplay.java   Kafka's coordinator shard, loaded with a log and described (package-private parts and all)
    judge              that class compiled and running, asked over its standard input
    logs               recordings, simulated histories, faulty and cleaned ones, with places to look at
    held               what a replica holds, in the same words
    comparison         what differs, and what differs by design, by name

`python -m tests.kafka_replay FILE…` compares recordings, of whatever cluster.
"""

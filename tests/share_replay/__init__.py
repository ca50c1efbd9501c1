"""Kafka's own share coordinator as the judge of our replica of it, and as the writer of simulated histories.

ShareReplay.java   Kafka's shard for one partition of its log: it is asked, writes, loads, and says what it holds
judge              that class compiled and running, asked over its standard input
chance             what is asked of it by chance: leaders change, offsets are reset, topics deleted, tails lost
comparison         what differs, and what differs by design
"""

"""Where partitions end, sampled: log end offsets, last stable offsets, topic ids.

Reading order: store (what is known), sampler (when brokers are asked), client (how).
May import: base, kafka; libraries kafka.
"""

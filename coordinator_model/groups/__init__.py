"""One state machine a group type: what its records, and the subscriptions inside them, do to a membership.

Reading order: common, consumer; then classic with embedded_subscription, share, streams; share_partitions, of a log of
its own.
May import: records, state.
"""

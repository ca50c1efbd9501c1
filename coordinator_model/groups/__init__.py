"""One state machine a group type: what its records, and the subscriptions inside them, do to a membership.

Reading order: common, consumer; then classic with embedded_subscription, share, streams.
May import: records, state.
"""

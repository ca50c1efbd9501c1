"""One state machine a group type: what its records do to a membership.

Reading order: common, consumer; then classic, share, streams.
"""

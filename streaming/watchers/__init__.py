"""Threads that check the board against the clock, or ask brokers about it.

Reading order: assembly (which threads there are), overdue_watch, hang_sampler, session_timeouts, broker_watch,
load_watch, lag_sampler.
May import: base, config, kafka, end_offsets, board; libraries kafka, numpy.
"""

"""What a first catch-up does otherwise than every later micro-batch, behind `door`, which alone others import.

A log of millions of records is read once, from its beginning to where it is live, and nothing of it may be alarmed. So
last_records leaves out what says nothing of the state; replay_shares has all processors replay; commit_seeds makes
offsets of whole columns, and `coordinator_model/first_reading.py` state of the rest, without rules.
"""

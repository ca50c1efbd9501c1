"""Figures of a group: what is asked of every group, worked out where its state is at hand.

A group's state as objects takes ten times the memory of its snapshot, and loading it takes 0.1 ms. Figures are a row
of numbers, and words that many groups share. The task that changes a state works them out; they stand in the lines
after the snapshot's, so that who reads it has them without the state.

Reading order: table, workings, rows, topics, summary, stored.
May import: records, state, groups, migration, rules, clocked, gates, views.
"""

"""What is concluded, and all that is said of it: one row a kind of event.

Reading order: table (the kinds), sentences (what their rows say at length), words (figures and names as people read
them).
May import: no other room.
"""

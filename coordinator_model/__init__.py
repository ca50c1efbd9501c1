r"""A replica of Kafka's group coordinator: the log in, groups and what happened to them out.

Kafka keeps its groups the way a database keeps its rows: every change is a record in a compacted log,
`__consumer_offsets`, and the coordinator's memory is what replaying the log gives. This package replays it too. It
is pure: the standard library only, no clock, no I/O, no Spark; the same log gives the same state and the same
events, in a REPL, a test, a replayed recording and a Spark executor.

Reading order, each room using only those above it:

    wire         bytes to structs and back, by schema
    records      every record type as data
    kinds        what is concluded, and all that is said of it: one row a kind of event
    state        what is remembered of a group
    groups       what a record does to it, one module a group type
    migration    classic to consumer protocol and back
    rules        what a step of the log shows (`steps.py` says when)
    clocked      what only time shows
    gates        may it be rolled?
    views        what is shown of a group
    figures      what is asked of every group: a table
    replica      the whole: records in, events out
    first_reading          the same of a log that is read for the first time: state alone, up to its live tail
    share_replica          the same of the share coordinator's log: share partitions
    copies, log_replica    groups with records in two partitions; the replica of all partitions
    lag, recording_clock    the arithmetic of lag; the clock of a recording
    topic_growth           since when partitions of a recording's topics are there

    >>> from coordinator_model import Position, Replica
    >>> replica = Replica()
    >>> replica.replay(Position(partition=0, offset=7, timestamp_ms=1_700_000_000_000), b"\x00\x63", None)[0].kind
    'unknown_record'
"""

from coordinator_model.replica import Replica
from coordinator_model.state.events import Event, event_view
from coordinator_model.state.findings import Position
from coordinator_model.views.group_view import group_view

__all__ = ["Event", "Position", "Replica", "event_view", "group_view"]

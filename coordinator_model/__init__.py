r"""A replica of Kafka's group coordinator: the log in, groups and what happened to them out.

Kafka keeps its groups the way a database keeps its rows: every change is a record in a compacted log,
`__consumer_offsets`, and the coordinator's memory is what replaying the log gives. This package replays it too. It
is pure: the standard library only, no clock, no I/O, no Spark; the same log gives the same state and the same
events, in a REPL, a test, a replayed recording and a Spark executor.

Reading order:

    wire, schema, records, record_types, serde    bytes ⇄ records
    group_state, offsets                          what is remembered of a group
    groups                                        what a record does to it, a module per group family
    steps                                         when to draw conclusions …
    roster, migration, classic_members,
    rebalances, invariants, coherence             … and which
    overdue, unassigned                           what the clock tells where no record does
    commits                                       what a commit of an offset does, and shows
    replica, looks                                the whole: records in, events out; a recording's clock
    lag, view, events                             what is shown of it
    snapshot                                      state ⇄ text for a checkpoint

    >>> from coordinator_model import Position, Replica
    >>> replica = Replica()
    >>> replica.replay(Position(partition=0, offset=7, timestamp_ms=1_700_000_000_000), b"\x00\x63", None)[0].kind
    'unknown_record'
"""

from coordinator_model.events import Event, event_view
from coordinator_model.replica import Position, Replica
from coordinator_model.view import group_view

__all__ = ["Event", "Position", "Replica", "event_view", "group_view"]

"""What several figures of a group are worked out of, looked up once a state."""

from __future__ import annotations

from coordinator_model.migration import upgrade_blockers
from coordinator_model.rules import partition_holders, subscriptions
from coordinator_model.rules.members import is_absent, members_of, speaks
from coordinator_model.state.group_state import GroupState


class Workings:
    """A group's state, and what is asked of it more than once.

    Attributes:
        state, membership, modern, migration, restless, counters: the state, and parts of it as they are named there.
        members: of all members, what is known.
        consumers: how many of them speak the consumer protocol.
        absent: how many of them are static and away.
        leftovers: records of a new protocol that outlived it.
        assigned: topic → partitions that some member holds (`partition_holders.held`).
        subscribed: names of the topics that members subscribe to, as far as the log shows.
        blockers: codes of what keeps the group from an upgrade.
    """

    __slots__ = (
        "absent", "assigned", "blockers", "consumers", "counters", "leftovers", "members", "membership", "migration",
        "modern", "restless", "state", "subscribed",
    )  # fmt: skip

    def __init__(self, state: GroupState) -> None:
        self.state = state
        self.membership = membership = state.membership
        self.modern = modern = membership.modern_group
        self.migration, self.restless, self.counters = state.migration, state.restless, state.counters
        self.members = members = members_of(membership).values()
        # Of a classic group no member speaks another protocol, nor is known to be away.
        self.consumers = 0 if modern is None else sum(speaks(member) == "consumer" for member in members)
        self.absent = 0 if modern is None else sum(map(is_absent, members))
        self.leftovers = membership.leftovers()
        self.assigned = partition_holders.held(membership)
        self.subscribed = subscriptions.subscribed_topics(membership)
        self.blockers = tuple(upgrade_blockers.blockers(membership))

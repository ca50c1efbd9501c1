"""Rounds of answers about groups: what the poller is answered."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from coordinator_model.state.shards import offsets_partition
from lab import builders
from streaming.polling import answers
from streaming.polling.client import Answered, Round
from tests.streaming.fake_cluster import FakeCluster
from tests.streaming.polling import replies


@dataclass
class FakeRounds(FakeCluster[Mapping[str, str]]):
    """Coordinators say of groups that are not listed that they are gone, unless the round has a failure.

    Of partitions without leader there is none to say so.
    """

    round: Round = field(default_factory=Round)

    def ask(self, shown: Mapping[str, str]) -> Round:
        self.note(shown)
        if self.round.failure is not None:
            return self.round
        unlisted = frozenset(shown) - self.round.listed
        of = self.round.partitions
        unled = {name for name in unlisted if of and offsets_partition(name, of) in self.round.without_leader}
        return replace(self.round, gone=unlisted - unled)


def listed(**groups: Answered) -> Round:
    """A round in which every broker answered about these."""
    return Round(listed=frozenset(groups), answered=groups, lists_all=True)


def classic(*members: str, state: str = "Stable", offsets: dict[int, int] | None = None) -> Answered:
    """A classic group whose members hold a partition each."""
    made = [builders.member(name, {"t": [at]}) for at, name in enumerate(members)]
    described = answers.classic_group(replies.classic("g", *made, state=state))
    return Answered(described, answers.offsets(replies.offsets({"t": offsets or {0: 4}})))


def consumer(*members: tuple[str, int]) -> Answered:
    """A consumer group of members (name, type) that hold a partition each."""
    made = [replies.consumer_member(name, 5, {"t": [at]}, member_type=of) for at, (name, of) in enumerate(members)]
    return Answered(answers.consumer_group(replies.consumer("g", *made)), {})

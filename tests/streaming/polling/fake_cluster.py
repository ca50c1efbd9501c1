"""A cluster that answers the poller from memory, and fails on request."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace

from lab import builders
from streaming.polling import answers
from streaming.polling.client import Answered, Round
from tests.streaming.polling import replies


@dataclass
class FakeCluster:
    """A cluster that answers from memory; `down` is what every question ends with while it is set.

    Coordinators say of groups that are not listed that they are gone, unless the round has a failure.
    """

    round: Round = field(default_factory=Round)
    down: Exception | None = None

    def connect(self) -> "FakeCluster":
        return self

    def ask(self, shown: Mapping[str, str]) -> Round:
        if self.down is not None:
            raise self.down
        if self.round.failure is not None:
            return self.round
        return replace(self.round, gone=frozenset(shown) - self.round.listed)

    def close(self) -> None:
        pass


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

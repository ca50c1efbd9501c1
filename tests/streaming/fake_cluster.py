"""A cluster that answers from memory, and fails when it is to: what stands in tests behind the protocol of a client."""

from dataclasses import dataclass, field
from typing import Generic, Self, TypeVar

Question = TypeVar("Question")


@dataclass
class FakeCluster(Generic[Question]):
    """What is the same of all: those who ask by another protocol have its answers in a class of their own.

    Attributes:
        down: what every question ends with while it is set.
        asked: all questions, in order.
        connections, closed: how often one connected, and let go.
    """

    down: Exception | None = None
    asked: list[Question] = field(default_factory=list)
    connections: int = 0
    closed: int = 0

    def connect(self) -> Self:
        """A client, which is the cluster itself; whether anybody is there shows with its first question."""
        self.connections += 1
        return self

    def close(self) -> None:
        self.closed += 1

    def note(self, *questions: Question) -> None:
        """What each method of a protocol begins with."""
        self.asked += questions
        if self.down is not None:
            raise self.down

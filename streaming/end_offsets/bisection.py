"""When the record at an offset was written, by asking where times are: `ListOffsets` for a timestamp, bisected.

A broker answers a time with the first record that is no older: its offset and its timestamp. So each answer halves the
span in which the record sought was written, and one that is the record itself ends the search; DESCRIBE is all it
takes, and no record is read. Records of one timestamp answer by their first, so a search also ends when the span is
short, with its beginning: of a record that the cleaner has removed that is the time of the one before, which is no
later. Producers whose clocks go back make the answer inexact, never endless: after `MOST_QUESTIONS` it is given up.
"""

from dataclasses import dataclass
from typing import Final

MOST_QUESTIONS: Final = 48
"""Halving a century to a millisecond takes 42."""

PRECISION_MS: Final = 1_000
"""Once the span is no longer, its beginning is the answer."""


@dataclass(slots=True)
class Bisection:
    """The search for one record.

    `low_ms` and `high_ms` enclose its time: a record before it is of the former, and it was there by the latter. Ask
    `question_ms`, `take` the answer, until `is_over`; then `written_ms` is when it was written, None where given up.
    """

    offset: int
    high_ms: int
    low_ms: int = -1
    questions: int = 0
    written_ms: int | None = None
    is_over: bool = False

    @property
    def question_ms(self) -> int:
        """The time to ask about."""
        return 0 if self.low_ms < 0 else (self.low_ms + self.high_ms) // 2

    def take(self, offset: int, time_ms: int) -> None:
        """The first record at or after the time asked about, and its timestamp; a negative offset for none."""
        asked_ms, is_first = self.question_ms, self.low_ms < 0
        self.questions += 1
        if offset == self.offset or (is_first and offset > self.offset):
            # The record itself, or the first there is, where the one sought was deleted with all before it.
            self.written_ms, self.is_over = time_ms, True
            return
        if is_first and offset < 0:
            self.is_over = True  # no record has a timestamp
        elif offset < 0 or offset > self.offset:
            self.high_ms = asked_ms
        else:
            self.low_ms = max(asked_ms, time_ms)
        if self.high_ms - self.low_ms <= PRECISION_MS and not self.is_over:
            self.written_ms, self.is_over = self.low_ms, True
        self.is_over |= self.questions >= MOST_QUESTIONS

"""Figures as they are stored, beside a group's snapshot: lines of words, then the numbers."""

from __future__ import annotations

import json
from functools import lru_cache
from typing import Final

from coordinator_model.figures.summary import GroupSummary, shared_durations, shared_words, summary
from coordinator_model.figures.table import WORDS, GroupWords
from coordinator_model.figures.topics import GroupTopics, shared_topics
from coordinator_model.state.group_state import GroupState

FORMAT: Final = 7
"""Grows with whatever figures say of a state: those of another number are worked out again."""

_LINES: Final = 5
_OURS: Final = b"%d\n" % FORMAT

_text: Final = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


def dump(state: GroupState) -> bytes:
    """A group's figures."""
    of = summary(state)
    lines = (
        str(FORMAT),
        _text_of_words(of.words),
        _text_of_topics(of.topics),
        _text(of.durations) if of.durations else "[]",
        _text(of.recent_rebalances_ms) if of.recent_rebalances_ms else "[]",
        "",
    )
    return "\n".join(lines).encode() + of.numbers


def load(figures: bytes) -> GroupSummary | None:
    """Inverse of `dump`; None where there are none, or those of another release."""
    if not figures.startswith(_OURS):
        return None
    _, words, topics, durations, recent, numbers = figures.split(b"\n", _LINES)
    return GroupSummary(
        _words_of(words),
        _topics_of(topics),
        numbers,
        () if recent == b"[]" else tuple(map(int, recent[1:-1].split(b","))),
        _durations_of(durations),
    )


@lru_cache(4_096)
def _text_of_words(words: GroupWords) -> str:
    return _text([getattr(words, name) for name in WORDS])


@lru_cache(4_096)
def _words_of(text: bytes) -> GroupWords:
    stored = zip(WORDS.values(), json.loads(text), strict=True)
    return shared_words(tuple([row.of_json(value) for row, value in stored]))


@lru_cache(1_024)
def _text_of_topics(of: GroupTopics) -> str:
    assigned = [[topic, sorted(parts)] for topic, parts in of.assigned.items()]
    return _text([sorted(of.subscribed), assigned, sorted(of.ids), of.by_id, of.assignments_known])


@lru_cache(1_024)
def _topics_of(text: bytes) -> GroupTopics:
    subscribed, assigned, ids, by_id, assignments_known = json.loads(text)
    held = tuple((topic, frozenset(parts)) for topic, parts in assigned)
    return shared_topics(frozenset(subscribed), held, frozenset(ids), by_id=by_id, assignments_known=assignments_known)


@lru_cache(4_096)
def _durations_of(text: bytes) -> tuple[int, ...]:
    return shared_durations(tuple(json.loads(text)))

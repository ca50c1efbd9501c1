"""Figures as they are stored: in the lines after a group's snapshot."""

from __future__ import annotations

import json
from binascii import a2b_base64, b2a_base64
from functools import lru_cache
from typing import Final

from coordinator_model.figures.summary import GroupSummary, shared_durations, shared_words, summary
from coordinator_model.figures.table import WORDS, GroupWords
from coordinator_model.figures.topics import GroupTopics, shared_topics
from coordinator_model.state import snapshot
from coordinator_model.state.group_state import GroupState

FORMAT: Final = 7
"""Grows with whatever figures say of a state: those of another number are worked out again."""

_LINES: Final = 6

_text: Final = json.JSONEncoder(separators=(",", ":"), check_circular=False).encode


def dump(state: GroupState) -> str:
    """A group's snapshot (`snapshot.dump_group`), and in the lines after it its figures."""
    of = summary(state)
    lines = (
        str(FORMAT),
        b2a_base64(of.numbers, newline=False).decode("ascii"),
        _text_of_words(of.words),
        _text_of_topics(of.topics),
        _text(of.durations) if of.durations else "[]",
        _text(of.recent_rebalances_ms) if of.recent_rebalances_ms else "[]",
    )
    return "\n".join((snapshot.dump_group(state), *lines))


def load(text: str) -> tuple[str, GroupSummary | None]:
    """The snapshot, and the figures that stand behind it: None where none do, or those of another release."""
    state, *lines = text.split("\n")
    if len(lines) != _LINES or lines[0] != str(FORMAT):
        return state, None
    _, numbers, words, topics, durations, recent = lines
    found = GroupSummary(
        _words_of(words),
        _topics_of(topics),
        a2b_base64(numbers),
        () if recent == "[]" else tuple(map(int, recent[1:-1].split(","))),
        _durations_of(durations),
    )
    return state, found


@lru_cache(4_096)
def _text_of_words(words: GroupWords) -> str:
    return _text([getattr(words, name) for name in WORDS])


@lru_cache(4_096)
def _words_of(text: str) -> GroupWords:
    stored = zip(WORDS.values(), json.loads(text), strict=True)
    return shared_words(tuple([row.of_json(value) for row, value in stored]))


@lru_cache(1_024)
def _text_of_topics(of: GroupTopics) -> str:
    assigned = [[topic, sorted(parts)] for topic, parts in of.assigned.items()]
    return _text([sorted(of.subscribed), assigned, sorted(of.ids), of.by_id, of.assignments_known])


@lru_cache(1_024)
def _topics_of(text: str) -> GroupTopics:
    subscribed, assigned, ids, by_id, assignments_known = json.loads(text)
    held = tuple((topic, frozenset(parts)) for topic, parts in assigned)
    return shared_topics(frozenset(subscribed), held, frozenset(ids), by_id=by_id, assignments_known=assignments_known)


@lru_cache(4_096)
def _durations_of(text: str) -> tuple[int, ...]:
    return shared_durations(tuple(json.loads(text)))

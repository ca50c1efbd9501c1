"""Groups by what they have to do with, and the topics they read.

A value is a name or a shell pattern. All that is asked for must hold, what is asked of a member of one and the same.

    asked for                       found in
    topic                           committed offsets, subscriptions, assignments
    owner                           the configuration's expectations
    client_id, host, instance_id    a member, as it is or, if static and away, as it was

Of a topic that is not always known: an id may have no name yet, and a subscription may be one that the log does not
spell out. Such groups are counted, never taken for groups that do not read it.
"""

from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from typing import Final

import numpy as np

from coordinator_model.rules.members import Member, members_of
from streaming.base.answers import ReaderAnswer, TopicAnswer, TopicsAnswer
from streaming.base.name_filter import pattern
from streaming.base.wanted import each, look
from streaming.board.board import Board
from streaming.board.board_group import BoardGroup
from streaming.board.lag_columns import Lags, measure, table_of
from streaming.board.unread import Unread

MEMBER_VALUES: Final[Mapping[str, Callable[[Member], str | None]]] = {
    "client_id": lambda member: member.client_id,
    "host": lambda member: member.client_host.removeprefix("/"),
    "instance_id": lambda member: member.instance_id,
}

ASKED: Final = ("topic", "owner", *MEMBER_VALUES)
"""What groups can be searched by."""


@dataclass(slots=True)
class Search:
    """A search over the groups of a board, for one pass.

    Attributes:
        cannot_tell: groups passed over though they may read the topic; counted as they are looked at.
    """

    board: Board
    asked: Mapping[str, str] = field(default_factory=dict)
    cannot_tell: int = 0
    _is_asked_for: Mapping[str, Callable[[str | None], bool]] = field(init=False)

    def __post_init__(self) -> None:
        self._is_asked_for = {name: _is(value) for name, value in self.asked.items()}

    def finds(self, held: BoardGroup) -> bool:
        """Whether a group is one that is asked for; raises GoneError where who has asked is gone."""
        look()
        asked = self._is_asked_for
        of_members = {name: asked[name] for name in MEMBER_VALUES if name in asked}
        if "owner" in asked and not asked["owner"](self.board.expectations.owner(held.name)):
            return False
        if of_members and not any(
            all(is_asked_for(MEMBER_VALUES[name](member)) for name, is_asked_for in of_members.items())
            for member in members_of(held.state.membership).values()
        ):
            return False
        if "topic" not in asked or any(map(asked["topic"], topics_of(self.board, held))):
            return True
        self.cannot_tell += has_untold_topics(self.board, held)
        return False


def _is(asked: str) -> Callable[[str | None], bool]:
    """Whether a value is that name, or one that the pattern matches; what is not known is neither."""
    matches = pattern(asked)
    return lambda value: value is not None and (value == asked or matches(value))


def topics_of(board: Board, held: BoardGroup) -> frozenset[str]:
    """Names of the topics a group has to do with, as far as they are known."""
    names = board.ends.topic_names
    return held.topic_names | {names[id_] for id_ in held.topics.ids if id_ in names}


def has_untold_topics(board: Board, held: BoardGroup) -> bool:
    """Whether it may read topics besides `topics_of`; workers of Kafka Connect and their like read none."""
    of, names = held.summary, board.ends.topic_names
    return any(id_ not in names for id_ in of.topics.ids) or (
        of.members > 0 and not of.words.all_topics_known and of.words.out_of_scope is None
    )


def topics_view(board: Board) -> TopicsAnswer:
    """All topics that groups have to do with, by name, with how many groups that are shown.

    `partitions` is None where brokers have not described the topic.
    """
    counts: Counter[str] = Counter()
    for group, held in each(board.shown.groups.items()):
        if board.scope.groups(group):
            counts.update(topics_of(board, held))
    described = board.ends.topics
    return {
        "topics": [
            {"topic": name, "partitions": described[name].partitions if name in described else None, "groups": count}
            for name, count in sorted(counts.items())
            if board.scope.topics(name)
        ],
        "left_out": sum(not board.scope.topics(name) for name in counts),
        "unread": board.health.standing().unread.listed(),
    }


def topic_view(board: Board, name: str, now_ms: int) -> TopicAnswer | None:
    """A topic, and every group that has to do with it, with its lag there; None for an unknown topic.

    Of each its `lag_columns.FIGURES` there. `subscribed` is None where the log does not tell. `cannot_tell` counts
    groups that may read it besides, `left_out` those that do and are not shown. While `ready` is False groups may be
    missing, and those of partitions of the log in `unread`.
    """
    shown, standing = board.moment()
    described = board.ends.topics.get(name)
    readers, left_out, cannot_tell = [], 0, 0
    for group, held in each(sorted(shown.groups.items())):
        if name not in topics_of(board, held):
            cannot_tell += has_untold_topics(board, held)
        elif board.scope.groups(group):
            readers.append(BoardGroup(group, held, tuple(of for of in held.buckets if of.topic == name)))
        else:
            left_out += 1
    if described is None and not readers and not left_out and standing.ready and not standing.unread:
        return None
    lags = measure(table_of(readers), board.ends, now_ms)
    groups = [_reader(board, lags, number, name, standing.unread) for number in range(len(readers))]
    return {
        "topic": name,
        "topic_id": None if described is None else described.id,
        "partitions": None if described is None else described.partitions,
        "groups": groups,
        "left_out": left_out,
        "cannot_tell": cannot_tell,
        "ready": standing.ready,
        "missing": standing.missing,
        "doubt": standing.doubt,
        "unread": standing.unread.listed(),
        "end_offset_age_seconds": board.ends.age_seconds(now_ms),
    }


def _reader(board: Board, lags: Lags, number: int, topic: str, unread: Unread) -> ReaderAnswer:
    held = lags.table.groups.held[number]
    doubt = unread.of(held.name, held)
    of, names = held.summary, board.ends.topic_names
    first, last = np.searchsorted(lags.table.owners, [number, number + 1]).tolist()
    held_there: set[int] = set()
    for key, partitions in of.topics.assigned.items():
        if (names.get(key) if of.words.is_modern else key) == topic:
            held_there |= partitions
    figures = lags.figures(number)
    found: ReaderAnswer = {
        "group": held.name,
        "owner": board.expectations.owner(held.name),
        "type": of.words.type,
        "state": of.words.group_state,
        "members": of.members,
        "subscribed": True
        if topic in of.topics.subscribed
        else False
        if of.words.all_topics_known or not of.members
        else None,
        "assigned_partitions": len(held_there),
        "committed_partitions": last - first,
        "lag": figures["lag"],
        "at_least": figures["at_least"],
        "unknown_lags": figures["unknown_lags"],
        "max_lag": figures["max_lag"],
        "max_lag_seconds": figures["max_lag_seconds"],
        "max_lag_seconds_at_least": figures["max_lag_seconds_at_least"],
    }
    if doubt is not None:
        found["doubt"] = doubt
    return found

"""Whether a coordinator's answer is what a board shows of a group: the log's word against its own.

An answer is of some moment between two looks at the board, and the group may have moved on between them: it agrees if
it is what either look shows, and an offset also if it lies between. What an answer does not say is not compared
(`answers.py`): generations, subscriptions, what members of a share group hold.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from coordinator_model.state.membership import SHARE, Membership
from streaming.board.board_group import BoardGroup
from streaming.polling.client import Answered


def agrees(answer: Answered, looks: Sequence[BoardGroup]) -> bool:
    """Whether the answer is what these looks show; False where it is not whole."""
    membership, offsets = answer.described.membership, answer.offsets
    if membership is None or offsets is None or not looks:
        return False
    said = _said(membership)
    if not any(said == _said(held.state.membership) for held in looks):
        return False
    if membership.type == SHARE:
        return True
    now = {(topic, of): each.offset for topic, by_partition in offsets.items() for of, each in by_partition.items()}
    shown = [{(topic, of): each.offset for topic, of, each in held.offsets} for held in looks]
    return all(
        _between(now.get(place), [each.get(place) for each in shown]) for place in now.keys() | set().union(*shown)
    )


def _between(offset: int | None, shown: Sequence[int | None]) -> bool:
    if offset in shown:
        return True
    known = [each for each in shown if each is not None]
    return offset is not None and len(known) == len(shown) and min(known) <= offset <= max(known)


def _said(membership: Membership) -> tuple[Any, ...]:
    """Of a membership what answers say, too."""
    modern = membership.modern_group
    if modern is not None:
        held = {
            of.member_id: (of.epoch, {} if modern.family == SHARE else _whole(of.assigned))
            for of in modern.members.values()
        }
        return modern.family, modern.epoch, modern.assignment_epoch, held
    classic = membership.classic_group
    members = {} if classic is None else classic.members
    protocol = None if classic is None or not members else classic.protocol
    return membership.type, protocol, {name: _whole(of.assigned) for name, of in members.items()}


def _whole(partitions: Mapping[str, tuple[int, ...]]) -> dict[str, tuple[int, ...]]:
    """Without topics of which there is nothing."""
    return {topic: of for topic, of in partitions.items() if of}

"""Offsets that went back: one event for all partitions of a group that did at one moment.

A commit of many partitions is as many records of one time, and who is woken by it is woken by one thing that happened.
So what goes back is kept until the group's next record has another time, or the record batch has ended.

    the group              a rewind is                                              severity
    has members            of a member: it sought back, or is not the owner         warning
                           the same, and all of it is back within two seconds:      info
                           commits in the wrong order, or a duplicate of one
    is empty               an admin's reset, or a sync of MirrorMaker: the broker   info
                           takes commits of others only then
    only commits           the committer decides where to go on                     info

The record names no author, but a broker takes commits of members only while there are any, and an admin's only while
there are none (`docs/coordinator-log.md`). Where members handed a partition over lately, one may have committed what
the other had not seen: records are processed twice, by a zombie or nearly one (`handovers.py`).

After a coordinator has moved, librdkafka sends the commits that waited meanwhile, and not in their order: an offset
goes back and is above where it was a moment later. Nobody reads anything again then. So a member's rewind is reported
once it is back, or has not been for `BACK_MS` by the log's time. Where nothing more is written the clock reports it
(`clocked/rewinds_awaited.py`), and the end of a log ends the wait: what is not seen to be back is not taken to be.

A topic that was made again under its name looks the same where commits name no topic id. What tells the two apart is
in `offset_commits.py`; where nothing does, `may_be_recreated` names the topics, and `former_commit` says when the
latest of their former offsets was committed: one who knows since when a topic has its id can decide.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace
from typing import Any, Final

from coordinator_model.rules import handovers
from coordinator_model.rules.members import members_of
from coordinator_model.state.clocks import elapsed_ms, within
from coordinator_model.state.events import INFO
from coordinator_model.state.findings import Finding, Position
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.rule_memory import Rewinds, Rewound

BACK_MS: Final = 2_000
"""Commits that a client had waiting arrive within a second of each other. One who seeks back reads for longer."""

MOST_SHOWN: Final = 100
"""Of so many partitions the event says from where to where; all are named."""


def note(  # noqa: PLR0913 - what is remembered, each by its name
    state: GroupState,
    place: Position,
    at: tuple[str, int],
    *,
    before: int,
    to: int,
    unclear_since_ms: int | None = None,
) -> None:
    """Remember that the offset of a topic's partition went back, and what the group was just then.

    Args:
        state: the group.
        place: of the commit.
        at: topic and partition.
        before: the former offset.
        to: the offset.
        unclear_since_ms: when the former was committed, if the topic may be another one since; else None.
    """
    topic, partition = at
    rewinds = state.rewinds
    if rewinds is None:
        rewinds = state.rewinds = Rewinds(time_ms=place.timestamp_ms, offset=place.offset)
        if not membership_is_later(state, place):
            rewinds.simple = not state.membership.exists
            rewinds.group_empty = None if rewinds.simple else not members_of(state.membership)
    rewinds.offset = place.offset
    state.counters.offset_resets += rewinds.meant
    handed = None
    if rewinds.group_empty is False:
        handed = handovers.of_partition(state, topic, partition, place.timestamp_ms)
    name = f"{topic}/{partition}"
    known = rewinds.partitions.get(name)
    others = (of.partitions.get(name) for of in state.awaited_rewinds)
    rewinds.partitions[name] = Rewound(
        before=before if known is None else known.before,
        to=to,
        highest=max([before, *(of.highest for of in (known, *others) if of is not None and not of.is_back)]),
        times=1 if known is None or known.is_back else known.times + 1,
        former_owner=None if handed is None else handed["former_owner"],
        present_owner=None if handed is None else handed["present_owner"],
        handover_ms=None if handed is None else handed["handover_time"],
        unclear_since_ms=unclear_since_ms,
    )


def note_commit(state: GroupState, time_ms: int, topic: str, partition: int, offset: int) -> None:
    """Remember that an offset was committed, where one that went back is awaited."""
    name = f"{topic}/{partition}"
    for rewinds in (state.rewinds, *state.awaited_rewinds):
        of = None if rewinds is None else rewinds.partitions.get(name)
        if rewinds is None or of is None or of.is_back or offset < of.highest:
            continue
        if within(BACK_MS, rewinds.time_ms, time_ms):
            rewinds.partitions[name] = replace(of, back_ms=elapsed_ms(rewinds.time_ms, time_ms))
            if not rewinds.meant:
                state.counters.offset_resets += of.times


def take_due(state: GroupState, now_ms: int | None, *, is_over: bool, live: bool) -> list[Rewinds]:
    """Moments that are to be reported now, which are forgotten with it; the others go on being awaited.

    Args:
        state: the group.
        now_ms: the log's time; None where the log ends, or the group does: nothing is awaited any longer.
        is_over: whether the moment at hand is.
        live: whether it is of the live tail. What is long past is not awaited.
    """
    rewinds = state.rewinds
    if rewinds is not None and is_over:
        state.rewinds = None
        if rewinds.meant or not live:
            return [rewinds, *take_due(state, now_ms, is_over=True, live=live)]
        state.awaited_rewinds = (*state.awaited_rewinds, rewinds)
    waiting = [of for of in state.awaited_rewinds if now_ms is not None and is_awaited(of, now_ms)]
    due = [of for of in state.awaited_rewinds if of not in waiting]
    state.awaited_rewinds = tuple(waiting)
    return due


def is_awaited(rewinds: Rewinds, now_ms: int) -> bool:
    """Whether the offsets of a moment that is over may yet be back in time."""
    return not rewinds.is_back and within(BACK_MS, rewinds.time_ms, now_ms)


def reported(rewinds: Rewinds) -> Finding:
    """The moment is over: one finding for all of it. What went back furthest stands first, after a hand-over if any.

    Before it what is not back, where something is.
    """
    gone = {name: of for name, of in rewinds.partitions.items() if not of.is_back} or rewinds.partitions
    handed = {name: of for name, of in gone.items() if of.former_owner is not None}
    worst = max(handed or gone, key=lambda name: _back(gone[name]))
    topic, _, partition = worst.rpartition("/")
    first = gone[worst]
    shown = sorted(rewinds.partitions.items(), key=lambda item: _back(item[1]), reverse=True)[:MOST_SHOWN]
    detail: dict[str, Any] = {
        "topic": topic,
        "partition": int(partition),
        "from": first.before,
        "to": first.to,
        "partitions": _by_topic(rewinds.partitions),
        "offsets": {name: {"from": of.before, "to": of.to} for name, of in sorted(shown)},
    }
    if handed:
        detail |= {
            "after_handover": True,
            "former_owner": first.former_owner,
            "present_owner": first.present_owner,
            "handover_time": first.handover_ms,
            "handed_over": _by_topic(handed),
        }
    unclear = {name: of.unclear_since_ms for name, of in rewinds.partitions.items() if of.unclear_since_ms is not None}
    if unclear:
        detail |= {"may_be_recreated": [*_by_topic(unclear)], "former_commit": max(unclear.values())}
    if rewinds.group_empty is not None:
        detail["group_empty"] = rewinds.group_empty
    back = {name: of.back_ms for name, of in rewinds.partitions.items() if of.back_ms is not None}
    if rewinds.is_back:
        detail["back_ms"] = max(back.values())
    elif back:
        detail["back"] = _by_topic(back)
    harmless = rewinds.meant or rewinds.is_back
    return Finding("offset_rewound", detail, severity=INFO if harmless else None, inferred=bool(handed))


def membership_is_later(state: GroupState, place: Position) -> bool:
    """Commits may be read later than memberships: who was in the group then is not known any more."""
    return (state.last_step_offset if state.step is None else state.step.last_offset) > place.offset


def _back(rewound: Rewound) -> int:
    return rewound.before - rewound.to


def _by_topic(names: Iterable[str]) -> dict[str, list[int]]:
    found: dict[str, list[int]] = {}
    for name in names:
        topic, _, partition = name.rpartition("/")
        found.setdefault(topic, []).append(int(partition))
    return {topic: sorted(partitions) for topic, partitions in sorted(found.items())}

"""A group as the API answers it: the GROUP object of the model with lag, attention, and what brokers said."""

from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from operator import itemgetter
from typing import Any, Final

from coordinator_model.records.topics import SHARE_STATE_TOPIC
from coordinator_model.state.membership import SHARE
from coordinator_model.views import group_view
from coordinator_model.views.log_lacks import lacks
from streaming.base.wanted import each
from streaming.board import attention
from streaming.board.batch_update import BoardSnapshot
from streaming.board.board import Board, BoardMoment
from streaming.board.board_group import BoardGroup
from streaming.board.group_lag import never_committed, offset_rows
from streaming.board.lag_columns import Lags, measure, table_of
from streaming.board.polls import UNKNOWN_IN_GROUP
from streaming.board.share_partitions import share_lags
from streaming.board.unread import EVERYTHING_IS_READ, Unread
from streaming.end_offsets.share_log import POLLED

STATELESS_MS: Final = 600_000
STATELESS: Final = (
    f"the group has members, and no state in {SHARE_STATE_TOPIC}: nothing was delivered yet, or brokers keep it "
    "elsewhere (group.share.persister.class.name)"
)
"""Why there is no lag of a share group that has had members for so long."""

AT_ONCE: Final = 200
"""Groups whose lag is measured together: for one alone it costs ten times as much."""


def view(board: Board, name: str, now_ms: int, shown: BoardSnapshot | None = None) -> dict[str, Any] | None:
    """GROUP with lag; None for a group there is not. Now, or as it was shown."""
    held = (board.shown if shown is None else shown).groups.get(name)
    return None if held is None else next(with_lag(board, [held], now_ms))


def views(  # noqa: PLR0913 - what may be asked for, all named
    board: Board,
    now_ms: int,
    *,
    type_: str | None = None,
    state: str | None = None,
    chosen: Callable[[BoardGroup], bool] = lambda _: True,
    moment: BoardMoment | None = None,
) -> Iterator[dict[str, Any]]:
    """GROUPs with lag, by name, each made when it is asked for, of the groups there are at the beginning, or were.

    Those of one type, of one state, and that are chosen, where given; with the `doubt` of those that may be in one
    of the partitions that cannot be read, now or as it was then.
    """
    moment = board.moment() if moment is None else moment
    found = (
        held
        for _, held in each(sorted(moment.shown.groups.items()))
        if board.scope.groups(held.name)
        and type_ in (None, held.words.type)
        and state in (None, held.words.group_state)
        and chosen(held)
    )
    yield from with_lag(board, found, now_ms, moment.standing.unread)


def with_lag(
    board: Board, groups: Iterable[BoardGroup], now_ms: int, unread: Unread = EVERYTHING_IS_READ
) -> Iterator[dict[str, Any]]:
    """GROUPs of the API, with everything that the board knows beside their states; `doubt` where there is one."""
    rest = iter(groups)
    while held := list(islice(rest, AT_ONCE)):
        with board.ends.lock:
            lags = measure(table_of(held), board.ends, now_ms)
            of_offsets = iter(offset_rows(lags, board.ends))
        for number in range(len(held)):
            doubt = unread.of(held[number].name, held[number])
            yield _with_lag(board, lags, number, of_offsets, now_ms) | ({} if doubt is None else {"doubt": doubt})


def _with_lag(
    board: Board, lags: Lags, number: int, of_offsets: Iterator[dict[str, Any]], now_ms: int
) -> dict[str, Any]:
    """GROUP of one group of a table; `of_offsets` begins with its own."""
    held = lags.table.groups.held[number]
    group = held.group_view(board.ends.topic_names, now_ms)
    duplicates = group_view.named(held.state.duplicates, board.ends.topic_names)
    rebalance = held.state.rebalance
    unheld = held.topics.unheld(board.ends.sizes)
    copies = board.copies.of(held.name, held.partition)
    offsets = [shown | next(of_offsets) for shown in group["offsets"]]
    if held.words.type != SHARE and (uncommitted := never_committed(group, board.ends)):
        offsets = sorted([*offsets, *uncommitted], key=itemgetter("topic", "partition"))
    # Of a polled group the log says nothing at all.
    lacking = [] if held.words.polled else lacks(group, has_topic_ids=board.ends.has_topic_ids)
    if "static_members" in group:
        group["static_members"] = [_with_age(board, of, held.state.name, now_ms) for of in group["static_members"]]
    return {
        **group,
        "owner": board.expectations.owner(held.name),
        "offsets": offsets,
        **lags.figures(number),
        "share_partitions": [of.view() for of in share_lags(held.shares, board.ends, now_ms)],
        **_share_lag_left_out(board, held, now_ms),
        "rebalances": held.state.counters.rebalances,
        "rebalancing_since": None if rebalance is None else rebalance.since_ms,
        "duplicates": {place: list(members) for place, members in duplicates.items()},
        "unassigned": None if unheld is None else {topic: list(parts) for topic, parts in unheld.items() if parts},
        "attention": attention.reasons(board, held, lags.of_read(number), now_ms),
        **({"log_lacks": lacking} if lacking else {}),
        **({} if copies is None else {"copies": copies.as_json()}),
        # What is not known of a polled group is null.
        **(UNKNOWN_IN_GROUP if held.words.polled else {}),
        **({"duplicates": None} if held.words.polled and not duplicates else {}),
    }


def _share_lag_left_out(board: Board, held: BoardGroup, now_ms: int) -> dict[str, str]:
    """Why there is no lag of a share group, where none is known of any of its partitions."""
    if held.words.type != SHARE:
        return {}
    why = POLLED if held.words.polled else board.ends.share_log.why_unknown
    of = held.summary
    if why is None and not held.shares and of.members and now_ms - of.last_step_ms >= STATELESS_MS:
        why = STATELESS
    return {} if why is None else {"lag_left_out": why}


def _with_age(board: Board, static_member: dict[str, Any], group: str, now_ms: int) -> dict[str, Any]:
    """With how long it has been away, and how long it may be where only the brokers know."""
    since_ms, timeout_ms = static_member["absent_since"], static_member["session_timeout_ms"]
    return {
        **static_member,
        "absent_ms": None if since_ms is None else max(0, now_ms - since_ms),
        "session_timeout_ms": board.findings.session_timeouts_ms.get(group) if timeout_ms is None else timeout_ms,
    }

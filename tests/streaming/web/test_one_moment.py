"""What is shown and whether it may be believed are of one moment, whatever comes while an answer is made."""

import json
from collections.abc import Callable, Mapping
from itertools import count
from typing import Any, Final

import pytest

from streaming.board.board import Board
from streaming.metrics.exporter import Exporter
from streaming.web.api_answers import Api, BrokerAnswers
from tests.brokers_by_release import ALLOWING
from tests.streaming.board_rows import Shard
from tests.streaming.boards import NOW_MS, classic_group, log_ends, rendered, sample


def half_read() -> tuple[Board, Callable[[], None]]:
    """A board of which one of two groups is read, and what reads the rest."""
    board, shard = Board(ends := log_ends(t=1)), Shard()
    board.load([])
    board.health.set_log_end_at_start({0: 10}, {0: 10})
    classic_group(shard, "read", {"m-1": {"t": [0]}})
    board.apply(0, shard.flush(), NOW_MS)
    board.health.set_positions({0: 5}, {0: 5}, NOW_MS)

    def read_on() -> None:
        classic_group(shard, "unread", {"m-1": {"t": [0]}})
        board.apply(1, shard.flush(), NOW_MS)
        board.health.set_positions({0: 10}, {0: 10}, NOW_MS)
        sample(ends, NOW_MS + 1, "t", 1)

    return board, read_on


def in_between(board: Board, what: Callable[[], None], question: int = 1) -> None:
    """Let it happen once, while the board is asked for the so-manyth time what is missing."""
    asked = count(1)

    def start() -> list[dict[str, Any]]:
        if next(asked) == question:
            what()
        return []

    board.health.show_start(start)


def metrics_of(api: Api) -> dict[str, Any]:
    lines = rendered(Exporter(api.board, "c"))[0].decode().splitlines()
    ready = [line for line in lines if line.startswith("group_monitor_ready{")]
    names = {name for name in ("read", "unread") for line in lines if f'group="{name}"' in line}
    return {"doubt": None if ready[0].endswith(" 1.0") or ready[0].endswith(" 1") else {}, "groups": list(names)}


def named(groups: Any) -> set[str]:
    return {each if isinstance(each, str) else each["group"] for each in groups}


ANSWERS: Final[Mapping[str, Callable[[Api], Any]]] = {
    "plan": lambda api: api.plan({}),
    "groups": lambda api: json.loads(b"".join(api.groups_json({}))),
    "topic": lambda api: api.topic("t"),
    "overview": lambda api: json.loads(api.overview()),
    "metrics": metrics_of,
}
"""What answers with groups and with whether they may be believed."""


@pytest.mark.parametrize("question", [1, 2])
@pytest.mark.parametrize("answer", ANSWERS.values(), ids=ANSWERS)
def test_half_a_log_is_never_believed(answer: Callable[[Api], Any], question: int) -> None:
    """The rest of it is read meanwhile: either all groups are there, or they are under doubt."""
    board, read_on = half_read()
    api = Api(board, "c", clock_ms=lambda: NOW_MS)
    in_between(board, read_on, question)

    for found in (answer(api), answer(api)):
        assert ({"read", "unread"} == named(found["groups"])) or found["doubt"] is not None
        assert (found["doubt"] is None) == found.get("ready", found["doubt"] is None)


@pytest.mark.parametrize("answer", [*ANSWERS.values()][:3], ids=[*ANSWERS][:3])
def test_a_board_that_starts_over_is_never_empty_and_believed(answer: Callable[[Api], Any]) -> None:
    """No groups are known then; that there are none is not."""
    board, read_on = half_read()
    read_on()
    api = Api(board, "c", clock_ms=lambda: NOW_MS)
    in_between(board, board.start_over)

    found = answer(api)

    assert ({"read", "unread"} == named(found["groups"])) or found["doubt"] is not None


def test_a_group_that_is_not_read_yet_is_not_said_to_be_none() -> None:
    """Its group was not there before, and is there now; a gate on it does not find that there is no such group."""
    board, read_on = half_read()
    api = Api(board, "c", clock_ms=lambda: NOW_MS)
    in_between(board, read_on)

    assert "unread" == api.group("unread")["group"]
    assert "not_caught_up" not in {reason["code"] for reason in api.gate("upgrade", ["unread"])["reasons"]}


def test_rows_that_were_made_under_doubt_are_made_again_as_soon_as_it_is_gone() -> None:
    """The live stream sends no word that all is well without them; the gate of these rows says the same."""
    board, read_on = half_read()
    api = Api(board, "c", brokers=BrokerAnswers(settings=lambda: ALLOWING), clock_ms=lambda: NOW_MS)
    token, _ = api.news(None, None)
    shown = named(json.loads(api.overview())["groups"])
    read_on()

    _, news = api.news(token, None)
    gate = api.gate("upgrade", [], {"as_shown": ""})
    shown |= named(news["groups"])

    assert (None, {"read", "unread"}) == (news["doubt"], shown)
    assert ("open", {"classic": 2}) == (gate["verdict"], gate["groups"])

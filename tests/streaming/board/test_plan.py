"""The plan of a board: what looks with a clock in hand have found is a reason for care."""

import pytest

from coordinator_model.gates.verdict import BrokerSettings
from coordinator_model.kinds.table import ALARMS, LOOKED_FOR
from lab import builders
from streaming.base.expectations import Expectations, Expected
from streaming.base.name_filter import one_of
from streaming.board.board import Board
from streaming.board.plan import plan
from tests.streaming.board_rows import Shard
from tests.streaming.boards import NOW_MS, THEN_MS, board_of, caught_up, log_ends, sample


def board_with_a_storm(expectations: Expectations | None = None) -> Board:
    """A group of one member, of which each second another generation is written, and one at rest."""
    shard = Shard()
    sample(ends := log_ends(t=1), NOW_MS, "t", 100)
    shard.pending += [
        (THEN_MS - 60_000 + 1_000 * number, *generation("g", number, f"m{number}")) for number in range(1, 60)
    ]
    shard.pending += [(THEN_MS, *generation("quiet", 1, "m"))]
    return caught_up(board_of(shard, ends, expectations))


def generation(group: str, number: int, name: str) -> builders.RecordBytes:
    return builders.group_metadata(group, generation=number, members=[builders.member(name, {"t": [0]})])


def readiness(board: Board, now_ms: int = NOW_MS) -> dict[str, tuple[str, str]]:
    """Group → readiness and the first reason."""
    found = plan(board, BrokerSettings(), one_of((), None), now_ms)["groups"]
    return {of["group"]: (of["readiness"], of["reasons"][0]["code"]) for of in found}


READY = ("ready", "client_library")


def test_a_storm_is_a_reason_for_care_while_it_lasts() -> None:
    """Five minutes without another it is over."""
    board = board_with_a_storm()

    assert {"g": ("care", "rebalance_storm"), "quiet": READY} == readiness(board)
    assert {"g": READY, "quiet": READY} == readiness(board, NOW_MS + 360_000)


def test_until_the_log_is_read_to_its_end_nothing_is_said_of_a_group() -> None:
    """As a gate: at a start the groups are as the run before left them, and may be otherwise by now."""
    board = board_with_a_storm()
    board.health.start_over()

    assert dict.fromkeys(("g", "quiet"), ("unknown", "not_caught_up")) == readiness(board)
    assert not plan(board, BrokerSettings(), one_of((), None), NOW_MS)["ready"]


@pytest.mark.parametrize("kind", [kind for kind in LOOKED_FOR if ALARMS[kind].before_a_roll])
def test_what_looks_have_found_is_a_reason_for_care(kind: str) -> None:
    """Until they find it no more."""
    board = board_with_a_storm()
    board.findings.set_overdue({kind: ["quiet"]})

    assert ("care", kind) == readiness(board)["quiet"]
    board.findings.set_overdue({})
    assert READY == readiness(board)["quiet"]


def test_what_the_configuration_expects_is_no_reason() -> None:
    """It is no alarm: the group is meant to do so."""
    nightly = Expectations([Expected("g", frozenset({"restarts"}), "every night")])

    assert READY == readiness(board_with_a_storm(nightly))["g"]

"""An alarm that lasts opens once, clears once, and waits for the live tail."""

import ast
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Final

import pytest

from coordinator_model.rules import lasting
from coordinator_model.rules.lasting import About, Lasting
from coordinator_model.rules.transition import Transition
from coordinator_model.state.alarms import Opened
from coordinator_model.state.findings import Finding, Position
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.snapshot import dump_group, load_group


def opened(_: Transition, names: Mapping[str, int]) -> Iterator[Finding]:
    yield Finding("opened", dict(names))


def cleared(_: Transition, names: list[str]) -> Iterator[Finding]:
    yield Finding("cleared", {"names": names})


def step(state: GroupState, holding: Mapping[str, int], *, live: bool = True) -> tuple[list[Finding], bool]:
    """Findings of one step in which this holds, and whether something was withheld."""
    alarm = Lasting(
        kind="epoch_anomaly",
        holds=lambda _: holding,
        opened=opened,
        cleared=cleared,
    )
    transition = Transition(state=state, before=state.membership, step=None, position=Position(0, 1, 2), live=live)
    return list(alarm(transition)), transition.withheld


def test_what_holds_is_reported_once_and_what_is_over_once() -> None:
    """Nothing is said again while it lasts, and the memory is empty in the end."""
    state = GroupState(name="g", partition=0)

    assert ([Finding("opened", {"a": 1})], False) == step(state, {"a": 1})
    assert ([], False) == step(state, {"a": 2})
    assert ([Finding("opened", {"b": 1})], False) == step(state, {"a": 2, "b": 1})
    assert ([Finding("cleared", {"names": ["a"]})], False) == step(state, {"b": 1})
    assert ([Finding("opened", {"c": 1}), Finding("cleared", {"names": ["b"]})], False) == step(state, {"c": 1})
    assert ([Finding("cleared", {"names": ["c"]})], False) == step(state, {})
    assert {} == state.alarms


def test_nothing_opens_or_clears_while_catching_up() -> None:
    """It is withheld where it would open or clear, and only there."""
    state = GroupState(name="g", partition=0)

    assert ([], True) == step(state, {"a": 1}, live=False)
    assert ([], False) == step(state, {}, live=False)
    assert ([Finding("opened", {"a": 1})], False) == step(state, {"a": 1})
    assert ([], False) == step(state, {"a": 1}, live=False)
    assert ([], True) == step(state, {}, live=False)
    assert ([Finding("cleared", {"names": ["a"]})], False) == step(state, {})


def test_what_is_open_is_kept_in_the_checkpoint() -> None:
    """After a restart it is not reported again, and its end still is."""
    state = GroupState(name="g", partition=0)
    step(state, {"a": 1})

    state = load_group(dump_group(state))

    assert ([], False) == step(state, {"a": 1})
    assert ([Finding("cleared", {"names": ["a"]})], False) == step(state, {})


def test_each_name_is_open_alone() -> None:
    """What opens comes in the order in which it is given, what is over in the order of names."""
    state, position = GroupState(name="g", partition=0), Position(0, 1, 2)
    lasting.changes(state, "alarm", dict.fromkeys(("x", "b", "d"), About()), position)

    changed = lasting.changes(state, "alarm", dict.fromkeys(("c", "b", "a"), About()), position)

    assert (["c", "a"], ["d", "x"]) == changed


def test_one_that_lasts_keeps_its_beginning() -> None:
    """Whom it is about may change meanwhile."""
    state = GroupState(name="g", partition=0)
    lasting.changes(state, "alarm", {"a": About(members=("m",))}, Position(0, 1, 2))

    assert ([], []) == lasting.changes(state, "alarm", {"a": About(members=("n",))}, Position(0, 7, 8))
    assert {"alarm": {"a": Opened(since_ms=2, offset=1, members=("n",))}} == state.alarms


def test_another_detail_is_another_alarm() -> None:
    """It opens, and is no end of the former one."""
    state = GroupState(name="g", partition=0)
    lasting.changes(state, "alarm", {"a": About(detail="5")}, Position(0, 1, 2))

    assert (["a"], []) == lasting.changes(state, "alarm", {"a": About(detail="6")}, Position(0, 7, 8))
    assert {"alarm": {"a": Opened(since_ms=8, offset=7, detail="6")}} == state.alarms


def test_one_of_a_moment_is_closed_by_name() -> None:
    """A kind of which none is open is not there, so that nothing of it is written down."""
    state = GroupState(name="g", partition=0)
    lasting.opened(state, "alarm", Position(0, 1, 2), "a", ("m",))
    lasting.opened(state, "alarm", Position(0, 7, 8), "a", ("n",))
    lasting.closed(state, "alarm", "b")
    assert {"alarm": {"a": Opened(since_ms=2, offset=1, members=("n",))}} == state.alarms

    lasting.closed(state, "alarm", "a")

    assert {} == state.alarms


@pytest.mark.parametrize("kind", ["member_behind", "rebalance_rounds_lost"])
def test_a_kind_that_nothing_shows_is_refused(kind: str) -> None:
    """One without a row, and one whose row is no alarm's."""
    with pytest.raises(ValueError, match=f"found kind='{kind}', accepted: "):
        Lasting(kind=kind, holds=lambda _: {}, opened=opened, cleared=cleared)


ROOT: Final = Path(__file__).resolve().parents[3]
WRITES: Final = {"clear", "pop", "popitem", "setdefault", "update"}


def writes_alarms(node: ast.AST) -> bool:
    """Whether it changes `alarms` of something: an item of it, all of it, or by a method of dictionaries."""
    match node:
        case ast.Subscript(value=ast.Attribute(attr="alarms"), ctx=ast.Store() | ast.Del()):
            return True
        case ast.Attribute(attr="alarms", ctx=ast.Store() | ast.Del()):
            return True
        case ast.Call(func=ast.Attribute(value=ast.Attribute(attr="alarms"), attr=method)):
            return method in WRITES
    return False


def test_what_is_open_is_written_in_one_place() -> None:
    """Whoever finds that an alarm opens or is over says so to this module, so that all that is derived of it agrees."""
    writing = {
        path.relative_to(ROOT).as_posix()
        for room in ("coordinator_model", "streaming")
        for path in (ROOT / room).rglob("*.py")
        if any(map(writes_alarms, ast.walk(ast.parse(path.read_text(encoding="utf-8")))))
    }

    assert {"coordinator_model/rules/lasting.py"} == writing

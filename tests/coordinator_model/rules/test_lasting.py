"""An alarm that lasts opens once, clears once, and waits for the live tail."""

from collections.abc import Iterator, Mapping

from coordinator_model.rules.lasting import Lasting, open_alarms, opened_and_cleared
from coordinator_model.rules.transition import Transition
from coordinator_model.state.findings import Finding, Position
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.snapshot import dump_group, load_group


def opened(_: Transition, names: Mapping[str, int]) -> Iterator[Finding]:
    yield Finding("opened", dict(names))


def cleared(_: Transition, names: list[str]) -> Iterator[Finding]:
    yield Finding("cleared", {"names": names})


def step(state: GroupState, holding: Mapping[str, int], *, live: bool = True) -> tuple[list[Finding], bool]:
    """Findings of one step in which this holds, and whether something was withheld."""
    alarm = Lasting(holds=lambda _: holding, opened=opened, cleared=cleared, memory=open_alarms("alarm"))
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
    assert {} == state.open_alarms


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
    """Both come in the order in which they are given."""
    assert ({"c": 3, "a": 1}, ["x", "d"]) == opened_and_cleared(["x", "b", "d"], {"c": 3, "b": 2, "a": 1})

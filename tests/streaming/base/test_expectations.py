"""Expectations: which alarms they hold back, of which groups; what they hold back is still seen, and counted."""

from collections import Counter
from pathlib import Path
from random import Random
from typing import Any, Final

import pytest

from coordinator_model.state.events import CRITICAL, INFO, event_view
from streaming.base.errors import UsageError
from streaming.base.expectations import HELD_BACK, Expectations, Expected, is_held_back
from streaming.base.text import cut
from streaming.board.event_window import EventWindow
from streaming.config.loading import load
from tests.coordinator_model.test_simulated_faults import FAULTS, scene_of
from tests.side_by_side import VICTIM

SEEDS: Final = range(20)
REASON: Final = "each instance reads everything"
BY_DESIGN: Final = {"leader_assigns_twice": "shares_partitions", "zombie_commits": "seeks_back"}
SCRIPTS: Final = {case[0].__name__: case for case in FAULTS}


def expecting(pattern: str, *names: str) -> Expectations:
    return Expectations([Expected(pattern, frozenset(names), REASON, "team", "https://runbook.example/x")])


def found(seed: int, script: str) -> list[dict[str, Any]]:
    """Events of the victim of a fault, as they are put out."""
    play, protocol, _ = SCRIPTS[script]
    scene = scene_of(seed, protocol)
    play(scene)
    events, _ = scene.reported()
    return [event_view(of) for of in events]


@pytest.mark.parametrize("script", BY_DESIGN)
@pytest.mark.parametrize("seed", SEEDS)
def test_expected_alarm_is_information_with_its_reason_and_counted(seed: int, script: str) -> None:
    """A custom assignor that shares partitions, members that seek back: as the group's owner said."""
    expectation, events = BY_DESIGN[script], found(seed, script)
    alarms = [of for of in events if of["severity"] != INFO and of["kind"] in HELD_BACK[expectation]]
    window = EventWindow(1_000)

    known = expecting("vic*", expectation).applied(events)
    window.add(known)

    held_back = [of for of in known if is_held_back(of)]
    assert [of["id"] for of in alarms] == [of["id"] for of in held_back]
    assert {REASON} == {of["detail"]["expected"]["reason"] for of in held_back}
    assert Counter(of["kind"] for of in alarms) == window.silenced_by_group()[VICTIM]
    assert [of["id"] for of in events] == [of["id"] for of in known]


@pytest.mark.parametrize("script", BY_DESIGN)
@pytest.mark.parametrize("seed", SEEDS)
def test_what_is_not_expected_of_the_group_is_an_alarm_as_ever(seed: int, script: str) -> None:
    """Another expectation of this group, the same of another group, or none."""
    events = found(seed, script)
    others = [name for name in HELD_BACK if name != BY_DESIGN[script]]

    for expectations in (
        expecting("vic*", Random(seed).choice(others)),
        expecting("other-*", BY_DESIGN[script]),
        Expectations(),
    ):
        alarms = [of for of in events if of["severity"] != INFO and of["kind"] in HELD_BACK[BY_DESIGN[script]]]
        known = expectations.applied(events)
        assert alarms == [of for of in known if of["severity"] != INFO and of["kind"] in HELD_BACK[BY_DESIGN[script]]]


@pytest.mark.parametrize(("inferred", "severity"), [(True, INFO), (False, CRITICAL)])
def test_group_that_never_downgrades(inferred: bool, severity: str) -> None:
    """What only looks like a downgrade is held back; one that is certain is worse than of another group."""
    event = {"group": "g", "kind": "downgrade_started", "severity": "warning", "inferred": inferred, "detail": {}}

    (known,) = expecting("g", "never_downgrades").applied([event])

    assert severity == known["severity"]
    assert REASON == known["detail"]["expected"]["reason"]


def test_configuration_says_what_is_expected(tmp_path: Any) -> None:
    """By pattern, each with its reason; one without is refused by name."""
    path = tmp_path / "c.yaml"
    known = "{seeks_back: true, reason: rewinds nightly, owner: pay}"
    path.write_text(f'alarms:\n  expectations:\n    "pay-*": {known}\n', "utf-8")
    kinds = load(path).alarms.expected.kinds("pay-1")
    assert {"offset_rewound"} == kinds.keys()
    assert ("rewinds nightly", "pay") == (kinds["offset_rewound"]["reason"], kinds["offset_rewound"]["owner"])

    path.write_text('alarms:\n  expectations:\n    "pay-*": {seeks_back: true}\n', "utf-8")
    with pytest.raises(UsageError, match=r"alarms\.expectations\.pay-\*\.reason"):
        load(path)


@pytest.mark.parametrize(
    ("given", "refused"),
    [
        ("{ownr: pay}", r"\.pay-\*\.ownr: found an unknown option, accepted: one of reason, .*owner"),
        ("{owner: 5}", r"\.pay-\*\.owner: found 5, accepted: text"),
        ("{restarts: '${env:SECRET}', reason: x}", r"\.pay-\*\.restarts: found \(not shown\), accepted: true or false"),
        ("5", r": found a dict \(not shown\)"),
    ],
)
def test_what_is_wrong_in_an_expectation_is_named(given: str, refused: str, tmp_path: Path) -> None:
    """The pattern, the option, what was found; never what a reference stood for."""
    path = tmp_path / "c.yaml"
    path.write_text(f"alarms: {{expectations: {{'pay-*': {given}}}}}", "utf-8")

    with pytest.raises(UsageError, match=rf"c\.yaml:1: alarms\.expectations{refused}") as found:
        load(path, env={"SECRET": "hunter2"})
    assert "hunter2" not in str(found.value)


def test_the_first_pattern_that_names_an_owner_says_whose_a_group_is() -> None:
    """One without an owner is passed over; None where none matches."""
    expectations = Expectations(
        Expected(pattern, frozenset(), "", owner)
        for pattern, owner in (("orders-eu-*", None), ("orders-eu-*", "europe"), ("orders-*", "orders"))
    )

    assert ["europe", "orders", None] == [expectations.owner(name) for name in ("orders-eu-1", "orders-us-1", "bills")]


def test_expectations_are_of_whole_names() -> None:
    """Of a name that labels cut, too: of another with the same beginning nothing is expected."""
    long = "g" * 32_000
    expected = expecting("g*-fan-out", "shares_partitions")

    assert {*HELD_BACK["shares_partitions"]} == expected.kinds(f"{long}-fan-out").keys()
    assert "team" == expected.owner(f"{long}-fan-out")
    for other in (f"{long}-fan-in", cut(f"{long}-fan-out")):
        assert ({}, None) == (expected.kinds(other), expected.owner(other))

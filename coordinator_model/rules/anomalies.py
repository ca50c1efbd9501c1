"""What no coordinator writes, as events: each anomaly by its rule and whom it is about.

    found                              rules                                           the event
    between two records of one step    `epochs.py`                                     once, and no end: it happened
    at the end of a step               `epochs.py`, `record_consistency.py`            once, and once when it is over

What a duplicate assignment says already is not said twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Final

from coordinator_model.rules import epochs, record_consistency
from coordinator_model.rules.lasting import About, Lasting
from coordinator_model.rules.transition import Transition
from coordinator_model.state.events import INFO
from coordinator_model.state.findings import Finding
from coordinator_model.state.rule_memory import EpochAnomaly

KIND: Final = "epoch_anomaly"


def record_by_record(transition: Transition) -> Iterator[Finding]:
    """What was found between the records of the step."""
    if transition.live and transition.step is not None:
        yield from _findings(transition.step.anomalies)


def _hold(transition: Transition) -> dict[str, EpochAnomaly]:
    return {anomaly.name: anomaly for anomaly in _at_the_end(transition)}


def _at_the_end(transition: Transition) -> Iterator[EpochAnomaly]:
    state, duplicates = transition.state, transition.duplicates
    yield from epochs.odd_epochs(transition.after)
    if state.whole:
        for anomaly in record_consistency.incoherent(
            transition.before, transition.after, state.open(KIND), all_members=transition.all_members
        ):
            if not anomaly.partitions or anomaly.partitions.keys() - duplicates.keys():
                yield anomaly


def _opened(_: Transition, anomalies: Mapping[str, EpochAnomaly]) -> Iterator[Finding]:
    return _findings(anomalies.values())


def _cleared(_transition: Transition, names: list[str]) -> Iterator[Finding]:
    for name in names:
        rule, _, member_id = name.partition("/")
        yield Finding(KIND, {"rule": rule, "member_id": member_id or None, "cleared": True}, severity=INFO)


LASTING_ANOMALIES: Final = Lasting(
    kind=KIND,
    holds=_hold,
    opened=_opened,
    cleared=_cleared,
    about=lambda _, anomaly: About(members=() if anomaly.member_id is None else (anomaly.member_id,)),
)


def _findings(anomalies: Iterable[EpochAnomaly]) -> Iterator[Finding]:
    for anomaly in anomalies:
        yield Finding(
            KIND,
            {
                "rule": anomaly.rule,
                "member_id": anomaly.member_id,
                "expected": anomaly.expected,
                "found": anomaly.found,
                **({"partitions": anomaly.partitions} if anomaly.partitions else {}),
            },
        )

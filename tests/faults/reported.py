"""What a disturbed run reported, shows and counts, and how it differs from what follows from the log."""

import json
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any, Final, NamedTuple, TypeVar

from coordinator_model.state.events import INFO
from coordinator_model.state.offsets import OffsetBucket
from coordinator_model.state.packed_offsets import load_offsets
from lab.monitor_process import MonitorProcess
from tests.faults.coordinator_log import Answer

ASKED_FOR = frozenset({"session_timeout_ms"})
"""Shown of members that are away, and asked of brokers: not in the log, and there as soon as they have answered."""


_Told = TypeVar("_Told", "Reported", Answer)


@dataclass
class Reported:
    """Rows that a sink was given, batch by batch, over all runs on one state directory.

    Attributes:
        batches: how many times a sink was given a batch.
        repeated: how many of these it had been given before, which is what the killed ones leave.
        twice: ids of events that came in two different batches.
        contradicted: ids of events that came again with another content.
    """

    events: dict[str, dict[str, Any]] = field(default_factory=dict)
    groups: dict[str, Any] = field(default_factory=dict)
    offsets: dict[tuple[str, str, int], OffsetBucket] = field(default_factory=dict)
    shards: dict[int, Any] = field(default_factory=dict)
    batches: int = 0
    repeated: int = 0
    twice: set[str] = field(default_factory=set)
    contradicted: set[str] = field(default_factory=set)
    processes: Counter[int] = field(default_factory=Counter)


def reported_in(file: Path) -> Reported:
    """What the sink of `victim.py` wrote down, folded as a board folds it."""
    reported, batch_of = Reported(), dict[str, int]()
    seen: set[int] = set()
    for line in file.read_text(encoding="utf-8").splitlines():
        try:
            batch = json.loads(line)
        except ValueError:
            continue  # torn by a kill or being written: no sink has it
        reported.batches += 1
        reported.repeated += batch["batch"] in seen
        reported.processes[batch["process"]] += 1
        seen.add(batch["batch"])
        for partition, kind, group, written, words in batch["rows"]:
            payload = bytes.fromhex(written)
            match kind:
                case "group":
                    reported.groups[group] = json.loads(words)
                case "group_deleted":
                    reported.groups.pop(group, None)
                    reported.offsets = {place: of for place, of in reported.offsets.items() if place[0] != group}
                case "offsets":
                    bucket = load_offsets(payload, words)
                    reported.offsets[group, bucket.topic, bucket.number] = bucket
                case "shard":
                    reported.shards[partition] = json.loads(payload)
                case "event":
                    event = json.loads(payload)
                    reported.twice |= (
                        {event["id"]} if batch_of.get(event["id"], batch["batch"]) != batch["batch"] else set()
                    )
                    reported.contradicted |= (
                        {event["id"]} if reported.events.get(event["id"], event) != event else set()
                    )
                    batch_of[event["id"]] = batch["batch"]
                    reported.events[event["id"]] = event
    return reported


@dataclass(frozen=True, kw_only=True)
class Difference:
    """How a run differs from the undisturbed answer; all empty is what is asked for."""

    events_lost: tuple[str, ...]
    events_added: tuple[str, ...]
    events_changed: tuple[str, ...]
    events_twice: tuple[str, ...]
    groups: tuple[str, ...]
    offsets: tuple[str, ...]
    shards: tuple[str, ...]

    def __bool__(self) -> bool:
        return any(vars(self).values())


OF_READING: Final = frozenset({"last_offset", "unreadable", "unreadable_batches"})
"""What is reported of a partition that no replay of its records could know."""


def difference(reported: Reported, answer: Answer) -> Difference:
    """Compare events by id and content, and all that is remembered and counted of every group."""
    mine = {name: json.loads(json.dumps(event)) for name, event in answer.events.items()}
    changed = {of for of in mine.keys() & reported.events.keys() if mine[of] != reported.events[of]}
    shards = {
        partition: {name: of for name, of in totals.items() if name not in OF_READING}
        for partition, totals in reported.shards.items()
    }
    offsets = {place: of for place, of in reported.offsets.items() if place[0] in reported.groups}
    return Difference(
        events_lost=tuple(sorted(mine.keys() - reported.events.keys())),
        events_added=tuple(sorted(reported.events.keys() - mine.keys())),
        events_changed=tuple(sorted(changed | reported.contradicted)),
        events_twice=tuple(sorted(reported.twice)),
        groups=_unlike(reported.groups, answer.groups),
        offsets=_unlike(offsets, answer.offsets),
        shards=_unlike(shards, answer.shards),
    )


def difference_with_gaps(reported: Reported, answer: Answer) -> Difference:
    """The same where records were cleaned away unread: each had a successor of its key, which says how things are.

    So every member, epoch and committed offset must be right. What happened in between no one can know; but no alarm
    may be made of the gap.
    """
    whole = difference(reported, answer)
    happened = {(event["group"], event["kind"]) for event in answer.events.values()}
    # What began in the gap and goes on is told with the next record that shows it.
    late = {(event["group"], event["kind"]) for name, event in answer.events.items() if name not in reported.events}
    alarms = {
        name
        for name in whole.events_added
        if (event := reported.events[name])["severity"] != INFO
        and (event["group"], event["kind"]) not in late
        # Seen by comparing what was before with what is after: it did happen, at another record.
        and not (event["inferred"] and (event["group"], event["kind"]) in happened)
    }
    return Difference(
        events_lost=(),
        events_added=tuple(sorted(alarms)),
        events_changed=(),
        events_twice=whole.events_twice,
        groups=_unlike(_memberships(reported.groups), _memberships(answer.groups)),
        offsets=_unlike(_committed(reported), _committed(answer)),
        shards=(),
    )


@dataclass(frozen=True, kw_only=True)
class Cut:
    """A partition lost its end after that was read, and is read again as at a first start.

    What was reported of the lost records was true then. Of what is read again nothing is news; an alarm that holds no
    more is cleared. All that comes later is as ever.

    Attributes:
        partition: which.
        reported: ids of the events that were reported before.
        live_from: where its log ended some time after it was cut, beyond all that was lost.
        alarms: ids of what a replay of it up to there reports.
    """

    partition: int
    reported: frozenset[str]
    live_from: int
    alarms: frozenset[str]

    def is_past(self, event: dict[str, Any]) -> bool:
        """Whether an event is of what was read again, and need not be reported."""
        return bool(event["partition"] == self.partition and event["offset"] < self.live_from)

    def may_be(self, event: dict[str, Any]) -> bool:
        """Whether it may be reported for all that."""
        if not self.is_past(event):
            return False
        is_news = event["id"] not in self.reported and event["id"] not in self.alarms
        return not (is_news and event["severity"] != INFO and not event["detail"].get("cleared"))


def difference_after(cuts: Collection[Cut]) -> Callable[[Reported, Answer], Difference]:
    """The same where partitions were cut: their groups and offsets must be right, and counts are counted anew."""
    numbers = {cut.partition for cut in cuts}

    def difference_after_cuts(reported: Reported, answer: Answer) -> Difference:
        whole, known = difference(reported, answer), {**answer.events, **reported.events}

        def news(names: Iterable[str]) -> tuple[str, ...]:
            # What names no group is the cut's own report.
            return tuple(
                name
                for name in names
                if known[name]["kind"] != "log_truncated" and not any(cut.may_be(known[name]) for cut in cuts)
            )

        again = {
            name
            for groups in (reported.groups, answer.groups)
            for name, (_, state) in groups.items()
            if state["partition"] in numbers
        }
        groups = {name for name in whole.groups if name not in again}
        offsets = {place for place in whole.offsets if not any(place.startswith(f"({name!r}, ") for name in again)}
        of_cut = difference_with_gaps(_only(reported, again), _only(answer, again))
        return Difference(
            events_lost=tuple(name for name in whole.events_lost if not any(cut.is_past(known[name]) for cut in cuts)),
            events_added=news(whole.events_added),
            events_changed=news(whole.events_changed),
            events_twice=news(whole.events_twice),
            groups=tuple(sorted(groups | {*of_cut.groups})),
            offsets=tuple(sorted(offsets | {*of_cut.offsets})),
            shards=tuple(number for number in whole.shards if int(number) not in numbers),
        )

    return difference_after_cuts


def difference_when_rebuilt(reported: Reported, answer: Answer) -> Difference:
    """The same where the log was read again as history: what is alarmed then began, as far as told, at its end."""
    return replace(difference(reported, answer), groups=_unlike(_undated(reported.groups), _undated(answer.groups)))


def difference_from_former(reported: Reported, answer: Answer) -> Difference:
    """The same where a former release had read the first part: what it counted, it counted by rules of its own."""
    return replace(difference(reported, answer), groups=_unlike(_uncounted(reported.groups), _uncounted(answer.groups)))


def as_former_noted(view: dict[str, Any]) -> dict[str, Any]:
    """Of a group's view what a former release had noted already: not how much user data came with a claim."""
    members = [{key: of for key, of in member.items() if key != "assignment_epochs"} for member in view["members"]]
    for member in members:
        if "claims" in member:
            known = [{key: of for key, of in claim.items() if key != "user_data_bytes"} for claim in member["claims"]]
            member["claims"] = known
    return {**view, "members": members}


def as_it_is(view: dict[str, Any]) -> dict[str, Any]:
    """Of a group's view what follows from how it is, and not from how it came to be so."""
    known = {key: of for key, of in view.items() if key not in ("scaling", "static_members")}
    known["members"] = [
        {key: of for key, of in member.items() if key != "classic_protocol"} for member in view["members"]
    ]
    known["migration"] = {key: view["migration"][key] for key in ("members", "upgraded_members", "leftovers")}
    return known


class Comparison(NamedTuple):
    """How what was reported is compared with what follows from the log, and which part of the groups' views is."""

    reports: Callable[[Reported, Answer], Difference]
    view: Callable[[dict[str, Any]], dict[str, Any]]


WHOLLY: Final = Comparison(difference, dict)
WITH_GAPS: Final = Comparison(difference_with_gaps, as_it_is)
"""Records were cleaned away before they were read, and with them what only they had reported."""
REBUILT: Final = Comparison(difference_when_rebuilt, dict)
"""The state was forgotten, and the log read again."""
FROM_FORMER: Final = Comparison(difference_from_former, as_former_noted)
"""A former release had read the first part of the log."""


def after_cuts(*cuts: Cut) -> Comparison:
    """Partitions lost their ends after they were read."""
    return Comparison(difference_after(cuts), as_it_is)


def _only(of: _Told, groups: Collection[str]) -> _Told:
    """The groups of these names, and what they committed."""
    return replace(
        of,
        groups={name: state for name, state in of.groups.items() if name in groups},
        offsets={place: bucket for place, bucket in of.offsets.items() if place[0] in groups},
    )


def _memberships(groups: dict[str, Any]) -> dict[str, Any]:
    return {name: state.get("membership") for name, (_, state) in groups.items()}


def _undated(groups: dict[str, Any]) -> dict[str, Any]:
    """Groups without when and where the alarms began that are open, and without who was away before the live tail."""

    def undated(state: dict[str, Any]) -> dict[str, Any]:
        alarms = {
            kind: {name: {**of, "since_ms": None, "offset": None} for name, of in names.items()}
            for kind, names in state.get("alarms", {}).items()
        }
        return {**{key: of for key, of in state.items() if key != "absences"}, "alarms": alarms}

    return {name: (of, undated(state)) for name, (of, state) in groups.items()}


BY_FORMER_RULES: Final = frozenset({"counters", "recent_rebalance_members"})
"""What a former release counted by rules of its own, and how many members its rebalances had, which it did not note."""


def _uncounted(groups: dict[str, Any]) -> dict[str, Any]:
    return {
        name: {key: of for key, of in state.items() if key not in BY_FORMER_RULES}
        for name, (_, state) in groups.items()
    }


def _committed(of: Reported | Answer) -> dict[Any, Any]:
    # One that has none any more may never have been seen.
    return {place: bucket.offsets for place, bucket in of.offsets.items() if place[0] in of.groups and bucket.offsets}


def shown(monitor: MonitorProcess, answer: Answer) -> dict[str, dict[str, Any]]:
    """Groups as the API answers them, with what the log alone shows."""
    return {
        name: _as_known(_committed_alone(view), answer.views[name]) if name in answer.views else view
        for name, view in monitor.groups().items()
    }


def _committed_alone(view: dict[str, Any]) -> dict[str, Any]:
    """A group without the rows of partitions that were never committed: they are the board's, not the log's."""
    return {**view, "offsets": [offset for offset in view["offsets"] if offset["offset"] is not None]}


def _as_known(shown: Any, known: Any) -> Any:
    """Of what is shown, the keys that are known."""
    if isinstance(known, dict) and isinstance(shown, dict):
        return {key: of if key in ASKED_FOR else _as_known(shown.get(key), of) for key, of in known.items()}
    if isinstance(known, list) and isinstance(shown, list) and len(known) == len(shown):
        return [_as_known(*pair) for pair in zip(shown, known, strict=True)]
    return shown


def _unlike(found: dict[Any, Any], expected: dict[Any, Any]) -> tuple[str, ...]:
    return tuple(sorted(str(key) for key in found.keys() | expected.keys() if found.get(key) != expected.get(key)))

"""The report of a real roll: measured from the log where there is one, else what events tell, and what is not known."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from typing import Any, Final

from coordinator_model.kinds.table import ALARMS
from coordinator_model.kinds.words import listed
from coordinator_model.records.serde import Record, UnknownRecord, decode_record
from coordinator_model.state.events import INFO, event_view
from coordinator_model.views.group_view import named
from coordinator_model.views.roll_cost import EXPECTED, Cost, cost_view, seconds
from streaming.base.doubt import said
from streaming.base.errors import CannotTellError, CheckFailed, NoSuchGroupError
from streaming.base.times import time_text
from streaming.recording.file_format import Header, RecordedRecord
from streaming.reports.measure import NO_OWNERS, ROLL_FORMAT, MeasuredGroup
from streaming.reports.rolls import rolls

EVENTS_ONLY: Final = (
    "a running monitor has events: ownerless seconds need the log's records, from --from RECORDING or from the "
    "files of a history kept with history.records (--dir)"
)
NO_LAG: Final = (
    "lag added is not known: end offsets are not in the coordinator's log, and no running monitor has the lag from "
    "before the roll on; it remembers an hour"
)

_ENDS: Final = ("rebalance_completed",)
_CONVERSIONS: Final = {"upgrade_completed": "upgrade", "downgrade_completed": "downgrade"}


def of_records(  # noqa: PLR0913 - the log, the group, the span, and how much of it is known
    header: Header,
    records: Iterable[RecordedRecord],
    group: str,
    since_ms: int,
    until_ms: int | None = None,
    read_until_ms: int | None = None,
) -> dict[str, Any]:
    """Measured from the log's own records, up to a time or to the last one.

    Args:
        header: names the topics.
        records: of the group, of others too.
        group: its name.
        since_ms: when the roll began.
        until_ms: when it was over; None: up to the group's last record.
        read_until_ms: until when all that was written is among the records, where the reader knows it; without it the
            time of the last record. Nothing later is measured.

    Returns:
        The report. `known_until` is that time; it is not `complete` where the span ends later, or where without
        `until_ms` the roll has yet to end.

    Raises:
        NoSuchGroupError: the group is not in them.
        CheckFailed: nothing of it is as late as `since_ms`.
        CannotTellError: they are known up to `since_ms` at the most.
    """
    measured = MeasuredGroup(group, header.topics, since_ms, partitions=header.offsets_topic_partitions)
    known, known_until_ms = 0, -1 if read_until_ms is None else read_until_ms
    for record in records:
        known_until_ms = max(known_until_ms, record.timestamp_ms)
        decoded = decode_record(record.key, None)
        if isinstance(decoded, Record | UnknownRecord) and decoded.group_name == group:
            known += 1
            if until_ms is None or record.timestamp_ms <= until_ms:
                measured.take(record)
    measured.settle()
    if not known:
        raise NoSuchGroupError(f"G: found {group!r}, accepted: a group of the recording")
    if read_until_ms is not None and known_until_ms <= since_ms:
        raise CannotTellError(
            f"--since: found {time_text(since_ms)}, accepted: an earlier one: {_so_far(known_until_ms)}"
        )
    if measured.latest_ms <= since_ms:
        raise CheckFailed(f"--since: found {time_text(since_ms)}, accepted: a time before the last record of {group}")
    end_ms = None if until_ms is None else max(since_ms, min(until_ms, known_until_ms))
    if end_ms is None and (measured.has_ownerless or measured.lacks_members):
        end_ms = known_until_ms  # it goes on: nothing is written of a group that is empty
    open_alarms = measured.at_end(measured.latest_ms if end_ms is None else end_ms)
    cost = measured.cost(end_ms)
    missing = _missing(measured, until_ms, known_until_ms)
    unsaid = _unsaid(cost.unsaid) if measured.has_owners and cost.unsaid else None
    no_owners = None if measured.has_owners else NO_OWNERS
    unknown = [each for each in (missing, no_owners, unsaid, NO_LAG) if each is not None]
    names = header.topic_names
    events = [{**event_view(event), "detail": named(event.detail, names)} for event in cost.events]
    held = rolls(events, cost.since_ms, cost.until_ms)
    return {
        "format": ROLL_FORMAT,
        "group": group,
        **cost_view(cost),
        "ownerless_seconds": _ownerless(cost) if measured.has_owners else None,
        "open_alarms": open_alarms,
        "lag_added": None,
        "rolls": held,
        "events": events,
        "known_until": known_until_ms,
        "complete": missing is None,
        "unknown": unknown,
        "notes": [f"known up to {time_text(known_until_ms)}", *_at_end(cost), *measured.notes(cost)],
    }


def _ownerless(cost: Cost) -> dict[str, Any]:
    """As `cost_view` has it; 0 is null where a member was away for a time that is not known."""
    figures = cost_view(cost)["ownerless_seconds"]
    if cost.unsaid:
        figures |= {name: figures[name] or None for name in ("max", "total")}
    return {**figures, "at_least": bool(cost.unsaid), "without_owner": [f"{of}/{at}" for of, at in cost.without_owner]}


def _at_end(cost: Cost) -> Iterator[str]:
    if cost.without_owner:
        places = listed([f"{topic}/{partition}" for topic, partition in cost.without_owner])
        yield f"without an owner at the end, and counted until then, {time_text(cost.until_ms)}: {places}"


def _unsaid(instance_ids: Sequence[str]) -> str:
    whose = listed(list(instance_ids))
    return (
        f"for how long {whose} processed nothing: killed, or stopped without saying so, a static member owns its "
        "partitions by the log until another process stands for it or its session is over; seconds without an owner "
        "are without that time"
    )


def _missing(measured: MeasuredGroup, until_ms: int | None, known_until_ms: int) -> str | None:
    """What of the roll is not known yet, in a sentence; None if all of it is."""
    if until_ms is not None:
        asked = f"not complete: asked up to {time_text(until_ms)}, {_so_far(known_until_ms)}"
        return asked if known_until_ms < until_ms else None
    if measured.is_between:
        return f"not complete: the group was being rolled, or rebalanced, when the log ended: {_so_far(known_until_ms)}"
    return None


def _so_far(known_until_ms: int) -> str:
    return f"the log is known up to {time_text(known_until_ms)}"


def add_lag(report: dict[str, Any], chart: Mapping[str, Any]) -> None:
    """Add what a chart of the group's lag shows (`LagHistory.group`): since the first roll began, if there is one."""
    begun_ms = report["rolls"][0]["since"] if report["rolls"] else report["since"]
    report["lag_added"] = lag_added(chart["times"], chart["lag"], begun_ms, report["until"])
    if report["lag_added"] is not None:
        report["unknown"].remove(NO_LAG)


def add_doubt(report: dict[str, Any], doubt: Mapping[str, Any] | None) -> dict[str, Any]:
    """Add why what a running monitor shows of the group may not be so (`base.doubt`), if anything is."""
    if doubt is not None:
        report["complete"] = False
        report["unknown"].insert(0, f"not complete: {said(doubt)}")
    return report


def lag_added(times: Sequence[int], lag: Sequence[int | None], since_ms: int, until_ms: int) -> dict[str, Any] | None:
    """How much a roll added to a group's lag, and how long after its beginning that was gone.

    Returns:
        `records` over the last figure before the roll, and `gone_after_seconds`, None if it is not; None where there
        is no figure from before.
    """
    known = [(time_ms, records) for time_ms, records in zip(times, lag, strict=True) if records is not None]
    before = [records for time_ms, records in known if time_ms <= since_ms]
    during = [(time_ms, records) for time_ms, records in known if since_ms < time_ms <= until_ms]
    if not before or not during:
        return None
    peak_ms, peak = max(during, key=lambda each: each[1])
    added = max(0, peak - before[-1])
    gone = [time_ms for time_ms, records in known if time_ms >= peak_ms and records <= before[-1]]
    return {"records": added, "gone_after_seconds": seconds(gone[0] - since_ms) if added and gone else None}


def _open(events: Sequence[Mapping[str, Any]]) -> list[str]:
    """Kinds of alarms of which these events have the beginning and not the end."""
    found: dict[str, bool] = {}
    for event in events:
        kind = event["kind"].removesuffix("_cleared")
        ends = kind != event["kind"] or event["detail"].get("cleared")
        if kind in ALARMS and (ends or event["severity"] != INFO):
            found[kind] = not ends
    return sorted(kind for kind, is_open in found.items() if is_open)


def of_events(events: Sequence[Mapping[str, Any]], group: str, since_ms: int, until_ms: int) -> dict[str, Any]:
    """What events alone tell; ownerless seconds are not among it."""
    done = [event for event in events if event["kind"] in _ENDS]
    held = rolls(events, since_ms, until_ms)
    alarms = [
        event["kind"]
        for event in events
        if event["severity"] != INFO
        and event["kind"] not in EXPECTED
        and not event["detail"].get("cleared")
        and not (event["kind"] == "upgrade_unclean" and event["inferred"])
    ]
    return {
        "format": ROLL_FORMAT,
        "group": group,
        "since": since_ms,
        "until": until_ms,
        "rebalances": len(done),
        "partitions_moved": sum(event["detail"].get("partitions_moved", 0) for event in done),
        "ownerless_seconds": None,
        "causes": dict(sorted(Counter(cause for each in done for cause in each["detail"].get("causes", ())).items())),
        "conversions": dict(
            sorted(Counter(_CONVERSIONS[e["kind"]] for e in events if e["kind"] in _CONVERSIONS).items())
        ),
        "verdicts": list(dict.fromkeys(alarms)),
        "open_alarms": _open(events),
        "lag_added": None,
        "rolls": held,
        "events": [dict(event) for event in events],
        "known_until": until_ms,
        "complete": False,
        "unknown": [EVENTS_ONLY, NO_LAG],
        "notes": [],
    }

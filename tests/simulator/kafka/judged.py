"""What a replay says of a lawful history, held against what was done in it.

An alarm is explained by a deed that is worth it (`WORTH`). What no deed explains is a finding: either the history is
not lawful, or the verdict is wrong. So is what was done and not said (`_unsaid`).
"""

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any, Final, NamedTuple

from coordinator_model.log_replica import LogReplica
from coordinator_model.recording_clock import Looks
from coordinator_model.rules import static_absences
from coordinator_model.state.events import INFO, WARNING, Event
from coordinator_model.state.findings import Position
from coordinator_model.views.group_view import group_view
from streaming.recording.file_format import open_recording
from tests.simulator.kafka.jvm import Deed, LawfulHistory

START_MS: Final = 1_795_600_000_000
"""When each history begins (Simulation.java)."""


class Worth(NamedTuple):
    """What explains an alarm.

    Attributes:
        deeds: done in that group, any of them.
        within_ms: how long before.
        times: how often, to the member or instance that the alarm names where it is more than once.
        after: done to the coordinator before, without which it would be none.
    """

    deeds: tuple[str, ...]
    within_ms: int
    times: int = 1
    after: str | None = None


WORTH: Final[Mapping[str, Worth]] = {
    # It closed, and the record has that very moment.
    "static_member_absent": Worth(("closed",), 100),
    # A classic process was started in a group of the consumer protocol: it joins when it is let in. Where the log
    # begins in the middle of the roll, which way that goes shows only with its end.
    "downgrade_started": Worth(("rolled_down",), 120_000),
    # It remembers what it had when others took that over, and says so as it joins again; a round takes the slowest's
    # poll, and what the leader needs. It was removed meanwhile, or a round went on without its knowing.
    "stale_claim": Worth(("removed", "resumed"), 60_000),
    # Rolled to the other protocol and back, from a host to another and back, within ten minutes by a clock that was set
    # back meanwhile, it looks as a node does that is drained and back: a warning. What is critical nothing explains.
    "static_member_contended": Worth(("rolled_up", "rolled_down"), 1_200_000, times=2),
    # It left after it had been waited for beyond its time, which the coordinator counts from its own move.
    "member_fenced": Worth(("left",), 100, after="clock_set"),
    # Suspended beyond its session again and again, each time for a while after it had come back: the log does not tell
    # whether a process was suspended or only its polling, and either way somebody has to look.
    "poll_interval_exceeded": Worth(("removed",), 1_500_000, times=3),
    # A round is lost within a session, and what the others need to join and assign.
    "rebalance_rounds_lost": Worth(("died", "suspended"), 180_000),
}
"""Kind of alarm → its deeds. Of `static_member_absent` each instance id has to have closed."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What was said: events, by the log's time, and of each group at the end its phase, and who was away in it last."""

    events: list[Event]
    phases: dict[str, str | None]
    away: dict[str, tuple[str, ...]]
    live_from: int


def judged(history: LawfulHistory) -> Judged:
    """Replay it as `group-monitor replay` does, with the looks of a recording's clock."""
    events: list[Event] = []
    with open_recording(history.path) as recording:
        header = recording.header
        replica = LogReplica(header.offsets_topic_partitions, live_from=header.live_from, topic_ids=header.topic_ids)
        looks = Looks(replica, {of.name: of for of in header.topics}, header.live_from, written=lambda: _times(history))
        for record in recording:
            place = Position(record.partition, record.offset, record.timestamp_ms)
            events += looks.before(place)
            events += replica.replay(place, record.key, record.value)
        events += replica.settle()
        events += looks.at_end(None)
    living = {name: state for name, state in replica.living().items() if state.exists}
    return Judged(
        events=replica.reported(events),
        phases={name: group_view(state, (), {})["migration"]["phase"] for name, state in living.items()},
        away={name: of.absences.instance_ids for name, of in living.items() if of.absences is not None},
        live_from=header.live_from.get(0, 0),
    )


def _times(history: LawfulHistory) -> Iterator[int]:
    with open_recording(history.path) as recording:
        yield from (record.timestamp_ms for record in recording)


def alarms(said: Judged) -> list[Event]:
    """Events that are more than information."""
    return [of for of in said.events if of.severity != INFO]


def unexplained(history: LawfulHistory, said: Judged) -> list[str]:
    """Alarms that nothing was done for, and what was done and not said, each in a line."""
    return [*(_line(of) for of in alarms(said) if explanation(of, history) is None), *_unsaid(history, said)]


def explanation(event: Event, history: LawfulHistory) -> str | None:
    """The deed that an alarm is for; None where nothing was done that explains it."""
    worth = WORTH.get(event.kind)
    if worth is None:
        return None
    now_ms = _at_ms(event, history)
    done = [
        of
        for of in history.done
        if of.group == event.group and of.what in worth.deeds and 0 <= now_ms - of.at_ms <= worth.within_ms
    ]
    if event.kind == static_absences.ABSENT:
        return done[0].what if done and not _not_closed(event.detail, history) else None
    if worth.times > 1:
        done = [of for of in done if of.who == event.detail["instance_id"] and event.severity == WARNING]
    moved = [of for of in history.done if of.what == worth.after and 0 <= event.offset - of.offset]
    if len(done) < worth.times or (worth.after is not None and not moved):
        return None
    return done[-1].what


def _not_closed(detail: Mapping[str, Any], history: LawfulHistory) -> set[str]:
    return {*detail["instance_ids"]} - {str(of.who) for of in history.done if of.what == "closed"}


def _at_ms(event: Event, history: LawfulHistory) -> int:
    """When it was, whatever the brokers' clocks said."""
    ahead = [int(of.who or 0) for of in history.done if of.what == "clock_set" and of.offset <= event.offset]
    return event.time_ms - START_MS - (ahead[-1] if ahead else 0)


def _unsaid(history: LawfulHistory, said: Judged) -> Iterator[str]:
    """A log that was cleaned before it was read, or that lost records, does not tell all that was."""
    if said.live_from or any(of.what == "records_lost" for of in history.done):
        return
    for group, phase in history.phases.items():
        if said.phases.get(group) != phase:
            yield f"{group}: rolled until it is {phase}, shown as {said.phases.get(group)}"
    for deed in history.done:
        if deed.what == "closed" and not _is_said_to_be_away(deed, history, said):
            yield f"{deed.group}: {deed.who} was closed at {deed.at_ms} ms, which nothing says"
    for deed in history.done:
        if deed.what == "removed" and _was_done_without(deed, history, said) and not _claims_later(deed, history, said):
            yield f"{deed.group}: removed, it came back at {deed.at_ms} ms with what it had, which nothing says"
    # A group that all members leave first has no beginning: it is downgraded with the first that joins.
    turned = {of.group for of in said.events if of.kind in ("downgrade_started", "downgrade_completed")}
    for group in sorted({of.group for of in history.done if of.what == "rolled_down"} - turned):
        if sum(of.what == "rolled_down" and of.group == group for of in history.done) > 1:
            yield f"{group}: member after member was rolled down, which nothing says"


def _is_said_to_be_away(deed: Deed, history: LawfulHistory, said: Judged) -> bool:
    """Whether an alarm that was open when it closed names it: as it opened, as it was over, or as it is at the end."""
    of_group = [of for of in said.events if of.kind == static_absences.ABSENT and of.group == deed.group]
    begun = [of for of in of_group if not of.detail.get("cleared") and _at_ms(of, history) <= deed.at_ms + 100]
    if not begun:
        return False
    over = [of for of in of_group if of.detail.get("cleared") and _at_ms(of, history) >= deed.at_ms]
    ended: Iterable[str] = over[0].detail["instance_ids"] if over else said.away.get(deed.group, ())
    return deed.who in {*begun[-1].detail["instance_ids"], *ended}


def _was_done_without(deed: Deed, history: LawfulHistory, said: Judged) -> bool:
    """Whether a suspended member certainly came back into a group that had gone on without it, and stayed."""
    of_group = [of for of in history.done if of.group == deed.group]
    since_ms = max((of.at_ms for of in of_group if of.what == "suspended" and of.at_ms < deed.at_ms), default=None)
    if since_ms is None or any(
        of.what in ("left", "died", "suspended") and since_ms < of.at_ms < deed.at_ms + WORTH["stale_claim"].within_ms
        for of in of_group
    ):
        return False
    went_on = {
        kind: [_at_ms(of, history) for of in said.events if of.kind == kind and of.group == deed.group]
        for kind in ("member_left", "rebalance_completed")
    }
    return all(any(since_ms < at_ms < deed.at_ms for at_ms in times_ms) for times_ms in went_on.values())


def _claims_later(deed: Deed, history: LawfulHistory, said: Judged) -> bool:
    claims = [of for of in alarms(said) if of.kind == "stale_claim" and of.group == deed.group]
    return any(0 <= _at_ms(of, history) - deed.at_ms <= WORTH[of.kind].within_ms for of in claims)


def _line(event: Event) -> str:
    return f"{event.group}: {event.severity} {event.kind} at {event.time_ms - START_MS} ms: {dict(event.detail)}"

"""What a replay says of a lawful history, held against what was done in it.

An alarm is explained by a deed that is worth it (`WORTH`). What no deed explains is a finding: either the history is
not lawful, or the verdict is wrong. So is what was done and not said.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Final

from coordinator_model.log_replica import LogReplica
from coordinator_model.recording_clock import Looks
from coordinator_model.state.events import INFO, Event
from coordinator_model.state.findings import Position
from coordinator_model.views.group_view import group_view
from streaming.recording.file_format import open_recording
from tests.simulator.kafka.jvm import Deed, LawfulHistory

START_MS: Final = 1_795_600_000_000
"""When each history begins (Simulation.java)."""

WORTH: Final = {
    "static_member_absent": {"closed"},
    "downgrade_started": {"rolled_down"},
    "stale_claim": {"suspended"},
    "rebalance_rounds_lost": {"died", "suspended"},
}
"""Kind of alarm → what was done before in that group, any of it: of a static member, to the very instance.

A suspended member of a sticky assignor remembers what it had when others took that over, and says so as it joins.
"""
RECENTLY_MS: Final = {"rebalance_rounds_lost": 180_000}
"""Kind of alarm → how long before it: a round is lost within a session, and what the others need to join and assign."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Judged:
    """What was said: events, by the log's time, and the phase of each group at the end."""

    events: list[Event]
    phases: dict[str, str | None]
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
    phases = {
        name: group_view(state, (), {})["migration"]["phase"]
        for name, state in replica.living().items()
        if state.exists
    }
    return Judged(events=replica.reported(events), phases=phases, live_from=header.live_from.get(0, 0))


def _times(history: LawfulHistory) -> Iterator[int]:
    with open_recording(history.path) as recording:
        yield from (record.timestamp_ms for record in recording)


def unexplained(history: LawfulHistory, said: Judged) -> list[str]:
    """Alarms that nothing was done for, and what was done and not said, each in a line."""
    alarms = [of for of in said.events if of.severity != INFO and not _is_explained(of, history)]
    return [*map(_line, alarms), *_unsaid(history, said)]


def _is_explained(event: Event, history: LawfulHistory) -> bool:
    return any(_explains(deed, event) for deed in history.done)


def _explains(deed: Deed, event: Event) -> bool:
    ago_ms = event.time_ms - START_MS - deed.at_ms
    return (
        deed.group == event.group
        and deed.what in WORTH.get(event.kind, ())
        and deed.who in (None, event.detail.get("instance_id"))
        and ago_ms <= RECENTLY_MS.get(event.kind, ago_ms)
    )


def _unsaid(history: LawfulHistory, said: Judged) -> Iterator[str]:
    """A log that was cleaned before it was read, or that lost records, does not tell all that was."""
    if said.live_from or any(of.what == "records_lost" for of in history.done):
        return
    for group, phase in history.phases.items():
        if said.phases.get(group) != phase:
            yield f"{group}: rolled until it is {phase}, shown as {said.phases.get(group)}"
    absent = {(of.group, of.detail["instance_id"]) for of in said.events if of.kind == "static_member_absent"}
    for group, who in sorted({(of.group, str(of.who)) for of in history.done if of.what == "closed"} - absent):
        yield f"{group}: {who} was closed, which nothing says"


def _line(event: Event) -> str:
    return f"{event.group}: {event.severity} {event.kind} at {event.time_ms - START_MS} ms: {dict(event.detail)}"

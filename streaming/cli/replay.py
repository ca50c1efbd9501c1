"""`replay`: a recording through the model, without Spark, Kafka or a configuration."""

import difflib
import gc
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Annotated, Any

import typer

from coordinator_model.gates import broker_releases
from coordinator_model.gates.broker_abilities import recorded
from coordinator_model.log_replica import LogReplica
from coordinator_model.recording_clock import Looks
from coordinator_model.records.topics import SHARE_STATE_TOPIC
from coordinator_model.rules.share_redelivery import Redeliveries
from coordinator_model.share_replica import ShareReplica
from coordinator_model.state.events import OF_NO_GROUP, Event, event_view
from coordinator_model.state.findings import Position
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.membership import SHARE
from coordinator_model.topic_growth import appeared_ms
from coordinator_model.views.group_view import group_view, named
from coordinator_model.views.log_lacks import lacks
from coordinator_model.views.share_partitions import share_partitions_view
from streaming.base.errors import UsageError
from streaming.base.text import printable
from streaming.base.times import ACCEPTED, time_ms
from streaming.cli.render import output, plain
from streaming.recording.file_format import Header, RecordedRecord, RecordingReader, open_recording

# Undecodable records shown one by one; a damaged recording may hold millions.
_REPORTED = 20
_PROGRESS_EVERY = 2_000
_EARLY_ACCESS = (4, 0)
"""The release that wrote share partitions in other layouts."""


def replay(  # noqa: PLR0913 - a command's options are its arguments
    file: Annotated[Path, typer.Argument(metavar="FILE", help="Recording: .ndjson or .ndjson.gz.")],
    group: Annotated[str | None, typer.Option(metavar="G", help="Show this group only.")] = None,
    until: Annotated[
        str | None,
        typer.Option(metavar="TIME", help="Stop each partition at the first later record: ISO-8601 or epoch ms."),
    ] = None,
    events: Annotated[bool, typer.Option("--events", help="Print events instead of groups.")] = False,
    past: Annotated[
        bool,
        typer.Option(
            "--past", help="Alarm of what was there before the recording began, too: of a log that is not cleaned."
        ),
    ] = False,
    json: output.Json = False,
) -> None:
    """Replay a recording: groups as they are at its end, and what happened."""
    until_ms = None if until is None else until_time_ms(until)
    # Looking for cycles again and again in a state that grows, and has none, took a third of the time.
    gc.disable()
    with open_recording(file) as recording:
        header = recording.header
        live_from = {} if past else header.live_from
        replica = LogReplica(header.offsets_topic_partitions, live_from=live_from, topic_ids=header.topic_ids)
        looks = looks_at(file, header, replica, live_from)
        share_state = _ShareState(header, {} if past else header.share_live_from, until_ms)
        happened = _replayed(recording, replica, share_state, looks, until_ms)
        names = recording.header.topic_names
    share_replica = share_state.replica
    known = replica.living()
    groups = {
        name: {
            **group_view(state, replica.offsets(name), names, looks.end_ms(state.partition)),
            "share_partitions": share_partitions_view(
                share_replica.of_group(name) if state.type == SHARE else (), names
            ),
        }
        for name, state in sorted(known.items())
        if state.exists and group in (None, name)
    }
    # Of brokers that upgrade no group it is no news that they would refuse one.
    unsaid = () if recorded(header.kafka_version) is None else ("upgrade_blocked",)
    shown = [
        _named(event_view(event), names)
        for event in happened
        if group in (None, event.group) and event.kind not in unsaid
    ]
    if group is not None and not groups and not shown:
        raise _unknown_group(group, sorted(known))
    if json:
        orphans = sum(
            len(share_replica.of_group(name))
            for name in share_replica.groups()
            if not _has_share_state(known.get(name))
        )
        counters = {**_counters(replica), **_share_counters(share_replica, orphans)}
        output.print_json({"groups": groups, "events": shown, "counters": counters})
    elif events:
        for event in shown:
            output.print_line(plain.event_text(event))
    else:
        if group is not None:
            release = broker_releases.version_of(header.kafka_version or "")
            for of in groups.values():
                of["log_lacks"] = lacks(of, has_topic_ids=_has_ids(header), release=release)
        _print_groups(groups, in_detail=group is not None)


def until_time_ms(text: str) -> int:
    """Read the time given with `--until`. Raises UsageError."""
    try:
        return time_ms(text)
    except ValueError:
        raise UsageError(f"--until: found {text!r}, accepted: {ACCEPTED}") from None


class _ShareState:
    """The share coordinator's log of a recording, as far as it is to be replayed."""

    def __init__(self, header: Header, live_from: Mapping[int, int], until_ms: int | None) -> None:
        self.replica = ShareReplica(
            delivery_count_limits=header.delivery_count_limits,
            gaps={topic.id for topic in header.topics if topic.gaps and topic.id is not None},
            live_from=live_from,
            redeliveries=Redeliveries(),
        )
        self._early_access = (broker_releases.version_of(header.kafka_version or "") or ())[:2] == _EARLY_ACCESS
        self._until_ms = until_ms
        self._ended: set[int] = set()
        self._events: list[Event] = []
        self._unread = 0

    def read(self, record: RecordedRecord) -> None:
        if self._early_access:
            self._unread += 1
        elif self._until_ms is not None and (record.partition in self._ended or record.timestamp_ms > self._until_ms):
            self._ended.add(record.partition)
        else:
            place = Position(record.partition, record.offset, record.timestamp_ms)
            self._events += self.replica.replay(place, record.key, record.value)

    def at_end(self) -> list[Event]:
        """All that it showed; a warning names what could not be read of it."""
        if self._unread:
            output.warn(f"{SHARE_STATE_TOPIC}: {self._unread} records of Kafka 4.0, an early access, are not read")
        for state, batches in sorted(self.replica.unknown_states.items()):
            unknown = f"of delivery state {state}, which this release does not know"
            output.warn(f"{SHARE_STATE_TOPIC}: {batches} batches {unknown}")
        return [*self._events, *self.replica.settle()]


def _has_share_state(state: GroupState | None) -> bool:
    """Whether share partitions of this group are its own, and not left behind by one that is gone."""
    return state is not None and state.exists and state.type == SHARE


def _has_ids(header: Header) -> bool | None:
    """Whether the recorded brokers had topic ids; None where no topic was recorded."""
    return any(topic.id is not None for topic in header.topics) if header.topics else None


def _replayed(
    recording: RecordingReader, replica: LogReplica, share_state: "_ShareState", looks: Looks, until_ms: int | None
) -> list[Event]:
    happened: list[Event] = []
    ended: set[int] = set()
    reported = 0
    with output.progress(f"replaying {recording.path.name}") as advance:
        for count, record in enumerate(recording.both_logs()):
            if count % _PROGRESS_EVERY == 0:
                advance(recording.fraction_read)
            if record.share_state:
                share_state.read(record)
                if share_state.replica.undecodable:
                    reported += _report_undecodable(share_state.replica, reported, f"{SHARE_STATE_TOPIC} ")
                continue
            # The state at a time is the state of a prefix of each partition: one record too late ends its partition.
            if until_ms is not None and (record.partition in ended or record.timestamp_ms > until_ms):
                ended.add(record.partition)
                continue
            position = Position(record.partition, record.offset, record.timestamp_ms)
            happened += looks.before(position)
            happened += replica.replay(position, record.key, record.value)
            if replica.undecodable:
                reported += _report_undecodable(replica, reported)
    happened.extend(replica.settle())
    happened.extend(looks.at_end(until_ms if ended else None))
    if reported > _REPORTED:
        output.warn(f"{reported - _REPORTED} more records do not decode")
    # A step is closed by what follows it, so an event may come late; readers want them in the order of the log's time.
    return sorted(
        [*replica.reported(happened), *share_state.at_end()],
        key=lambda event: (event.time_ms, event.log, event.partition, event.offset),
    )


def looks_at(file: Path, header: Header, replica: LogReplica, live_from: Mapping[int, int]) -> Looks:
    """What looks at a recording's replica with a clock in hand, as its records come."""
    return Looks(
        replica,
        {topic.name: topic for topic in header.topics},
        live_from,
        written=lambda: times_ms(file),
        appeared=lambda: appeared_in(file, header),
    )


def times_ms(file: Path) -> Iterator[int]:
    """The times of all records of a recording."""
    with open_recording(file) as recording:
        yield from (record.timestamp_ms for record in recording)


def appeared_in(file: Path, header: Header) -> dict[tuple[str, int], int]:
    """Since when partitions of a recording's topics are there, by its records: topic and partition → milliseconds."""
    with open_recording(file) as recording:
        records = ((record.timestamp_ms, record.key, record.value) for record in recording)
        return appeared_ms(records, header.topic_names, {topic.name: topic.partitions for topic in header.topics})


def _report_undecodable(replica: LogReplica | ShareReplica, reported: int, log: str = "") -> int:
    """Tell what was passed over; returns how many."""
    count = len(replica.undecodable)
    for place, undecodable in replica.undecodable[: max(_REPORTED - reported, 0)]:
        output.warn(
            f"{log}partition {place.partition} offset {place.offset}: record of type "
            f"{'unknown' if undecodable.record_type is None else undecodable.record_type} "
            f"does not decode ({undecodable.reason})"
        )
    replica.undecodable.clear()
    return count


def _share_counters(replica: ShareReplica, orphans: int) -> dict[str, Any]:
    """The same of the share coordinator's log, where there is one: its types are numbered from 0, too."""
    if not replica.counters.records:
        return {}
    more = {"unknown_states": dict(replica.unknown_states)} if replica.unknown_states else {}
    return {SHARE_STATE_TOPIC: {**_counters(replica), **more, "orphans": orphans}}


def _counters(replica: LogReplica | ShareReplica) -> dict[str, Any]:
    newer = replica.counters.newer_value_versions
    return {
        "records": replica.counters.records,
        "unknown_records": {str(key): count for key, count in replica.counters.unknown_records.items()},
        "undecodable_records": {str(key): count for key, count in replica.counters.undecodable_records.items()},
        **({"newer_value_versions": dict(newer)} if newer else {}),
    }


def _named(event: dict[str, Any], names: dict[str, str]) -> dict[str, Any]:
    of_none = {"group": None} if event["kind"] in OF_NO_GROUP else {}
    return {**event, "detail": named(event["detail"], names), **of_none}


def _print_groups(groups: dict[str, dict[str, Any]], *, in_detail: bool) -> None:
    if not groups:
        sys.stderr.write("no groups\n")
    elif in_detail:
        for group in groups.values():
            output.print_line("\n\n".join(plain.group_text(group)))
    else:
        output.print_line(plain.groups_table(list(groups.values())))
        for group in groups.values():
            paragraphs = list(plain.group_text(group))[1:]
            if paragraphs:
                output.print_line(f"\n{printable(group['group'])}\n" + "\n\n".join(paragraphs))


def _unknown_group(group: str, known: list[str]) -> UsageError:
    near = difflib.get_close_matches(group, known, n=1)
    hint = f" (did you mean {near[0]}?)" if near else f" ({len(known)} of them, e.g. {known[0]})" if known else ""
    return UsageError(f"--group: found {group!r}, accepted: a group of the recording{hint}")

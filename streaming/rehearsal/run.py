"""A rehearsal from end to end: broker, topics, members, the roll, and the report. Nothing of it outlives the call."""

from __future__ import annotations

import shutil
import tempfile
import time
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import asdict, replace
from pathlib import Path
from typing import Any, Final

from coordinator_model.groups.classic import CONSUMER_PROTOCOL_TYPE
from coordinator_model.state.events import event_view
from coordinator_model.state.membership import CLASSIC, CONSUMER
from coordinator_model.views.group_view import named
from coordinator_model.views.roll_cost import cost_view
from streaming.base.errors import CannotTellError
from streaming.base.times import now_ms
from streaming.config.kafka_sections import KafkaSection
from streaming.demo.embedded_broker import DEFAULT_JARS_DIR, EmbeddedBroker
from streaming.demo.verifiable_consumer import create_topics
from streaming.recording.file_format import Header, open_new_recording
from streaming.recording.recorder import header_of
from streaming.rehearsal.follow import Follower
from streaming.rehearsal.members import Members
from streaming.rehearsal.roll import GroupRoll, RollOptions, protocols
from streaming.rehearsal.shape import Shape
from streaming.reports.measure import REHEARSAL_FORMAT

RESTARTS: Final = (
    ("eager (range)", CLASSIC, "range"),
    ("cooperative-sticky", CLASSIC, "cooperative-sticky"),
    ("consumer protocol", CONSUMER, None),
)
"""Members, their protocol and assignor: what a restart is compared between."""

OFFSETS_PARTITIONS: Final = 4
_TOPICS_SECONDS: Final = 20.0

# As brokers have them by default: the embedded one is quicker for the demo's sake, and that would be a better roll.
BROKER_DEFAULTS: Final[Mapping[str, str]] = {
    "group.consumer.heartbeat.interval.ms": "5000",
    "group.consumer.min.heartbeat.interval.ms": "500",
    "group.consumer.migration.policy": "bidirectional",
}


def rehearse(  # noqa: PLR0913 - what is rolled, how, and who is informed
    shape: Shape,
    direction: str,
    options: RollOptions,
    *,
    broker_settings: Mapping[str, str],
    member_settings: Mapping[str, str] | None = None,
    compare: bool = False,
    record: Path | None = None,
    say: Callable[[str], None],
    advance: Callable[[float], None],
) -> dict[str, Any]:
    """Start a broker, set up the group, roll it, and return the report (`report.py` shows it).

    Raises:
        UsageError: no Java, no jars, or `record` cannot be written.
        CannotTellError: the group did not settle, or broker or members cannot be run.
    """
    with _scratch() as directory:
        say("starting an embedded broker")
        settings = {**BROKER_DEFAULTS, **broker_settings}
        broker = EmbeddedBroker(directory / "broker", offsets_partitions=OFFSETS_PARTITIONS, properties=settings)
        with broker:
            report = rehearse_on(
                broker.bootstrap_servers,
                directory,
                shape,
                direction,
                options,
                member_settings=member_settings,
                record=record,
                say=say,
                advance=advance,
            )
            if compare:
                report["beside"] = compared(
                    broker.bootstrap_servers, directory, shape, options, member_settings=member_settings, say=say
                )
        report["options"]["broker"] = settings
        return report


def compared(  # noqa: PLR0913 - what is restarted, where, how, and who is informed
    bootstrap_servers: str,
    directory: Path,
    shape: Shape,
    options: RollOptions,
    *,
    member_settings: Mapping[str, str] | None = None,
    say: Callable[[str], None],
) -> list[dict[str, Any]]:
    """What the same restart costs, no protocol changed, with eager, cooperative and consumer members."""
    found = []
    for name, type_, assignor in RESTARTS:
        say(f"the same restart, {name}")
        group = replace(shape, group=f"{shape.group}-{type_}-{assignor}", type=type_, assignor=assignor)
        group = replace(group, protocol_type=CONSUMER_PROTOCOL_TYPE)
        report = rehearse_on(bootstrap_servers, directory, group, None, options, member_settings=member_settings)
        figures = ("rebalances", "partitions_moved", "ownerless_seconds", "took_seconds")
        found.append({"members": name, **{figure: report[figure] for figure in figures}})
    return found


def rehearse_on(  # noqa: PLR0913 - as above, and where
    bootstrap_servers: str,
    directory: Path,
    shape: Shape,
    direction: str | None,
    options: RollOptions,
    *,
    member_settings: Mapping[str, str] | None = None,
    record: Path | None = None,
    say: Callable[[str], None] = lambda _text: None,
    advance: Callable[[float], None] = lambda _share: None,
) -> dict[str, Any]:
    """The same on an embedded broker that runs, whose log has `OFFSETS_PARTITIONS` partitions.

    Without a direction members are restarted as they are.
    """
    before, after = (shape.type, shape.type) if direction is None else protocols(direction)
    create_topics(bootstrap_servers, shape.topics)
    header = _header(bootstrap_servers, shape)
    members = Members(bootstrap_servers, shape, directory, member_settings)
    with Follower(bootstrap_servers, shape.group, header.topics, OFFSETS_PARTITIONS) as follower:
        roll = GroupRoll(shape, after, options, members, follower, say=say, advance=advance)
        try:
            say(f"{len(shape.members)} members of the {before} protocol join")
            roll.assemble()
            follower.begin()
            begun_ms = now_ms()
            rolled = roll.run()
            cost = follower.cost()
            notes = follower.notes(cost)
            # None of the roll's cost, which is measured.
            killed = None if direction is None or rolled.refused else roll.kill_static()
        finally:
            roll.stop()
    if record is not None:
        with open_new_recording(record, header, "--record") as recording:
            # Not beyond the roll: members that go afterwards are none of its cost.
            kept = (each for each in follower.records if each.timestamp_ms <= cost.until_ms)
            for each in sorted(kept, key=lambda of: (of.partition, of.offset)):
                recording.write(each)
    names = header.topic_names
    return {
        "format": REHEARSAL_FORMAT,
        "group": shape.group,
        "members": len(shape.members),
        "from": before,
        "to": after,
        "refused": rolled.refused,
        "reasons": rolled.reasons,
        "killed": None if killed is None else asdict(killed),
        **cost_view(cost),
        "broker": broker_version(),
        "assignor": shape.assignor,
        "topics": dict(shape.topics),
        "took_seconds": round((cost.until_ms - begun_ms) / 1000, 3),
        "steps": rolled.steps,
        "events": [{**event_view(event), "detail": named(event.detail, names)} for event in cost.events],
        "options": {
            "order": options.order.value,
            "ending": options.ending.value,
            "pace_seconds": options.pace_seconds,
            "restart_seconds": options.restart_seconds,
            "max_unavailable": options.max_unavailable,
            "surge": options.surge,
            "members": dict(member_settings or {}),
        },
        "notes": [*shape.notes, *notes],
    }


def broker_version(jars_dir: Path = DEFAULT_JARS_DIR) -> str:
    """Release of the embedded broker, as its jars are named."""
    names = sorted(path.stem for path in jars_dir.glob("kafka-clients-*.jar"))
    return names[0].removeprefix("kafka-clients-") if names else "unknown"


def _header(bootstrap_servers: str, shape: Shape) -> Header:
    """Once all topics are known to the broker: they are made before it describes them.

    Raises:
        CannotTellError: it does not tell.
    """
    deadline = time.monotonic() + _TOPICS_SECONDS
    while True:
        header = header_of(KafkaSection(bootstrap_servers=bootstrap_servers))
        missing = shape.topics.keys() - header.topic_names.values()
        if not missing:
            return replace(header, kafka_version=broker_version())
        if time.monotonic() > deadline:
            raise CannotTellError(
                f"rehearsal: found no topic {min(missing)} on the embedded broker, though it was made"
            )
        time.sleep(0.1)


@contextmanager
def _scratch() -> Iterator[Path]:
    """A directory that goes with the rehearsal."""
    directory = Path(tempfile.mkdtemp(prefix="group-monitor-rehearsal-"))
    try:
        yield directory
    finally:
        shutil.rmtree(directory, ignore_errors=True)

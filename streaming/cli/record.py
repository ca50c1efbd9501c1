"""`record`: what the logs of the group and the share coordinator hold, into a file that `replay` and `decode` read."""

from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator_model.records.serde import Record, UnknownRecord, decode_record
from coordinator_model.records.share_state_types import ShareStateRecord, decode_share_state
from coordinator_model.records.topics import SHARE_STATE_TOPIC
from coordinator_model.state.shards import offsets_partition
from streaming.base.errors import CannotTellError, NoSuchGroupError
from streaming.cli.render import output
from streaming.recording.file_format import RecordedRecord, RecordingWriter, open_new_recording

if TYPE_CHECKING:
    from streaming.config.kafka_sections import KafkaSection
    from streaming.config.loading import Config
    from streaming.recording.recorder import LogRecorder


def record(  # noqa: PLR0913 - a command's options are its arguments
    context: typer.Context,
    out: Annotated[Path, typer.Option("--out", metavar="FILE", help="File to write, .ndjson or .ndjson.gz.")],
    bootstrap_server: Annotated[
        str | None, typer.Option("--bootstrap-server", metavar="S", help="Brokers, HOST:PORT[,HOST:PORT…].")
    ] = None,
    group: Annotated[
        list[str] | None, typer.Option("--group", metavar="G", help="Record this group only; may be repeated.")
    ] = None,
    config: Annotated[
        Path | None,
        typer.Option("--config", metavar="FILE", help="Configuration, for credentials and the topic's name."),
    ] = None,
    follow: Annotated[
        bool, typer.Option("--follow", help="Go on after the group coordinator's log's end, until Ctrl-C.")
    ] = False,
) -> None:
    """Make a recording: the group and share coordinators' logs from their beginning to their end as it is now."""
    output.set_up_logging(context, clients_silent=True)
    from streaming.config.loading import load  # imported late, with all it needs
    from streaming.kafka.preflight import preflight

    settings = load(config, overrides={"kafka.bootstrap_servers": bootstrap_server})
    preflight(settings, all_of_it=True)
    written = _record(settings, out, sorted(set(group or ())), follow=follow)
    output.note(f"{written} records in {out}")


def _record(config: "Config", out: Path, groups: list[str], *, follow: bool) -> int:
    """Write the records, of these groups or of all; returns how many.

    Raises:
        NoSuchGroupError: there is none of one of them, and none is waited for; no file is left then.
    """
    from streaming.kafka.broker_queries import delivery_count_limits
    from streaming.recording.recorder import LogRecorder, header_of

    header = header_of(config.kafka)
    partitions = list(range(header.offsets_topic_partitions))
    if groups:
        partitions = sorted({offsets_partition(name, len(partitions)) for name in groups})
    recorder = LogRecorder(config.kafka, partitions, follow=follow)
    share_recorder = _share_recorder(config.kafka)
    try:
        if share_recorder is not None:
            ends = dict(share_recorder.ends)
            header = replace(
                header,
                share_state_partitions=len(ends) + len(share_recorder.unread),
                share_live_from=ends,
                delivery_count_limits=delivery_count_limits(config.kafka),
                # Whether one was written to in transactions, or compacted, is in none of the two logs.
                topics=tuple(replace(topic, gaps=True) for topic in header.topics),
            )
        for partition, count in recorder.open_transactions.items():
            output.warn(
                f"partition {partition}: an open transaction holds back offset commits in its last {count} offsets"
            )
        header = replace(header, live_from=dict(recorder.ends))
        with open_new_recording(out, header) as recording, output.progress(f"recording to {out}") as advance:
            if share_recorder is not None:
                _record_share_state(share_recorder, recording, groups, advance)
            found = set()
            for item in recorder.records(advance):
                group = _group_of(item) if groups else None
                if not groups or group in groups:
                    recording.write(item)
                    found.add(group)
            _warn_of_unread(recorder)
            missing = [] if follow else [name for name in groups if name not in found]
            if missing:
                accepted = f"a group that {config.kafka.offsets_topic} has records of"
                raise NoSuchGroupError(f"--group: found {missing[0]!r}, accepted: {accepted}")
        return recording.records
    finally:
        recorder.close()
        if share_recorder is not None:
            share_recorder.close()


def _share_recorder(kafka: "KafkaSection") -> "LogRecorder | None":
    """What reads the share coordinator's log, to its end as it is now; None where there is none, or it may not be read.

    A recording is of use without it: it then holds no share partitions, and a warning says why.
    """
    from streaming.recording.recorder import LogRecorder, share_state_of

    try:
        found = share_state_of(kafka)
        return None if found is None else LogRecorder(found[0], list(range(found[1])), follow=False, whole=False)
    except CannotTellError as error:
        output.warn(f"share partitions are not recorded: {error}")
        return None


def _record_share_state(
    recorder: "LogRecorder", recording: RecordingWriter, groups: list[str], advance: Callable[[float], None]
) -> None:
    from streaming.recording.recorder import of_share_state

    try:
        for item in map(of_share_state, recorder.records(advance)):
            if not groups or _group_of(item) in groups:
                recording.write(item)
    except CannotTellError as error:
        output.warn(f"share partitions are recorded in part: {error}")
    for partition, why in sorted(recorder.unread.items()):
        output.warn(f"{SHARE_STATE_TOPIC} partition {partition} is not recorded ({why})")
    _warn_of_unread(recorder, f"{SHARE_STATE_TOPIC} ")


def _warn_of_unread(recorder: "LogRecorder", log: str = "") -> None:
    for partition, batches in sorted(recorder.stepped_over.items()):
        for of in batches:
            where = f"{log}partition {partition}: offsets {of.first} to {of.end - 1}"
            output.warn(f"{where} cannot be read ({of.reason})")


def _group_of(item: RecordedRecord) -> str | None:
    # A tombstone is enough: the group stands in the key.
    decoded = decode_share_state(item.key, None) if item.share_state else decode_record(item.key, None)
    return decoded.group_name if isinstance(decoded, Record | ShareStateRecord | UnknownRecord) else None

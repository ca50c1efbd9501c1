"""`record`: what the offsets topic holds, into a file that `replay` and `decode` read."""

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import typer

from coordinator_model.records.serde import Record, UnknownRecord, decode_record
from coordinator_model.state.shards import offsets_partition
from streaming.base.errors import NoSuchGroupError
from streaming.cli.render import output
from streaming.recording.file_format import RecordedRecord, open_new_recording

if TYPE_CHECKING:
    from streaming.config.loading import Config


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
    follow: Annotated[bool, typer.Option("--follow", help="Go on after the log's end, until Ctrl-C.")] = False,
) -> None:
    """Make a recording: the group coordinator's log from its beginning to its end as it is now."""
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
    from streaming.recording.recorder import LogRecorder, header_of

    header = header_of(config.kafka)
    partitions = list(range(header.offsets_topic_partitions))
    if groups:
        partitions = sorted({offsets_partition(name, len(partitions)) for name in groups})
    recorder = LogRecorder(config.kafka, partitions, follow=follow)
    try:
        for partition, count in recorder.open_transactions.items():
            output.warn(
                f"partition {partition}: an open transaction holds back offset commits in its last {count} offsets"
            )
        header = replace(header, live_from=dict(recorder.ends))
        with open_new_recording(out, header) as recording, output.progress(f"recording to {out}") as advance:
            found = set()
            for item in recorder.records(advance):
                group = _group_of(item) if groups else None
                if not groups or group in groups:
                    recording.write(item)
                    found.add(group)
            for partition, batches in sorted(recorder.stepped_over.items()):
                for of in batches:
                    where = f"partition {partition}: offsets {of.first} to {of.end - 1}"
                    output.warn(f"{where} cannot be read ({of.reason})")
            missing = [] if follow else [name for name in groups if name not in found]
            if missing:
                accepted = f"a group that {config.kafka.offsets_topic} has records of"
                raise NoSuchGroupError(f"--group: found {missing[0]!r}, accepted: {accepted}")
        return recording.records
    finally:
        recorder.close()


def _group_of(item: RecordedRecord) -> str | None:
    # A tombstone is enough: the group stands in the key.
    decoded = decode_record(item.key, None)
    return decoded.group_name if isinstance(decoded, Record | UnknownRecord) else None

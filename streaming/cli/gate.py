"""`gate`: may it be rolled now, by the judgement of a running monitor."""

import time
from collections import Counter
from collections.abc import Collection, Mapping
from enum import StrEnum
from pathlib import Path
from typing import Annotated, Any, Final

import typer

from coordinator_model.gates import broker_releases
from coordinator_model.gates.broker_abilities import recorded
from coordinator_model.gates.downgrade import downgrade_gate
from coordinator_model.gates.upgrade import upgrade_gate
from coordinator_model.gates.verdict import BrokerSettings, Cluster
from coordinator_model.log_replica import LogReplica
from coordinator_model.migration.phases import groups_by_type
from coordinator_model.state.findings import Position
from streaming.base.errors import CannotTellError, CheckFailed, NoSuchGroupError, UsageError
from streaming.base.times import now_ms
from streaming.cli.client import DEFAULT_URL, MonitorClient
from streaming.cli.groups import CaFile, Url, complete_group
from streaming.cli.render import gate_view, output
from streaming.cli.render.gate_view import GateJson
from streaming.recording.file_format import open_recording


class Gate(StrEnum):
    """What is about to be rolled: consumers to the new protocol, or brokers to an older release."""

    UPGRADE = "upgrade"
    DOWNGRADE = "downgrade"


EXIT_STATUSES: Final = {"open": 0, "closed": CheckFailed.exit_status, "cannot_tell": CannotTellError.exit_status}
"""Verdict → exit status."""

SCAN_PATIENCE_SECONDS: Final = 150.0
"""How long the command waits for a scan of the log, which the monitor ends before."""

_ASK_AGAIN_SECONDS: Final = 1.0


def gate(  # noqa: PLR0913 - a command's options are its arguments
    gate: Annotated[Gate, typer.Argument(metavar="upgrade|downgrade", help="Roll consumers up, or brokers down.")],
    group: Annotated[
        list[str] | None,
        typer.Option(
            "--group",
            metavar="G",
            help="Judge this group only; may be repeated.",
            autocompletion=complete_group,
        ),
    ] = None,
    target_version: Annotated[
        str | None,
        typer.Option("--target-version", metavar="RELEASE", help="Of a downgrade: the release of the brokers to be."),
    ] = None,
    max_size: Annotated[
        int | None,
        typer.Option(
            "--max-size", min=1, metavar="N", help="Of an upgrade: members a group may have, if not as brokers say."
        ),
    ] = None,
    recording: Annotated[
        Path | None,
        typer.Option("--from", metavar="FILE", help="Judge a recording in place of a running monitor; opens no gate."),
    ] = None,
    rehearsal: Annotated[
        Path | None,
        typer.Option(
            "--rehearsal", metavar="FILE", help="Of a downgrade: what `rehearse brokers --json` said of that release."
        ),
    ] = None,
    url: Url = DEFAULT_URL,
    ca_file: CaFile = None,
    json: output.Json = False,
) -> None:
    """Say whether consumers (upgrade) or brokers (downgrade) may be rolled now, with every reason."""
    if target_version is not None and gate is not Gate.DOWNGRADE:
        raise UsageError("--target-version: found with gate upgrade, accepted: with gate downgrade")
    if max_size is not None and gate is not Gate.UPGRADE:
        raise UsageError("--max-size: found with gate downgrade, accepted: with gate upgrade")
    if target_version is not None and broker_releases.release(target_version) is None:
        raise UsageError(f"--target-version: found {target_version!r}, accepted: {broker_releases.ACCEPTED}")
    if rehearsal is not None and target_version is None:
        raise UsageError("--rehearsal: found without --target-version, accepted: with it")
    if recording is not None:
        answer: GateJson = _of_recording(recording, gate, group or (), target_version, max_size)
    else:
        size = None if max_size is None else str(max_size)
        asked = {"target_version": target_version, "max_size": size}
        answer = _asked(MonitorClient(url, ca_file), gate, group or (), asked)
    if target_version is not None:
        from streaming.loading import kept  # imported late: most gates are asked without

        answer = kept.with_rehearsal(answer, target_version, rehearsal, now_ms())
    if json:
        output.print_json(answer)
    else:
        gate_view.show(answer)
    raise typer.Exit(EXIT_STATUSES.get(answer["verdict"], CannotTellError.exit_status))


def _asked(client: MonitorClient, gate: Gate, groups: Collection[str], asked: Mapping[str, str | None]) -> GateJson:
    """The monitor's answer, once it is through with the log where it has to scan that."""
    deadline = time.monotonic() + SCAN_PATIENCE_SECONDS
    answer = client.gate(gate.value, groups, **asked)
    if not _scans(answer):
        return answer
    with output.progress("scanning the log") as advance:
        while _scans(answer) and time.monotonic() < deadline:
            advance(answer["log_scan"]["share"])
            time.sleep(_ASK_AGAIN_SECONDS)
            answer = client.gate(gate.value, groups, **asked)
    return answer


def _scans(answer: GateJson) -> bool:
    return bool((answer.get("log_scan") or {}).get("under_way"))


def _of_recording(
    file: Path, gate: Gate, named: Collection[str], target: str | None, max_size: int | None
) -> dict[str, Any]:
    """The judgement on what a recording holds: it may close a gate, and never opens one."""
    with open_recording(file, "--from") as recording:
        replica = LogReplica(recording.header.offsets_topic_partitions)
        for record in recording:
            replica.replay(Position(record.partition, record.offset, record.timestamp_ms), record.key, record.value)
    replica.settle()
    # What a group that is gone left behind is no group, and an older broker meets it all the same.
    left_too = gate is Gate.DOWNGRADE
    states = {
        name: state
        for name, state in sorted(replica.living().items())
        if state.exists or (left_too and state.membership.leftovers())
    }
    for name in named:
        if name not in states:
            raise NoSuchGroupError(f"--group: found {name!r}, accepted: a group of {file.name}")
    chosen = {name: states[name] for name in named or states}
    cluster = Cluster(
        not_caught_up=("a recording is what was read then, not what the log holds now",),
        unknown_records=replica.counters.unknown_records,
        settings=BrokerSettings(consumer_max_size=max_size, brokers=recorded(recording.header.kafka_version)),
        offset_versions={
            name: Counter(committed.value_version for _, _, committed in replica.offsets(name)) for name in chosen
        },
    )
    if gate is Gate.UPGRADE:
        return upgrade_gate(chosen.values(), cluster, named)
    copies = [state for state in replica.others() if not named or state.name in named]
    answer = downgrade_gate([*chosen.values(), *copies], cluster, target, named)
    return {**answer, "groups": groups_by_type(chosen.values())}

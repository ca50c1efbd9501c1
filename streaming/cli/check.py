"""`check`: everything `run` needs, looked at one by one, in one list."""

import base64
import errno
import os
import socket
import ssl
import tempfile
from collections.abc import Iterator, Mapping
from http import HTTPStatus
from http.client import HTTPConnection, HTTPException, HTTPSConnection
from json import loads as json_of
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Final

import typer

from streaming.base.errors import MonitorError, UsageError
from streaming.base.text import printable
from streaming.cli.render import output
from streaming.cli.run import ConfigFile, SettingOptions, load_config

if TYPE_CHECKING:
    from streaming.config.loading import Config
    from streaming.config.sections import HttpSection
    from streaming.kafka.preflight import Finding, Status

_ANSWER_SECONDS: Final = 5.0
_NAMED: Final = 10
"""Groups that a finding names; the API has all."""

_OF_A_TRIAL: "Final[Mapping[bool | None, Status]]" = {True: "ok", False: "fail", None: "cannot tell"}


def check(  # noqa: PLR0913 - a command's options are its arguments
    context: typer.Context,
    config: ConfigFile = None,
    settings: SettingOptions = None,
    create_topics: Annotated[
        bool, typer.Option("--create-topics", help="Make the topics of kafka_sink that are not there.")
    ] = False,
    no_spark: Annotated[
        bool, typer.Option("--no-spark", help="Do not try whether Spark starts, which takes 5 to 20 s and 500 MB.")
    ] = False,
    json: output.Json = False,
) -> None:
    """Check configuration, Java, Spark, brokers, permissions, topics, port and directories; start no monitor."""
    output.set_up_logging(context, clients_silent=True)
    from streaming.kafka.preflight import Finding, broker_findings, instead  # imported late, with all it needs
    from streaming.sinks.topic_setup import sink_findings

    try:
        loaded = load_config(config, settings)
    except UsageError as error:
        _print([Finding("configuration", "fail", str(error))], as_json=json)
        raise typer.Exit(UsageError.exit_status) from None
    findings = [Finding("configuration", "ok", str(config) if config is not None else "defaults")]
    with output.progress("checking") as advance:
        polled = loaded.source.kind == "admin"
        findings += [
            *(() if polled else _java_and_spark(loaded, is_tried=not no_spark)),
            _open_files(),
            _port(loaded),
            *_probe_port(loaded),
            *_copies(loaded),
            _state_dir(loaded),
        ]
        advance(0.5)
        findings += broker_findings(loaded.kafka, polled=polled, share_groups=loaded.share_groups.enabled)
        findings += list(instead(findings))
        findings += sink_findings(loaded, create=create_topics)
        findings += _otlp(loaded)
    _print(findings, as_json=json)
    raise typer.Exit(exit_status(findings))


def exit_status(findings: "list[Finding]") -> int:
    """1 if anything does not hold, else 3 if anything is not known, else 0."""
    statuses = {finding.status for finding in findings}
    return 1 if "fail" in statuses else 3 if "cannot tell" in statuses else 0


def _print(findings: "list[Finding]", *, as_json: bool) -> None:
    if as_json:
        checks = [{"check": found.name, "status": found.status, "detail": found.detail} for found in findings]
        output.print_json({"checks": checks, "exit_status": exit_status(findings)})
        return
    output.print_line(output.table(["CHECK", "STATUS", "DETAIL"], [[f.name, f.status, f.detail] for f in findings]))


def _java() -> "Finding":
    from streaming.kafka.preflight import Finding
    from streaming.spark.java import find_java

    try:
        return Finding("java", "ok", str(find_java()))
    except MonitorError as error:
        return Finding("java", "fail", str(error))


def _java_and_spark(config: "Config", *, is_tried: bool) -> Iterator["Finding"]:
    java = _java()
    yield java
    if java.status == "ok" and is_tried:
        yield _spark(config)


def _spark(config: "Config") -> "Finding":
    """Whether a session starts, tried in a process of its own."""
    from streaming.checkpoint.lock import StateLock
    from streaming.kafka.preflight import Finding
    from streaming.spark import trial

    left_out = "not tried: "
    if StateLock(config.state.dir).is_held():
        return Finding("spark", "note", f"{left_out}a monitor runs on this state.dir")
    free = trial.free_bytes()
    if free is not None and free < trial.LEAST_FREE_BYTES:
        needed = trial.LEAST_FREE_BYTES >> 20
        return Finding("spark", "note", f"{left_out}found {free >> 20} MiB of memory free, accepted: {needed} or more")
    outcome = trial.run(config.spark)
    return Finding("spark", _OF_A_TRIAL[outcome.starts], outcome.said)


def _open_files() -> "Finding":
    from streaming.base.descriptors import LOW, limit
    from streaming.kafka.preflight import Finding

    found = limit()
    if found.is_low:
        detail = f"ulimit -Hn: found {found.hard:,}, accepted: {LOW:,} or more, as callers may use up what there is"
        return Finding("open files", "note", detail)
    return Finding("open files", "ok", f"{found.hard:,} at most")


def _port(config: "Config") -> "Finding":
    from streaming.kafka.preflight import Finding

    host, port = config.http.host, config.http.port
    try:
        _listened(host, port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE and (own := _own_monitor(config)) is not None:
            return own
        detail = f"http.port: found {host}:{port} ({error.strerror}), accepted: a free port, 0 for any"
        return Finding("http port", "fail", detail)
    free = f"{host}:{port or 'any'} is free"
    if config.http.requires_auth and not config.http.is_loopback and config.http.tls_certificate_file is None:
        lacks = "http.tls_certificate_file: found none, accepted: one, or TLS before it"
        return Finding("http port", "note", f"{free}; {lacks}, as credentials cross the network in clear otherwise")
    if not config.http.requires_auth and not config.http.is_loopback and config.http.allowed_hosts is None:
        lacks = "http.allowed_hosts: found none, accepted: the names by which callers ask for it, as a service's"
        return Finding("http port", "note", f"{free}; {lacks}; by an address or localhost alone it answers otherwise")
    return Finding("http port", "ok", free)


def _probe_port(config: "Config") -> Iterator["Finding"]:
    from streaming.checkpoint.lock import StateLock
    from streaming.kafka.preflight import Finding

    host, port = config.http.host, config.http.probe_port
    if port is None:
        return
    try:
        _listened(host, port)
    except OSError as error:
        if error.errno == errno.EADDRINUSE and StateLock(config.state.dir).is_held():
            return  # said of the other port
        detail = f"http.probe_port: found {host}:{port} ({error.strerror}), accepted: a free port, 0 for any"
        yield Finding("probe port", "fail", detail)
        return
    yield Finding("probe port", "ok", f"{host}:{port or 'any'} is free")


def _listened(host: str, port: int) -> None:
    """See that a port is free; raises OSError."""
    family, kind, protocol, _, address = socket.getaddrinfo(
        host.strip("[]"), port, type=socket.SOCK_STREAM, flags=socket.AI_PASSIVE
    )[0]
    with socket.socket(family, kind, protocol) as listener:
        # As the server does it: a port still draining its last connections is free.
        listener.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        listener.bind(address)


def _own_monitor(config: "Config") -> "Finding | None":
    """What the monitor of this very configuration says of itself; None where it does not run."""
    from streaming.checkpoint.lock import StateLock
    from streaming.kafka.preflight import Finding

    lock = StateLock(config.state.dir)
    if not lock.is_held():
        return None
    where = f"{config.http.host}:{config.http.port} is this configuration's own, {lock.holder()}"
    try:
        status, _ = _asked(config.http, "/ready")
    except (OSError, HTTPException) as error:
        return Finding("http port", "cannot tell", f"{where}, which does not answer ({type(error).__name__})")
    if status != HTTPStatus.OK:
        return Finding("http port", "cannot tell", f"{where}, which is not ready: /ready says what is missing")
    return Finding("http port", "ok", f"{where}, which is ready")


def _copies(config: "Config") -> Iterator["Finding"]:
    """Groups in two partitions of the offsets topic, as the monitor of this very configuration says, where it runs."""
    from streaming.checkpoint.lock import StateLock
    from streaming.kafka.preflight import Finding

    if not config.http.port or config.source.kind == "admin" or not StateLock(config.state.dir).is_held():
        return
    name = "groups in two partitions"
    try:
        status, answer = _asked(config.http, "/api/v1/copies")
        groups = json_of(answer)["groups"] if status == HTTPStatus.OK else None
    except (OSError, HTTPException):
        return  # said of the port
    except (ValueError, LookupError, TypeError):
        groups = None
    if groups is None:
        yield Finding(name, "cannot tell", f"the running monitor answers {status} without a list of them")
        return
    if not groups:
        yield Finding(name, "ok", "none")
        return
    named = [
        f"{printable(of['group'])} (in {' and '.join(map(str, of['partitions']))}, lives in {of['lives_in']})"
        for of in groups[:_NAMED]
    ]
    more = f", and {len(groups) - _NAMED} more" if len(groups) > _NAMED else ""
    yield Finding(name, "note", f"{len(groups)}: {', '.join(named)}{more}; the other copies change nothing")


def _asked(http: "HttpSection", path: str) -> tuple[int, bytes]:
    """Status and body of an answer of the monitor that listens there. Raises OSError and HTTPException."""
    host = {"0.0.0.0": "127.0.0.1", "::": "::1"}.get(http.host, http.host).strip("[]")  # noqa: S104 - looked for, not bound
    asking: HTTPConnection
    if http.tls_certificate_file is None:
        asking = HTTPConnection(host, http.port, timeout=_ANSWER_SECONDS)
    else:
        # Its certificate is for its own name; here it is only asked how it is.
        asking = HTTPSConnection(
            host,
            http.port,
            timeout=_ANSWER_SECONDS,
            context=ssl._create_unverified_context(),  # noqa: S323, SLF001 - as said
        )
    try:
        asking.request("GET", path, headers=_credentials(http))
        answer = asking.getresponse()
        return answer.status, answer.read()
    finally:
        asking.close()


def _credentials(http: "HttpSection") -> dict[str, str]:
    """What callers of the monitor must send."""
    if http.token is not None:
        return {"Authorization": f"Bearer {http.token.get_secret_value()}"}
    if http.username is not None and http.password is not None:
        pair = f"{http.username}:{http.password.get_secret_value()}".encode()
        return {"Authorization": "Basic " + base64.b64encode(pair).decode("ascii")}
    return {}


def _otlp(config: "Config") -> Iterator["Finding"]:
    from streaming.kafka.preflight import Finding
    from streaming.otlp.connection import ExportError, refuse_unreachable

    if config.otlp.endpoint is None:
        return
    try:
        refuse_unreachable(config.otlp)
    except UsageError as error:
        yield Finding("otlp", "fail", str(error))
    except ExportError as error:
        yield Finding("otlp", "cannot tell", str(error))
    else:
        yield Finding("otlp", "ok", f"{config.otlp.endpoint} answers")


def _state_dir(config: "Config") -> "Finding":
    from streaming.checkpoint.location import Location, hidden_beside, is_checkpoint_alone, open_to_others
    from streaming.checkpoint.lock import LOCK
    from streaming.kafka.preflight import Finding

    directory = config.state.dir
    if config.source.kind == "log":
        try:
            Location.of(directory, config.state.checkpoint_location)
        except UsageError as error:
            return Finding("state directory", "fail", str(error))
    existing = next(_existing(directory))
    try:
        with tempfile.TemporaryFile(dir=existing):
            pass
    except OSError as error:
        detail = (
            f"state.dir: found {str(directory)!r} ({error.strerror}: {existing}), accepted: a directory to write to"
        )
        return Finding("state directory", "fail", detail)
    if (lock := directory / LOCK).exists() and not os.access(lock, os.W_OK):
        detail = f"state.dir: found {str(lock)!r} of another account, accepted: files that this one may write to"
        return Finding("state directory", "fail", detail)
    is_own = config.source.kind == "log" and config.state.checkpoint_location is None
    hidden = hidden_beside(directory) if is_own else None
    if hidden is not None and is_checkpoint_alone(hidden):
        detail = f"{directory}; an earlier release wrote a checkpoint to {hidden}, which run uses if it is this one's"
        return Finding("state directory", "note", detail)
    if (is_open := open_to_others(directory, config.checkpoint_location)) is not None:
        return Finding("state directory", "note", is_open)
    made = "" if existing == directory else ", to be made"
    return Finding("state directory", "ok", f"{directory}{made}")


def _existing(directory: Path) -> Iterator[Path]:
    """The directory and those above it that exist: the first one decides whether it can be made."""
    yield from (path for path in (directory, *directory.absolute().parents) if os.path.lexists(path))

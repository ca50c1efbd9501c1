"""The members of a rehearsal: light programs over librdkafka, or threads that send what was logged."""

from __future__ import annotations

import json
import sys
import threading
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Final, Protocol

from coordinator_model.state.membership import CLASSIC, CONSUMER
from streaming.base.errors import UsageError
from streaming.demo import child_processes
from streaming.rehearsal.shape import MemberShape, Shape
from streaming.rehearsal.wire_member import Logged, WireMember, asked_why

_PROGRAM: Final = Path(__file__).with_name("member_process.py")
DEFAULT_ASSIGNOR: Final = "range"
"""What members of the classic protocol use after a downgrade; Java's too, if nothing is set."""

OF_CLASSIC: Final = frozenset({"heartbeat.interval.ms", "session.timeout.ms", "partition.assignment.strategy"})
"""Settings that librdkafka refuses to members of the consumer protocol."""

_LEAST_POLL_INTERVAL_MS: Final = 1_000
_HEARTBEAT_MS: Final = 3_000
_COMMIT_MS: Final = "1000"


class RehearsalMember(Protocol):
    """The members that take part."""

    name: str
    refusal: str | None
    failure: str | None

    def ask_to_stop(self) -> None:
        """Let it begin to close."""
        ...

    def stop(self) -> None:
        """Close it as an application that is shut down."""
        ...

    def kill(self) -> None:
        """End it as a machine that fails."""
        ...


class ClientMember:
    """A member over librdkafka in a process of its own.

    Attributes:
        name: its client id.
        refusal: what the coordinator refused it with, or None.
        failure: why it could not run, or ended without being asked to; None while all is well.
    """

    def __init__(self, member: MemberShape, settings: Mapping[str, Any], directory: Path) -> None:
        self.name = member.name
        self.refusal: str | None = None
        self.failure: str | None = None
        self._ending = False
        command: list[str | Path] = [sys.executable, "-P", _PROGRAM]
        self._process = child_processes.start(command, log=directory / "members.log", piped=True)
        assert self._process.stdin is not None  # noqa: S101 - asked for
        # It may have ended already; its reader then says so.
        with suppress(OSError):
            self._process.stdin.write(json.dumps({"settings": dict(settings), "topics": list(member.topics)}) + "\n")
            self._process.stdin.flush()
        self._reader = threading.Thread(target=self._read, name=f"read-{member.name}", daemon=True)
        self._reader.start()

    def ask_to_stop(self) -> None:
        """Let it begin to close; many end in the time of one."""
        self._ending = True
        self._process.terminate()

    def stop(self) -> None:
        """Close: a dynamic member leaves, a static classic one does not, a static one of the new protocol says so."""
        self._ending = True
        child_processes.stop(self._process)
        self._reader.join()

    def kill(self) -> None:
        """End without a word to the group: its session has to expire."""
        self._ending = True
        child_processes.kill(self._process)
        self._reader.join()

    def _read(self) -> None:
        assert self._process.stdout is not None  # noqa: S101 - asked for
        # The pipe is closed under us when the process is reaped.
        with suppress(ValueError):
            for line in self._process.stdout:
                if line.startswith("{"):
                    said = json.loads(line)
                    self.refusal = said.get("refused", self.refusal)
                    self.failure = said.get("failed", self.failure)
        if not self._ending and self.refusal is None:
            self.failure = self.failure or "its process ended"


class Members:
    """Makes the members of one rehearsal.

    Args:
        bootstrap_servers: the embedded broker.
        shape: what is rehearsed.
        directory: where programs keep their log.
        settings: of the clients, over what the shape says; those of one protocol alone are given to its members only.
    """

    def __init__(
        self, bootstrap_servers: str, shape: Shape, directory: Path, settings: Mapping[str, str] | None = None
    ) -> None:
        self._servers, self._shape, self._directory = bootstrap_servers, shape, directory
        self._client_settings = settings or {}
        self._logged = Logged(shape)

    def start(self, member: MemberShape, protocol: str) -> RehearsalMember:
        """Start a member in a place of the group, of one protocol or the other."""
        if protocol == CLASSIC and self._shape.sent_as_logged and not member.librdkafka:
            return WireMember(self._servers, self._shape, member, self._logged, self._heartbeat_seconds(member))
        settings = {
            **_settings(self._servers, self._shape, member, protocol),
            **{name: of for name, of in self._client_settings.items() if protocol == CLASSIC or name not in OF_CLASSIC},
        }
        return ClientMember(member, settings, self._directory)

    def _heartbeat_seconds(self, member: MemberShape) -> float:
        """Of a member that is no client of librdkafka, which would judge its settings."""
        name = "heartbeat.interval.ms"
        given = str(self._client_settings.get(name, _heartbeat_ms(member)))
        if not given.isascii() or not given.isdecimal() or not int(given):
            raise UsageError(f"--member-config: found {name}={given!r}, accepted: milliseconds, 1 or more")
        return int(given) / 1000

    def refusal(self, member: MemberShape) -> str | None:
        """What the coordinator says if asked once more to take the member as one of the consumer protocol."""
        with suppress(OSError):
            return asked_why(self._servers, self._shape, member)
        return None


def _heartbeat_ms(member: MemberShape) -> int:
    """Kafka's default, or what a short session allows."""
    return min(_HEARTBEAT_MS, member.session_timeout_ms // 3)


def _settings(bootstrap_servers: str, shape: Shape, member: MemberShape, to: str) -> dict[str, Any]:
    settings: dict[str, Any] = {
        "bootstrap.servers": bootstrap_servers,
        "group.id": shape.group,
        "client.id": member.name,
        "group.protocol": to,
        "auto.offset.reset": "earliest",
        "auto.commit.interval.ms": _COMMIT_MS,
        "log_level": 2,
    }
    if member.instance_id is not None:
        settings["group.instance.id"] = member.instance_id
    poll_ms = max(member.rebalance_timeout_ms, _LEAST_POLL_INTERVAL_MS)
    if to == CONSUMER:
        settings["max.poll.interval.ms"] = poll_ms
        if shape.type == CONSUMER and shape.assignor in ("range", "uniform"):
            settings["group.remote.assignor"] = shape.assignor
    else:
        settings["session.timeout.ms"] = member.session_timeout_ms
        settings["heartbeat.interval.ms"] = _heartbeat_ms(member)
        settings["max.poll.interval.ms"] = max(poll_ms, member.session_timeout_ms)
        settings["partition.assignment.strategy"] = shape.assignor if shape.type == CLASSIC else DEFAULT_ASSIGNOR
    return settings

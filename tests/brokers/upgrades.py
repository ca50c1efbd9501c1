"""A classic group, and its first member that speaks the consumer protocol: what was said, and what the broker does.

Two members, who have been given what each other's coming left them; one of them is stopped, and comes back upgraded,
of the same make: Kafka's own, or librdkafka.

Gate and plan are asked as users ask them, through the commands of a running monitor. What the broker decides is what
the member meets: partitions of a group that is of the new type from then on, or an error by its client's name.
"""

import json
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, Final

from typer.testing import CliRunner

from lab.monitor_process import MonitorProcess, until
from streaming.__main__ import app
from streaming.demo.verifiable_consumer import Protocol
from tests.brokers.members import Member, librdkafka, of_release
from tests.brokers.releases import Release
from tests.brokers.story import TOPIC

_JOIN_SECONDS: Final = 150.0
_TRY_SECONDS: Final = 60.0
_STEADY_SECONDS: Final = 6.0
"""How long a group has to have stayed converted: some heartbeats."""
_SILENT_SECONDS: Final = 20.0
"""How long a member is waited for that the broker has no answer for: librdkafka asks for ever, and says nothing."""

Joins = Callable[[Release, str, str, str, Path, Protocol], Member]
"""Release, servers, group, name, directory, protocol → a member of that group."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt:
    """One kind of group.

    Attributes:
        kind: of `KINDS`.
        gate: exit status of `gate upgrade --group`, and the codes of its reasons.
        plan: readiness, and the codes of its reasons.
        broker: `converted`, or the error that the new member met.
        right: whether the gate was open (0) only where the broker converted, and closed (1) only where it did not.
    """

    kind: str
    gate: tuple[int, list[str]]
    plan: tuple[str, list[str]]
    broker: str
    right: bool


def _java(assignor: Any) -> Joins:
    def join(release: Release, servers: str, group: str, name: str, directory: Path, protocol: Protocol) -> Member:
        return of_release(release, servers, group, name, TOPIC, directory, protocol=protocol, assignor=assignor)

    return join


def _librdkafka(assignor: str) -> Joins:
    def join(_: Release, servers: str, group: str, name: str, directory: Path, protocol: Protocol) -> Member:
        return librdkafka(servers, group, name, TOPIC, directory, protocol=protocol, assignor=assignor)

    return join


KINDS: Final[Mapping[str, Joins]] = {
    "java range": _java("range"),
    "java cooperative-sticky": _java("cooperative-sticky"),
    "librdkafka range": _librdkafka("range"),
    "librdkafka cooperative-sticky": _librdkafka("cooperative-sticky"),
}


def attempts(release: Release, servers: str, monitor: MonitorProcess, directory: Path) -> list[Attempt]:
    """Try each kind of group that the release's own consumer can make, all at once."""
    kinds = [kind for kind in KINDS if release.has_cooperative_sticky or kind != "java cooperative-sticky"]
    groups = {kind: f"roll-{kind.replace(' ', '-')}" for kind in kinds}

    def joined(kind: str, number: int, protocol: Protocol) -> Member:
        return KINDS[kind](release, servers, groups[kind], f"{groups[kind]}-{number}", directory, protocol)

    members: list[Member] = []
    try:
        for number in (1, 2):
            second = {kind: joined(kind, number, "classic") for kind in kinds}
            members += second.values()
            for group in groups.values():
                until(
                    lambda group=group, number=number: _is_at_work(monitor, group, number),  # type: ignore[misc]
                    _JOIN_SECONDS,
                    f"{group} never had {number} members",
                )
        gates = {kind: asked(monitor, "gate", "upgrade", "--group", group) for kind, group in groups.items()}
        plans = {kind: asked(monitor, "plan", "--group", group)[1] for kind, group in groups.items()}
        for member in second.values():
            member.stop()
        new = {kind: joined(kind, 3, "consumer") for kind in kinds}
        members += new.values()
        deadline = time.monotonic() + (_TRY_SECONDS if release.speaks_consumer else _SILENT_SECONDS)
        return [
            _attempt(kind, gates[kind], plans[kind], _decided(new[kind], monitor, group, deadline))
            for kind, group in groups.items()
        ]
    finally:
        for member in members:
            member.stop()


def _attempt(kind: str, gate: tuple[int, dict[str, Any]], plan: dict[str, Any], broker: str) -> Attempt:
    planned: dict[str, Any] = next(iter(plan.get("groups", ())), {})
    return Attempt(
        kind=kind,
        gate=(gate[0], codes(gate[1])),
        plan=(planned.get("readiness", "nothing"), codes(planned)),
        broker=broker,
        right=gate[0] not in (0, 1) or (gate[0] == 0) == (broker == "converted"),
    )


def asked(monitor: MonitorProcess, *command: str) -> tuple[int, dict[str, Any]]:
    """Exit status and JSON of a command that asks the running monitor."""
    done = CliRunner().invoke(app, [*command, "--url", monitor.url, "--json"])
    try:
        return done.exit_code, json.loads(done.stdout)
    except ValueError:
        return done.exit_code, {"reasons": [{"code": (done.stderr or str(done.exception)).strip()}]}


def codes(answer: Mapping[str, Any]) -> list[str]:
    """The codes of the reasons of an answer, notes left out."""
    return sorted({of["code"] for of in answer.get("reasons", ()) if of.get("effect") != "note"})


def _decided(member: Member, monitor: MonitorProcess, group: str, deadline: float) -> str:
    """What became of a member that speaks the consumer protocol."""
    converted: float | None = None
    while time.monotonic() < deadline:
        refused = member.refusal()
        if refused is not None:
            return f"refused: {refused}"
        if converted is None and member.is_assigned() and _view(monitor, group)["type"] == "consumer":
            converted = time.monotonic()
        # A refusal may come with a later heartbeat.
        if converted is not None and time.monotonic() > converted + _STEADY_SECONDS:
            return "converted"
        time.sleep(0.2)
    return "refused: no answer"


def _is_at_work(monitor: MonitorProcess, group: str, members: int) -> bool:
    """Whether it is stable with so many members, who own partitions, and has offsets."""
    view = _view(monitor, group)
    owning = [member for member in view["members"] if member["assigned"]]
    return view["state"] == "Stable" and bool(view["offsets"]) and members == len(owning) == len(view["members"])


def _view(monitor: MonitorProcess, group: str) -> dict[str, Any]:
    """The group as the API answers it; what is not there yet has no members."""
    status, body = monitor.get(f"/api/v1/groups/{group}")
    view: dict[str, Any] = json.loads(body) if status == HTTPStatus.OK else {}
    return {"type": None, "state": None, "members": [], "offsets": [], **view}

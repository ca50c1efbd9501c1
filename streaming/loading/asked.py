"""What a broker that has loaded the log answers: which groups it lists, how it describes them, their offsets.

A group whose partition failed is not listed; its offsets are refused. What is refused counts as not there.
"""

import time
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any, Final

from kafka.errors import KafkaError
from kafka.protocol.consumer import OffsetFetchRequest

from coordinator_model.state.membership import CLASSIC, SHARE
from streaming.base.errors import CannotTellError, first_line
from streaming.kafka.lazy_admin import LazyAdmin
from streaming.loading.source import ExpectedGroup, Offsets
from streaming.polling import answers
from streaming.polling.client import DESCRIBED
from streaming.polling.missing import lots

_NODE: Final = 1
_OF_GROUPS: Final = 8
"""Version of OffsetFetch that is about several groups; all releases from 3.0 on have it."""


@dataclass(frozen=True, slots=True, kw_only=True)
class AnsweredGroup:
    """A group as the broker has it; members and epoch are None where it does not describe it."""

    type: str
    members: int | None
    epoch: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Answers:
    """All that was answered."""

    groups: Mapping[str, AnsweredGroup]
    offsets: Mapping[str, Offsets]
    seconds: float


def ask(bootstrap_servers: str, expected: Mapping[str, ExpectedGroup]) -> Answers:
    """Ask about all groups. Raises CannotTellError: the broker does not answer."""
    begun = time.monotonic()
    admin = LazyAdmin({"bootstrap_servers": bootstrap_servers, "client_id": "group-monitor-rehearsal"})
    try:
        with admin.asking():
            listed: dict[str, str] = {}
            for group in admin.ask(lambda client: client.list_groups([_NODE])):
                listed[group["group_id"]] = (group.get("group_type") or CLASSIC).lower()
            # Classic members first: their sessions run.
            described: dict[str, AnsweredGroup] = {}
            for type_ in sorted(set(listed.values()), key=lambda of: (of != CLASSIC, of)):
                described |= _described(admin, type_, sorted(name for name, of in listed.items() if of == type_))
            offsets: dict[str, Offsets] = {}
            for lot in lots(sorted(name for name, of in expected.items() if of.type != SHARE)):
                offsets |= _offsets(admin, lot)
    except KafkaError as error:
        raise CannotTellError(f"rehearsal: its broker does not answer ({first_line(error)})") from error
    finally:
        admin.close()
    return Answers(groups=described, offsets=offsets, seconds=time.monotonic() - begun)


def _described(admin: LazyAdmin, type_: str, names: Sequence[str]) -> dict[str, AnsweredGroup]:
    found = {name: AnsweredGroup(type=type_, members=None, epoch=None) for name in names}
    if type_ not in DESCRIBED:
        return found
    request, _ = DESCRIBED[type_]
    for lot in lots(names):
        try:
            groups = admin.send(request(lot), _NODE).groups
        except KafkaError:
            # A release may list a kind of group that it does not describe unless a feature is turned on.
            continue
        for group in groups:
            if group.error_code == 0 and group.group_state != answers.DEAD:
                found[group.group_id] = AnsweredGroup(
                    type=type_, members=len(group.members), epoch=None if type_ == CLASSIC else group.group_epoch
                )
    return found


def _offsets(admin: LazyAdmin, names: Sequence[str]) -> dict[str, Offsets]:
    groups = [OffsetFetchRequest.OffsetFetchRequestGroup(group_id=name, topics=None) for name in names]
    request: Any = OffsetFetchRequest(groups=groups, min_version=_OF_GROUPS, max_version=_OF_GROUPS)
    return {
        group.group_id: {
            (topic.name, of.partition_index): (of.committed_offset, of.committed_leader_epoch, of.metadata or "")
            for topic in group.topics
            for of in topic.partitions
            if of.error_code == 0 and of.committed_offset >= 0
        }
        for group in admin.send(request, _NODE).groups
        if group.error_code == 0
    }

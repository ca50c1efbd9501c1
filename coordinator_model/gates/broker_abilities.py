"""What a broker can do, by the ApiVersions that it answers: what no configuration of it can change.

    ability                 request and version          since   without it
    consumer_protocol       ConsumerGroupHeartbeat 0     3.7     no consumer group
    online_upgrade          ListGroups 5                 3.8     a group that has members is not converted
    consumer_protocol_ga    ConsumerGroupHeartbeat 1     4.0     the consumer protocol is a preview, and off by default
    group_configs           ConsumerGroupHeartbeat 1     4.0     no group can have configurations of its own
    lists_group_configs     ListConfigResources 1        4.1     it cannot list which groups have some

- Brokers answer ApiVersions to everybody: no permission is asked for.
- `group.consumer.migration.policy` is in 3.8 and not in 3.7 (`GroupCoordinatorConfig`), and so is version 5 of
  ListGroups. ConsumerGroupDescribe does not tell: 3.7 has it as an unstable version, which brokers name under
  `unstable.api.versions.enable`. The policy is *disabled* by default in 3.8 and 3.9, and *bidirectional* from 4.0 on.
- Resources of type GROUP came with 4.0 (`ConfigResource.Type`), and ListConfigResources lists them from version 1 on;
  version 0 always lists client metrics (KIP-1142).

In a roll brokers differ. What groups need all brokers must have: which of them leads a group is not for us to know.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from typing import Final

CONSUMER_PROTOCOL: Final = "consumer_protocol"
ONLINE_UPGRADE: Final = "online_upgrade"
CONSUMER_PROTOCOL_GA: Final = "consumer_protocol_ga"
GROUP_CONFIGS: Final = "group_configs"
LISTS_GROUP_CONFIGS: Final = "lists_group_configs"

_LIST_GROUPS: Final = 16
_CONSUMER_GROUP_HEARTBEAT: Final = 68
_LIST_CONFIG_RESOURCES: Final = 74

ABILITIES: Final[Mapping[str, tuple[int, int]]] = {
    CONSUMER_PROTOCOL: (_CONSUMER_GROUP_HEARTBEAT, 0),
    ONLINE_UPGRADE: (_LIST_GROUPS, 5),
    CONSUMER_PROTOCOL_GA: (_CONSUMER_GROUP_HEARTBEAT, 1),
    GROUP_CONFIGS: (_CONSUMER_GROUP_HEARTBEAT, 1),
    LISTS_GROUP_CONFIGS: (_LIST_CONFIG_RESOURCES, 1),
}
"""Ability → API key, and the version of it that a broker must serve."""

_CONSUMER_PROTOCOL_SINCE: Final = (3, 7)
_ONLINE_UPGRADE_SINCE: Final = (3, 8)
_RELEASE: Final = re.compile(r"\d{1,3}\.\d{1,3}(\.|$)", re.ASCII)

_NAMED: Final = 3


@dataclass(frozen=True, slots=True)
class Broker:
    """A broker of the cluster: its id, its release as far as requests tell ("4.3"), and its abilities.

    One of a recording has no id: all that is known of it is the release.
    """

    id: int | None
    release: str | None
    abilities: frozenset[str]

    @classmethod
    def of(cls, id_: int, release: str | None, versions: Mapping[int, tuple[int, int]]) -> Broker:
        """From its ApiVersions: API key → (lowest, highest) version."""
        abilities = {
            name for name, (key, version) in ABILITIES.items() if key in versions and versions[key][1] >= version
        }
        return cls(id_, release, frozenset(abilities))

    def __str__(self) -> str:
        named = "the brokers then" if self.id is None else f"broker {self.id}"
        return named + ("" if self.release is None else f" ({self.release})")


def recorded(release: str | None) -> tuple[Broker, ...] | None:
    """Brokers of a recording, where their release says that no group can be upgraded; None where it does not."""
    if release is None or _RELEASE.match(release) is None:
        return None
    version = tuple(int(part) for part in release.split(".")[:2])
    if version >= _ONLINE_UPGRADE_SINCE:
        return None
    able = {CONSUMER_PROTOCOL} if version >= _CONSUMER_PROTOCOL_SINCE else ()
    return (Broker(None, release, frozenset(able)),)


def lacking(brokers: Iterable[Broker], ability: str) -> list[Broker]:
    """Those without an ability, by id."""
    return sorted((each for each in brokers if ability not in each.abilities), key=lambda each: each.id or 0)


def names_of(brokers: Iterable[Broker]) -> str:
    """The first few, and how many more."""
    listed = [str(each) for each in brokers]
    more = len(listed) - _NAMED
    return ", ".join(listed[:_NAMED]) + (f" and {more} more" if more > 0 else "")

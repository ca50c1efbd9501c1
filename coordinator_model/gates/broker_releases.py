"""What brokers of which release make of the records in `__consumer_offsets`, as far as a downgrade meets them.

    since   groups it serves              records of types it does not know   committed offsets it reads
    2.3     classic                       end the loading of the partition    value versions 0 to 3
    3.4.1   classic                       passed over with a warning          0 to 4
    4.0     classic, consumer             passed over with a warning          0 to 4
    4.1     and share                     passed over with a warning          0 to 4
    4.2     and streams                   passed over with a warning          0 to 4

- A partition that cannot be loaded is lost to all of its groups: the coordinator answers none of them.
- KIP-915 is in 3.4.1 and in 3.5 (`GroupMetadataManager.readMessageKey`, `OffsetCommitValue.json` of the release tags).
- Brokers from 4.1 on write version 4 of committed offsets, older ones 3 (OffsetCommitValue.json).
- 3.7 to 3.9 serve consumer groups only if they are configured to, 3.7 in another layout: here they do not.
- Share groups of 4.0 have values that 4.1 cannot read (KIP-932); streams groups were in 4.1 for trying
  out. A release serves here what it serves by default, and reads as its successors write it.
- Dynamic configurations of groups are known to controllers from 4.0 on (KAFKA-14511).
- A broker does not start where a feature is finalized at a level beyond its own (KIP-584): `LEVELS` has, release by
  release, the highest that each supports (`MetadataVersion` and its neighbours in `server-common`).
- Which records of those types are *live* does not matter to a broker before 3.4.1: loading reads all that the log still
  holds, tombstones too (KIP-915).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

from coordinator_model.state.membership import CLASSIC, CONSUMER, SHARE, STREAMS

Version = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class BrokerRelease:
    """Brokers from release `since` on, up to the next row."""

    since: Version
    serves: tuple[str, ...]
    passes_over_unknown_types: bool
    highest_offset_version: int
    knows_group_configs: bool


RELEASES: Final = (
    BrokerRelease(
        since=(2, 3),
        serves=(CLASSIC,),
        passes_over_unknown_types=False,
        highest_offset_version=3,
        knows_group_configs=False,
    ),
    BrokerRelease(
        since=(3, 4, 1),
        serves=(CLASSIC,),
        passes_over_unknown_types=True,
        highest_offset_version=4,
        knows_group_configs=False,
    ),
    BrokerRelease(
        since=(4, 0),
        serves=(CLASSIC, CONSUMER),
        passes_over_unknown_types=True,
        highest_offset_version=4,
        knows_group_configs=True,
    ),
    BrokerRelease(
        since=(4, 1),
        serves=(CLASSIC, CONSUMER, SHARE),
        passes_over_unknown_types=True,
        highest_offset_version=4,
        knows_group_configs=True,
    ),
    BrokerRelease(
        since=(4, 2),
        serves=(CLASSIC, CONSUMER, SHARE, STREAMS),
        passes_over_unknown_types=True,
        highest_offset_version=4,
        knows_group_configs=True,
    ),
)
"""Oldest first."""

KNOWN: Final = {2: range(3, 9), 3: range(10), 4: range(4)}
"""Releases that these tables are about: major → minors. Of any other nothing is known, so no gate opens for it."""

ACCEPTED: Final = "a release from 2.3 to 4.3, as 3.9 or 3.4.1"

LEVELS: Final[Mapping[str, tuple[tuple[Version, int], ...]]] = {
    "metadata.version": (
        ((3, 3), 7),
        ((3, 4), 8),
        ((3, 5), 11),
        ((3, 6), 14),
        ((3, 7), 19),
        ((3, 8), 20),
        ((3, 9), 21),
        ((4, 0), 25),
        ((4, 1), 27),
        ((4, 2), 29),
        ((4, 3), 30),
    ),
    "group.version": (((4, 0), 1),),
    "share.version": (((4, 1), 1),),
    "streams.version": (((4, 2), 1),),
    "transaction.version": (((4, 0), 2),),
    "eligible.leader.replicas.version": (((4, 0), 1),),
    "kraft.version": (((3, 9), 1),),
}
"""Feature → the highest level that brokers support, from which release on; 0 before the first."""

_RELEASE: Final = re.compile(r"\d{1,3}(\.\d{1,3}){1,2}", re.ASCII)


def version_of(text: str) -> Version | None:
    """A release named as `3.9` or `3.4.1` in numbers; None for what is no such name, or a release not in `KNOWN`."""
    if _RELEASE.fullmatch(text) is None:
        return None
    version = tuple(int(part) for part in text.split("."))
    return version if version[1] in KNOWN.get(version[0], ()) else None


def release(text: str) -> BrokerRelease | None:
    """The row for a release named as `version_of` takes it; None for what that does not know."""
    version = version_of(text)
    return None if version is None else [row for row in RELEASES if row.since <= version][-1]


def highest_level(feature: str, version: Version) -> int | None:
    """The highest level of a feature that brokers of a release support; None for a feature that is not in `LEVELS`."""
    levels = LEVELS.get(feature)
    return None if levels is None else max((level for since, level in levels if since <= version), default=0)

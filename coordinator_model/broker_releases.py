"""What brokers of which release make of the records in `__consumer_offsets`, as far as a downgrade meets them.

    since   groups it serves              records of types it does not know   committed offsets it reads
    2.3     classic                       end the loading of the partition    value versions 0 to 3
    3.4.1   classic                       passed over with a warning          0 to 4
    4.0     classic, consumer             passed over with a warning          0 to 4
    4.1     and share                     passed over with a warning          0 to 4
    4.2     and streams                   passed over with a warning          0 to 4

- A partition that cannot be loaded is lost to all of its groups: the coordinator answers none of them.
- KIP-915 is in 3.4.1 and in 3.5 (`GroupMetadataManager.readMessageKey`, `OffsetCommitValue.json` of the release tags).
- Brokers from 4.1 on write version 4 of committed offsets, older ones 3 (coordinator-records, 1.3).
- 3.7 to 3.9 serve consumer groups only if they are told to, 3.7 in another layout: here they do not.
- Share groups of 4.0 have values that 4.1 cannot read (coordinator-records, 1.6); streams groups were in 4.1 for trying
  out. A release serves here what it serves unless told otherwise, and reads as its successors write it.
- Dynamic configurations of groups are known to controllers from 4.0 on (KAFKA-14511).
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Final

from coordinator_model.group_state import CLASSIC, CONSUMER, SHARE, STREAMS

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

ACCEPTED: Final = "a release from 2.3 on, as 3.9 or 3.4.1"

_RELEASE: Final = re.compile(r"\d{1,3}(\.\d{1,3}){1,2}")


def release(text: str) -> BrokerRelease | None:
    """The row for a release named as `3.9` or `3.4.1`; None for what is no such name, and for older ones."""
    if _RELEASE.fullmatch(text) is None:
        return None
    version = tuple(int(part) for part in text.split("."))
    rows = [row for row in RELEASES if row.since <= version]
    return rows[-1] if rows else None

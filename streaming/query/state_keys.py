"""Keys of entries of the state: a group in two partitions of the log has two, which have nothing to do with each other.

    key                       is of                    in the state it is
    (group,)                  a group of a partition   (group, "PARTITION/", GROUP)
    (group, topic, bucket)    an offset bucket of it   (group, "PARTITION/topic", FIRST_BUCKET + bucket)

There are far fewer buckets than these numbers, so it is seen which is which. State of a release up to layout 5
(`identity.py`) has the keys of the first column in their place; they are changed when it is next used
(`state_cache.with_partitions`).
"""

from typing import Any, Final

SHARE_LOG: Final = 1 << 20
"""Where a partition stands for one of the share coordinator's log, this is added to its number: more than there are of
the first log."""

Key = tuple[Any, ...]
"""(group,) of a group; (group, topic, bucket number) of an offset bucket."""

FIRST_BUCKET: Final = 1 << 30
GROUP: Final = (1 << 31) - 1
_LEAST: Final = 1 << 29
"""Numbers of buckets are of 25 bits and a sign."""


def is_stored(key: Key) -> bool:
    """Whether it is one as in the state, and says its partition."""
    return len(key) > 1 and key[2] >= _LEAST


def stored(partition: int, key: Key) -> Key:
    """The key in the state of an entry of a partition; one that is that already stays as it is."""
    if len(key) == 1:
        return key[0], f"{partition}/", GROUP
    group, topic, bucket = key
    return key if bucket >= _LEAST else (group, f"{partition}/{topic}", FIRST_BUCKET + bucket)


def place_of(key: Key) -> tuple[int | None, Key]:
    """Inverse of `stored`: partition and key; no partition where it does not say."""
    if not is_stored(key):
        return None, key
    group, where, bucket = key
    partition, _, topic = where.partition("/")
    return int(partition), ((group,) if bucket == GROUP else (group, topic, bucket - FIRST_BUCKET))

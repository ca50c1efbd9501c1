"""What the log of old brokers does not hold of a group, in words for who looks at it: unknown is not shown as good.

    code             brokers      of a group                                    is not in the log
    static_returns   before 2.7   of the classic protocol with static members   that a static member came back
                                                                                (KAFKA-10284)
    topic_ids        before 4.1   of whose commits none names a topic id        which topic of that name a commit is to

The first is said unless the brokers are known to be newer; the second is seen in the group's own commits, and holds of
one that commits in transactions alone on any broker.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

STATIC_RETURNS: Final = (
    "Brokers before 2.7 do not write that a static member came back (KAFKA-10284): one that restarted stands here "
    "under its former member id until the group's next rebalance, and which process it is now is not known."
)
TOPIC_IDS: Final = (
    "Commits name no topic id, as those of brokers before 4.1 and all in transactions: whether offsets went back or "
    "their topic was deleted and made again is known by its deletion, or by what brokers say of it, where they do."
)

WRITES_RETURNS: Final = (2, 7)


def lacks(
    group: Mapping[str, Any], *, has_topic_ids: bool | None, release: tuple[int, ...] | None = None
) -> list[dict[str, str]]:
    """The rows of the table that apply, each as `code` and `text`.

    Args:
        group: as GROUP.
        has_topic_ids: whether its brokers have topic ids, as those since 2.8 do; None where that is not known.
        release: of the brokers, where it is known.
    """
    found = {}
    writes_returns = has_topic_ids or (release is not None and release >= WRITES_RETURNS)
    is_static = any(member.get("instance_id") for member in group.get("members") or ())
    if group.get("type") == "classic" and is_static and not writes_returns:
        found["static_returns"] = STATIC_RETURNS
    committed = [each for each in group.get("offsets") or () if each.get("offset") is not None]
    if committed and all(each.get("topic_id") is None for each in committed):
        found["topic_ids"] = TOPIC_IDS
    return [{"code": code, "text": text} for code, text in found.items()]

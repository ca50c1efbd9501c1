"""Groups on `cooperative-sticky` as members of Java (4.3.1) and of librdkafka (2.16) write them; recorded."""

from collections.abc import Sequence
from typing import Final

from coordinator_model.records.classic_group import MemberMetadata
from lab.builders import (
    RecordBytes,
    assignment,
    cooperative_sticky_user_data,
    group_metadata,
    member,
    sticky_user_data,
    subscription,
)

JAVA: Final = "java"
FIRST: Final = "first"
"""A member of librdkafka that joins for the first time."""
AGAIN: Final = "again"
"""One that rejoins."""


def generation(
    number: int, clients: Sequence[str], *, static: bool = False, leader: int = 0, first: int = 0
) -> RecordBytes:
    """A generation of members `m0`, `m1`, … of these clients, or from `first` on; the one at `leader` leads."""
    joined = [
        {
            JAVA: cooperative_sticky_user_data(number - 1),
            FIRST: b"",
            AGAIN: sticky_user_data({"t": [at]}, number - 1),
        }[client]
        for at, client in enumerate(clients)
    ]
    by_java = clients[leader] == JAVA
    members = [
        _member(first + at, data, static=static, given=None if by_java else data, version=3 if by_java else 0)
        for at, data in enumerate(joined)
    ]
    return group_metadata(
        "g", generation=number, protocol="cooperative-sticky", members=members, leader=members[leader].member_id
    )


def _member(at: int, data: bytes, *, static: bool, given: bytes | None, version: int) -> MemberMetadata:
    return member(
        f"m{at}",
        instance_id=f"i{at}" if static else None,
        client_id=f"app-{at}",
        subscription_bytes=subscription(["t"], user_data=data),
        assignment_bytes=assignment({"t": [at]}, user_data=given, version=version),
    )

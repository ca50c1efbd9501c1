"""What clients may call their groups, members and topics, and put into metadata: names that mean harm, and sizes."""

from collections.abc import Iterable, Iterator
from typing import Final

from coordinator_model.records.classic_group import MemberMetadata
from lab import builders
from lab import coordinator_events as happens
from lab.builders import RecordBytes

NAMES: Final = (
    "esc\x1b[2J\x1b]0;owned\x07",
    "c1\x9b31m\x9d0;owned\x9c\x84",
    "line\nbreak\r\ttab\x00\x7f",
    "quotes ' \" \\ `$(id)`",
    "<script>alert(1)</script>",
    "[bold red]markup[/]",
    "\u202egnp.exe\u2066\u200b\ufeff\u2028",
    "\U000e0041tag\ufffe",
    "مجموعة",
    "{}%s%n",
    "..",
    " ",
    "x" * 32_767,
)
"""Control characters of both sets, sequences that steer terminals, quotes, markup, unseen characters, the longest."""

STEERING: Final = frozenset([*map(chr, range(0x20)), *map(chr, range(0x7F, 0xA0)), *"\u202a\u202b\u202c\u202d\u202e"])
"""Characters that no output may have but where the tool itself breaks a line."""

NOT_UTF8: Final = (b"\xff\xfe", b"\xc3\x28", b"\xed\xa0\x80", b"\xf0\x28\x8c\x28")


def records() -> Iterator[RecordBytes]:
    """Of each name a classic group with a member and an offset, and of each a consumer, a share and a streams group."""
    for name in NAMES:
        short = name[:200]
        yield builders.group_metadata(name, generation=1, members=[_member(short)])
        yield builders.offset_commit(name, short, 0, 5, metadata=name)
        yield from happens.consumer_join(f"c{short}", short, epoch=1, targets={short: {short: [0, 1]}})
        yield from happens.consumer_join(f"c{short}", f"d{short}", epoch=2, targets={f"d{short}": {short: [1]}})
        yield from happens.share_join(f"s{short}", short, epoch=1, targets={short: {short: [0]}})
        yield builders.streams_group_epoch(f"t{short}", 1)
        yield builders.streams_group_topology(f"t{short}", 1, {short: [short]})
        yield builders.streams_group_member(f"t{short}", short)
    for raw in NOT_UTF8:
        part = len(raw).to_bytes(2, "big") + raw
        yield b"\x00\x01" + part + part + bytes(4), b"\x00\x00" + bytes(8) + part + bytes(8)
        yield b"\x00\x63" + part, b"\x00\x00"
    for name in NAMES:
        raw = name.encode()
        yield b"\x00\x63" + len(raw).to_bytes(2, "big") + raw, b"\x00\x00"
        yield builders.offset_commit(name, "t", 0, 1)[0], b"\x00\x03\x00"


def members(count: int) -> list[str]:
    """Ids of so many members."""
    return [f"member-{number:06}" for number in range(count)]


def classic_group(group: str, count: int) -> RecordBytes:
    """A classic group of so many members, each with a partition: one record."""
    present = [builders.member(name, {"t": [number]}) for number, name in enumerate(members(count))]
    return builders.group_metadata(group, generation=1, members=present)


def consumer_group(group: str, count: int) -> Iterable[RecordBytes]:
    """A consumer group of so many members, each with a partition, of one target that all have reached."""
    names = members(count)
    yield from (builders.consumer_group_member_subscription(group, name) for name in names)
    yield builders.consumer_group_epoch(group, 1)
    yield from happens.retarget(group, 1, {name: {"t": [number]} for number, name in enumerate(names)})
    for number, name in enumerate(names):
        yield builders.consumer_group_current_assignment(group, name, epoch=1, assigned={"t": [number]})


def _member(name: str) -> MemberMetadata:
    return builders.member(name, {name: [0, 1]}, instance_id=name, client_id=name, client_host=name)

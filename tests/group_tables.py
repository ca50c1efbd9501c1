"""What `kafka-consumer-groups --describe` prints, as values.

Its tables are columns of fixed width under a header: an empty cell (the instance id of a dynamic member) is blanks, a
missing one is `-`. Column names and widths: `ConsumerGroupCommand` of kafka-tools 4.3.
"""

import re
from collections.abc import Mapping
from typing import Final, TypedDict

from streaming.base.errors import CannotTellError

# Before 2.4 tables were of one group, and did not name it.
_HEADERS: Final = ("GROUP ", "TOPIC ", "CONSUMER-ID ", "COORDINATOR (ID)")
# One name contains a blank.
_COLUMN: Final = re.compile(r"COORDINATOR \(ID\)|\S+")
_ERROR: Final = re.compile(r"^Error: (?P<message>.*)$", re.MULTILINE)
_MISSING: Final = "-"

Row = Mapping[str, str]


class StateRow(TypedDict):
    """A row of `--describe --state --verbose`; epochs are None where the tool prints none (classic groups)."""

    group: str
    coordinator: str
    assignor: str | None
    state: str
    epoch: int | None
    assignment_epoch: int | None
    members: int


class MemberRow(TypedDict):
    """A row of `--describe --members --verbose`; `upgraded` is None unless the group has members of both protocols."""

    group: str
    member_id: str
    instance_id: str | None
    client_host: str
    client_id: str
    partitions: int
    epoch: int | None
    assigned: dict[str, list[int]]
    target_epoch: int | None
    target: dict[str, list[int]]
    upgraded: bool | None


class OffsetRow(TypedDict):
    """A row of `--describe --offsets`; a member without partitions has a row without topic."""

    group: str
    topic: str | None
    partition: int | None
    offset: int | None
    log_end_offset: int | None
    lag: int | None
    member_id: str | None
    client_id: str | None


def state_rows(text: str) -> list[StateRow]:
    """Rows of one or many groups.

    Raises:
        CannotTellError: the tool printed an error instead.
    """
    return [
        StateRow(
            group=row["GROUP"],
            coordinator=row["COORDINATOR (ID)"],
            assignor=_text(row["ASSIGNMENT-STRATEGY"]),
            state=row["STATE"],
            epoch=_number(row["GROUP-EPOCH"]),
            assignment_epoch=_number(row["TARGET-ASSIGNMENT-EPOCH"]),
            members=int(row["#MEMBERS"]),
        )
        for row in rows(text)
    ]


def member_rows(text: str) -> list[MemberRow]:
    """Rows of the members of one or many groups; raises as `state_rows`."""
    return [
        MemberRow(
            group=row["GROUP"],
            member_id=row["CONSUMER-ID"],
            instance_id=_text(row.get("GROUP-INSTANCE-ID", "")),
            client_host=row["HOST"],
            client_id=row["CLIENT-ID"],
            partitions=int(row["#PARTITIONS"]),
            epoch=_number(row["CURRENT-EPOCH"]),
            assigned=assignment(row["CURRENT-ASSIGNMENT"]),
            target_epoch=_number(row["TARGET-EPOCH"]),
            target=assignment(row["TARGET-ASSIGNMENT"]),
            upgraded={"true": True, "false": False}.get(row.get("UPGRADED", "")),
        )
        for row in rows(text)
    ]


def offset_rows(text: str) -> list[OffsetRow]:
    """Rows of the offsets of one or many groups; raises as `state_rows`."""
    return [
        OffsetRow(
            group=row["GROUP"],
            topic=_text(row["TOPIC"]),
            partition=_number(row["PARTITION"]),
            offset=_number(row["CURRENT-OFFSET"]),
            log_end_offset=_number(row["LOG-END-OFFSET"]),
            lag=_number(row["LAG"]),
            member_id=_text(row["CONSUMER-ID"]),
            client_id=_text(row["CLIENT-ID"]),
        )
        for row in rows(text)
    ]


def assignment(cell: str) -> dict[str, list[int]]:
    """`orders:0,1;payments:2` as `{"orders": [0, 1], "payments": [2]}`; `-` is nothing."""
    if _text(cell) is None:
        return {}
    # A topic's name holds neither colon nor semicolon.
    topics = (part.split(":") for part in cell.split(";"))
    return {topic: [int(number) for number in numbers.split(",")] for topic, numbers in topics}


def rows(text: str) -> list[Row]:
    """The rows of every table in a text, each with its table's column names.

    Raises:
        CannotTellError: the text holds the tool's error.
    """
    if (error := _ERROR.search(text)) is not None:
        raise CannotTellError(error["message"])
    found: list[Row] = []
    columns: list[tuple[str, int]] = []
    for line in text.splitlines():
        if line.startswith(_HEADERS):
            columns = [(match[0], match.start()) for match in _COLUMN.finditer(line)]
        elif columns and line.strip():
            found.append(_cells(line, columns))
    return found


def _cells(line: str, columns: list[tuple[str, int]]) -> Row:
    ends = [start for _, start in columns[1:]] + [len(line)]
    return {name: line[start:end].strip() for (name, start), end in zip(columns, ends, strict=True)}


def _text(cell: str) -> str | None:
    return cell if cell not in {"", _MISSING} else None


def _number(cell: str) -> int | None:
    return int(cell) if cell not in {"", _MISSING} else None

"""Whether what a monitor shows is what the generator wrote: every group, epoch, member count, offset, counter.

A figure of a monitor that shows something else is worth nothing, so every part compares before it reports.
"""

import re
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import fields
from typing import Any, Final

from bench.log import NONE_OR_0, Expected, GroupTruth
from streaming.board.board import Board

OFFSET: Final = "kafka_consumergroup_group_offset"
EPOCH: Final = "kafka_group_epoch"
MEMBERS: Final = "kafka_group_members"
COMMITS: Final = "kafka_group_commits_total"
LAG: Final = "kafka_consumergroup_group_lag"
SUM_LAG: Final = "kafka_consumergroup_group_sum_lag"

_SHOWN_DIFFERENCES: Final = 5
_LABEL: Final = re.compile(r'(\w+)="([^"\\]*)"')
"""Names of the generator need no escapes."""


class WrongResult(Exception):
    """What was measured did not lead to what was written: there is no figure."""


def require(expected: Expected, found: Mapping[str, GroupTruth], where: str) -> None:
    """See that nothing differs.

    Raises:
        WrongResult: something does; the message has the first differences.
    """
    wrong = list(differences(expected, found))
    if wrong:
        raise WrongResult(f"{where}: {len(wrong)} groups differ: {'; '.join(wrong[:_SHOWN_DIFFERENCES])}")


def differences(expected: Expected, found: Mapping[str, GroupTruth]) -> Iterator[str]:
    """A line for every group that is missing, too many, or other than expected in some field."""
    for name in sorted(expected.groups.keys() | found.keys()):
        wanted, has = expected.groups.get(name), found.get(name)
        if wanted is None or has is None:
            yield f"{name}: expected {'no such group' if wanted is None else 'it'}, found {'it' if has else 'none'}"
        elif wanted != has and (reported := ", ".join(_fields(wanted, has))):
            yield f"{name}: {reported}"


def _fields(wanted: GroupTruth, has: GroupTruth) -> Iterator[str]:
    for field in fields(GroupTruth):
        one, other = getattr(wanted, field.name), getattr(has, field.name)
        if field.name == "lag" and one == NONE_OR_0 and other in (None, 0):
            continue
        if one != other and isinstance(one, dict):
            at = min(place for place in one.keys() | other.keys() if one.get(place) != other.get(place))
            yield f"{field.name} at {at} expected {one.get(at)} found {other.get(at)}"
        elif one != other:
            yield f"{field.name} expected {one} found {other}"


def of_board(board: Board, names: Iterable[str] | None = None) -> dict[str, GroupTruth]:
    """What a board holds, of all groups or of these."""
    found = {}
    groups = board.shown.groups
    for name in groups if names is None else names:
        if name not in groups:
            continue
        held = groups[name]
        classic, modern = held.state.membership.classic, held.state.membership.modern_group
        members = modern.members if modern is not None else classic.members if classic is not None else ()
        found[name] = GroupTruth(
            epoch=held.state.epoch or 0,
            members=len(members),
            offsets={(topic, partition): committed.offset for topic, partition, committed in held.offsets},
            commits=sum(bucket.commits for bucket in held.buckets),
        )
    return found


def of_metrics(page: str | Iterable[str]) -> dict[str, GroupTruth]:
    """What a page of /metrics says, or its lines; without series per partition there are no offsets in it."""
    found: dict[str, GroupTruth] = defaultdict(lambda: GroupTruth(epoch=0, members=0))
    for name, labels, value in samples(page, (OFFSET, EPOCH, MEMBERS, COMMITS, SUM_LAG)):
        group = found[labels["group"]]
        match name:
            case "kafka_group_epoch":
                group.epoch = int(value)
            case "kafka_group_members":
                group.members += int(value)
            case "kafka_group_commits_total":
                group.commits += int(value)
            case "kafka_consumergroup_group_sum_lag":
                group.lag = int(value)
            case _:
                group.offsets[labels["topic"], int(labels["partition"])] = int(value)
    return dict(found)


def of_replay(answer: Mapping[str, Any]) -> dict[str, GroupTruth]:
    """What `replay --json` says, which has no counters of commits: those expected are to be put in."""
    return {
        name: GroupTruth(
            epoch=group["epoch"] or 0,
            members=len(group["members"]),
            offsets={(each["topic"], each["partition"]): each["offset"] for each in group["offsets"]},
        )
        for name, group in answer["groups"].items()
    }


def samples(page: str | Iterable[str], names: tuple[str, ...]) -> Iterator[tuple[str, dict[str, str], float]]:
    """(name, labels, value) of the samples of these names: quicker than a parser that reads every line."""
    starts = tuple(f"{name}{{" for name in names)
    for line in page.splitlines() if isinstance(page, str) else page:
        if line.startswith(starts):
            name, _, rest = line.partition("{")
            labels, _, value = rest.rpartition("} ")
            yield name, dict(_LABEL.findall(labels)), float(value)

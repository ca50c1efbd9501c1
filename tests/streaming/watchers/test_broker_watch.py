"""Where brokers convert no group, nothing is said to block an upgrade; it is said once they do."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import pytest

from coordinator_model.gates.verdict import BrokerSettings
from lab.builders import assignment, group_metadata, member
from streaming.base.batch_rows import Row
from streaming.board import gates
from streaming.board.board import Board
from streaming.watchers.broker_watch import FRESH_MS, BrokerWatch
from tests.brokers_by_release import brokers
from tests.streaming.board_rows import Shard
from tests.streaming.boards import NOW_MS, classic_group, log_ends

ROLL = ["4.3", "3.6"]


@dataclass
class Rig:
    """A watch on a board with a group that no broker would take, and one that each would."""

    releases: list[str]
    down: Exception | None = None
    now_ms: int = NOW_MS
    said: Mapping[str, Any] = field(default_factory=dict)
    asked: int = 0
    published: list[Mapping[str, Any]] = field(default_factory=list)

    def __post_init__(self) -> None:
        self.board = Board(log_ends())
        self.board.load([])
        self.watch = BrokerWatch(self.board, lambda: self, self.published.extend, lambda: self.now_ms)

    def brokers(self) -> BrokerSettings:
        self.asked += 1
        if self.down is not None:
            raise self.down
        return BrokerSettings(asked=True, brokers=brokers(self.releases), **self.said)

    def close(self) -> None: ...

    def look(self, *releases: str, after_ms: int = FRESH_MS) -> None:
        self.now_ms += after_ms
        self.releases = list(releases) or self.releases
        self.watch.check()

    def reported(self) -> list[str]:
        """Kinds of events about the group that are shown, once it was read."""
        shard = Shard()
        classic_group(shard, "fine", {"m": {"t": [0]}})
        own = member("m", {"t": [1]}, assignment_bytes=assignment({"t": [1]}, user_data=b"mine"))
        shard.pending.append((NOW_MS, *group_metadata("g", generation=1, protocol="own", members=[own])))
        rows: Sequence[Row] = self.board.settled(0, shard.flush())
        self.board.apply(0, rows, NOW_MS)
        return [event["kind"] for event in self.board.latest_events(100) if event["group"] == "g"]


ON: dict[str, Any] = {"consumer_protocol": True, "migration_policy": "bidirectional"}


@pytest.mark.parametrize(
    ("releases", "configured", "said"),
    [
        # Whom a broker would take, were it not for the assignor; as far as it is known.
        (["4.3"], ON, True),
        (["4.3"], {}, True),
        (["3.9"], ON, True),
        (["3.9"], {}, True),
        # Whom no broker takes.
        (["2.0"], {}, False),
        (["3.7"], {}, False),
        (ROLL, ON, False),
        (["3.9"], {"consumer_protocol": False}, False),
        (["4.3"], {"consumer_protocol": False}, False),
        (["4.3"], {**ON, "migration_policy": "disabled"}, False),
        (["4.3"], {**ON, "migration_policy": "Downgrade"}, False),
    ],
)
def test_nothing_blocks_an_upgrade_that_there_is_not(
    releases: list[str], configured: Mapping[str, Any], said: bool
) -> None:
    """All else of the group is said."""
    rig = Rig(releases, said=configured)
    rig.look()
    kinds = rig.reported()

    assert said == ("upgrade_blocked" in kinds)
    assert "group_created" in kinds


def test_it_is_said_where_brokers_have_not_answered_yet() -> None:
    """Nothing is held back for what is not known; the outage does not end the looking."""
    rig = Rig(["2.0"], down=OSError("refused"))
    rig.look()

    assert "upgrade_blocked" in rig.reported()
    rig.down = None
    rig.look(after_ms=0)
    assert rig.board.findings.converts_no_group


def test_once_the_protocol_is_on_it_is_said() -> None:
    """Brokers that are of a late enough release already are not what is waited for."""
    rig = Rig(["4.3"], said={"consumer_protocol": False})
    rig.look()
    rig.reported()
    rig.said = ON
    rig.look()

    assert ["upgrade_blocked"] == [of["kind"] for of in rig.published]


def test_once_all_brokers_are_upgraded_it_is_said() -> None:
    """Once, of the group that they would refuse; not while one is yet to be upgraded."""
    rig = Rig(["3.6", "3.6"])
    rig.look()
    rig.reported()
    rig.look("3.6", "4.3")
    assert [] == rig.published

    rig.look("4.3", "4.3")
    rig.look("4.3", "4.3")

    assert [("g", "upgrade_blocked", ["assignment_user_data"])] == [
        (of["group"], of["kind"], of["detail"]["reasons"]) for of in rig.published
    ]


def test_what_was_said_before_holds_while_brokers_do_not_answer() -> None:
    """And brokers are asked every half a minute, not with every look."""
    rig = Rig(["2.0"])
    rig.look()
    rig.look(after_ms=FRESH_MS - 1)
    assert 1 == rig.asked

    rig.down = OSError("refused")
    rig.look(after_ms=1)

    assert rig.board.findings.converts_no_group
    assert [] == rig.published


def test_metrics_of_the_gate_know_what_brokers_can_do() -> None:
    """Closed, brokers first; open again for the group that can be rolled, once they can."""
    rig = Rig(["2.0"])
    rig.look()
    rig.reported()

    def offline() -> set[tuple[str, str]]:
        _, reasons = gates.offline(rig.board, rig.board.sums(), NOW_MS, rig.board.moment())["upgrade"]
        return {reason for reason in reasons if reason[0] == "stop"}

    assert ("stop", "brokers_first") in offline()
    rig.look("4.3")
    assert {("stop", "assignment_user_data")} == offline()
    rig.said = {**ON, "migration_policy": "disabled"}
    rig.look("4.3")
    assert ("stop", "migration_policy") in offline()

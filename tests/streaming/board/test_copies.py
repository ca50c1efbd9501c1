"""A group in two offsets partitions on the board: rows of the copy that is not the group change nothing of it.

`orders` hashes to partition 31 of 50, and to 51 of 60.
"""

import json
from collections.abc import Sequence
from typing import Any, Final

import pytest

from lab.builders import offset_commit, offset_commit_tombstone, topic_id
from lab.coordinator_events import consumer_gone, consumer_group_deleted, consumer_join, consumer_leave
from streaming.base.batch_rows import Row
from streaming.base.name_filter import NameFilter, Scope
from streaming.board.board import Board
from streaming.metrics.exporter import Exporter
from streaming.web.api_answers import Api
from streaming.web.routes import Pages
from tests.streaming.asgi_client import AsgiClient
from tests.streaming.board_rows import KeyValue, Shard
from tests.streaming.boards import CLUSTER, NOW_MS, log_ends

GROUP: Final = "orders"
OLD, NEW = 31, 51
THEN_MS: Final = NOW_MS - 600_000


def joined(member_id: str, offset: int, at_ms: int) -> list[KeyValue]:
    """A member joins and commits."""
    commit = offset_commit(GROUP, "t", 0, offset, timestamp=at_ms)
    return [*consumer_join(GROUP, member_id, epoch=2, targets={member_id: {"t": [0]}}), commit]


def gone(member_id: str) -> list[KeyValue]:
    """The group ends with its offsets."""
    left = [*consumer_gone(GROUP, member_id), offset_commit_tombstone(GROUP, "t", 0)]
    return [*left, *consumer_group_deleted(GROUP)]


class Monitored:
    """A board of a topic with so many partitions, and what its sinks are given."""

    def __init__(self, partitions: int | None = 60, rows: Sequence[Row] = ()) -> None:
        self.board = Board(log_ends(t=1))
        self.board.health.offsets_partitions = partitions
        self.board.load(rows)
        self.batches = 0
        self.given: list[Row] = []

    def batch(self, *of: Sequence[Row]) -> list[Row]:
        """One micro-batch of several partitions' rows; returns what the sinks are given."""
        given = list(self.board.settled(self.batches, [row for rows in of for row in rows]))
        self.board.apply(self.batches, given, NOW_MS)
        self.batches += 1
        self.given += given
        return given

    def kinds(self, partition: int) -> list[str]:
        """Kinds of events that were passed on, of a partition."""
        return [row[4] for row in self.given if row[0] == partition and row[1] == "event"]

    def shown(self) -> tuple[int, list[str], dict[str, int]] | None:
        """Partition, members and offsets of the group as it is shown."""
        held = self.board.shown.groups.get(GROUP)
        if held is None:
            return None
        view: dict[str, Any] = held.group_view({topic_id("t"): "t"})
        offsets = {f"{of['topic']}/{of['partition']}": of["offset"] for of in view["offsets"]}
        return held.partition, [of["member_id"] for of in view["members"]], offsets

    def named(self) -> dict[str, Any]:
        """Groups that are in several partitions."""
        return {name: of.as_json() for name, of in self.board.copies.named(self.board.shown.groups).items()}


class Grown:
    """The two partitions of a group of a topic that was grown, each a task's that knows nothing of the other."""

    def __init__(self) -> None:
        self.old, self.new = Shard(OLD), Shard(NEW)

    def begin(self) -> tuple[list[Row], list[Row]]:
        """Rows of both copies: the old one's, and the one's to which members went."""
        old = self.old.write(*joined("a", 5, THEN_MS), timestamp_ms=THEN_MS)
        return old, self.new.write(*joined("b", 7, THEN_MS + 60_000), timestamp_ms=THEN_MS + 60_000)

    def expire(self) -> list[Row]:
        """The old copy ends."""
        left = self.old.write(*consumer_leave(GROUP, "a", epoch=3), timestamp_ms=NOW_MS - 1_000)
        rest = [offset_commit_tombstone(GROUP, "t", 0), *consumer_group_deleted(GROUP)]
        return [*left, *self.old.write(*rest, timestamp_ms=NOW_MS)]


LIVING: Final = (NEW, ["b"], {"t/0": 7})
LEFT: Final = (OLD, ["a"], {"t/0": 5})
NAMED: Final = {GROUP: {"partitions": [OLD, NEW], "lives_in": NEW}}


@pytest.mark.parametrize("new_first", [False, True])
@pytest.mark.parametrize("at_once", [False, True])
def test_expiry_of_the_old_copy_leaves_the_group(*, new_first: bool, at_once: bool) -> None:
    """Whichever came first, in one micro-batch or in two."""
    grown, monitored = Grown(), Monitored()
    rows = grown.begin()[:: -1 if new_first else 1]
    if at_once:
        monitored.batch(*rows)
    else:
        for of in rows:
            monitored.batch(of)

    assert LIVING == monitored.shown()
    assert NAMED == monitored.named()
    assert 1 == len(monitored.board.copies)
    assert 1 == [*monitored.kinds(OLD), *monitored.kinds(NEW)].count("group_in_two_partitions")

    given = monitored.batch(grown.expire())

    assert LIVING == monitored.shown()
    assert {} == monitored.named()
    assert {"shard"} == {row[1] for row in given}


def test_event_that_names_the_copy() -> None:
    """It is shown by the record with which there were two; who gets it gets nothing else of the other copy."""
    grown, monitored = Grown(), Monitored()
    old, new = grown.begin()
    monitored.batch(old)

    given = monitored.batch(new)

    (event,) = [json.loads(row[3]) for row in given if row[4] == "group_in_two_partitions"]
    assert {
        "id": "51-4-group_in_two_partitions-0",
        "time": THEN_MS + 60_000,
        "group": GROUP,
        "kind": "group_in_two_partitions",
        "severity": "info",
        "partition": NEW,
        "offset": 4,
        "detail": NAMED[GROUP],
        "inferred": False,
    } == event


def test_what_is_written_to_the_old_copy_is_not_passed_on() -> None:
    """Neither its members, nor its offsets, nor what it shows; what is of its partition is."""
    grown, monitored = Grown(), Monitored()
    monitored.batch(*grown.begin())

    given = monitored.batch(
        grown.old.write(*consumer_join(GROUP, "c", epoch=3, targets={"c": {"t": [0]}}), timestamp_ms=NOW_MS),
        grown.old.write(offset_commit(GROUP, "t", 0, 6, timestamp=NOW_MS), timestamp_ms=NOW_MS),
        grown.old.write((b"\x00\x63\x00\x06orders", None), timestamp_ms=NOW_MS),
    )

    assert LIVING == monitored.shown()
    assert {"shard", "event"} == {row[1] for row in given}
    assert ["unknown_record"] == [row[4] for row in given if row[1] == "event"]


def test_old_copy_is_the_group_again_when_the_living_one_ends() -> None:
    """There is one only then. It is told that the group ended, and who keeps states is given the other's."""
    grown, monitored = Grown(), Monitored()
    monitored.batch(*grown.begin())

    given = monitored.batch(grown.new.write(*gone("b"), timestamp_ms=NOW_MS))

    assert LEFT == monitored.shown()
    assert {} == monitored.named()
    assert "group_deleted" in monitored.kinds(NEW)
    assert ["group_deleted", "group", "offsets"] == [row[1] for row in given if row[1] not in ("shard", "event")]
    assert monitored.batch(grown.expire())
    assert monitored.shown() is None


def test_one_copy_is_the_group_wherever_it_is() -> None:
    """Brokers that hash otherwise: rows are passed on as they are."""
    shard, monitored = Shard(7), Monitored()
    rows = shard.write(*joined("a", 5, THEN_MS), timestamp_ms=THEN_MS)

    assert rows == monitored.batch(rows)
    assert (7, ["a"], {"t/0": 5}) == monitored.shown()
    assert {} == monitored.named()
    monitored.batch(shard.write(*gone("a"), timestamp_ms=NOW_MS))
    assert monitored.shown() is None


def test_where_neither_is_where_it_hashes_to_the_one_written_last_is_the_group() -> None:
    """By the time of the records; an expiry that is written last changes nothing."""
    first, last, monitored = Shard(7), Shard(3), Monitored()
    newer = last.write(*joined("b", 7, NOW_MS - 60_000), timestamp_ms=NOW_MS - 60_000)
    monitored.batch(newer)
    monitored.batch(first.write(*joined("a", 5, THEN_MS), timestamp_ms=THEN_MS))

    assert (3, ["b"], {"t/0": 7}) == monitored.shown()

    monitored.batch(first.write(*gone("a"), timestamp_ms=NOW_MS))

    assert (3, ["b"], {"t/0": 7}) == monitored.shown()
    assert "group_deleted" not in monitored.kinds(7)


def test_topic_grows_while_it_is_read() -> None:
    """A partition beyond those that are known: what is written there is newer. Then it is known how many there are."""
    grown, monitored = Grown(), Monitored(partitions=50)
    old, new = grown.begin()
    monitored.batch(old)
    monitored.batch(new)

    assert LIVING == monitored.shown()

    monitored.board.health.offsets_partitions = 60
    monitored.batch(grown.old.write(offset_commit(GROUP, "t", 0, 6, timestamp=NOW_MS), timestamp_ms=NOW_MS))

    assert LIVING == monitored.shown()


def test_known_number_of_partitions_decides_anew() -> None:
    """Of a group that was taken for the one written last."""
    grown, monitored = Grown(), Monitored(partitions=50)
    monitored.batch(*grown.begin())
    monitored.batch(grown.old.write(offset_commit(GROUP, "t", 0, 6, timestamp=NOW_MS), timestamp_ms=NOW_MS))
    assert (OLD, ["a"], {"t/0": 6}) == monitored.shown()

    monitored.board.health.offsets_partitions = 60
    monitored.batch(Shard(9).write(timestamp_ms=NOW_MS))

    assert LIVING == monitored.shown()


@pytest.mark.parametrize("new_first", [False, True])
def test_state_of_both_copies_is_read_back(*, new_first: bool) -> None:
    """After a restart the board is as it was, and nothing is reported again."""
    grown = Grown()
    grown.begin()
    kept = [grown.old.rows(), grown.new.rows()][:: -1 if new_first else 1]

    monitored = Monitored(rows=[row for rows in kept for row in rows])

    assert LIVING == monitored.shown()
    assert NAMED == monitored.named()
    monitored.batch(grown.new.write(offset_commit(GROUP, "t", 0, 8, timestamp=NOW_MS), timestamp_ms=NOW_MS))
    assert (NEW, ["b"], {"t/0": 8}) == monitored.shown()
    monitored.batch(grown.expire())
    assert (NEW, ["b"], {"t/0": 8}) == monitored.shown()
    assert [] == monitored.kinds(OLD)


def test_batch_that_is_repeated_gives_the_same() -> None:
    """A sink that failed is given what it was to be given, the event that names the copy too, and what came since."""
    grown, monitored = Grown(), Monitored()
    old, new = grown.begin()
    monitored.batch(old)
    given = monitored.batch(new)

    monitored.batches -= 1
    assert given == monitored.batch(new)
    assert LIVING == monitored.shown()

    monitored.batches -= 1
    more = grown.new.write(offset_commit(GROUP, "t", 0, 8, timestamp=NOW_MS), timestamp_ms=NOW_MS)
    monitored.batch([*new, *more])
    assert (NEW, ["b"], {"t/0": 8}) == monitored.shown()


def test_log_that_is_read_anew_has_no_copies_yet() -> None:
    """A rebuild begins with nothing, and numbers of batches begin anew."""
    grown, monitored = Grown(), Monitored()
    monitored.batch(*grown.begin())

    monitored.board.start_over()
    monitored.batches = 0
    monitored.batch(grown.old.rows())

    assert LEFT == monitored.shown()
    assert {} == monitored.named()


def test_copies_that_were_made_without_rules_are_named_too() -> None:
    """A first catch-up with a long log makes only state of it: no event says that the copy was created."""
    grown, monitored = Grown(), Monitored()
    grown.begin()
    monitored.batch(grown.old.rows(), grown.new.rows())

    assert LIVING == monitored.shown()
    (event,) = [json.loads(row[3]) for row in monitored.given if row[1] == "event"]
    assert (NAMED[GROUP], "group_in_two_partitions") == (event["detail"], event["kind"])


def test_states_of_the_other_copies_can_be_asked_for() -> None:
    """An older broker would meet their records."""
    grown, monitored = Grown(), Monitored()
    monitored.batch(*grown.begin())

    assert [(GROUP, OLD)] == [(of.name, of.partition) for of in monitored.board.copies.states()]
    assert [] == monitored.board.copies.states(["another"])


def test_api_says_where_copies_are(monkeypatch: pytest.MonkeyPatch) -> None:
    """In the list of all, and in the group; nothing of groups with one copy. Downgrades are judged by both."""
    grown, monitored = Grown(), Monitored()
    monitored.batch(*grown.begin(), Shard(9).write(offset_commit("other", "t", 0, 1), timestamp_ms=THEN_MS))
    client = AsgiClient(Pages(Api(monitored.board, CLUSTER), Exporter(monitored.board, CLUSTER)).app)

    assert {"groups": [{"group": GROUP, **NAMED[GROUP]}], "left_out": 0} == client.get("/api/v1/copies").json()
    assert NAMED[GROUP] == client.get(f"/api/v1/groups/{GROUP}").json()["copies"]
    assert "copies" not in client.get("/api/v1/groups/other").json()
    reasons = client.get("/api/v1/gate/downgrade").json()["reasons"]
    assert 2 == len([of for of in reasons if (of["code"], of["group"]) == ("group_type", GROUP)])

    monkeypatch.setattr(monitored.board, "scope", Scope(groups=NameFilter(exclude=["ord*"])))
    assert {"groups": [], "left_out": 1} == client.get("/api/v1/copies").json()

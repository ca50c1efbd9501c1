"""What wants a look, and what must not call anybody."""

from collections.abc import Mapping

import pytest

from coordinator_model.gates.broker_abilities import Broker
from coordinator_model.gates.verdict import BrokerSettings
from dashboards import thresholds as at
from lab import builders
from lab import coordinator_events as happens
from lab.builders import RecordBytes
from streaming.base.answers import AttentionAnswer
from streaming.board import attention
from streaming.board.attention import SEVERITIES
from streaming.board.board import Board
from streaming.board.lag_columns import ReadLag
from streaming.watchers.overdue_watch import OverdueWatch
from tests.cooperative_groups import AGAIN, JAVA, generation
from tests.streaming.board_rows import Shard
from tests.streaming.boards import NOW_MS, THEN_MS, board_of, lags_of, log_ends, sample

MINUTE_MS = 60_000
OWNERS = {"a": {"t": [0, 1]}, "b": {"t": [2]}}


def board_after(*events: list[RecordBytes]) -> Board:
    """Each event written at once, at THEN_MS, of a topic of three partitions."""
    shard = Shard()
    sample(ends := log_ends(t=3), NOW_MS, "t", 100, 100, 100)
    for records in events:
        shard.pending += [(THEN_MS, *record) for record in records]
    return board_of(shard, ends)


def codes(board: Board, now_ms: int = NOW_MS) -> list[str]:
    """What wants a look in the group `g`, to a monitor that has watched since NOW_MS."""
    board.health.set_log_end_at_start({}, {})
    board.health.set_positions({0: 1}, {0: 1}, NOW_MS - 1)
    time_ms = [NOW_MS]
    watch = OverdueWatch(board, lambda _: None, lambda: time_ms[0])
    watch.check()
    time_ms[0] = now_ms
    watch.check()
    held = board.shown.groups["g"]
    return [
        look["code"] for look in attention.reasons(board, held, lags_of(held, board.ends, now_ms).of_read(0), now_ms)
    ]


def both_joined() -> list[list[RecordBytes]]:
    """Two members, settled."""
    return [
        happens.consumer_join("g", "a", epoch=1, targets={"a": OWNERS["a"]}),
        happens.consumer_join("g", "b", epoch=2, targets=OWNERS),
        happens.consumer_moves("g", "a", epoch=2, assigned=OWNERS["a"]),
    ]


def classic(assigned: dict[str, list[int]], **settings: str) -> list[RecordBytes]:
    members = [builders.member(name, {"t": parts}) for name, parts in assigned.items()]
    return [builders.group_metadata("g", generation=3, members=members, **settings)]  # type: ignore[arg-type] # strings only


@pytest.mark.parametrize(
    "events",
    [
        both_joined(),
        [classic({"a": [0, 1, 2]})],
        [classic({"worker": []}, protocol_type="connect")],
        [[builders.group_metadata("g", generation=4)]],
        [[builders.offset_commit("g", "t", 0, 100)]],
        [happens.share_join("g", "a", epoch=1, targets={"a": {"t": [0, 1, 2]}})],
    ],
    ids=["settled", "classic", "connect", "empty", "commits only", "share"],
)
def test_a_group_that_is_well_wants_no_look(events: list[list[RecordBytes]]) -> None:
    """Settled, empty, of Kafka Connect (refused an upgrade for ever), or only committing."""
    assert [] == codes(board_after(*events))


def test_a_duplicate_is_first_while_it_lasts() -> None:
    """Critical, before everything else, and gone with it."""
    twice = happens.consumer_moves("g", "a", epoch=2, assigned={"t": [0, 1, 2]})
    once = happens.consumer_moves("g", "a", epoch=2, assigned=OWNERS["a"])

    assert ["duplicate_assignment"] == codes(board_after(*both_joined(), twice))
    assert [] == codes(board_after(*both_joined(), twice, once))


def test_a_rebalance_is_info_until_it_is_overdue() -> None:
    """Under way: info. Beyond the member's own rebalance timeout: stuck, critical, and no longer the former."""
    board = board_after(*both_joined(), happens.consumer_join("g", "c", epoch=3, targets={**OWNERS, "c": {"t": []}}))

    assert ["rebalancing"] == codes(board)
    late_ms = NOW_MS + builders.REBALANCE_TIMEOUT_MS + MINUTE_MS
    assert ["rebalance_stuck"] == codes(board, late_ms)


def test_partitions_of_nobody_count_once_that_lasts() -> None:
    """Topics grow, and members hear of it minutes later: legal. Longer is not; an empty group reads nothing at all."""
    board = board_after(classic({"a": [0, 1]}))

    assert [] == codes(board)
    assert ["unassigned_partitions"] == codes(board, NOW_MS + 60 * MINUTE_MS)
    assert [] == codes(board_after([builders.group_metadata("g", generation=4)]), NOW_MS + 60 * MINUTE_MS)


def test_records_lost_matter_to_a_group_that_reads() -> None:
    """A commit before the log's start is data that no member will read; of a group without members it is old news."""
    commit = [builders.offset_commit("g", "t", 0, 10)]
    reading, left = board_after(classic({"a": [0, 1, 2]}), commit), board_after(commit)
    for board in (reading, left):
        board.ends.record_earliest({("t", 0): 50})

    assert ["records_lost"] == codes(reading)
    assert [] == codes(left)


@pytest.mark.parametrize(
    ("gap", "expected"), [((10, 50, False), []), ((10, 49, True), ["records_lost"]), ((10, 10, True), ["records_lost"])]
)
def test_markers_that_were_deleted_are_no_loss(gap: tuple[int, int, bool], expected: list[str]) -> None:
    """What transactions leave below the log's start was no record; one record there was."""
    board = board_after(classic({"a": [0, 1, 2]}), [builders.offset_commit("g", "t", 0, 10)])
    board.ends.record_gaps({("t", 0): gap})
    board.ends.record_earliest({("t", 0): 50})

    assert expected == codes(board)


@pytest.mark.parametrize(
    ("gap", "start", "expected"),
    [
        ((10, 100, False), 0, []),
        ((10, 99, True), 0, ["unread"]),
        ((10, 10, True), 0, ["unread"]),
        (None, 0, ["unread"]),
        (None, 100, []),
        (None, 99, ["unread"]),
    ],
    ids=["markers", "a record after markers", "a record", "not known", "an empty log", "one record is left"],
)
def test_what_holds_no_record_does_not_wait(gap: tuple[int, int, bool] | None, start: int, expected: list[str]) -> None:
    """Of a group without members, at a commit of 10 of 100; lag in records is 90 all the same."""
    board = board_after(
        classic({"a": [0, 1, 2]}),
        [builders.offset_commit("g", "t", 0, 10, timestamp=THEN_MS), builders.group_metadata("g", generation=4)],
    )
    board.ends.record_gaps({} if gap is None else {("t", 0): gap})
    board.ends.record_earliest({("t", 0): start})
    (offset,) = lags_of(board.shown.groups["g"], board.ends, NOW_MS).records.tolist()

    assert 90 == offset
    assert expected == codes(board, NOW_MS + 700 * MINUTE_MS)


def test_a_mixed_group_is_info_until_nobody_rolls_it_any_more() -> None:
    """Between protocols is what a roll looks like; half an hour without a member is a roll that was left."""
    board = board_after(happens.converted_to_consumer("g", generation=3, members=OWNERS))
    joined = happens.consumer_join("g", "c", epoch=4, targets={**OWNERS, "c": {"t": []}})
    board = board_after(happens.converted_to_consumer("g", generation=3, members=OWNERS), joined)

    assert "mixed" in codes(board)
    assert "migration_stalled" in codes(board, NOW_MS + 31 * MINUTE_MS)
    assert "mixed" not in codes(board, NOW_MS + 31 * MINUTE_MS)


def test_a_roll_written_by_a_clock_that_is_wrong_is_stalled_half_an_hour_after_it_was_read() -> None:
    """Records say it was left an hour ago, and they were read a minute ago: it was not left."""
    joined = happens.consumer_join("g", "c", epoch=4, targets={**OWNERS, "c": {"t": []}})
    board = board_after(happens.converted_to_consumer("g", generation=3, members=OWNERS), joined)
    read_ms = NOW_MS + 60 * MINUTE_MS
    board.findings.set_read_times({"g": read_ms})
    held = board.shown.groups["g"]
    soon, later = (
        {look["code"] for look in attention.reasons(board, held, ReadLag(), read_ms + of * MINUTE_MS)} for of in (1, 31)
    )

    assert "mixed" in soon
    assert "migration_stalled" in later


LED_BY_JAVA = generation(3, [JAVA, AGAIN, AGAIN])
JAVA_LEFT = generation(4, [AGAIN, AGAIN], first=1)


@pytest.mark.parametrize(
    ("events", "looked_at"),
    [
        pytest.param([LED_BY_JAVA, JAVA_LEFT], True, id="left"),
        pytest.param([LED_BY_JAVA, JAVA_LEFT, generation(5, [AGAIN, AGAIN, JAVA], first=1)], False, id="back"),
        pytest.param([generation(3, [AGAIN, AGAIN, AGAIN]), JAVA_LEFT], False, id="blocked-before"),
        pytest.param([generation(3, [JAVA, AGAIN]), generation(4, [JAVA, AGAIN], leader=1)], False, id="none-left"),
        pytest.param([LED_BY_JAVA, generation(4, [JAVA, AGAIN])], False, id="not-blocked"),
        pytest.param([LED_BY_JAVA, JAVA_LEFT, builders.group_metadata("g", generation=5)], False, id="empty"),
    ],
)
def test_a_group_that_becomes_blocked_in_its_roll_wants_a_look(events: list[RecordBytes], looked_at: bool) -> None:
    """A leader of Java left to be upgraded, librdkafka leads, and brokers refuse the member in its place."""
    board = board_after(*([of] for of in events))

    assert looked_at == ("upgrade_blocked" in codes(board))
    assert "upgrade_blocked" not in codes(board, NOW_MS + 7 * 60 * MINUTE_MS), "nobody rolls it any more"
    board.findings.set_brokers(BrokerSettings(brokers=[Broker(1, "3.6", frozenset())]))
    assert "upgrade_blocked" not in codes(board), "no group can be upgraded"


def test_a_static_member_away_is_info() -> None:
    """It said it would be back: shown with its name, and nothing to get up for. So is one whose session is over."""
    owned = {"a": {"t": [0, 1]}, "b": {"t": [2]}}
    join = [
        *happens.consumer_join("g", "a", epoch=1, targets={"a": {"t": [0, 1]}}, instance_id="i"),
        *happens.consumer_join("g", "b", epoch=2, targets=owned, instance_id="j"),
        *happens.consumer_moves("g", "a", epoch=2, assigned=owned["a"]),
    ]
    away = happens.static_goes_away("g", "a", assigned=owned["a"], previous_epoch=2)
    gone = [
        *happens.consumer_leave("g", "a", epoch=3),
        *happens.retarget("g", 3, {"b": {"t": [0, 1, 2]}}),
        *happens.consumer_moves("g", "b", epoch=3, assigned={"t": [0, 1, 2]}),
    ]

    for happened in ((join, away), (join, away, gone)):
        shard = Shard()
        shard.pending += [(THEN_MS + of, *record) for of, records in enumerate(happened) for record in records]
        board = board_of(shard, log_ends(t=3))
        (reason,) = attention.reasons(board, board.shown.groups["g"], ReadLag(), NOW_MS)
        assert ("static_member_absent", "1 static member away: i") == (reason["code"], reason["text"])
    assert "info" == SEVERITIES["static_member_absent"]


@pytest.mark.parametrize(("hosts", "severity"), [("aba", "warning"), ("abab", "critical")])
def test_an_instance_id_that_was_taken_back_once_is_a_warning(hosts: str, severity: str) -> None:
    """As on a node that is drained and back; with the next take-over there are two processes."""
    board = board_after(
        *(
            [
                builders.group_metadata(
                    "g",
                    generation=1,
                    members=[builders.member(f"i-{turn}", {}, instance_id="i", client_host=f"/{host}")],
                )
            ]
            for turn, host in enumerate(hosts)
        )
    )
    held = board.shown.groups["g"]
    lag = lags_of(held, board.ends, NOW_MS).of_read(0)
    found = {look["code"]: look["severity"] for look in attention.reasons(board, held, lag, NOW_MS)}

    assert severity == found["static_member_contended"]


def test_the_table_is_in_order() -> None:
    """The worst first, which is also the order in which reasons are shown."""
    ranks = ["critical", "warning", "info"]

    assert sorted(SEVERITIES.values(), key=ranks.index) == list(SEVERITIES.values())


@pytest.mark.parametrize(
    ("waited", "codes_then"), [(True, ["lag_without_commits", "lag_unknown"]), (False, ["lag_unknown"])]
)
def test_what_waited_when_lag_was_last_known_waits_until_it_is_known_again(waited: bool, codes_then: list[str]) -> None:
    """A leader that is away ends no reason to look, and begins none but that nothing is known."""
    end, committed_ms = 190 if waited else 10, NOW_MS - 30 * MINUTE_MS
    shard = Shard()
    ends = log_ends(t=1)
    shard.pending += [(THEN_MS, *record) for record in classic({"a": [0]})]
    shard.pending.append((committed_ms, *builders.offset_commit("g", "t", 0, 10, timestamp=committed_ms)))
    board = board_of(shard, ends)
    for minutes, at_end in ((20, 10), (2, end)):
        sample(ends, NOW_MS - minutes * MINUTE_MS, "t", at_end)
        board.lag_history.sample(board.shown.groups, ends, NOW_MS - minutes * MINUTE_MS)
    for minutes in (1, 0):
        ends.record(NOW_MS - minutes * MINUTE_MS, {}, {})
        board.lag_history.sample(board.shown.groups, ends, NOW_MS - minutes * MINUTE_MS)
    held = board.shown.groups["g"]
    found = attention.reasons(board, held, lags_of(held, board.ends, NOW_MS).of_read(0), NOW_MS)

    assert codes_then == [look["code"] for look in found]
    assert "lag not known in 1 partition" == found[-1]["text"]


def lagging(*, members: bool, committed_ms: int, was: int | None, now_ms: int, left_ms: int | None = None) -> list[str]:
    """Codes of what wants a look in a group that lags by 90 records, and lagged by `was` fifteen minutes ago.

    Without members, the last of them left at `left_ms`, or with the commit.
    """
    return [look["code"] for look in _lagging(members, committed_ms, {16: was}, now_ms, left_ms)]


def _lagging(
    members: bool, committed_ms: int, was: Mapping[int, int | None], now_ms: int, left_ms: int | None = None
) -> list[AttentionAnswer]:
    """The same in full, by what it lagged so many minutes ago; None where that is not known."""
    shard = Shard()
    ends = log_ends(t=3)
    known = {now_ms - minutes * MINUTE_MS: lag for minutes, lag in was.items() if lag is not None}
    assigned = {"a": [0, 1, 2]} if members else {}
    shard.pending += [(THEN_MS, *record) for record in classic({"a": [0, 1, 2]})]
    shard.pending.append((committed_ms, *builders.offset_commit("g", "t", 0, 10, timestamp=committed_ms)))
    if not assigned:
        left = (committed_ms if left_ms is None else left_ms, *builders.group_metadata("g", generation=4))
        shard.pending.insert(len(shard.pending) - (left_ms is not None), left)
    board = board_of(shard, ends)
    for then_ms, lag in known.items():
        sample(ends, then_ms, "t", 10 + lag, 100, 100)
        board.lag_history.sample(board.shown.groups, ends, then_ms)
    sample(ends, now_ms, "t", 100, 100, 100)
    board.lag_history.sample(board.shown.groups, ends, now_ms)
    held = board.shown.groups["g"]
    return attention.reasons(board, held, lags_of(held, board.ends, now_ms).of_read(0), now_ms)


@pytest.mark.parametrize(
    ("minutes", "was", "expected"),
    [
        (19, 10, []),
        (21, 10, ["lag_without_commits"]),
        (21, None, ["lag_without_commits"]),
        (21, 90, []),
        (600, 90, []),
    ],
    ids=["a minute too early", "grows", "growth is not known", "does not grow", "idle for hours"],
)
def test_members_that_commit_nothing_want_a_look(minutes: int, was: int | None, expected: list[str]) -> None:
    """Lag that grows while members are there and nothing is committed; lag that stands still is an idle producer's."""
    now_ms = NOW_MS + minutes * MINUTE_MS

    assert expected == lagging(members=True, committed_ms=NOW_MS, was=was, now_ms=now_ms)


@pytest.mark.parametrize(
    ("minutes", "was", "expected"),
    [
        (9, 10, []),
        (11, 10, ["consumers_stopped"]),
        (11, None, ["consumers_stopped"]),
        (11, 90, ["unread"]),
        (361, 10, ["unread"]),
    ],
    ids=["being deployed", "stopped", "growth is not known", "does not grow", "given up"],
)
def test_consumers_that_stopped_want_a_look(minutes: int, was: int | None, expected: list[str]) -> None:
    """No members for ten minutes while records come; after six hours, or without new records, it is information."""
    now_ms = NOW_MS + minutes * MINUTE_MS

    assert expected == lagging(members=False, committed_ms=NOW_MS, was=was, now_ms=now_ms)


@pytest.mark.parametrize(
    ("silent", "left", "expected"),
    [
        (0, 120, []),
        (19, 120, []),
        (21, 120, ["consumers_stopped"]),
        (21, 361, ["unread"]),
        (11, 11, ["consumers_stopped"]),
        (10, 11, []),
    ],
    ids=["Flink", "checkpoints seldom", "Flink was stopped", "of a group given up", "a last commit", "a commit since"],
)
def test_a_group_whose_offsets_move_on_without_members_has_a_consumer(
    silent: int, left: int, expected: list[str]
) -> None:
    """Flink, Storm and Spark commit and join no group: minutes since the last commit, and since the last member."""
    now_ms = NOW_MS + 600 * MINUTE_MS
    committed_ms, left_ms = now_ms - silent * MINUTE_MS, now_ms - left * MINUTE_MS

    assert expected == lagging(members=False, committed_ms=committed_ms, was=10, now_ms=now_ms, left_ms=left_ms)


def test_limits_of_lag_are_those_of_the_alerts() -> None:
    """The page and the telephone say the same."""
    assert attention.COMMIT_WINDOW_MS == at.COMMIT_WINDOW_SECONDS.value * 1000
    assert attention.NO_COMMIT_MS == at.NO_COMMIT_SECONDS.value * 1000
    assert attention.STOPPED_MS == at.STOPPED_SECONDS.value * 1000
    assert attention.STOPPED_RECENTLY_MS == at.STOPPED_RECENTLY_SECONDS.value * 1000


@pytest.mark.parametrize(
    ("was", "text"),
    [
        ({16: 10, 6: 50}, "lag grows and nothing is committed"),
        ({16: 10, 6: 90}, "records wait and nothing is committed"),
        ({16: None, 6: None}, "records wait and nothing is committed"),
    ],
    ids=["goes on growing", "grew before", "not known"],
)
def test_lag_is_said_to_grow_where_the_trend_rises(was: dict[int, int | None], text: str) -> None:
    """The page shows the trend of five minutes beside it: a lag that stands still there is not said to grow."""
    now_ms = NOW_MS + 21 * MINUTE_MS
    (look,) = _lagging(True, NOW_MS, was, now_ms)

    assert ("lag_without_commits", text) == (look["code"], look["text"])

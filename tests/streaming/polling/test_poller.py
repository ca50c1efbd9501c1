"""What becomes of a group from poll to poll, and of the board while brokers do not answer."""

import json
from collections.abc import Sequence
from dataclasses import replace

import jsonschema
import pytest
from structlog.testing import capture_logs

from coordinator_model.migration import phases
from coordinator_model.state.shards import offsets_partition
from lab import builders
from streaming.base.batch_rows import BatchRows, Row
from streaming.base.places import ROOT
from streaming.board import attention, group_answer
from streaming.board.board import Board
from streaming.board.lag_columns import ReadLag
from streaming.polling import answers
from streaming.polling.client import REFUSALS, Answered, Round
from streaming.polling.missing import GROUP_REFUSED
from streaming.polling.poller import UNSEEN, GroupPoller
from streaming.sinks import topic_format
from streaming.web.api_answers import Api
from streaming.web.query_parameters import NotFoundError
from tests.streaming.boards import NOW_MS, lags_of, log_ends, sample
from tests.streaming.polling import replies
from tests.streaming.polling.fake_rounds import FakeRounds, classic, consumer, listed

REFUSED = REFUSALS[GROUP_REFUSED]
PARTITIONS = 50


class Rig:
    """A poller on a board, and the clock they share."""

    def __init__(self) -> None:
        self.cluster = FakeRounds()
        self.board = Board(log_ends(t=2))
        self.now_ms = NOW_MS
        self.rows: list[Row] = []
        self.poller = GroupPoller(
            self.cluster.connect,
            self._take,
            interval_ms=5_000,
            clock_ms=lambda: self.now_ms,
            set_unread=self.board.health.set_unread,
        )
        self.board.health.show_polls(self.poller.status)
        sample(self.board.ends, NOW_MS, "t", 10, 10)

    def poll(self, found: Round | None = None, *, after_ms: int = 5_000) -> list[Row]:
        """The rows of one round."""
        self.now_ms += after_ms
        self.cluster.round = found or self.cluster.round
        self.rows = []
        self.poller.poll()
        return self.rows

    def _take(self, rows: Sequence[Row], now_ms: int) -> None:
        self.rows = list(rows)
        self.board.apply(now_ms, BatchRows(rows), now_ms)


def test_a_group_is_shown_as_it_was_answered_with_its_lag() -> None:
    """Its state is the coordinator's word, and what the answer does not say is null."""
    rig = Rig()
    rig.poll(listed(g=classic("a", "b", offsets={0: 4, 1: 10})))
    group = group_answer.view(rig.board, "g", rig.now_ms)

    assert group is not None
    assert (True, []) == rig.board.health.ready()
    assert ("Stable", ["a", "b"], 6) == (group["state"], [of["member_id"] for of in group["members"]], group["lag"])
    unknown = ("epoch", "rebalances", "rebalancing_since", "duplicates")
    assert dict.fromkeys(unknown) == {name: group[name] for name in unknown}
    assert {None} == {of["commit_timestamp"] for of in group["offsets"]}
    assert (None, None) == (group["migration"]["leftovers"], group["migration"]["conversions"])


@pytest.mark.parametrize("answer", [classic("a"), consumer(("a", 1), ("b", 0))], ids=["classic", "consumer"])
def test_a_polled_group_is_written_as_its_schema_says(answer: Answered) -> None:
    """To the topic of groups; its snapshot makes the same group on another board."""
    rig = Rig()
    rig.poll(listed(g=answer))
    held = rig.board.shown.groups["g"]
    shot = topic_format.group_snapshot(held)
    value = json.loads(topic_format.group_value("tested", held, shot, rig.board.ends.topic_names, rig.now_ms))
    schema = json.loads((ROOT / "docs" / "schemas" / "group-state.schema.json").read_text("utf-8"))
    other = Board(rig.board.ends)
    other.load(list(topic_format.rows("g", shot, None)))

    jsonschema.Draft202012Validator(schema).validate(value)
    assert None is value["state"]["migration"]["leftovers"]
    assert group_answer.view(rig.board, "g", rig.now_ms) == group_answer.view(other, "g", rig.now_ms)


def test_a_poll_that_finds_nothing_new_writes_nothing() -> None:
    """Rows are of what changed: a commit is its bucket alone."""
    rig = Rig()
    rig.poll(listed(g=classic("a")))

    assert [] == rig.poll()
    assert ["offsets"] == [kind for _, kind, _, _, _ in rig.poll(listed(g=classic("a", offsets={0: 5})))]


def test_a_group_that_is_not_answered_stays_and_one_that_is_not_listed_goes() -> None:
    """But not while a broker is silent that may have it."""
    rig = Rig()
    rig.poll(listed(g=classic("a"), other=classic("b")))

    rig.poll(Round(listed=frozenset({"g"}), failure="broker 2: away"))
    assert ["g", "other"] == sorted(rig.board.shown.groups)
    rig.poll(Round(listed=frozenset({"g"})))
    assert ["g"] == sorted(rig.board.shown.groups)


def test_of_a_partition_without_leader_nothing_is_known_at_the_first_round() -> None:
    """No broker lists its groups: a name that hashes there is unknown, any other is no group; so are gates and page."""
    there, elsewhere = "g", "h"
    without = offsets_partition(there, PARTITIONS)
    assert without != offsets_partition(elsewhere, PARTITIONS)
    rig = Rig()
    api = Api(rig.board, "tested", clock_ms=lambda: rig.now_ms)
    rig.poll(unled := replace(listed(k=classic("a")), partitions=PARTITIONS, without_leader=frozenset({without})))

    assert (False, [without]) == (rig.board.health.ready()[0], api.ready()["without_leader"])
    assert {without} == {of["partition"] for of in rig.board.health.ready()[1]}
    for name, expected in ((there, without), (elsewhere, None)):
        with pytest.raises(NotFoundError) as found:
            api.group(name)
        assert expected == (found.value.doubt and found.value.doubt["partition"])
    rig.poll(replace(listed(k=classic("a"), g=classic("b")), partitions=PARTITIONS))
    assert (True, []) == rig.board.health.ready()
    rig.poll(unled)
    assert (True, [without]) == (rig.board.health.ready()[0], api.ready()["without_leader"])
    assert [without, None] == [(doubt := api.group(of).get("doubt")) and doubt["partition"] for of in (there, "k")]


def test_where_the_log_may_not_be_described_nothing_is_said_of_its_leaders() -> None:
    """Of no partition it is said that all is well."""
    rig = Rig()
    rig.poll(listed(g=classic("a")))

    assert "without_leader" not in Api(rig.board, "tested").ready()


def test_a_group_that_may_not_be_described_is_counted_and_named() -> None:
    """Also one that might be before: it is not shown as it was then. It is logged once."""
    rig = Rig()
    rig.poll(listed(g=classic("a")))
    refused = Round(listed=frozenset({"g"}), left_out={"g": REFUSED}, lists_all=True)
    with capture_logs() as logs:
        rig.poll(refused)
        rig.poll(refused)
    source = rig.poller.status().as_json()

    assert [] == sorted(rig.board.shown.groups)
    assert (1, [{"group": "g", "reason": REFUSED}]) == (source["groups_not_described"], source["not_described"])
    assert [("group_not_described", "g")] == [(log["event"], log["group"]) for log in logs]


def test_while_it_rebalances_a_classic_group_keeps_its_last_members() -> None:
    """As the log has them; only the state is of now. One that was never seen whole is left out till then."""
    rig = Rig()
    between = classic("a", state="PreparingRebalance")
    rig.poll(listed(g=between))
    assert {"g": UNSEEN} == rig.poller.status().left_out
    assert [] == sorted(rig.board.shown.groups)

    rig.poll(listed(g=classic("a", "b")))
    rig.poll(listed(g=between))
    group = group_answer.view(rig.board, "g", rig.now_ms)

    assert group is not None
    assert ("PreparingRebalance", 2) == (group["state"], len(group["members"]))
    assert {} == rig.poller.status().left_out


def test_an_offset_that_is_gone_is_not_shown_any_more() -> None:
    """The board gives back a bucket only with its group."""
    rig = Rig()
    both = answers.offsets(replies.offsets({"t": {0: 4}, "u": {0: 1}}))
    rig.poll(listed(g=replace(classic("a"), offsets=both)))
    rig.poll(listed(g=classic("a")))
    group = group_answer.view(rig.board, "g", rig.now_ms)

    assert group is not None
    assert {"t"} == {of["topic"] for of in group["offsets"] if of["offset"] is not None}


def test_an_outage_leaves_what_was_and_says_since_when() -> None:
    """Since the last answer; not to be believed any more after a minute; over with the next answer."""
    rig = Rig()
    rig.poll(listed(g=classic("a")))
    answered_ms = rig.now_ms
    rig.cluster.down = OSError("connection refused")
    rig.poll()

    status = rig.poller.status()
    assert (answered_ms, "connection refused") == (status.stale_since_ms, status.failure)
    assert ["g"] == sorted(rig.board.shown.groups)
    assert [] == status.missing(rig.board.ends.sampled_ms, answered_ms + 59_999)
    assert [answered_ms] == [of["since"] for of in status.missing(rig.board.ends.sampled_ms, answered_ms + 60_000)]

    rig.cluster.down = None
    rig.poll()
    assert (rig.now_ms, None) == (rig.poller.status().polled_ms, rig.poller.status().stale_since_ms)


def test_before_the_first_answer_nothing_is_ready() -> None:
    """An empty board would be a cluster without groups."""
    rig = Rig()
    rig.cluster.down = OSError("connection refused")
    rig.poll()
    (missing,) = rig.board.health.ready()[1]

    assert "no poll is answered yet (connection refused)" in missing["reason"]


def test_a_mixed_group_is_seen_without_its_way() -> None:
    """Since a poll first saw both protocols; before that is not known, and neither is which way it goes."""
    rig = Rig()
    rig.poll(listed(g=consumer(("a", 1), ("b", 0))))
    seen_ms = rig.now_ms
    rig.poll()
    held = rig.board.shown.groups["g"]

    assert (seen_ms, None) == (held.summary.mixed_since_ms, phases.phase(held.state))
    assert (1, 1) == (held.summary.classic_members, held.summary.consumer_members)
    assert ["mixed"] == [of["code"] for of in attention.reasons(rig.board, held, ReadLag(), rig.now_ms)]
    rig.poll(listed(g=consumer(("a", 1), ("b", 1))))
    assert "upgraded" == rig.board.shown.groups["g"].words.phase


def test_two_members_that_hold_one_partition_are_found() -> None:
    """A poll shows what is assigned twice; that nothing is, it cannot say."""
    rig = Rig()
    made = [builders.member(name, {"t": [0]}) for name in ("a", "b")]
    described = answers.classic_group(replies.classic("g", *made))
    rig.poll(listed(g=Answered(described, {})))

    assert ["duplicate_assignment"] == [
        of["code"] for of in attention.reasons(rig.board, rig.board.shown.groups["g"], ReadLag(), rig.now_ms)
    ]


def test_times_that_are_not_known_make_no_alarm() -> None:
    """Lag of a group with members whose commits have no time; of one that is empty since before the first poll."""
    rig = Rig()
    rig.poll(listed(g=classic("a"), empty=replace(classic(state="Empty"), offsets=classic("a").offsets)))

    def looks(name: str) -> list[tuple[str, object]]:
        held = rig.board.shown.groups[name]
        lag = lags_of(held, rig.board.ends, rig.now_ms).of_read(0)
        return [(of["code"], of["since"]) for of in attention.reasons(rig.board, held, lag, rig.now_ms)]

    assert ([], [("unread", None)]) == (looks("g"), looks("empty"))

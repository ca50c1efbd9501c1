"""What is kept up by changes is what would be worked out again: sums, rows, suspects and lag, whatever happens."""

import random
from collections import Counter
from collections.abc import Iterator
from dataclasses import replace

import pytest

from coordinator_model import lag
from coordinator_model.figures import stored
from coordinator_model.gates import downgrade, upgrade
from coordinator_model.gates.plan import plan_view, planned
from coordinator_model.gates.verdict import NOTE, STOP, BrokerSettings, Cluster
from coordinator_model.state import snapshot
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.offsets import CommittedOffset
from lab import builders
from streaming.base.batch_rows import Row
from streaming.base.doubt import said
from streaming.board import gates
from streaming.board.board import Board
from streaming.board.group_lag import lag_view, offset_rows
from streaming.board.lag_history import LagHistory
from streaming.board.totals import Sums, Totals
from streaming.watchers.hang_sampler import HangSampler
from streaming.web.overview import Overview
from tests.moments import suspicion
from tests.streaming.board_rows import KeyValue, Shard
from tests.streaming.boards import NOW_MS, described, lags_of, log_ends, sample

GROUPS = 14
TOPICS = ("audit", "orders", "t")
STEPS = 70


class Story:
    """A board on which something happens at every step: commits, joins, ends of groups, records written, topics."""

    def __init__(self, seed: int) -> None:
        self.chance, self.of_gaps = random.Random(seed), random.Random(seed + 100)
        self.shard = Shard()
        self.ends = log_ends(audit=2, orders=2)
        self.board = Board(self.ends)
        self.board.load([])
        self.board.health.set_log_end_at_start({}, {})
        self.board.health.set_positions({}, {}, NOW_MS)
        self.now_ms = NOW_MS
        self.tops = dict.fromkeys(TOPICS, 100)
        self.batch = 0

    def step(self) -> None:
        self.now_ms += self.chance.choice([500, 5_000, 20_000])
        happens = self.chance.choice([self.writes, self.writes, self.commits, self.commits, self.joins, self.ends_some])
        happens()
        if self.chance.random() < 0.1:
            self.ends.set_topics(
                [described(topic, self.chance.choice([2, 2, 3])) for topic in self.some(TOPICS)], TOPICS, self.now_ms
            )
        if self.chance.random() < 0.1:
            self.board.findings.set_overdue({"rebalance_stuck": self.some([f"g-{n}" for n in range(GROUPS)])})
        if self.chance.random() < 0.1:
            self.board.findings.set_overdue({"partition_unassigned": self.some([f"g-{n}" for n in range(GROUPS)])})
        if self.chance.random() < 0.1:
            self.ends.record_earliest({(topic, 0): self.tops[topic] - 5 for topic in TOPICS})

        if self.of_gaps.random() < 0.3:
            offset = self.tops[topic := self.of_gaps.choice(TOPICS)] - self.of_gaps.choice([40, 5, 3])
            upto = min(self.tops[topic], offset + self.of_gaps.choice([0, 1, 3, 40]))
            self.ends.record_gaps({(topic, 0): (offset, upto, self.of_gaps.random() < 0.5)})

    def some(self, of: list[str] | tuple[str, ...]) -> list[str]:
        return self.chance.sample(of, self.chance.randint(0, len(of)))

    def writes(self) -> None:
        for topic in self.some(TOPICS):
            self.tops[topic] += self.chance.choice([0, 1, 30])
            sample(self.ends, self.now_ms, topic, self.tops[topic], 100)

    def commits(self) -> None:
        self.happened(
            builders.offset_commit(
                self.group(), topic, 0, self.tops[topic] - self.chance.choice([0, 0, 3, 40]), timestamp=self.now_ms,
                id_of_topic=builders.topic_id(self.chance.choice([topic, topic, topic, "former"])),
            )
            for topic in self.some(TOPICS)
        )  # fmt: skip

    def joins(self) -> None:
        group, topic = self.group(), self.chance.choice(TOPICS)
        if self.chance.random() < 0.5:
            members = [
                builders.member(f"m-{n}", {topic: [n]}, topics=[topic]) for n in range(self.chance.choice([0, 1, 2]))
            ]
            self.happened([builders.group_metadata(group, generation=self.batch + 1, members=members)])
        else:
            epoch = self.chance.choice([self.batch + 2, -2])
            self.happened(
                [
                    builders.consumer_group_member_subscription(group, "m", topics=[topic], instance_id="i"),
                    builders.consumer_group_epoch(group, self.batch + 2),
                    builders.consumer_group_target_assignment(group, "m", {topic: [0]}),
                    builders.consumer_group_current_assignment(group, "m", epoch=epoch, assigned={topic: [0]}),
                ]
            )

    def ends_some(self) -> None:
        group = self.group()
        held = self.board.shown.groups.get(group)
        if held is not None:
            self.happened(
                [
                    *(builders.offset_commit_tombstone(group, topic, at) for topic, at, _ in held.offsets),
                    builders.group_metadata_tombstone(group),
                    *([builders.offset_commit(group, "t", 1, 1)] if self.chance.random() < 0.3 else []),
                ]
            )

    def group(self) -> str:
        return f"g-{self.chance.randrange(GROUPS)}"

    def happened(self, records: Iterator[KeyValue] | list[KeyValue]) -> None:
        self.batch += 1
        self.board.apply(self.batch, self.shard.write(*records, timestamp_ms=self.now_ms), self.now_ms)


def sums_anew(board: Board) -> Sums:
    return Totals().of(board.shown.groups)


def suspects_anew(board: Board, now_ms: int) -> set[str]:
    return {
        name
        for name, held in board.shown.groups.items()
        if suspicion(held.state, held.newest_commit_ms, now_ms, lags=bool(lags_of(held, board.ends, now_ms).waits[0]))
    }


class Nobody:
    def describe(self, groups: object, broker: int) -> dict[str, object]:
        return {}

    def close(self) -> None:
        pass


@pytest.mark.parametrize("seed", range(4))
def test_what_is_kept_up_is_what_would_be_worked_out_again(seed: int) -> None:
    """At every step all readers that follow changes say what one says that has seen nothing yet."""
    story = Story(seed)
    board = story.board
    overview = Overview(board, lambda: story.now_ms)
    sampler = HangSampler(board, Nobody, lambda: story.now_ms)  # type: ignore[arg-type]  # asked nothing here
    history = LagHistory()
    seen = 0
    for _ in range(STEPS):
        story.step()
        overview._made_until = 0.0
        sampler.look(history.sample(board.shown.groups, board.ends, story.now_ms), story.now_ms)
        lags = {name: lags_of(held, board.ends, story.now_ms) for name, held in board.shown.groups.items()}
        found = {held.name for held in sampler._suspects(sampler._worth_a_look, story.now_ms)}
        seen += len(found)

        assert sums_anew(board) == board.sums()
        assert Overview(board, lambda: story.now_ms).rows()[1] == overview.rows()[1]
        assert suspects_anew(board, story.now_ms) == found
        assert {name: of.figures(0)["lag"] for name, of in lags.items()} == {
            name: history.group(name)["lag"][-1] for name in board.shown.groups
        }
    assert seen


def test_rows_that_nobody_looks_at_are_let_go_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """Who looks again is shown everything as it is by then; who had seen some of it is to begin again."""
    story = Story(1)
    overview = Overview(story.board, lambda: story.now_ms)
    while len(story.board.shown.groups) < 5:
        story.step()
    version, rows, _ = overview.rows()

    assert not overview.let_go()
    assert overview._made_of.shown.groups

    monkeypatch.setattr("streaming.web.overview.UNASKED_SECONDS", -1.0)

    assert overview.let_go()
    assert overview.let_go()
    assert ({}, {}, 0) == (overview._rows, overview._figures, len(overview._made_of.shown.groups))

    story.happened([builders.group_metadata_tombstone(rows[0]["group"])])

    assert overview.changes(version) is None
    found = overview.rows()

    assert version < found[0]
    assert Overview(story.board, lambda: story.now_ms).rows()[1] == found[1]


def test_gates_say_of_all_groups_what_they_say_of_each() -> None:
    """They are asked about the groups that they have something to say of, and their answer is all groups'."""
    sizes, targets = (None, 1), (None, "3.9", "4.0", "4.1")
    verdicts_seen = set()
    for seed in range(4):
        story = Story(seed)
        for _ in range(STEPS):
            story.step()
            board = story.board
            moment = board.moment()
            states = [held.state for _, held in sorted(board.shown.groups.items())]
            versions = {name: held.offset_versions for name, held in board.shown.groups.items()}
            for size in sizes:
                settings = replace(upgrade.ALLOWING, consumer_max_size=size)
                asked = Cluster(settings=settings, now_ms=story.now_ms)
                found = [*gates.alarms(board, moment, (), story.now_ms, not_back=STOP)]
                cluster = replace(asked, not_caught_up=missing(board), alarms=found)

                assert upgrade.upgrade_gate(states, cluster) == gates.upgrade(board, (), asked, moment)
            for target in targets:
                asked = Cluster(group_configs=(), now_ms=story.now_ms)
                found = [*gates.alarms(board, moment, (), story.now_ms, not_back=NOTE)]
                cluster = replace(asked, not_caught_up=missing(board), offset_versions=versions, alarms=found)
                answer = gates.downgrade(board, (), asked, moment, target)
                verdicts_seen.add(answer["verdict"])

                assert downgrade.downgrade_gate(states, cluster, target) == answer
            offline = gates.offline(board, board.sums(), story.now_ms, moment)
            for gate, whole in (
                ("upgrade", gates.upgrade(board, (), replace(asked, settings=upgrade.ALLOWING), moment)),
                ("downgrade", gates.downgrade(board, (), asked, moment)),
            ):
                counts = Counter((reason["effect"], reason["code"]) for reason in whole["reasons"])

                assert (whole["verdict"], counts) == offline[gate]
    assert len(verdicts_seen) > 1


def test_readiness_is_summed_as_the_plan_has_it() -> None:
    """Of every group by the plan's own rule, asked without brokers and clock; nothing is counted twice or left."""
    seen: set[str] = set()
    for seed in range(4):
        story = Story(seed)
        for _ in range(STEPS):
            story.step()
            states = (held.state for held in story.board.shown.groups.values())
            counts = plan_view(planned(state, BrokerSettings()) for state in states)["counts"]
            seen |= {readiness for readiness, count in counts.items() if count}

            assert {name: count for name, count in counts.items() if count} == story.board.sums().readiness
    assert len(seen) > 2


def missing(board: Board) -> list[str]:
    return [said(each) for each in board.health.ready()[1]]


def test_lag_in_columns_is_lag_offset_by_offset() -> None:
    """The figures in columns, and what is shown offset by offset, are those of the model's rules."""
    for seed in range(4):
        story = Story(seed)
        for _ in range(STEPS):
            story.step()
            for held in story.board.shown.groups.values():
                lags = lags_of(held, story.ends, story.now_ms)
                single = [
                    lag_view(story.ends, *of[:2], measured(story, *of), lost=is_lost(story, *of)) for of in held.offsets
                ]

                assert single == offset_rows(lags, story.ends)
                assert [of[:2] for of in held.offsets] == [lags.table.places[at] for at in lags.table.place_of]
                records = [of["lag"] for of in single if of["lag"] is not None]
                seconds = [of["lag_seconds"] for of in single if of["lag_seconds"] is not None]
                unknown = sum(lag.SUMS.get(of["lag_method"]) == lag.UNKNOWN for of in single)
                assert {
                    "lag": sum(records) if records and not unknown else None,
                    "at_least": sum(records) if unknown else None,
                    "unknown_lags": unknown,
                    "max_lag": max(records, default=None),
                    "max_lag_seconds": max(seconds, default=None),
                    "max_lag_seconds_at_least": any(of["lag_seconds_at_least"] for of in single)
                    or bool(records and unknown),
                } == lags.figures(0)
                read = [
                    (of["lag"], of["lag_method"], committed, of["records_lost"], lag.SUMS.get(of["lag_method"]))
                    for of, (topic, _, committed) in zip(single, held.offsets, strict=True)
                    if topic in held.topics.subscribed or not held.words.all_topics_known
                ]
                assert lags.of_read(0) == (
                    any(waiting and method != lag.NO_RECORD for waiting, method, *_ in read),
                    max((of.commit_timestamp_ms for _, _, of, *_ in read), default=-1),
                    sum(lost for *_, lost, _ in read),
                    sum(part == lag.UNKNOWN for *_, part in read),
                )
                unread = sum(records) - sum(waiting or 0 for waiting, *_ in read)
                assert [unread] == lags.unread_records.tolist()


def is_lost(story: Story, topic: str, partition: int, committed: CommittedOffset) -> bool:
    """Whether records after an offset are gone, by the rules of the model."""
    known = story.ends.partition(topic, partition)
    return known is not None and lag.is_lost(committed.offset, known.earliest, known.gaps)


def measured(story: Story, topic: str, partition: int, committed: CommittedOffset) -> lag.Lag:
    """The lag of one offset by the rules of the model, one after the other."""
    known, described = story.ends.partition(topic, partition), story.ends.topic(topic)
    is_same = committed.topic_id is None or described is None or committed.topic_id == described.id
    exists = topic not in story.ends.gone
    if known is None:
        return lag.measure(committed.offset, None, None, story.now_ms, same_topic=is_same, exists=exists)
    time_ms, offset = committed.commit_timestamp_ms, committed.offset
    cut = lag.cut_of(known.cuts, offset, committed.leader_epoch, time_ms) if is_same else None
    offset = offset if cut is None else cut
    found = lag.measure(
        offset,
        known.high_watermark,
        known.history,
        story.now_ms,
        same_topic=is_same,
        exists=exists,
        stable=known.last_stable,
        found=known.found,
        start=known.earliest,
        gaps=known.gaps,
    )
    if found.method == lag.AHEAD_OF_END and lag.is_beyond(offset, known.high_watermark, time_ms, known.sampled_ms):
        return lag.Lag(None, None, lag.BEYOND_END)
    return found if cut is None or found.records is None else replace(found, method=lag.TRUNCATED)


def test_a_board_that_is_loaded_has_the_groups_that_a_broker_lists() -> None:
    """Whatever else the state store holds: those that ended, and one whose name looks like a group that did not."""
    states: list[GroupState] = []
    for seed in range(4):
        story = Story(seed)
        for _ in range(STEPS):
            story.step()
            states += story.shard.replica.groups.values()
    hostile = GroupState(name='","partition":0,"offset_count":1', partition=0)

    assert {True, False} == {state.exists for state in [*states, hostile]}
    for dump in (lambda _: b"", stored.dump):
        board = Board(log_ends())
        # Each under a name of its own: states of one group stand there many times.
        named = enumerate([*states, hostile])
        board.load(Row(0, "group", f"{at}", dump(state), snapshot.dump_group(state)) for at, state in named)
        assert {f"{at}" for at, state in enumerate([*states, hostile]) if state.exists} == board.shown.groups.keys()

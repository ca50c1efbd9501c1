"""The sampler: what it asks, what it keeps, and what it survives."""

import json
import threading
import time
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest
from kafka.errors import KafkaConnectionError, NodeNotReadyError, UnknownTopicOrPartitionError
from structlog.testing import capture_logs

from lab import builders
from lab.monitor_process import until
from streaming.end_offsets.client import KafkaOffsetsClient
from streaming.end_offsets.open_transactions import STANDS_MS
from streaming.end_offsets.sampler import DESCRIBE_AGAIN_MS, DESCRIBE_EVERY_MS, EndOffsetSampler
from streaming.end_offsets.store import GONE_AFTER_MS, STALE_AFTER_MS, EndOffsets, Topic, Wanted
from tests.streaming.boards import NOW_MS, OFFSETS_TOPIC, described, sample
from tests.streaming.fake_log_ends import FakeLogEnds
from tests.streaming.kafka.fake_brokers import FakeBrokers, brokers

__all__ = ["brokers"]


class Rig:
    """A sampler over a fake cluster, with a clock that is set."""

    def __init__(self, file: Path | None = None, interval_ms: int = 10) -> None:
        self.cluster = FakeLogEnds()
        self.cluster.topic(OFFSETS_TOPIC, 100, 200)
        self.ends = EndOffsets()
        self.wanted = Wanted()
        self.now_ms = NOW_MS
        self.sampler = EndOffsetSampler(
            self.ends,
            self.cluster.connect,
            lambda: self.wanted,
            file=file,
            interval_ms=interval_ms,
            clock_ms=lambda: self.now_ms,
        )

    def sample(self, *, after_ms: int = 1_000) -> bool:
        self.now_ms += after_ms
        self.cluster.asked.clear()
        return self.sampler.sample()

    def end(self, topic: str, partition: int) -> int | None:
        known = self.ends.partition(topic, partition)
        return None if known is None else known.last_stable


def test_the_offsets_topic_is_sampled_without_any_group() -> None:
    """High watermark and last stable offset of the coordinator's log, for the monitor's own distance."""
    rig = Rig()
    rig.cluster.last_stable[OFFSETS_TOPIC, 1] = 150

    assert rig.sample()
    known = rig.ends.of_topic(OFFSETS_TOPIC)
    assert {0: (100, 100), 1: (200, 150)} == {
        partition: (each.high_watermark, each.last_stable) for partition, each in known.items()
    }
    assert 0.0 == rig.ends.age_seconds(rig.now_ms)


def test_a_round_is_two_questions() -> None:
    """Topics are described and first offsets asked for now and then; a usual round asks for both kinds of end."""
    rig = Rig()
    rig.sample()

    assert [f"describe {OFFSETS_TOPIC}", "read_uncommitted", "read_committed", "earliest"] == rig.cluster.asked

    rig.sample()

    assert ["read_uncommitted", "read_committed"] == rig.cluster.asked

    rig.sample(after_ms=DESCRIBE_EVERY_MS)

    assert 4 == len(rig.cluster.asked)


def test_new_topics_are_described_at_once_and_missing_ones_now_and_then() -> None:
    """A name that is not a topic of the cluster is not asked for every second."""
    rig = Rig()
    rig.sample()
    rig.cluster.topic("orders", 5)
    rig.wanted = Wanted(frozenset({"orders", "nonsense"}))
    rig.sample()

    assert f"describe {OFFSETS_TOPIC} nonsense orders" == rig.cluster.asked[0]
    assert 5 == rig.end("orders", 0)

    rig.sample()

    assert ["read_uncommitted", "read_committed"] == rig.cluster.asked

    rig.sample(after_ms=DESCRIBE_AGAIN_MS)

    assert f"describe {OFFSETS_TOPIC} nonsense orders" == rig.cluster.asked[0]


def test_an_end_that_goes_backwards_has_its_topic_described_soon() -> None:
    """A topic recreated under our eyes: the old id must not stand for half a minute."""
    rig = Rig()
    rig.sample()
    rig.cluster.high_watermarks[OFFSETS_TOPIC, 0] = rig.cluster.last_stable[OFFSETS_TOPIC, 0] = 3
    rig.sample()
    rig.sample(after_ms=DESCRIBE_AGAIN_MS)

    assert f"describe {OFFSETS_TOPIC}" == rig.cluster.asked[0]
    rig.sample(after_ms=DESCRIBE_AGAIN_MS)
    assert ["read_uncommitted", "read_committed"] == rig.cluster.asked


def test_an_id_is_given_its_name() -> None:
    """Assignments hold ids; the topic behind one is found, named and sampled."""
    rig = Rig()
    rig.cluster.topic("orders", 5, 6)
    rig.wanted = Wanted(ids=frozenset({builders.topic_id("orders"), builders.topic_id("gone")}))
    rig.sample()

    assert {builders.topic_id(name): name for name in ("orders", OFFSETS_TOPIC)} == dict(rig.ends.topic_names)
    assert 6 == rig.end("orders", 1)


def test_a_deleted_topic_has_no_ends() -> None:
    """A topic that is no more is gone with the next description."""
    rig = Rig()
    rig.cluster.topic("orders", 5)
    rig.wanted = Wanted(frozenset({"orders"}))
    rig.sample()
    del rig.cluster.topics["orders"]
    rig.sample(after_ms=DESCRIBE_EVERY_MS)

    assert rig.ends.partition("orders", 0) is None
    assert rig.ends.topic("orders") is None


def test_a_topic_recreated_begins_a_new_history() -> None:
    """The same name under another id is another log, even if its end is the larger one."""
    rig = Rig()
    rig.cluster.topic("orders", 5)
    rig.wanted = Wanted(frozenset({"orders"}))
    rig.sample()
    rig.cluster.topic("orders", 500)
    rig.cluster.topics["orders"] = Topic(builders.topic_id("orders, anew"), "orders", 1, {0: 1})
    rig.sample(after_ms=DESCRIBE_EVERY_MS)
    known = rig.ends.partition("orders", 0)

    assert known is not None
    assert [(rig.now_ms, 500)] == known.history.samples()


def test_a_topic_whose_id_is_not_told_is_no_other_topic(tmp_path: Path) -> None:
    """Brokers before 2.8 have none: neither what comes without an id nor what comes to have one was made again."""
    known = Topic(builders.topic_id("orders"), "orders", 1, {0: 1})
    ends = EndOffsets()
    for ms, topic in enumerate([replace(known, id=None), replace(known, id=None), known, replace(known, id=None)]):
        ends.set_topics([topic], [])
        sample(ends, NOW_MS + ms * 1_000, "orders", 100 + ms)
    ends.save(tmp_path / "end-offsets.json")
    after = EndOffsets()
    after.load(tmp_path / "end-offsets.json")
    after.set_topics([known], [])
    held = after.partition("orders", 0)

    assert held is not None
    assert 4 == len(held.history)
    assert {known.id: "orders"} == ends.topic_names


def test_records_between_two_questions_are_no_open_transaction() -> None:
    """The last stable offset is asked for second, so it may be ahead; that is no negative distance."""
    rig = Rig()
    rig.cluster.last_stable[OFFSETS_TOPIC, 0] = 103
    rig.sample()

    assert (103, 103) == ((known := rig.ends.of_topic(OFFSETS_TOPIC)[0]).high_watermark, known.last_stable)


def test_an_outage_makes_figures_old_and_is_reported_once() -> None:
    """Figures stay, their age grows, the log has one line when it begins and one when it is over."""
    rig = Rig()
    rig.sample()
    with capture_logs() as lines:
        rig.cluster.down = KafkaConnectionError("broker is away")
        outage = [rig.sample() for _ in range(5)]
        old = rig.ends.age_seconds(rig.now_ms)
        held = rig.end(OFFSETS_TOPIC, 0)
        rig.cluster.down = None
        back = rig.sample()

    assert ([False] * 5, 5.0, 100, True) == (outage, old, held, back)
    assert ["end_offsets_unavailable", "end_offsets_available_again"] == [line["event"] for line in lines]
    assert "broker is away" in lines[0]["reason"]
    assert 5.0 == lines[1]["after_seconds"]
    assert (6, 5) == (rig.cluster.connections, rig.cluster.closed), "a connection that failed is let go"


def test_a_partition_that_falls_silent_has_no_end() -> None:
    """While others answer, a frozen end would be read as a consumer that has caught up."""
    rig = Rig()
    rig.cluster.topic("orders", 5, 6)
    rig.wanted = Wanted(frozenset({"orders"}))
    rig.sample()
    del rig.cluster.high_watermarks["orders", 1]
    rig.sample()

    assert 6 == rig.end("orders", 1)

    rig.sample(after_ms=STALE_AFTER_MS)

    assert (5, None) == (rig.end("orders", 0), rig.end("orders", 1))


def test_nothing_a_client_throws_ends_the_thread() -> None:
    """Not even what no client should throw."""
    rig = Rig()
    rig.cluster.down = ZeroDivisionError("?")
    rig.sampler.start()
    time.sleep(0.1)
    rig.cluster.down = None
    deadline = time.monotonic() + 10
    while rig.ends.sampled_ms is None and time.monotonic() < deadline:
        time.sleep(0.02)
    rig.sampler.stop()

    assert NOW_MS == rig.ends.sampled_ms
    assert [] == [thread for thread in threading.enumerate() if thread.name == "end-offsets"]


def test_a_round_that_is_asked_for_is_not_waited_for() -> None:
    """Who needs ends now gets them now, once for each time; a stop does not wait for the next round, either."""
    rig = Rig(interval_ms=60_000)

    def await_sampled() -> None:
        until(lambda: rig.ends.sampled_ms == rig.now_ms, 10, "no round came in")

    rig.sampler.start()
    await_sampled()
    rig.now_ms += 1
    rig.ends.ask()
    await_sampled()
    rig.now_ms += 1
    rig.sampler.stop()

    assert rig.now_ms - 1 == rig.ends.sampled_ms
    until(lambda: not rig.sampler._thread.is_alive(), 10, "it waits for the next round")


def test_histories_survive_a_restart(tmp_path: Path) -> None:
    """What was sampled before is what lag in seconds is read off after it."""
    file = tmp_path / "state" / "end-offsets.json"
    before = Rig(file)
    before.sampler.start()
    while before.ends.sampled_ms is None:
        time.sleep(0.01)
    before.sampler.stop()
    after = Rig(file)
    after.ends.load(file)
    after.cluster.topic(OFFSETS_TOPIC, 150, 200)
    after.sample(after_ms=60_000)
    history = (after.ends.partition(OFFSETS_TOPIC, 0) or pytest.fail("no partition")).history

    assert NOW_MS + 30_000 == history.time_of(125)
    assert [file] == list(file.parent.iterdir())


def test_a_history_of_a_topic_recreated_meanwhile_is_dropped(tmp_path: Path) -> None:
    """The file names the topic's id: the new log's offsets are not those of the old one."""
    file = tmp_path / "end-offsets.json"
    ends = EndOffsets()
    ends.set_topics([described("orders", 1)], [])
    sample(ends, NOW_MS, "orders", 100)
    ends.save(file)
    after = EndOffsets()
    after.load(file)
    after.set_topics([Topic(builders.topic_id("orders, anew"), "orders", 1, {0: 1})], [])
    sample(after, NOW_MS + 1_000, "orders", 200)
    known = after.partition("orders", 0)

    assert known is not None
    assert 1 == len(known.history)


def test_a_history_not_yet_asked_for_is_not_lost(tmp_path: Path) -> None:
    """The first rounds after a start know no groups yet: what they do not ask for is kept, and saved again."""
    file = tmp_path / "end-offsets.json"
    ends = EndOffsets()
    ends.set_topics([described("orders", 1)], [])
    sample(ends, NOW_MS, "orders", 100)
    ends.save(file)
    after = EndOffsets()
    after.load(file)
    after.set_topics([described(OFFSETS_TOPIC, 1)], [OFFSETS_TOPIC])
    sample(after, NOW_MS + 1_000, OFFSETS_TOPIC, 7)
    after.save(file)

    assert {"orders", OFFSETS_TOPIC} == json.loads(file.read_text())["topics"].keys()


@pytest.mark.parametrize(
    "text", ["", "{", "[]", '{"format": "end-offsets/9"}', '{"format": "end-offsets/1", "topics": 3}']
)
def test_a_damaged_file_is_reported_and_does_not_stop_the_start(tmp_path: Path, text: str) -> None:
    """Without the file there is no lag in seconds for a while; without the monitor there is nothing."""
    file = tmp_path / "end-offsets.json"
    file.write_text(text)
    rig = Rig(file)
    with capture_logs() as lines:
        rig.sampler.start()
        rig.sampler.stop()

    assert "end_offset_history_not_loaded" == lines[0]["event"]
    assert lines[0]["reason"].startswith(f"{file}: not a history of end offsets (")


def test_a_directory_that_cannot_be_written_is_reported(tmp_path: Path) -> None:
    """As above, at the other end of a run."""
    (tmp_path / "file").write_text("")
    rig = Rig(tmp_path / "file" / "end-offsets.json")
    with capture_logs() as lines:
        rig.sampler.start()
        rig.sampler.stop()

    assert "end_offset_history_not_saved" == lines[-1]["event"]


# --- kafka-python, as it fails ---


def client_of(topic: Mapping[tuple[str, int], int]) -> KafkaOffsetsClient:
    client = KafkaOffsetsClient({})
    client.describe({name for name, _ in topic}, ())
    return client


def test_all_partitions_are_one_question_a_broker(brokers: FakeBrokers) -> None:
    """However many there are."""
    places = brokers.lead("orders", *[1, 2] * 150)
    answer = client_of(places).ends(places, committed=True)

    assert ({(1, 150), (2, 150)}, brokers.ends) == ({*brokers.asked}, answer)


def test_one_bad_partition_costs_itself_only(brokers: FakeBrokers) -> None:
    """The others are in the same answer."""
    places = brokers.lead("orders", *[1, 2] * 150)
    brokers.refusing["orders", 7] = UnknownTopicOrPartitionError
    answer = client_of(places).ends(places, committed=False)

    assert places.keys() - {("orders", 7)} == answer.keys()
    assert 2 == len(brokers.asked)


def test_no_broker_is_an_error(brokers: FakeBrokers) -> None:
    """With no answer at all there is nothing to take for a sample."""
    places = brokers.lead("orders", 1, 2)
    client = client_of(places)
    brokers.failing = {1: NodeNotReadyError(), 2: NodeNotReadyError()}
    with pytest.raises(NodeNotReadyError):
        client.ends(places, committed=False)


def test_leader_says_that_it_was_elected_since(brokers: FakeBrokers) -> None:
    """Even if it is the same broker: nobody else would say so for half a minute."""
    places = brokers.lead("orders", 1, 2)
    client = client_of(places)
    client.ends(places, committed=False)
    before = client.outdated
    brokers.epoch += 1
    client.ends(places, committed=False)
    told = client.outdated
    client.describe(["orders"], ())

    assert (False, True, False) == (before, told, client.outdated)


def test_topic_that_may_not_be_described_is_not_one_that_is_gone(
    brokers: FakeBrokers, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The one is not known, the other is no topic."""
    brokers.lead("orders", 1)
    answered = brokers.describe_topics

    def refuse(names: list[str]) -> list[dict[str, Any]]:
        return [of | ({"error_code": 29} if of["name"] == "secret" else {}) for of in answered(names)]

    monkeypatch.setattr(brokers, "describe_topics", refuse)
    client = KafkaOffsetsClient({})
    client.describe(["orders", "secret", "gone"], ())

    assert {"secret"} == client.untold


# --- leaders that move ---


def test_partition_that_does_not_answer_is_asked_of_its_new_leader_at_once() -> None:
    """In the same round, so that no figure is missed; the topic is described with it."""
    rig = Rig()
    rig.sample()
    rig.cluster.topics[OFFSETS_TOPIC] = moved = Topic(
        builders.topic_id(OFFSETS_TOPIC), OFFSETS_TOPIC, 2, {0: 2, 1: 1}, {0: 5, 1: 4}
    )
    rig.cluster.high_watermarks[OFFSETS_TOPIC, 0] = rig.cluster.last_stable[OFFSETS_TOPIC, 0] = 140
    rig.sample()

    assert 140 == rig.end(OFFSETS_TOPIC, 0)
    assert moved == rig.ends.topic(OFFSETS_TOPIC)
    assert [
        "read_uncommitted", "read_committed", f"describe {OFFSETS_TOPIC}", "read_uncommitted", "read_committed"
    ] == rig.cluster.asked  # fmt: skip


def test_topic_without_a_leader_is_described_every_second_until_it_has_one() -> None:
    """Who leads nothing is not asked, and the one that is elected is found within a round."""
    rig = Rig()
    rig.cluster.topics[OFFSETS_TOPIC] = Topic(builders.topic_id(OFFSETS_TOPIC), OFFSETS_TOPIC, 2, {1: 1})
    rig.sample()
    rig.sample()
    without = list(rig.cluster.asked)
    rig.cluster.topics[OFFSETS_TOPIC] = described(OFFSETS_TOPIC, 2)
    rig.sample()

    assert f"describe {OFFSETS_TOPIC}" == without[0]
    assert 100 == rig.end(OFFSETS_TOPIC, 0)
    rig.sample()
    assert ["read_uncommitted", "read_committed"] == rig.cluster.asked


def test_topic_is_described_again_where_a_leader_or_another_thread_says_so() -> None:
    """With the next round, and not before a second is over."""
    rig = Rig()
    rig.sample()
    rig.ends.doubt_leaders()
    rig.sample()
    doubted = rig.cluster.asked[0]
    rig.ends.doubt_leaders()
    rig.sample(after_ms=100)
    too_soon = rig.cluster.asked[0]
    rig.cluster.outdated = True
    rig.sample()
    rig.sample()

    assert [f"describe {OFFSETS_TOPIC}", "read_uncommitted"] == [doubted, too_soon]
    assert f"describe {OFFSETS_TOPIC}" == rig.cluster.asked[0]


def test_topic_is_gone_only_when_brokers_have_said_so_for_a_while() -> None:
    """A broker that is just starting knows no topic; what may not be described is never gone."""
    rig = Rig()
    rig.wanted = Wanted(frozenset({"deleted", "secret"}))
    rig.cluster.untold = frozenset({"secret"})
    rig.sample()
    at_first = rig.ends.gone
    for _ in range(GONE_AFTER_MS // DESCRIBE_AGAIN_MS):
        rig.sample(after_ms=DESCRIBE_AGAIN_MS)
    later = rig.ends.gone
    rig.cluster.topic("deleted", 7)
    rig.sample(after_ms=DESCRIBE_AGAIN_MS)

    assert [set(), {"deleted"}, set()] == [at_first, later, rig.ends.gone]


def test_topic_that_may_be_described_no_more_keeps_its_figures_for_a_while() -> None:
    """Its leaders may still answer: the permission says nothing of them."""
    rig = Rig()
    rig.cluster.topic("orders", 5)
    rig.wanted = Wanted(frozenset({"orders"}))
    rig.sample()
    rig.cluster.untold = frozenset({"orders"})
    held = rig.cluster.topics.pop("orders")
    rig.sample(after_ms=DESCRIBE_EVERY_MS)

    assert held == rig.ends.topic("orders")


# -- open transactions ------------------------------------------------------------------------------------------------

PLACE: Final = (OFFSETS_TOPIC, 0)


def open_since(rig: Rig) -> int | None:
    known = rig.ends.partition(*PLACE)
    return None if known is None else known.open_since_ms


def test_open_transaction_is_as_old_as_its_first_record() -> None:
    """Until it has stood for a while it is as old as it was seen; then the record at the last stable offset is read."""
    rig = Rig()
    assert rig.sample()
    assert open_since(rig) is None

    rig.cluster.last_stable[PLACE] = 90
    rig.cluster.times[PLACE, 90] = rig.now_ms - 60_000
    rig.sample()
    assert rig.now_ms == open_since(rig)

    rig.sample(after_ms=STANDS_MS)
    assert rig.cluster.times[PLACE, 90] == open_since(rig)
    assert "record times" in rig.cluster.asked
    rig.sample()
    assert "record times" not in rig.cluster.asked


def test_transactions_that_follow_each_other_are_not_looked_up() -> None:
    """Each has another last stable offset, and is as old as it was seen."""
    rig = Rig()
    for end in range(60, 70):
        rig.cluster.last_stable[PLACE] = end
        rig.sample()
        assert rig.now_ms == open_since(rig)
        assert "record times" not in rig.cluster.asked

    rig.cluster.last_stable[PLACE] = 100
    rig.sample()
    assert open_since(rig) is None


def test_record_that_cannot_be_read_leaves_the_age_since_it_was_seen() -> None:
    """It is asked for once; the samples go on."""
    rig = Rig()
    rig.cluster.last_stable[PLACE] = 90
    rig.sample()
    seen_ms = rig.now_ms

    assert rig.sample(after_ms=STANDS_MS)
    assert seen_ms == open_since(rig)
    rig.sample()
    assert "record times" not in rig.cluster.asked


def test_records_that_cannot_be_asked_for_cost_no_round_and_are_logged_once(monkeypatch: pytest.MonkeyPatch) -> None:
    """The age counts from when the transaction was first seen."""
    rig = Rig()

    def refuse(*_: object) -> None:
        raise KafkaConnectionError("no reader")

    monkeypatch.setattr(FakeLogEnds, "written_ms", refuse)
    with capture_logs() as lines:
        for end in (90, 91):
            rig.cluster.last_stable[PLACE] = end
            rig.sample()
            seen_ms = rig.now_ms
            assert rig.sample(after_ms=STANDS_MS)
            assert seen_ms == open_since(rig)

    assert ["open_transaction_times_unavailable"] == [line["event"] for line in lines]
    assert "no reader" in lines[0]["reason"]


# -- coordinators that move -------------------------------------------------------------------------------------------


def led(broker: int, epoch: int) -> Topic:
    return Topic(builders.topic_id(OFFSETS_TOPIC), OFFSETS_TOPIC, 1, {0: broker}, {0: epoch} if epoch >= 0 else {})


@pytest.mark.parametrize(
    ("leaders", "moves"),
    [
        ([(1, 4), (1, 4)], 0),
        ([(1, 4), (2, 5)], 1),
        ([(1, 4), (1, 6)], 2),
        ([(1, -1), (2, -1), (1, -1)], 2),
        ([(1, -1), (1, 4)], 0),
    ],
    ids=["stays", "moves", "comes back between two looks", "of brokers without epochs", "epochs from now on"],
)
def test_moves_of_a_coordinator_are_counted(leaders: list[tuple[int, int]], moves: int) -> None:
    """It is the leader of the group's offsets partition; each election loads the groups again."""
    ends = EndOffsets()
    for number, (broker, epoch) in enumerate(leaders):
        ends.set_topics([led(broker, epoch)], [], NOW_MS + number)

    held = ends.leader_moves(OFFSETS_TOPIC, 0)
    assert (moves, None if moves == 0 else NOW_MS + len(leaders) - 1) == (held.count, held.last_ms)

"""Offsets that went back without a topic id, or a topic that was made again: decided by what brokers say of it."""

import json
from collections.abc import Sequence
from typing import Any

import pytest

from lab import builders
from streaming.board.board import Board, Row
from streaming.board.topics_told_apart import FIRST_COMMIT_MS
from streaming.end_offsets.store import EndOffsets, Topic
from tests.streaming.board_rows import Shard
from tests.streaming.boards import NOW_MS, classic_group, log_ends, sample

COMMITTED_MS = NOW_MS - 30_000
BACK_MS = NOW_MS - 1_000


def rows_of(*topics: str) -> list[Row]:
    """A member committed 500 of each of these topics, and then 3; no commit names an id."""
    shard = Shard()
    classic_group(shard, "g", {"m": {topic: [0, 1] for topic in topics}}, at_ms=COMMITTED_MS - 1_000)
    for ms, offset in ((COMMITTED_MS, 500), (BACK_MS, 3)):
        for topic in topics:
            shard.pending.append(
                (ms, *builders.offset_commit("g", topic, 0, offset, version=3, timestamp=ms)),
            )
    return shard.flush()


def reported(ends: EndOffsets, rows: list[Row]) -> list[dict[str, Any]]:
    """Events about those offsets, as sinks are given them; the same batch again gives the same."""
    board = Board(ends)
    settled: Sequence[Row] = board.settled(1, rows)
    assert settled == board.settled(1, rows)
    found = [(json.loads(row[3]), row[4]) for row in settled if row[1] == "event"]
    assert [] == [(event, kind) for event, kind in found if event["kind"] != kind]
    return [event for event, kind in found if kind in ("offset_rewound", "topic_recreated")]


def made_again(ends: EndOffsets, name: str, seen_ms: int, noticed_ms: int) -> None:
    """A topic was last described under its former id at the one time, and under this one at the other."""
    topics = ends.topics
    ends.set_topics([*topics.values()], [], seen_ms)
    new = Topic(builders.topic_id("new"), name, 2, {0: 1, 1: 1})
    ends.set_topics([*(of for of in topics.values() if of.name != name), new], [], noticed_ms)


def test_topic_that_has_another_id_since_the_former_commit_was_made_again() -> None:
    """Both ids are said; nothing of it is a rewind."""
    ends = log_ends(t=2)
    made_again(ends, "t", COMMITTED_MS + 1_000, COMMITTED_MS + 9_000)

    (event,) = reported(ends, rows_of("t"))
    assert ("topic_recreated", "warning", True) == (event["kind"], event["severity"], event["inferred"])
    ids = {"former_topic_id": builders.topic_id("t"), "topic_id": builders.topic_id("new")}
    assert {"topic": "t", "partition": 0, "from": 500, "to": 3, **ids} == event["detail"]
    assert "topic_recreated" in event["id"].split("-")


def test_log_that_is_as_long_as_it_was_is_the_former_topic() -> None:
    """A recreated one would have to be written as far again within seconds."""
    ends = log_ends(t=2)
    sample(ends, BACK_MS, "t", 600, 0)

    (event,) = reported(ends, rows_of("t"))
    assert "offset_rewound" == event["kind"]
    assert not event["detail"].keys() & {"may_be_recreated", "former_commit"}


def test_topic_that_was_away_for_a_while_was_made_again_too() -> None:
    """Brokers said in between that there is no such topic."""
    ends = log_ends(t=2)
    ends.set_topics(ends.topics.values(), [], COMMITTED_MS + 1_000)
    ends.set_topics([], ["t"], COMMITTED_MS + 2_000)
    ends.set_topics([Topic(builders.topic_id("new"), "t", 2, {0: 1})], ["t"], COMMITTED_MS + 9_000)

    assert ["topic_recreated"] == [event["kind"] for event in reported(ends, rows_of("t"))]


@pytest.mark.parametrize("why", ["never sampled", "a shorter log", "sampled long before", "no such topic"])
def test_what_brokers_do_not_tell_stays_unclear(why: str) -> None:
    """It is neither called a rewind for certain, nor another topic."""
    ends = log_ends() if why == "no such topic" else log_ends(t=2)
    if why == "a shorter log":
        sample(ends, BACK_MS, "t", 499, 0)
    if why == "sampled long before":
        sample(ends, BACK_MS - FIRST_COMMIT_MS - 1, "t", 600, 0)

    (event,) = reported(ends, rows_of("t"))
    assert ("offset_rewound", ["t"]) == (event["kind"], event["detail"]["may_be_recreated"])


@pytest.mark.parametrize("when", ["before the former commit", "after the event"])
def test_topic_that_was_made_again_at_another_time_was_gone_back_on(when: str) -> None:
    """Looks alike: the id changed before the group committed what it goes back from, or only after it went back."""
    ends = log_ends(t=2)
    if when == "before the former commit":
        made_again(ends, "t", COMMITTED_MS - 9_000, COMMITTED_MS - 5_000)
    else:
        made_again(ends, "t", BACK_MS + FIRST_COMMIT_MS + 1, BACK_MS + 2 * FIRST_COMMIT_MS)

    assert ["offset_rewound"] == [event["kind"] for event in reported(ends, rows_of("t"))]


def test_topics_of_one_moment_are_told_apart_one_by_one() -> None:
    """One was made again, one is as long as it was, of one nothing is known."""
    ends = log_ends(t=2, u=2, v=2)
    made_again(ends, "t", COMMITTED_MS + 1_000, COMMITTED_MS + 9_000)
    sample(ends, BACK_MS, "u", 600, 0)

    rewound, recreated = reported(ends, rows_of("t", "u", "v"))
    assert {"u": [0], "v": [0]} == rewound["detail"]["partitions"]
    assert ["u/0", "v/0"] == sorted(rewound["detail"]["offsets"])
    assert (["v"], "u", 500, 3) == tuple(rewound["detail"][of] for of in ("may_be_recreated", "topic", "from", "to"))
    assert ("topic_recreated", "t") == (recreated["kind"], recreated["detail"]["topic"])


def test_rows_without_such_an_event_are_passed_on_as_they_are() -> None:
    """Nothing is parsed for them."""
    shard = Shard()
    classic_group(shard, "g", {"m": {"t": [0]}})
    rows = shard.flush()

    assert Board(log_ends(t=2)).settled(1, rows) is rows

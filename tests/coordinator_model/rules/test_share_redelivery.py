"""`share_redelivering`: records of a share group are delivered again and again, for a quarter of an hour."""

from collections.abc import Iterator
from itertools import count

import pytest

from coordinator_model.kinds.table import sentence
from coordinator_model.rules.share_redelivery import Redeliveries
from coordinator_model.share_replica import ShareReplica
from coordinator_model.state.events import Event, event_view
from coordinator_model.state.findings import Position
from lab.builders import RecordBytes
from lab.share_state import share_snapshot, share_update

MINUTE = 60_000
Log = list[tuple[int, RecordBytes]]
"""Times and records."""


def said_of(*partitions: Log, live_from: int = 0) -> list[Event]:
    """What logs of partitions of the log show, one read after the other."""
    replica = ShareReplica(redeliveries=Redeliveries(), live_from=dict.fromkeys(range(9), live_from))
    for number, log in enumerate(partitions):
        for offset, (time_ms, (key, value)) in enumerate(log):
            replica.replay(Position(number, offset, time_ms), key, value)
    return [of for of in replica.settle() if of.kind == "share_redelivering"]


def log(*windows: tuple[int, int], topic: str = "t") -> Log:
    """In each five minutes so many records become done at once, and so many at the second delivery; then an hour."""

    def written() -> Iterator[tuple[int, RecordBytes]]:
        yield 0, share_snapshot("s", topic, 0)
        offsets, batches = count(), []
        for number, (at_once, again) in enumerate(windows):
            for deliveries, records in ((1, at_once), (2, again)):
                batches = [(at := next(offsets), at, 2, deliveries) for _ in range(records)]
                yield (5 * number + 1) * MINUTE, share_update("s", topic, 0, *batches)
        yield (5 * len(windows) + 60) * MINUTE, share_update("s", topic, 0)

    return list(written())


# -- reported ---------------------------------------------------------------------------------------------------------


def test_quarter_of_an_hour_of_redeliveries_is_reported_and_its_end() -> None:
    """When the third window is over, by the last record in it; once more when one is none of these."""
    opened, ended = said_of(log((180, 20), (100, 30), (0, 20), (500, 20)))

    assert {
        "id": "__share_group_state-0-6-share_redelivering-0",
        "time": 15 * MINUTE,
        "group": "s",
        "kind": "share_redelivering",
        "severity": "warning",
        "partition": 0,
        "offset": 6,
        "detail": {"done": 350, "redelivered": 70},
        "inferred": False,
        "log": "__share_group_state",
    } == event_view(opened)
    assert (20 * MINUTE, {"done": 350, "redelivered": 70, "cleared": True}) == (ended.time_ms, ended.detail)
    assert opened.id != ended.id
    assert "Of 350 records that became done, 70 had been delivered before in vain" == sentence(event_view(opened))
    assert sentence(event_view(ended)) != sentence(event_view(opened))


def test_partitions_of_a_group_are_counted_together() -> None:
    """Partitions of the log together, whatever their order; none of them would be enough."""
    opened, _ = said_of(log((20, 10), (20, 10), (20, 10)), log((20, 10), (20, 10), (20, 10), topic="u"))

    assert {"done": 180, "redelivered": 60} == opened.detail


def test_what_goes_on_is_reported_once() -> None:
    """What goes on is one event; after it was over there is another."""
    bad, good = (100, 50), (100, 0)
    events = said_of(log(bad, bad, bad, bad, bad, good, bad, bad, good, bad, bad, bad))

    assert [(15, False), (30, True), (60, False), (65, True)] == [
        (of.time_ms // MINUTE, "cleared" in of.detail) for of in events
    ]


# -- silent -----------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    "windows",
    [
        ((100, 50), (100, 50)),
        ((100, 50), (100, 50), (100, 19), (100, 50), (100, 50)),
        ((100, 50), (100, 50), (181, 20), (100, 50)),
        ((0, 10_000), (10_000, 0), (10_000, 0), (10_000, 0)),
    ],
    ids=["ten minutes", "a window of few", "a window of less than a tenth", "a restart"],
)
def test_less_is_silent(windows: tuple[tuple[int, int], ...]) -> None:
    """A rolling restart, a member that was killed, a lock that timed out; a few records of many."""
    assert [] == said_of(log(*windows))


def test_write_that_is_tried_again_counts_once() -> None:
    """A write that is tried again, and snapshots of what was done before."""
    bad = [(at, at, 2, 2) for at in range(19)]
    again: Log = [(0, share_snapshot("s", "t", 0))]
    for number in range(4):
        later = [(first + 100 * number, last + 100 * number, state, times) for first, last, state, times in bad]
        again += [((5 * number + minute) * MINUTE, share_update("s", "t", 0, *later)) for minute in (1, 2, 3)]
        again += [((5 * number + 4) * MINUTE, share_snapshot("s", "t", 0, batches=later, snapshot_epoch=number))]
    again.append((90 * MINUTE, share_update("s", "t", 0)))

    assert [] == said_of(again)


def test_released_records_do_not_count_before_they_are_done() -> None:
    """One that is delivered for the fourth time and given back is no record that became done."""
    released = [(at, at, 0, 4) for at in range(50)]
    windows: Log = [(0, share_snapshot("s", "t", 0))]
    windows += [((5 * number + 1) * MINUTE, share_update("s", "t", 0, *released)) for number in range(4)]

    assert [] == said_of([*windows, (90 * MINUTE, share_update("s", "t", 0))])


def test_what_was_before_the_live_tail_does_not_count() -> None:
    """Three windows, of which one was there before."""
    bad = log((100, 50), (100, 50), (100, 50))

    assert 2 == len(said_of(bad))
    assert [] == said_of(bad, live_from=4)


def test_window_that_is_not_over_says_nothing() -> None:
    """A third window that is not over: more may become done in it at once."""
    assert [] == said_of(log((100, 50), (100, 50), (100, 50))[:-1])

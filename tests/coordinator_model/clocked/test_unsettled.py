"""What is said of a group that does not come to rest."""

from coordinator_model.clocked.moment import UNSETTLED_AFTER_MS
from coordinator_model.state.events import Event
from lab.builders import HOST, group_metadata, member
from tests.histories import Moment, Reported, at, history
from tests.moments import overdue

LOOKED_MS = 650_000
EVERY_MS = 6_000


def restless(visits: int, visitors: int = 1) -> Reported:
    """A group of one member that others join and leave in turn."""
    stays = member("stays", {"t": [0]})
    moments: list[Moment] = [at(0, group_metadata("g", generation=1, members=[stays]))]
    for turn in range(1, visits + 1):
        visits_now = member(f"visit-{turn}", {"t": [1]}, client_id=f"c{turn % visitors}")
        present = [stays, visits_now] if turn % 2 else [stays]
        moments.append(at(EVERY_MS * turn, group_metadata("g", generation=1 + turn, members=present)))
    return history(*moments).replayed()


def unsettled(reported: Reported, now_ms: int = LOOKED_MS) -> list[Event]:
    """What a look at that time says of unrest."""
    found = overdue(reported.states["g"], now_ms, now_ms)
    return [event for event in found if event.kind == "group_unsettled"]


def test_unrest_says_how_many_epochs_and_whose() -> None:
    """Epochs a minute with one decimal; from and to which; who comes and goes."""
    (event,) = unsettled(restless(99))

    assert (EVERY_MS, 7) == (event.time_ms, event.partition)
    assert {
        "unsettled_ms": LOOKED_MS - EVERY_MS,
        "epochs": 99,
        "epochs_per_minute": 9.2,
        "from_epoch": 1,
        "epoch": 100,
        "members": 2,
        "joined": 50,
        "left": 49,
        "come_and_go": [
            {"instance_id": None, "client_id": "c0", "client_host": HOST, "joined": 50, "left": 49},
        ],
    } == event.detail


def test_five_that_come_and_go_most_are_shown() -> None:
    """Ties by client id, so that a look again shows the same."""
    (event,) = unsettled(restless(99, visitors=7))

    shown = [(of["client_id"], of["joined"] + of["left"]) for of in event.detail["come_and_go"]]
    assert [("c1", 15), ("c0", 14), ("c2", 14), ("c3", 14), ("c4", 14)] == shown


def test_unrest_is_reported_when_it_lasts_for_longer_than_it_may() -> None:
    """Not yet at that moment."""
    reported = restless(99)

    assert [] == unsettled(reported, EVERY_MS + UNSETTLED_AFTER_MS)
    assert 1 == len(unsettled(reported, EVERY_MS + UNSETTLED_AFTER_MS + 1))

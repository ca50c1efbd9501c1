"""Figures beside a snapshot say what the state says, and are worked out again where they are of another release."""

import hashlib
import json

import pytest

from coordinator_model.figures import stored
from coordinator_model.figures.stored import FORMAT
from coordinator_model.figures.summary import GroupSummary, summary
from coordinator_model.figures.table import WORDS
from coordinator_model.state import snapshot
from coordinator_model.state.group_state import GroupState
from tests.coordinator_model.state.test_snapshot import FULL
from tests.streaming.random_boards import RandomBoard

STEPS = 60


def states(seed: int) -> list[GroupState]:
    """States of groups of all kinds, as a random history leaves them step by step."""
    walk = RandomBoard(seed, groups=16)
    found = []
    for _ in range(STEPS):
        walk.step()
        found += [held.state for held in walk.board.shown.groups.values()]
    return found


def said(of: GroupSummary) -> tuple[object, ...]:
    words = tuple(getattr(of.words, name) for name in WORDS)
    topics = (of.topics.subscribed, of.topics.assigned, of.topics.ids, of.topics.by_id, of.topics.assignments_known)
    return of.numbers, words, topics, of.recent_rebalances_ms, of.durations


@pytest.mark.parametrize("seed", range(3))
def test_what_is_read_is_what_would_be_worked_out(seed: int) -> None:
    """Of every state."""
    for state in states(seed):
        found = stored.load(stored.dump(state))

        assert found is not None
        assert said(summary(state)) == said(found)


@pytest.mark.parametrize("name", ["line\nbreak", 'quote " \\', "\ud800", "группа \u2028"])
def test_any_name_is_read_back(name: str) -> None:
    """Figures are lines: a topic's name has no line break there."""
    found = stored.load(stored.dump(snapshot.load_group(CONSUMER.replace('"orders"', json.dumps(name)))))

    assert found is not None
    assert {name} == found.topics.subscribed


def test_figures_of_another_release_are_not_taken() -> None:
    """The state says it all: a snapshot of release 0.1 has none beside it, a later one may mean something else."""
    figures = stored.dump(GroupState(name="g", partition=0))

    for others in (b"", figures.replace(b"%d" % FORMAT, b"%d" % (FORMAT + 1), 1), b"%d" % FORMAT + figures):
        assert stored.load(others) is None


CLASSIC = (
    '[1,{"name":"c","partition":3,"membership":{"family":"classic","classic":{"generation":4,"protocol_type":"consumer",'
    '"protocol":"range","leader":"m","members":{"m":{"member_id":"m","instance_id":"i","client_id":"x","client_host":'
    '"/127.0.0.1","rebalance_timeout_ms":300000,"session_timeout_ms":45000,"claim":{"version":3,"topics":["orders"]},'
    '"assigned":{"orders":[0,2]}}}}},"offset_count":3,"recent_rebalances_ms":[1700000000000],"counters":{"rebalances":1,'
    '"partitions_moved":2,"duration_buckets":[1,0,0,0,0,0,0,0,0,0,0],"duration_sum_ms":40},"last_step_ms":1700000000000}]'
)
CONSUMER = (
    '[1,{"name":"n","partition":5,"membership":{"family":"consumer","modern":{"family":"consumer","epoch":3,'
    '"assignment_epoch":3,"epoch_live":true,"assignment_epoch_live":true,"members":{"a":{"member_id":"a","metadata_live":'
    'true,"current_live":true,"client_id":"x","client_host":"/127.0.0.1","subscribed_topics":["orders"],"epoch":3,'
    '"previous_epoch":2,"assigned":{"wVnUDSN4jX_XlQi8fB_QNg":[0,2]}}},"targets":{"a":{"wVnUDSN4jX_XlQi8fB_QNg":[0,2]}}}},'
    '"restless":{"since_ms":1700000000000,"offset":1,"from_epoch":2,"last_ms":1700000001000,"epochs":1,"counted":1}}]'
)


def test_what_figures_say_has_its_number() -> None:
    """What is kept was worked out by the rules of its time: rules that say something else need another number."""
    digest = hashlib.sha256()
    for state in (FULL, *map(snapshot.load_group, (CLASSIC, CONSUMER))):
        digest.update(stored.dump(state))

    assert (7, "d07d8d4cc3d58637") == (FORMAT, digest.hexdigest()[:16])

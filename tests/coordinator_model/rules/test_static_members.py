"""Static members (KIP-345; docs/coordinator-log.md, "Static members"): one identity under changing member ids."""

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import pytest

from coordinator_model.clocked.finding_members import involved_members
from coordinator_model.rules.static_members import CONTENDED, FORMER_KEPT, RESTARTING, RESTARTS, RUN_GAP_MS
from coordinator_model.state.events import INFO
from coordinator_model.views.group_view import group_view
from lab.builders import (
    HOST,
    SESSION_TIMEOUT_MS,
    consumer_group_member_subscription,
    group_metadata,
    member,
    topic_id,
)
from lab.coordinator_events import (
    consumer_join,
    consumer_leave,
    consumer_moves,
    retarget,
    static_goes_away,
    static_returns,
)
from tests.histories import Moment, Reported, at, history
from tests.moments import overdue

JOINED = at(0, *consumer_join("g", "a1", epoch=2, targets={"a1": {"t": [0]}}, instance_id="i"))
OTHER = at(
    1_000,
    *consumer_join("g", "b", epoch=3, targets={"b": {"t": [1]}}),
    *consumer_moves("g", "a1", epoch=3, previous_epoch=2, assigned={"t": [0]}),
)
"""A second member, and the first at its epoch."""

AWAY = at(60_000, *static_goes_away("g", "a1", assigned={"t": [0]}, previous_epoch=2))
BACK = at(70_000, *static_returns("g", old="a1", new="a2", instance_id="i", epoch=3, assigned={"t": [0]}))


def test_member_away_keeps_its_partitions_and_the_group_reconciling() -> None:
    """It closed with "remain": epoch -2, partitions kept. Kafka's tools say Reconciling until it is back or expired."""
    reported = history(JOINED, OTHER, AWAY).replayed()

    assert "Reconciling 3/3" == reported.status("g")
    assert {"a1": {"t": [0]}, "b": {"t": [1]}} == reported.owners("g")
    assert ("i", -2) == (reported.member("g", "a1")["instance_id"], reported.member("g", "a1")["epoch"])
    assert ["static_member_absent"] == reported.kinds()[60_000]
    assert 60_000 == reported.states["g"].instances["i"].absent_since_ms


def test_those_that_leave_at_once_are_remembered_in_the_order_they_came() -> None:
    """The same log makes the same state in every process, whatever the order of its sets."""
    ids = [f"i-{number}" for number in range(20)]
    everybody = [member(f"m-{of}", {"t": [0]} if of == ids[0] else {}, instance_id=of) for of in ids]

    reported = history(
        at(1_000, group_metadata("g", generation=1, members=everybody)),
        at(2_000, group_metadata("g", generation=2, members=[member("m", {"t": [0]})])),
    ).replayed()

    assert ids == list(reported.states["g"].departed)


def test_member_away_is_not_a_rebalance() -> None:
    """It is waited for; nothing is computed or handed on."""
    reported = history(JOINED, OTHER, AWAY).replayed()

    assert reported.states["g"].rebalance is None


def test_return_is_neither_a_leave_nor_a_join() -> None:
    """Three tombstones and new keys in one batch, no epoch: one event, and no rebalance."""
    reported = history(JOINED, OTHER, AWAY, BACK).replayed()

    assert "Stable 3/3" == reported.status("g")
    assert {"a2": {"t": [0]}, "b": {"t": [1]}} == reported.owners("g")
    assert ["static_member_returned", "static_member_absent"] == reported.kinds()[70_000]  # and is over
    (detail,) = reported.details("static_member_returned")
    assert ("i", "a2", "a1") == (detail["instance_id"], detail["member_id"], detail["former_member_id"])
    assert reported.states["g"].instances["i"].absent_since_ms is None
    assert 0 == reported.states["g"].counters.partitions_moved


def test_expiry_of_a_member_away_is_its_leave() -> None:
    """The session timeout passes: now its partitions are for others, and the rebalance begins."""
    reported = history(
        JOINED,
        OTHER,
        AWAY,
        at(105_000, *consumer_leave("g", "a1", epoch=4)),
        at(
            106_000,
            *retarget("g", 4, {"b": {"t": [0, 1]}}),
            *consumer_moves("g", "b", epoch=4, previous_epoch=3, assigned={"t": [0, 1]}),
        ),
    ).replayed()

    assert "Stable 4/4" == reported.status("g")
    assert {105_000: ["member_left", "rebalance_started"], 106_000: ["rebalance_completed"]} == {
        time: kinds for time, kinds in reported.kinds().items() if time > 60_000
    }
    assert [1] == [detail["partitions_moved"] for detail in reported.details("rebalance_completed")][-1:]
    assert {} == reported.states["g"].instances


def test_last_member_away_and_expired_empties_the_group() -> None:
    """Away is not gone: the group is empty only when the member has expired."""
    away = history(JOINED, AWAY).replayed()
    gone = history(JOINED, AWAY, at(105_000, *consumer_leave("g", "a1", epoch=3))).replayed()

    assert "Reconciling 2/2" == away.status("g")
    assert "Empty 3/2" == gone.status("g")
    assert ["member_left", "group_emptied"] == gone.kinds()[105_000]


def test_staying_away_is_said_once() -> None:
    """A member written again at -2 is as absent as before."""
    again = at(61_000, *static_goes_away("g", "a1", assigned={"t": [0]}, previous_epoch=2))

    reported = history(JOINED, OTHER, AWAY, again).replayed()

    assert 61_000 not in reported.kinds()


def test_rejoin_of_a_classic_static_member_keeps_the_generation() -> None:
    """New member id, same generation, same assignment: replaced, without a leave, a join or a rebalance."""
    reported = history(
        at(0, group_metadata("g", generation=4, members=[member("i-1", {"t": [0]}, instance_id="i")])),
        at(9_000, group_metadata("g", generation=4, members=[member("i-2", {"t": [0]}, instance_id="i")])),
    ).replayed()

    assert "Stable 4" == reported.status("g")
    assert ["static_member_replaced"] == reported.kinds()[9_000]
    assert (0, 1) == (reported.states["g"].counters.rebalances, reported.states["g"].counters.static_replacements)


def test_rejoin_that_rebalances_is_still_the_same_member() -> None:
    """The group was not Stable, or the protocol changed: a new generation in which the instance has a new id."""
    reported = history(
        at(0, group_metadata("g", generation=4, members=[member("i-1", {"t": [0]}, instance_id="i")])),
        at(9_000, group_metadata("g", generation=5, members=[member("i-2", {"t": [0]}, instance_id="i")])),
    ).replayed()

    assert ["static_member_replaced", "rebalance_completed"] == reported.kinds()[9_000]
    assert ["static_return"] == reported.details("rebalance_completed")[0]["causes"]
    assert 0 == reported.details("rebalance_completed")[0]["partitions_moved"]


def test_instance_that_left_and_joined_later_did_both() -> None:
    """Gone in one generation and back in another: no one held its place."""
    reported = history(
        at(0, group_metadata("g", generation=1, members=[member("i-1", {"t": [0]}, instance_id="i")])),
        at(1_000, group_metadata("g", generation=2)),
        at(2_000, group_metadata("g", generation=3, members=[member("i-2", {"t": [0]}, instance_id="i")])),
    ).replayed()

    assert ["member_left", "group_emptied"] == reported.kinds()[1_000]
    assert ["member_joined", "rebalance_completed"] == reported.kinds()[2_000]


def _takeovers(count: int, every_ms: int, hosts: Sequence[str] = (HOST,)) -> tuple[Moment, ...]:
    def named(turn: int) -> Any:
        return member(f"i-{turn}", {"t": [0]}, instance_id="i", client_host=hosts[turn % len(hosts)])

    return tuple(
        at(turn * every_ms, group_metadata("g", generation=1, members=[named(turn)])) for turn in range(count + 1)
    )


TWO_HOSTS = ("/a", "/b")


@pytest.mark.parametrize("every_ms", [3_000, 61_000, 150_000, RUN_GAP_MS])
def test_process_that_takes_the_id_back_fights(every_ms: int) -> None:
    """A, B, A, B: each throws the other out, said once, however long it goes on and however slow it is."""
    reported = history(*_takeovers(50, every_ms=every_ms, hosts=TWO_HOSTS)).replayed()

    doubted, event = (event for event in reported.events if event.severity != INFO)
    assert ("static_member_contended", "critical", True, 3 * every_ms) == (
        event.kind,
        event.severity,
        event.inferred,
        event.time_ms,
    )
    assert ("i", ["i-2", "i-3"], ["/a", "/b"], 3) == tuple(
        event.detail[key] for key in ("instance_id", "member_ids", "client_hosts", "replacements")
    )
    assert ("static_member_contended", "warning", 2 * every_ms) == (doubted.kind, doubted.severity, doubted.time_ms)


@pytest.mark.parametrize("away_ms", [20_000, 180_000, RUN_GAP_MS])
def test_id_that_is_taken_back_once_is_a_warning(away_ms: int) -> None:
    """A node is drained and back: two take-overs are too little evidence of two processes."""
    reported = history(*_takeovers(2, every_ms=away_ms, hosts=TWO_HOSTS)).replayed()
    state = reported.states["g"]

    assert [(2 * away_ms, "static_member_contended")] == reported.timed_alarms()
    assert ["warning"] == [event.severity for event in reported.events if event.severity != INFO]
    assert [] == [*involved_members(state, 2 * away_ms)]
    assert [("static_member_contended", True)] == over(reported, 2 * away_ms + RUN_GAP_MS + 1)


def test_node_that_is_drained_again_much_later_is_a_warning_again() -> None:
    """What was taken back in an earlier run proves nothing of this one."""
    first, later = _takeovers(2, every_ms=60_000, hosts=TWO_HOSTS), RUN_GAP_MS + 200_000
    again = [replace(of, time_ms=of.time_ms + later) for of in _takeovers(2, every_ms=60_000, hosts=TWO_HOSTS)]
    reported = history(*first, *again).replayed()

    assert ["warning", "warning"] == [of.severity for of in reported.events if of.severity != INFO]


@pytest.mark.parametrize(
    ("hosts", "may_be"),
    [((HOST,), ["one_process", "two_processes"]), ([f"/{turn}" for turn in range(60)], ["one_process"])],
    ids=["one host throughout", "always another"],
)
@pytest.mark.parametrize("every_ms", [3_000, 150_000])
def test_process_that_restarts_in_a_loop_fights_with_none(
    every_ms: int, hosts: Sequence[str], may_be: list[str]
) -> None:
    """None comes back that another had thrown out: a warning, once, that says what else it may be."""
    reported = history(*_takeovers(50, every_ms=every_ms, hosts=hosts)).replayed()

    (event,) = (event for event in reported.events if event.severity != INFO)
    assert ("static_member_restarting", "warning", True, RESTARTS * every_ms) == (
        event.kind,
        event.severity,
        event.inferred,
        event.time_ms,
    )
    assert (RESTARTS, may_be) == (event.detail["replacements"], event.detail["may_be"])


def test_restarts_are_no_loop() -> None:
    """One less than it takes, and as many as one likes if they are far enough apart."""
    few = history(*_takeovers(RESTARTS - 1, every_ms=3_000)).replayed()
    rare = history(*_takeovers(30, every_ms=RUN_GAP_MS + 1)).replayed()
    moved = history(*_takeovers(30, every_ms=RUN_GAP_MS + 1, hosts=TWO_HOSTS)).replayed()

    assert [{}, {}, {}] == [few.alarms(), rare.alarms(), moved.alarms()]


def test_id_taken_back_by_who_had_released_it_is_no_fight() -> None:
    """A was away when B came, so it lost nothing to it."""
    moments: list[Moment] = [JOINED]
    for turn in range(1, RESTARTS - 1):
        new = consumer_group_member_subscription("g", f"a{turn + 1}", instance_id="i", client_host=TWO_HOSTS[turn % 2])
        returns = static_returns("g", old=f"a{turn}", new=f"a{turn + 1}", instance_id="i", epoch=2, assigned={"t": [0]})
        moments.append(at(turn * 2_000, *static_goes_away("g", f"a{turn}", assigned={"t": [0]}, previous_epoch=2)))
        moments.append(at(turn * 2_000 + 1_000, *returns, new))

    assert {("g", "static_member_absent")} == set(history(*moments).replayed().alarms())


def test_loop_that_turns_out_to_be_a_fight_is_reported_as_one() -> None:
    """The weaker alarm ends where the stronger begins."""
    hosts = (*["/a"] * (RESTARTS + 1), "/b", "/a")
    reported = history(*_takeovers(len(hosts) - 1, every_ms=3_000, hosts=hosts)).replayed()

    assert [
        ("static_member_restarting", None),
        ("static_member_restarting", True),
        ("static_member_contended", None),
    ] == [(of.kind, of.detail.get("cleared")) for of in reported.events if of.kind in (CONTENDED, RESTARTING)]
    _, over_of_weaker = reported.details("static_member_restarting")
    assert {"instance_id": "i", "member_ids": [f"i-{len(hosts) - 1}"], "cleared": True} == over_of_weaker
    assert all(of.inferred for of in reported.events if of.kind == RESTARTING)
    (shown,) = reported.view("g")["static_members"]
    assert (True, False) == (shown["contended"], shown["restarting"])


def test_member_that_expires_and_joins_again_and_again_restarts_in_a_loop() -> None:
    """Its session is shorter than its way back: each time it left and joined, and it is the same instance."""
    moments = []
    for turn in range(RESTARTS + 1):
        there = [member(f"i-{turn}", {"t": [0]}, instance_id="i")]
        moments.append(at(120_000 * turn, group_metadata("g", generation=2 * turn + 1, members=there)))
        moments.append(at(120_000 * turn + 60_000, group_metadata("g", generation=2 * turn + 2)))

    reported = history(*moments).replayed()

    assert {("g", "static_member_restarting"): 1} == reported.alarms()
    assert [("static_member_restarting", True)] == over(reported, 120_000 * RESTARTS + RUN_GAP_MS + 1)


def test_member_that_goes_away_and_returns_in_a_loop_fights_with_none() -> None:
    """It had released its place each time, and it is a loop all the same."""
    moments: list[Moment] = [JOINED]
    for turn in range(1, 9):
        moments += [
            at(turn * 2_000, *static_goes_away("g", f"a{turn}", assigned={"t": [0]}, previous_epoch=2)),
            at(
                turn * 2_000 + 1_000,
                *static_returns("g", old=f"a{turn}", new=f"a{turn + 1}", instance_id="i", epoch=2, assigned={"t": [0]}),
            ),
        ]

    reported = history(*moments).replayed()

    assert [] == reported.details("static_member_contended")
    assert [["one_process", "two_processes_on_one_host"]] == [
        detail["may_be"] for detail in reported.details("static_member_restarting")
    ]
    assert 8 == len(reported.details("static_member_returned"))


# -- who stood for an instance id, and what that saved ----------------------------------------------------------------


def test_return_and_replacement_are_counted_apart_and_saved_a_rebalance_each() -> None:
    """The one had said it would be back, the other just came; neither moved the group."""
    returned = history(JOINED, OTHER, AWAY, BACK).replayed().states["g"].counters
    replaced = history(*_takeovers(1, every_ms=9_000)).replayed().states["g"].counters

    assert (0, 1, 1) == (returned.static_replacements, returned.static_returns, returned.rebalances_saved)
    assert (1, 0, 1) == (replaced.static_replacements, replaced.static_returns, replaced.rebalances_saved)


def test_return_that_rebalances_saved_nothing() -> None:
    """The group was moving, or the protocol changed."""
    reported = history(
        at(0, group_metadata("g", generation=4, members=[member("i-1", {"t": [0]}, instance_id="i")])),
        at(9_000, group_metadata("g", generation=5, members=[member("i-2", {"t": [0]}, instance_id="i")])),
    ).replayed()

    assert [False] == [detail["rebalance_saved"] for detail in reported.details("static_member_replaced")]
    assert 0 == reported.states["g"].counters.rebalances_saved


def test_who_is_away_is_reported_with_what_it_holds_and_for_how_long_it_was() -> None:
    """Its session timeout is configuration, not in the log, and said to be unknown."""
    reported = history(JOINED, OTHER, AWAY, BACK).replayed()

    absent, _ = reported.details("static_member_absent")
    (returned,) = reported.details("static_member_returned")
    assert ("i", {topic_id("t"): [0]}, None) == (
        absent["instance_id"],
        absent["partitions"],
        absent["session_timeout_ms"],
    )
    assert (10_000, {topic_id("t"): [0]}, True) == (
        returned["absent_ms"],
        returned["partitions"],
        returned["rebalance_saved"],
    )


def test_member_ids_of_an_instance_over_time() -> None:
    """The group's view has who stands for it, since when, and who did before; the latest few."""
    reported = history(*_takeovers(FORMER_KEPT + 2, every_ms=RUN_GAP_MS + 1)).replayed()
    (shown,) = reported.view("g")["static_members"]

    last = FORMER_KEPT + 2
    assert ("i", f"i-{last}", last * (RUN_GAP_MS + 1), last) == (
        shown["instance_id"],
        shown["member_id"],
        shown["since"],
        shown["rebalances_saved"],
    )
    assert [f"i-{turn}" for turn in range(2, last)] == [former["member_id"] for former in shown["former"]]
    assert (None, SESSION_TIMEOUT_MS, False) == (
        shown["absent_since"],
        shown["session_timeout_ms"],
        shown["contended"],
    )


def test_group_without_static_members_shows_none() -> None:
    """There is nothing to say."""
    reported = history(at(0, group_metadata("g", generation=4, members=[member("a", {"t": [0]})]))).replayed()

    assert "static_members" not in reported.view("g")


def over(reported: Reported, now_ms: int) -> list[tuple[str, bool]]:
    """(kind, cleared) of what the clock finds to be over."""
    return [(event.kind, event.detail["cleared"]) for event in overdue(reported.states["g"], now_ms)]


@pytest.mark.parametrize("hosts", [TWO_HOSTS, (HOST,)], ids=["fight", "loop"])
def test_what_is_over_is_said_by_the_clock(hosts: Sequence[str]) -> None:
    """Nothing is written when it ends; the event is the same however often and however late one looks."""
    reported = history(*_takeovers(RESTARTS, every_ms=3_000, hosts=hosts)).replayed()
    state, last_ms = reported.states["g"], RESTARTS * 3_000
    *_, opened = (event for event in reported.events if event.severity != INFO)

    assert [] == overdue(state, last_ms + RUN_GAP_MS)
    (first,), (again,) = overdue(state, last_ms + RUN_GAP_MS + 1), overdue(state, last_ms + 86_400_000)
    assert (opened.kind, "info", True, "i") == (
        first.kind,
        first.severity,
        first.detail["cleared"],
        first.detail["instance_id"],
    )
    assert first.id == again.id != opened.id
    assert last_ms + RUN_GAP_MS == first.time_ms == again.time_ms


def test_end_before_another_run_is_said_after_it_began() -> None:
    """No one looked in between: the monitor was away."""
    first, later = _takeovers(3, every_ms=3_000, hosts=TWO_HOSTS), RUN_GAP_MS + 60_000
    again = [replace(of, time_ms=of.time_ms + later) for of in _takeovers(3, every_ms=3_001, hosts=TWO_HOSTS)]
    reported = history(*first, *again).replayed()

    assert 2 * ["warning", "critical"] == [of.severity for of in reported.events if of.severity != INFO]
    assert [("static_member_contended", True)] == over(reported, later + 10_000)
    assert 2 == len(over(reported, later + 10_000 + RUN_GAP_MS))


def test_restart_is_nothing_that_could_be_over() -> None:
    """Only what was reported is taken back."""
    assert [] == over(history(*_takeovers(1, every_ms=3_000)).replayed(), 3_000 + RUN_GAP_MS + 1)


@pytest.mark.parametrize(("every_ms", "expected"), [(1_000, 0), (3_000, 1)])
def test_join_that_is_retried_is_one_restart(every_ms: int, expected: int) -> None:
    """Its answer was lost with a connection or a broker. A process may be up again in three seconds, not in one."""
    reported = history(*_takeovers(12, every_ms=every_ms, hosts=(HOST,))).replayed()

    assert expected == len(reported.details("static_member_restarting"))
    assert 12 == len(reported.details("static_member_replaced"))


def test_what_is_retried_for_minutes_is_a_loop_after_all() -> None:
    """It counts once a minute."""
    reported = history(*_takeovers(400, every_ms=1_000, hosts=(HOST,))).replayed()

    assert [245_000] == [of.time_ms for of in reported.events if of.kind == "static_member_restarting"]


def test_flags_fall_when_time_has_passed() -> None:
    """Nothing is written of it, and the view does not say for ever what was so once."""
    log = history(*_takeovers(RESTARTS, every_ms=3_000, hosts=TWO_HOSTS))
    state, last_ms = log.replayed().states["g"], RESTARTS * 3_000

    for now_ms, contended in ((None, True), (last_ms + RUN_GAP_MS, True), (last_ms + RUN_GAP_MS + 1, False)):
        (shown,) = group_view(state, [], {}, now_ms)["static_members"]
        assert (contended, False) == (shown["contended"], shown["restarting"])


@pytest.mark.parametrize(
    ("hosts", "kind", "takeovers", "more"),
    [
        (TWO_HOSTS, CONTENDED, 2, {}),
        ((HOST,), RESTARTING, RESTARTS, {"may_be": ["one_process", "two_processes"]}),
        (tuple(f"/h{n}" for n in range(9)), RESTARTING, RESTARTS, {"may_be": ["one_process"]}),
    ],
)
def test_what_is_said_of_an_instance_id_that_is_taken(
    hosts: Sequence[str], kind: str, takeovers: int, more: dict[str, Any]
) -> None:
    """Whose it was and is, on which hosts, what is read by it, how often it was taken, and since when."""
    reported = history(*_takeovers(takeovers, every_ms=3_000, hosts=hosts)).replayed()

    (detail,) = reported.details(kind)
    assert {
        "instance_id": "i",
        "member_ids": [f"i-{takeovers - 1}", f"i-{takeovers}"],
        "client_ids": ["client"],
        "client_hosts": sorted(hosts[: takeovers + 1]),
        "partitions": {"t": [0]},
        "replacements": takeovers,
        "since": 3_000,
        **more,
    } == detail


def test_time_of_an_absence_is_that_of_its_beginning() -> None:
    """Whatever is written of others while the member is away."""
    moved = at(65_000, *consumer_moves("g", "b", epoch=3, previous_epoch=3, assigned={"t": [1]}))
    reported = history(JOINED, OTHER, AWAY, moved).replayed()

    assert 60_000 == reported.states["g"].instances["i"].absent_since_ms


def test_instance_that_was_gone_and_comes_again_at_once_did_not_retry_its_join() -> None:
    """None stood for it any more, so it is a restart, however soon and from the same process."""
    there = [group_metadata("g", generation=n, members=[member(f"i-{n}", {}, instance_id="i")]) for n in (1, 2, 4)]
    gone = group_metadata("g", generation=3)
    moments = at(0, there[0]), at(10_000, there[1]), at(10_500, gone), at(11_000, there[2])

    assert 2 == history(*moments).replayed().states["g"].instances["i"].restarts


@pytest.mark.parametrize(("generation", "saved"), [(4, 1), (5, 0)])
def test_return_that_cost_a_rebalance_saved_none(generation: int, saved: int) -> None:
    """A take-over in the same generation did without one; in the next it did not."""
    reported = history(
        at(0, group_metadata("g", generation=4, members=[member("i-1", {"t": [0]}, instance_id="i")])),
        at(9_000, group_metadata("g", generation=generation, members=[member("i-2", {"t": [0]}, instance_id="i")])),
    ).replayed()

    (shown,) = reported.view("g")["static_members"]
    assert ("i-2", saved) == (shown["member_id"], shown["rebalances_saved"])
    assert saved == reported.states["g"].counters.rebalances_saved


@pytest.mark.parametrize(("hosts", "loops"), [(7, 1), (1, 0)])
def test_process_of_another_host_did_not_retry_the_join_of_the_one_before(hosts: int, loops: int) -> None:
    """Seven within seconds, each on a host of its own, are restarts; of one host it is a client that asks again."""
    reported = history(
        *(
            at(
                1_000 * turn,
                group_metadata(
                    "g",
                    generation=4,
                    members=[member(f"i-{turn}", {}, instance_id="i", client_host=f"/10.0.0.{turn % hosts}")],
                ),
            )
            for turn in range(7)
        )
    ).replayed()

    assert loops == len(reported.details("static_member_restarting"))


def test_former_members_of_an_instance_are_shown_with_since_when_each_stood_for_it() -> None:
    """In their order; the present one is beside them."""
    reported = history(
        *(
            at(time_ms, group_metadata("g", generation=4, members=[member(member_id, {}, instance_id="i")]))
            for time_ms, member_id in ((5_000, "i-1"), (90_000, "i-2"), (190_000, "i-3"))
        )
    ).replayed()

    (shown,) = reported.view("g")["static_members"]
    assert ("i-3", 190_000) == (shown["member_id"], shown["since"])
    assert [{"member_id": "i-1", "since": 5_000}, {"member_id": "i-2", "since": 90_000}] == shown["former"]

"""The page of a rolling upgrade: go on, wait, stop, or cannot tell."""

from typing import Any

import pytest
from playwright.sync_api import Page, expect

from coordinator_model.migration.upgrade_blockers import BLOCKERS, MALFORMED
from lab import builders
from lab import coordinator_events as happens
from streaming.base.expectations import Expectations, Expected
from streaming.base.times import now_ms
from streaming.watchers.overdue_watch import OverdueWatch
from tests.page.browser import OpenPage
from tests.page.stage import CONNECT, ROLLED, STABLE, STREAMS, TWICE, Stage, classic

MINUTE_MS = 60_000
OLD = {f"orders-{n}": {"t": [2 * n, 2 * n + 1]} for n in range(3)}


def expect_verdict(page: Page, verdict: str, word: str) -> None:
    # A roll is open again only when it has been at rest for fifteen seconds.
    expect(page.locator("#verdict")).to_have_attribute("data-verdict", verdict)
    expect(page.locator("#word")).to_have_text(word)


def test_a_roll_up_and_back_is_followed(stage: Stage, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch) -> None:
    """Go on, wait while a rebalance is under way, go on; members and groups are counted as they convert."""
    monkeypatch.setattr("coordinator_model.gates.verdict.SETTLED_MS", 2_000)
    stage.write(*classic(ROLLED, {name: parts["t"] for name, parts in OLD.items()}))
    page = open_page(f"{stage.url}/roll").page
    expect_verdict(page, "open", "Go on")
    expect(page.locator("#members-done")).to_have_text("0 %")
    expect(page.locator("#groups tbody tr")).to_contain_text("classic 0/3")

    stage.write(*happens.converted_to_consumer(ROLLED, generation=4, members=OLD))
    stage.write(*happens.consumer_leave(ROLLED, "orders-0", epoch=5))
    targets = {"orders-1": OLD["orders-1"], "orders-2": OLD["orders-2"], "new-0": OLD["orders-0"]}
    stage.write(*happens.consumer_join(ROLLED, "new-0", epoch=6, targets=targets))
    expect_verdict(page, "wait", "Wait")
    expect(page.locator("#reasons li.stop")).to_contain_text("A rebalance is under way")
    expect(page.locator("#members-done")).to_have_text("33 %")
    expect(page.locator(".tile", has_text="Between protocols").locator("dd")).to_have_text("1")

    for name in ("orders-1", "orders-2"):
        stage.write(*happens.consumer_moves(ROLLED, name, epoch=6, assigned=targets[name]))
    expect_verdict(page, "open", "Go on")
    expect(page.locator("#groups tbody tr")).to_contain_text("upgrading 1/3")

    stage.write(*happens.consumer_leave(ROLLED, "orders-1", "orders-2", epoch=7))
    everything = {"new-0": {"t": [0, 1, 2, 3, 4, 5]}}
    stage.write(*happens.retarget(ROLLED, 7, everything))
    stage.write(*happens.consumer_moves(ROLLED, "new-0", epoch=7, assigned=everything["new-0"]))
    expect(page.locator("#members-done")).to_have_text("100 %")
    expect(page.locator("#groups tbody tr")).to_contain_text("upgraded 1/1")
    expect(page.locator("#events li").first).to_contain_text(
        "The upgrade is complete: 1 member on the consumer protocol"
    )
    expect_verdict(page, "open", "Go on")


CONTRADICTION = """() => {
    window.wrong = [];
    const look = () => {
        const reasons = document.querySelector("#reasons").innerText;
        const noted = /(\\d+) of \\d+ members use the consumer protocol: /.exec(reasons);
        const open = document.querySelector("#verdict").dataset.verdict === "open";
        const rows = [...document.querySelectorAll("#groups tbody tr")].map((row) => row.innerText).join();
        const counted = /upgrading (\\d+)/.exec(rows);
        if ((open || noted) && counted?.[1] !== noted?.[1]) window.wrong.push(`${noted?.[0]} | ${rows}`);
    };
    // Once a frame: what is drawn in one go counts when it is drawn.
    const again = () => { look(); requestAnimationFrame(again); };
    again();
}"""
"""Remembers each moment in which the verdict was of other groups than those shown beside it."""


def test_verdict_and_progress_are_of_one_moment(stage: Stage, open_page: OpenPage) -> None:
    """While a group is converted and rolled, back and forth, no verdict stands beside figures that it is not of."""
    stage.write(*classic(ROLLED, {name: parts["t"] for name, parts in OLD.items()}))
    page = open_page(f"{stage.url}/roll?q={ROLLED}").page
    expect_verdict(page, "open", "Go on")
    page.evaluate(CONTRADICTION)
    back: dict[str, Any] = {"all_members": [*OLD, "orders-new"], "remaining": OLD}
    generation = 4
    for _ in range(3):
        targets = {**OLD, "orders-0": {"t": [0]}, "orders-new": {"t": [1]}}
        stage.write(*happens.converted_to_consumer(ROLLED, generation=generation, members=OLD))
        stage.write(*happens.consumer_join(ROLLED, "orders-new", epoch=generation + 1, targets=targets, assigned={}))
        expect(page.locator("#groups tbody tr")).to_contain_text("upgrading 1/4")
        page.wait_for_timeout(700)
        stage.write(*happens.converted_to_classic(ROLLED, **back, generation=generation + 2))
        expect(page.locator("#groups tbody tr")).to_contain_text("downgraded 0/3")
        page.wait_for_timeout(300)
        generation += 3

    expect_verdict(page, "open", "Go on")
    assert [] == page.evaluate("window.wrong")


def test_every_reason_is_reported_with_its_groups(stage: Stage, open_page: OpenPage) -> None:
    """What stops comes first; the groups are named, topics too, and a search leaves others out."""
    stage.play_kinds()
    stage.own_twice()
    page = open_page(f"{stage.url}/roll").page

    expect_verdict(page, "closed", "Stop")
    expect(page.locator("#reasons li.stop")).to_have_count(1)
    expect(page.locator("#reasons")).to_contain_text("Partitions are assigned twice: t/3")
    for group in (CONNECT, TWICE):
        expect(page.locator("#reasons").get_by_role("link", name=group)).to_be_visible()
    expect(page.locator("#reasons li").last).to_have_class("note")
    expect(page.locator("#groups tbody tr").first).to_contain_text(TWICE)
    assert CONNECT not in page.locator("#groups").inner_text()

    page.get_by_role("searchbox").fill(STABLE)
    expect_verdict(page, "open", "Go on")
    expect(page.locator("#groups tbody tr")).to_have_count(1)
    page.reload()
    expect(page.get_by_role("searchbox")).to_have_value(STABLE)
    expect_verdict(page, "open", "Go on")


def test_what_is_in_the_way_is_a_sentence(stage: Stage, open_page: OpenPage) -> None:
    """A blocker has the words of the gate in the table, too."""
    stage.write(builders.group_metadata(STABLE, generation=3, members=[builders.member("m", assignment_bytes=b"\x00")]))
    page = open_page(f"{stage.url}/roll").page

    row = page.locator("#groups tbody tr", has_text=STABLE)
    expect(row.get_by_text(BLOCKERS[MALFORMED], exact=True)).to_be_visible()


def test_brokers_down_asks_the_other_gate(stage: Stage, open_page: OpenPage) -> None:
    """Groups of the new protocols stop a broker downgrade; records left over are counted."""
    stage.play_kinds()
    stage.write(*happens.consumer_join("left", "l-1", epoch=1, targets={"l-1": {"t": [0]}}))
    stage.write(builders.group_metadata("left", generation=2, members=[builders.member("l-2", {"t": [0]})]))
    page = open_page(f"{stage.url}/roll").page
    page.get_by_text("Brokers down").click()

    expect_verdict(page, "closed", "Stop")
    expect(page.locator("#reasons").get_by_role("link", name=STREAMS)).to_be_visible()
    expect(page.locator("#groups")).to_contain_text("streams, 2 members")
    expect(page).to_have_url(f"{stage.url}/roll?direction=downgrade")
    left_over = page.locator(".tile", has_text="Left over").locator("dd")
    expect(left_over).not_to_have_text("0")


def test_a_report_of_a_roll_is_a_button_away(stage: Stage, open_page: OpenPage) -> None:
    """Of the group rolled last, since its first member was stopped for it, as Markdown and as one HTML file."""
    begun_ms = now_ms() - 60_000
    stage.write(*classic("a-first", {"m": [0]}))
    stage.write(
        *classic(ROLLED, {name: parts["t"] for name, parts in OLD.items()} | {"old": [0]}), at_ms=begun_ms - 9_000
    )
    left = classic(ROLLED, {name: parts["t"] for name, parts in OLD.items()}, generation=4)
    stage.write(*left, at_ms=begun_ms)
    stage.write(*happens.converted_to_consumer(ROLLED, generation=4, members=OLD))
    page = open_page(f"{stage.url}/roll").page

    expect(page.locator("#report-group")).to_have_value(ROLLED)
    since_ms = page.evaluate("Date.parse(document.querySelector('#report-since').value)")
    assert begun_ms - 2_000 < since_ms <= begun_ms - 1_000 + 1
    for form, begins, says in (
        ("Markdown", f"# Roll of {ROLLED}", "The upgrade to the consumer protocol began"),
        ("HTML", "<!doctype html>", f"Roll of {ROLLED}"),
    ):
        with page.expect_download() as download:
            page.get_by_role("link", name=form).click()
        text = download.value.path().read_text("utf-8")
        assert text.startswith(begins)
        assert says in text


def test_a_monitor_that_is_behind_cannot_tell(open_page: OpenPage) -> None:
    """Before the replica is at the end of the log there is no verdict, and the reason is shown."""
    with Stage(behind=1_000_000) as stage:
        stage.write(*classic(STABLE, {"m-1": [0, 1, 2, 3, 4, 5]}))
        page = open_page(f"{stage.url}/roll").page

        expect_verdict(page, "cannot_tell", "Cannot tell")
        expect(page.locator("#reasons li.unknown")).to_contain_text("still reading the log")
        expect(page.locator("#banner")).to_contain_text("Catching up")
        page.close()


SHRINKS = Expectations([Expected(ROLLED, frozenset({"shrinks"}), "half the load is gone")])


def look(stage: Stage) -> None:
    """What the monitor's own thread looks for, as it does ten minutes from now."""
    board = stage.board
    OverdueWatch(
        board, lambda found: board.add_events(board.expectations.applied(found)), lambda: now_ms() + 10 * MINUTE_MS
    ).check()


def hurried(stage: Stage, *, left: bool) -> None:
    """Two members are killed, and one process comes back; it stays, or is killed as well."""
    old = {name: OLD[name] for name in ("orders-0", "orders-1")}
    stage.write(*classic(ROLLED, {name: parts["t"] for name, parts in old.items()}))
    stage.write(*happens.converted_to_consumer(ROLLED, generation=4, members=old))
    stage.write(*happens.consumer_join(ROLLED, "new-0", epoch=5, targets={"new-0": {}}, assigned={}))
    stage.write(*happens.consumer_leave(ROLLED, *old, *(() if left else ("new-0",)), epoch=6))
    if left:
        whole = {"new-0": {"t": [0, 1, 2, 3]}}
        stage.write(*happens.retarget(ROLLED, 6, whole))
        stage.write(*happens.consumer_moves(ROLLED, "new-0", epoch=6, assigned=whole["new-0"]))


def test_members_that_a_roll_lost_stop_it_until_they_are_back(
    stage: Stage, open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """It was "upgraded 1/1" and a green *Go on*."""
    monkeypatch.setattr("coordinator_model.gates.verdict.SETTLED_MS", 0)
    hurried(stage, left=True)
    look(stage)
    page = open_page(f"{stage.url}/roll").page

    expect_verdict(page, "closed", "Stop")
    expect(page.locator("#reasons li.stop")).to_contain_text("1 member did not come back after its roll")
    expect(page.locator("#groups tbody tr")).to_contain_text("upgraded 1/2")
    expect(page.locator("#members-done")).to_have_text("50 %")

    both = {"new-0": {"t": [0, 1]}, "new-1": {"t": [2, 3]}}
    stage.write(*happens.consumer_join(ROLLED, "new-1", epoch=7, targets=both))
    stage.write(*happens.consumer_moves(ROLLED, "new-0", epoch=7, assigned=both["new-0"]))
    look(stage)
    expect(page.locator("#groups tbody tr")).to_contain_text("upgraded 2/2")
    expect_verdict(page, "open", "Go on")


@pytest.mark.parametrize(("expectations", "is_listed"), [(None, True), (SHRINKS, False)], ids=["", "meant to shrink"])
def test_group_that_a_roll_emptied_stays(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch, expectations: Expectations | None, is_listed: bool
) -> None:
    """With none of its two members; where it is meant to shrink it is gone from here, and nothing stops."""
    monkeypatch.setattr("coordinator_model.gates.verdict.SETTLED_MS", 0)
    with Stage(expectations=expectations) as stage:
        stage.write(*classic(STABLE, {"billing-1": [0, 1, 2, 3, 4, 5]}))
        hurried(stage, left=False)
        look(stage)
        page = open_page(f"{stage.url}/roll").page

        expect_verdict(page, *(("closed", "Stop") if is_listed else ("open", "Go on")))
        expect(page.locator("#groups tbody tr")).to_have_count(2 if is_listed else 1)
        rolled = page.locator("#groups tbody tr", has_text=ROLLED)
        if is_listed:
            expect(rolled).to_contain_text("0/2")
        else:
            expect(rolled).to_have_count(0)
        page.close()

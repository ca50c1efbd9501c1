"""What is not known is never shown as good: every tile, list and verdict, on every page."""

import re

import pytest
from playwright.sync_api import Page, Route, expect

from streaming.base.doubt import doubt
from streaming.board.readiness import Standing
from tests.page.browser import OpenPage
from tests.page.stage import ROLLED, STABLE, Stage, classic, now_ms

MOMENT = r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d [^\s:]+"
AS_OF = re.compile(f"^as of {MOMENT}$")
READING = f"the monitor is still reading the log, since {MOMENT}: 0 % read, 500 records to go"
NOT_KNOWN = re.compile(rf"^Not known: {READING}\.$")
NO_FIGURE = "\u2013"
PAGES = ("/", "/roll", f"/group/{STABLE}")
LAG_TILES = ("Lag", "Longest lag time")
MEMBERS = {"m-1": [0, 1, 2, 3, 4, 5]}


def expect_no_figure(page: Page, why: str) -> None:
    """Each tile says that it cannot tell, and why, in no colour."""
    tiles = page.locator("#tiles .tile")
    expect(tiles.first.locator("dd")).to_have_text(NO_FIGURE)
    for tile in tiles.all():
        expect(tile.locator("dd")).to_have_text(NO_FIGURE)
        expect(tile.locator(".note")).to_contain_text(re.compile(f"cannot tell: {why}"))
        expect(tile).to_have_class("tile")


GREEN_IN_DOUBT = """() => {
    window.wrong = [];
    const look = () => {
        const green = document.querySelector("#link")?.classList.contains("good");
        const shown = document.querySelectorAll(".tile .note, .notice:not([hidden]), #sentence");
        const doubt = [...shown].find((each) => /cannot tell|Not known/.test(each.textContent));
        if (green && doubt) window.wrong.push(doubt.textContent);
    };
    const all = { subtree: true, childList: true, characterData: true, attributes: true };
    new MutationObserver(look).observe(document, all);
}"""
"""Remembers each moment in which the pill was green beside what is not known."""


@pytest.mark.parametrize("path", [*PAGES, "/group/there-is-none"])
def test_the_pill_is_green_when_the_figures_are_there(path: str, open_page: OpenPage) -> None:
    """Not on the first frame, while everything is still being read; nor while what was read is still to be drawn."""
    with Stage() as stage:
        stage.write(*classic(STABLE, MEMBERS))
        watched = open_page(stage.url)
        page = watched.page
        asked: list[Route] = []
        held = [True]
        page.route(
            re.compile("/api/v1/(overview|groups/)"),
            lambda route: asked.append(route) if held else route.continue_(),
        )
        page.add_init_script(f"({GREEN_IN_DOUBT})()")
        page.goto(stage.url + path)

        expect(page.locator("#link")).to_have_text("connecting")
        page.wait_for_timeout(1_500)
        assert asked
        expect(page.locator("#link")).to_have_class("pill")
        stage.move_log_ends(1)
        held.clear()
        for route in asked:
            route.continue_()

        expect(page.locator("#link")).to_have_text("live")
        expect(page.locator("#tiles .tile .note", has_text="cannot tell")).to_have_count(0)
        assert [] == page.evaluate("window.wrong")
        page.close()
        watched.expect_problem("404 (Not Found)")
        watched.expect_problem("503 (Service Unavailable)")


def test_an_answer_that_fails_leaves_nothing_green(open_page: OpenPage) -> None:
    """A monitor whose stream speaks, but which cannot say how the groups are, is not live."""
    with Stage() as stage:
        stage.write(*classic(STABLE, MEMBERS))
        watched = open_page(stage.url)
        page = watched.page
        expect(page.locator("#link")).to_have_text("live")
        page.route("**/api/v1/overview", lambda route: route.fulfill(status=500, body="{}"))
        page.reload()

        expect(page.locator("#link")).to_have_text("no answer")
        expect_no_figure(page, "the monitor's answer is being read")
        page.unroute_all()
        expect(page.locator("#link")).to_have_text("live")
        page.close()
        watched.expect_problem("500")


def test_lag_that_is_known_of_no_group_is_not_zero(stage: Stage, open_page: OpenPage) -> None:
    """A group that never committed has no lag to add up; once another has, its figure is there and the rest is said."""
    stage.write(*classic("silent", MEMBERS))
    page = open_page(stage.url).page
    lag, time = (page.locator("#tiles .tile", has=page.get_by_text(name, exact=True)) for name in LAG_TILES)
    expect(lag).to_contain_text(f"{NO_FIGURE}in 0 groups, not known of 1")
    expect(time).to_contain_text(NO_FIGURE)

    stage.commit(STABLE, 2)

    expect(lag).to_contain_text("12in 1 group, not known of 1")


def test_lag_that_is_known_in_part_is_a_lower_bound_everywhere(stage: Stage, open_page: OpenPage) -> None:
    """No leader answers for a topic: in the list, in its header, on the roll and on the group's page it is said."""
    stage.write(*classic(STABLE, MEMBERS))
    stage.commit(STABLE, 2)
    stage.commit(STABLE, 0, topic="led-by-nobody")
    page = open_page(stage.url).page
    cell = page.locator("#groups tbody tr").filter(has_text=STABLE).locator("td.lag")
    expect(cell).to_have_text("≥ 12")
    expect(cell).to_have_attribute("title", "not known of 6 partitions")
    for path in ("/", "/roll"):
        page.goto(f"{stage.url}{path}")
        lag = page.locator("#tiles .tile", has=page.get_by_text("Lag", exact=True))
        expect(lag).to_contain_text("≥ 12in 1 group, not known of 1")

    page.goto(f"{stage.url}/group/{STABLE}")
    lag = page.locator("#tiles .tile", has=page.get_by_text("Lag", exact=True))
    expect(lag).to_contain_text("≥ 12largest partition 2, not known of 6 partitions")

    page.goto(f"{stage.url}/topic/led-by-nobody")
    expect(page.locator("#groups tbody td.lag")).to_have_text(NO_FIGURE)


@pytest.mark.parametrize("path", PAGES)
def test_while_catching_up_no_tile_has_a_figure(path: str, open_page: OpenPage) -> None:
    """Half a log is no answer: not "none", not "0 s", not green. At its end the figures are there."""
    with Stage(behind=500) as stage:
        stage.write(*classic(STABLE, MEMBERS))
        page = open_page(stage.url + path).page
        expect_no_figure(page, READING)

        stage.catch_up_to(500)
        stage.move_log_ends(1)

        expect(page.locator("#tiles .tile .note", has_text="cannot tell")).to_have_count(0)
        page.close()


def test_while_catching_up_an_empty_list_is_not_known_to_be_empty(open_page: OpenPage) -> None:
    """That no group is there is said at the end of the log only."""
    with Stage(behind=500) as stage:
        page = open_page(stage.url).page
        expect(page.locator("#empty")).to_have_text(NOT_KNOWN)
        expect(page.locator("#no-events")).to_have_text(NOT_KNOWN)
        expect(page.locator("#count")).to_have_text(NO_FIGURE)
        watched = open_page(f"{stage.url}/group/later")
        group = watched.page
        expect(group.locator("#missing")).to_have_text(NOT_KNOWN)

        stage.catch_up_to(500)
        stage.move_log_ends(1)

        expect(page.locator("#empty")).to_contain_text("There are no groups yet.")
        expect(page.locator("#no-events")).to_have_text("Nothing has happened yet.")
        expect(page.locator("#count")).to_have_text("0")
        expect(group.locator("#missing")).to_contain_text("There is no such group now.")
        group.close()
        watched.expect_problem("404 (Not Found)")
        watched.expect_problem("503 (Service Unavailable)")
        page.close()


@pytest.mark.parametrize("path", [*PAGES, "/topic/t"])
def test_rows_under_doubt_say_of_when_they_are(path: str, open_page: OpenPage) -> None:
    """Half a log has no rows. Those of a monitor that fell silent stay, without colour, with the moment they are of."""
    with Stage(behind=500) as stage:
        stage.write(*classic(STABLE, MEMBERS))
        stage.commit(STABLE, 2)
        watched = open_page(stage.url + path)
        page = watched.page
        rows, as_of = page.locator("table.rows tbody tr:visible"), page.locator(".as-of:visible").first
        expect(page.locator("#tiles .tile").first).to_contain_text("cannot tell")
        expect(rows).to_have_count(0)
        expect(page.locator(".as-of", has_text="as of")).to_have_count(0)

        stage.catch_up_to(500)
        stage.move_log_ends(1)
        expect(page.locator("#link")).to_have_text("live")
        expect(rows.first).to_contain_text(re.compile(f"{STABLE}|m-1"))
        expect(page.locator(".as-of", has_text="as of")).to_have_count(0)

    expect(as_of).to_have_text(AS_OF)
    expect(rows.first).to_contain_text(re.compile(f"{STABLE}|m-1"))
    page.close()
    watched.expect_problem("net::ERR_")
    watched.expect_problem("Failed to fetch")


def test_rows_of_a_stream_that_stands_still_are_of_when_it_stopped(
    open_page: OpenPage, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The reason is said with its time, and the same time stands beside the rows of a page that is opened then."""
    with Stage() as stage:
        stage.write(*classic(STABLE, MEMBERS))
        stage.move_log_ends(1)
        since_ms = now_ms() - 90_000
        reason = {"reason": "records wait in the log", "records": 3, "since": since_ms, "as_of": since_ms}
        monkeypatch.setattr(stage.board.health, "standing", lambda: Standing([reason], doubt([reason])))
        page = open_page(stage.url).page

        expect(page.locator("#tiles .tile").first).to_contain_text("cannot tell: records wait in the log")
        expect(page.locator("#groups tbody tr")).to_have_count(1)
        expect(page.locator(".as-of").first).to_have_text(AS_OF)
        expect(page.locator("#link")).to_have_text("stale")
        expect(page.locator("#banner")).to_have_text(re.compile(f"Not ready: records wait in the log, since {MOMENT}"))
        page.close()


def test_a_roll_does_not_go_on_under_doubt(open_page: OpenPage) -> None:
    """While the log is being read, and when the monitor is gone, the verdict is *cannot tell*."""
    with Stage(behind=500) as stage:
        stage.write(*classic(ROLLED, MEMBERS))
        watched = open_page(f"{stage.url}/roll")
        page = watched.page
        expect(page.locator("#word")).to_have_text("Cannot tell")
        expect(page.locator("#members-done")).to_have_text(NO_FIGURE)

        stage.catch_up_to(500)
        stage.move_log_ends(1)
        expect(page.locator("#word")).to_have_text("Go on")

    expect(page.locator("#word")).to_have_text("Cannot tell")
    expect(page.locator("#sentence")).to_contain_text("no word from the monitor since")
    expect_no_figure(page, "no word from the monitor since")
    page.close()
    watched.expect_problem("net::ERR_")
    watched.expect_problem("Failed to fetch")

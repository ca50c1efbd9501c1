"""What is not known is never shown as good: every tile, list and verdict, on every page."""

import pytest
from playwright.sync_api import Page, expect

from tests.page.browser import OpenPage
from tests.page.stage import ROLLED, STABLE, Stage, classic

NO_FIGURE = "\u2013"
PAGES = ("/", "/roll", f"/group/{STABLE}")
MEMBERS = {"m-1": [0, 1, 2, 3, 4, 5]}


def expect_no_figure(page: Page, why: str) -> None:
    """Each tile says that it cannot tell, and why, in no colour."""
    tiles = page.locator("#tiles .tile")
    expect(tiles.first.locator("dd")).to_have_text(NO_FIGURE)
    for tile in tiles.all():
        expect(tile.locator("dd")).to_have_text(NO_FIGURE)
        expect(tile.locator(".note")).to_contain_text(f"cannot tell: {why}")
        expect(tile).to_have_class("tile")


@pytest.mark.parametrize("path", PAGES)
def test_while_catching_up_no_tile_has_a_figure(path: str, open_page: OpenPage) -> None:
    """Half a log is no answer: not "none", not "0 s", not green. At its end the figures are there."""
    with Stage(behind=500) as stage:
        stage.write(*classic(STABLE, MEMBERS))
        page = open_page(stage.url + path).page
        expect_no_figure(page, "the monitor is still reading the log")

        stage.catch_up_to(500)
        stage.move_log_ends(1)

        expect(page.locator("#tiles .tile .note", has_text="cannot tell")).to_have_count(0)
        page.close()


def test_while_catching_up_an_empty_list_is_not_known_to_be_empty(open_page: OpenPage) -> None:
    """That no group is there is said at the end of the log only."""
    with Stage(behind=500) as stage:
        page = open_page(stage.url).page
        expect(page.locator("#empty")).to_have_text("Not known: the monitor is still reading the log.")
        expect(page.locator("#no-events")).to_have_text("Not known: the monitor is still reading the log.")
        expect(page.locator("#count")).to_have_text(NO_FIGURE)

        stage.catch_up_to(500)
        stage.move_log_ends(1)

        expect(page.locator("#empty")).to_contain_text("There are no groups yet.")
        expect(page.locator("#no-events")).to_have_text("Nothing has happened yet.")
        expect(page.locator("#count")).to_have_text("0")
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

    expect(page.locator("#word")).to_have_text("Cannot tell", timeout=15_000)
    expect(page.locator("#sentence")).to_contain_text("no word from the monitor since")
    expect_no_figure(page, "no word from the monitor since")
    page.close()
    # Browsers say on the console that a connection was refused; that is all there may be.
    watched.problems[:] = [problem for problem in watched.problems if "net::ERR_" not in problem]

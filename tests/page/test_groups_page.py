"""The page of all groups, as a person sees it."""

import re

from playwright.sync_api import Locator, Page, expect

from lab import coordinator_events as happens
from streaming.base.name_filter import NameFilter, Scope
from tests.page.browser import OpenPage
from tests.page.stage import CONNECT, PARTITIONS, SHARED, STABLE, STREAMS, TWICE, Stage, classic


def row_of(page: Page, group: str) -> Locator:
    """A group's row."""
    return page.locator("#groups tbody tr").filter(has=page.locator("td.group a").get_by_text(group, exact=True))


def names(page: Page) -> list[str]:
    return page.locator("#groups td.group a").all_inner_texts()


def test_every_kind_of_group_is_shown(stage: Stage, open_page: OpenPage) -> None:
    """Type, state, members, lag and migration of each: classic, consumer, share, streams, commits only."""
    stage.play_recording()
    stage.play_kinds()
    page = open_page(stage.url).page

    expect(page.locator("#link")).to_have_text("live")
    expect(row_of(page, STABLE)).to_be_visible()
    cells = row_of(page, STABLE).locator("td:visible").all_inner_texts()
    assert [STABLE, "Stable", "classic", "2", "0", "0 s", "no lag", "classic"] == cells[1:]
    for group, *expected in [
        (SHARED, "Stable", "share"),
        (STREAMS, "Stable", "streams"),
        (CONNECT, "Stable", "out of scope"),
        ("rec-mixed", "1 + 1", "upgrading 1/2"),
        ("rec-full", "Empty", "downgraded"),
        ("rec-simple", "commits only"),
    ]:
        for text in expected:
            expect(row_of(page, group)).to_contain_text(text)


def test_what_needs_a_look_comes_first(stage: Stage, open_page: OpenPage) -> None:
    """A duplicate is red and on top while it lasts; a Kafka Connect group, never upgraded, raises no alarm."""
    stage.play_kinds()
    page = open_page(stage.url).page
    expect(page.locator(".tile").first).to_contain_text("none")

    stage.own_twice()

    first = page.locator("#groups tbody tr").first
    expect(first).to_contain_text(TWICE)
    expect(first).to_contain_text("1 partition owned twice")
    expect(first).to_have_class("critical")
    expect(page.locator(".tile").first).to_contain_text("1 critical")
    expect(page.locator("#events li.critical")).to_contain_text("Owned twice: t/3")
    assert 1 == page.locator("#groups tr.critical, #groups tr.warning").count()

    stage.own_once()

    expect(page.locator(".tile").first).to_contain_text("none")
    expect(page.locator("#groups tr.critical")).to_have_count(0)
    expect(page.locator("#events li").first).to_contain_text("One owner again: t/3")


def test_news_come_without_a_reload(stage: Stage, open_page: OpenPage) -> None:
    """Groups appear, change, lag and go while the page is open."""
    stage.play_kinds()
    page = open_page(stage.url).page
    expect(row_of(page, STABLE)).to_be_visible()

    stage.write(*classic("newcomer", {"m-1": list(range(PARTITIONS))}))
    stage.commit("newcomer", 20)
    expect(page.locator("#groups tbody")).to_contain_text("newcomer")
    expect(row_of(page, "newcomer").locator("td.lag")).to_have_text("120")

    stage.write(*happens.share_leave(SHARED, "share-a", epoch=3), *happens.share_leave(SHARED, "share-b", epoch=4))
    expect(row_of(page, SHARED)).to_contain_text("Empty")
    stage.write(*happens.share_group_deleted(SHARED))
    expect(row_of(page, SHARED)).to_have_count(0)


def test_lag_has_a_trend_from_the_monitors_own_memory(stage: Stage, open_page: OpenPage) -> None:
    """A page just opened shows where lag came from, not only what it is."""
    stage.play_kinds()
    for _ in range(4):
        stage.move_log_ends(500)
        stage.sample_lag()
    page = open_page(stage.url).page

    expect(row_of(page, STABLE).locator("td.trend")).to_have_text("rising")
    expect(row_of(page, STREAMS).locator("td.trend")).to_have_text("\N{EN DASH}")


def test_search_filter_and_order_are_in_the_address(stage: Stage, open_page: OpenPage) -> None:
    """What is shown can be passed on as a link, and is there again after a reload."""
    stage.play_recording()
    page = open_page(stage.url).page
    expect(row_of(page, "rec-mixed")).to_be_visible()

    page.get_by_label("Search groups").fill("REC i")
    assert ["rec-mixed", "rec-simple", "rec-static"] == sorted(names(page))
    page.get_by_role("button", name="Group", exact=True).click()
    assert ["rec-mixed", "rec-simple", "rec-static"] == names(page)
    page.get_by_role("button", name="Group", exact=True).click()
    assert ["rec-static", "rec-simple", "rec-mixed"] == names(page)
    page.get_by_label("Show").select_option("classic")
    expect(page).to_have_url(re.compile(r"q=REC\+i&show=classic&sort=group&down=1"))
    page.reload()

    expect(row_of(page, "rec-static")).to_be_visible()
    assert ["rec-static"] == names(page)
    expect(page.locator("th[aria-sort='descending']")).to_have_text("Group")

    page.get_by_label("Search groups").fill("nothing like it")
    expect(page.locator("#empty")).to_have_text("No group matches.")


def test_keys_do_what_the_mouse_does(stage: Stage, open_page: OpenPage) -> None:
    """Search, walk, open and go back without a mouse; keys in the search field are text."""
    stage.play_recording()
    page = open_page(stage.url).page
    expect(row_of(page, "rec-mixed")).to_be_visible()

    page.keyboard.press("/")
    page.keyboard.type("rec-/j")
    expect(page.get_by_label("Search groups")).to_have_value("rec-/j")
    page.keyboard.press("Escape")
    expect(page.get_by_label("Search groups")).to_have_value("")
    page.keyboard.press("?")
    expect(page.locator("dialog")).to_be_visible()
    page.keyboard.press("Escape")
    for key in ("j", "j", "k"):
        page.keyboard.press(key)
    focused = page.evaluate("document.activeElement.textContent")
    assert names(page)[0] == focused
    page.keyboard.press("Enter")
    expect(page.locator("h1")).to_have_text(focused)
    expect(page.locator("#link")).to_have_text("live")
    page.keyboard.press("Escape")
    expect(page.locator("#groups tbody tr").first).to_be_visible()
    page.keyboard.press("r")
    expect(page.locator("h1")).to_have_text("Rolling upgrade")


def test_an_empty_cluster_says_so(stage: Stage, open_page: OpenPage) -> None:
    """No groups is no error, and no empty table without a word."""
    page = open_page(stage.url).page

    expect(page.locator("#empty")).to_contain_text("There are no groups yet.")
    expect(page.locator("#no-events")).to_be_visible()


def test_what_patterns_leave_out_is_counted(open_page: OpenPage) -> None:
    """Beside the number of groups that are shown, and with each that comes."""
    with Stage(scope=Scope(groups=NameFilter(["*"], ["rec-*"]))) as stage:
        stage.play_kinds()
        stage.play_recording()
        page = open_page(stage.url).page
        expect(row_of(page, STABLE)).to_be_visible()
        left_out = stage.board.left_out()["groups"]
        expect(page.locator("#count")).to_contain_text(f", {left_out} left out by configuration")
        assert not [name for name in names(page) if name.startswith("rec-")]

        stage.write(*classic("rec-late", {"m-1": [0]}), *classic("late", {"m-1": [0]}))

        expect(row_of(page, "late")).to_be_visible()
        expect(page.locator("#count")).to_contain_text(f", {left_out + 1} left out by configuration")
        expect(page.locator("#link")).to_have_text("live")

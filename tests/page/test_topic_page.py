"""The page of one topic, and the search that leads to it."""

from typing import Final

from playwright.sync_api import expect

from streaming.base.expectations import Expectations, Expected
from tests.page.browser import OpenPage
from tests.page.stage import STABLE, Stage, classic
from tests.page.test_groups_page import names

OWNERS: Final = Expectations([Expected("bill*", frozenset(), "", "finance")])
NOT_KNOWN: Final = "\N{EN DASH}"


def test_a_topic_shows_who_reads_it_with_lag(open_page: OpenPage) -> None:
    """Each group with owner and lag there; a group that comes is shown, a name leads to the group and back."""
    with Stage(expectations=OWNERS) as stage:
        stage.play_kinds()
        page = open_page(f"{stage.url}/topic/t").page
        reader = page.locator("#groups tbody tr").filter(has_text=STABLE)
        expect(reader).to_contain_text("finance")
        expect(reader.locator("td").nth(4)).to_have_text("yes")
        expect(reader.locator("td.lag")).to_have_text("0")

        stage.write(*classic("late", {"m-1": [0]}))
        expect(page.locator("#groups tbody tr").filter(has_text="late").locator("td.lag")).to_have_text(NOT_KNOWN)

        reader.locator("a").click()
        page.locator("#offsets a").first.click()
        expect(page.locator("#topic")).to_have_text("t")
        # The last page is still asking: before its server goes.
        page.context.close()


def test_a_topic_nobody_reads_is_said_to_be_none(stage: Stage, open_page: OpenPage) -> None:
    """Without figures; the browser's own line on a 404 is no complaint of ours."""
    watched = open_page(f"{stage.url}/topic/nowhere")

    expect(watched.page.locator("#missing")).to_be_visible()
    expect(watched.page.locator("#content")).to_be_hidden()
    watched.problems.clear()


def test_no_reader_is_shown_while_the_log_is_read(open_page: OpenPage) -> None:
    """Neither a zero nor a state that means well."""
    with Stage(behind=1_000) as stage:
        stage.play_kinds()
        page = open_page(f"{stage.url}/topic/t").page

        expect(page.locator(".tile").first).to_contain_text("cannot tell")
        expect(page.locator("#count")).to_have_text(NOT_KNOWN)
        expect(page.locator("#groups tbody tr")).to_have_count(0)

        stage.catch_up_to(1_000)
        stage.move_log_ends(0)
        expect(page.locator("#groups tbody tr").filter(has_text=STABLE).locator("td.lag")).to_have_text("0")


def test_words_of_the_search_ask_the_monitor(open_page: OpenPage) -> None:
    """`owner:` and `topic:` beside parts of names; the address keeps them."""
    with Stage(expectations=OWNERS) as stage:
        stage.play_kinds()
        page = open_page(f"{stage.url}/?q=owner:finance").page
        expect(page.locator("#groups tbody tr")).to_have_count(1)
        assert [STABLE] == names(page)

        page.locator("#search").fill("owner:finance nothing")
        expect(page.locator("#empty")).to_be_visible()
        page.locator("#search").fill("topic:t bill")
        expect(page.locator("#groups tbody tr")).to_have_count(1)

"""Names of groups, members and topics, and commit metadata, come from anybody: on the page they are text alone."""

import re
from typing import Final
from urllib.parse import quote

import pytest
from playwright.sync_api import Page, expect

from coordinator_model.records.classic_group import MemberMetadata
from lab import builders
from tests.page.browser import PHONE, OpenPage
from tests.page.stage import HOSTILE_NAMES, Stage

UNSEEN = re.compile(r"[\x00-\x1f\x7f-\x9f\u200b-\u200f\u202a-\u202e\ufeff]")


def assert_unharmed(page: Page) -> None:
    """No name became an element, ran, or widened the page; nothing invisible is left in what is shown."""
    assert 0 == page.locator("main img, main script").count()
    assert page.title().endswith("· stage")
    width = page.viewport_size["width"] if page.viewport_size else 0
    assert width >= page.evaluate("document.documentElement.scrollWidth")
    shown = page.locator("main a bdi, main h1 bdi, main td bdi").all_inner_texts()
    assert [] == [text for text in shown if UNSEEN.search(text)]


@pytest.mark.parametrize("viewport", [None, PHONE])
def test_groups_of_any_name_are_listed(stage: Stage, open_page: OpenPage, viewport: dict[str, int] | None) -> None:
    """Each has its row and its events, on a laptop and on a phone."""
    for name in HOSTILE_NAMES:
        stage.commit(name, 1)
    page = open_page(stage.url, **({} if viewport is None else {"viewport": viewport})).page

    expect(page.locator("#groups tbody tr")).to_have_count(len(HOSTILE_NAMES))
    expect(page.locator("#events li")).to_have_count(len(HOSTILE_NAMES))
    assert_unharmed(page)
    expect(page.locator("#groups")).to_contain_text(r"\u202egnp.exe right to left")
    expect(page.locator("#groups")).to_contain_text("<script>document.title='owned'</script>")


UNESCAPED: Final = "!~*'()"
"""Signs that JavaScript leaves as they are in an address, beside those that Python does."""


def address(name: str) -> str:
    """Of a group's page; two dots are no part of a path."""
    return "/group?name=.." if name == ".." else f"/group/{quote(name, safe=UNESCAPED)}"


def test_a_group_of_any_name_has_its_page(stage: Stage, open_page: OpenPage) -> None:
    """From the list, by its link, to its live page; and the roll names them as text too."""
    for name in HOSTILE_NAMES:
        stage.write(builders.group_metadata(name, generation=1, members=[_member(name)]))
        stage.write(builders.offset_commit(name, "t", 0, 5, metadata=name))
    page = open_page(stage.url).page
    for name in HOSTILE_NAMES:
        page.locator(f'#groups td.group a[href="{address(name)}"]').click()

        expect(page.locator("#link")).to_have_text("live")
        expect(page.locator("#members tbody tr")).to_have_count(1)
        # One partition that was committed, and one that is owned and never was.
        expect(page.locator("#offsets tbody tr")).to_have_count(2)
        expect(page.locator("#missing")).to_be_hidden()
        assert_unharmed(page)
        stage.commit(name, 0)
        expect(page.locator("#offsets tbody tr")).to_have_count(6)
        page.goto(stage.url)

    page.goto(f"{stage.url}/roll")
    expect(page.locator("#groups td.group a")).to_have_count(len(HOSTILE_NAMES))
    assert_unharmed(page)


def _member(name: str) -> MemberMetadata:
    return builders.member(name, {"t": [0, 1]}, instance_id=name, client_id=name, client_host=name)

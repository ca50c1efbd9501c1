"""A thousand groups: a page of them at a time, and as quick as ten."""

import pytest
from playwright.sync_api import expect

from lab import builders
from lab.builders import RecordBytes
from tests.page.browser import OpenPage
from tests.page.stage import PARTITIONS, Stage, classic

GROUPS = 1_000
LONGEST_TASK_MS = 500
"""A person notices a tenth of a second; machines that run tests are slow and busy."""

OBSERVE = """window.tasks = [];
new PerformanceObserver((list) => { for (const each of list.getEntries()) window.tasks.push(each.duration); })
    .observe({ type: "longtask", buffered: true });"""


@pytest.fixture
def many(stage: Stage) -> Stage:
    """Groups of two members and six partitions each."""
    records: list[RecordBytes] = []
    for number in range(GROUPS):
        name = f"team-{number % 10}.service-{number:04}"
        records += classic(name, {f"m-{number}-a": [0, 1, 2], f"m-{number}-b": [3, 4, 5]})
        records += [builders.offset_commit(name, "t", partition, stage.log_end) for partition in range(PARTITIONS)]
    stage.write(*records)
    return stage


def test_a_thousand_groups_are_shown_searched_and_turned(many: Stage, open_page: OpenPage) -> None:
    """A hundred at a time; the whole thousand is searched and sorted; nothing blocks the browser while all change."""
    page = open_page(many.url).page
    page.evaluate(OBSERVE)
    rows = page.locator("#groups tbody tr")
    expect(rows).to_have_count(100)
    expect(page.locator("#range")).to_have_text("1\u2013100 of 1,000")

    page.keyboard.press("]")
    expect(page.locator("#range")).to_have_text("101\u2013200 of 1,000")
    expect(page.locator("#before")).to_be_enabled()
    page.keyboard.press("[")
    page.get_by_label("Search groups").fill("team-3 0")
    expect(page.locator("#count")).to_have_text("100 of 1,000")
    page.get_by_label("Search groups").fill("service-0777")
    expect(rows).to_have_count(1)
    many.commit("team-7.service-0777", 5)
    expect(rows.locator("td.lag")).to_have_text("30")

    page.get_by_label("Search groups").fill("")
    page.locator("th[data-name='lag'] button").click()
    expect(rows.first).to_contain_text("service-0777")
    longest = []
    for lag in ("90", "150", "210"):
        page.evaluate("window.tasks.length = 0")
        many.move_log_ends(10)
        expect(rows.first.locator("td.lag")).to_have_text(lag)
        page.wait_for_timeout(500)
        longest.append(max(page.evaluate("window.tasks"), default=0))
    # Other processes may hold up any of them, but not the page itself.
    assert LONGEST_TASK_MS > min(longest)

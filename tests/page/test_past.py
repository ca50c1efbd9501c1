"""The page of one group, asked about the past: by what the history keeps."""

from collections.abc import Iterator
from datetime import datetime
from pathlib import Path
from typing import Final
from urllib.parse import quote
from zoneinfo import ZoneInfo

import pytest
from playwright.sync_api import expect

from lab import builders
from streaming.history.queries import History
from streaming.history.store import HistoryStore
from streaming.history.tables import rows
from tests.page.browser import OpenPage
from tests.page.stage import PARTITIONS, Stage, classic, now_ms
from tests.streaming.history.entries import DAY_MS, event

GROUP: Final = "a/b?c=d#e%2F <img src=x onerror=alert(1)>"
ELSEWHERE: Final = "America/New_York"
FORMER: Final = {"orders-0": [0, 1], "orders-1": [2, 3], "orders-2": [4, 5]}
KEPT: Final = 350
"""More events than the page asks for at once."""


@pytest.fixture
def age_ms() -> int:
    return 4 * DAY_MS


@pytest.fixture
def begun_ms(age_ms: int) -> int:
    """When the history begins."""
    return now_ms() - age_ms


@pytest.fixture
def remembering(tmp_path: Path, begun_ms: int) -> Iterator[Stage]:
    """A monitor whose history knows of three members, four days ago, and of more events than it remembers itself."""
    with Stage() as former:
        former.write(*classic(GROUP, FORMER), at_ms=begun_ms)
        offsets = (builders.offset_commit(GROUP, "t", n, 10, timestamp=begun_ms) for n in range(PARTITIONS))
        former.write(*offsets, at_ms=begun_ms)
        state = former.board.shown.groups[GROUP].group_view(former.ends.topic_names, begun_ms)
    store = HistoryStore(tmp_path / "history")
    shown = [event(KEPT + number, group=GROUP, time_ms=begun_ms + number * 60_000) for number in range(KEPT)]
    entries = [{"kind": "group", "group": GROUP, "time": begun_ms, "state": state}, *shown]
    for table, ordered in rows(enumerate(entries)).items():
        store.write(table, ordered)
    store.set_complete(begun_ms)
    with Stage(history=History(store.directory)) as stage:
        stage.write(*classic(GROUP, {"orders-0": list(range(PARTITIONS))}, generation=4))
        yield stage


def typed(moment_ms: int) -> str:
    """As who sits elsewhere types it."""
    return datetime.fromtimestamp(moment_ms // 1_000, ZoneInfo(ELSEWHERE)).strftime("%Y-%m-%dT%H:%M:%S")


def test_a_group_is_shown_as_it_was(remembering: Stage, open_page: OpenPage, begun_ms: int) -> None:
    """Members, owners and commits of a moment, whatever happens meanwhile; its address leads there again."""
    stage = remembering
    watched = open_page(f"{stage.url}/group/{quote(GROUP, safe='')}", timezone_id=ELSEWHERE)
    page = watched.page
    members = page.locator("#members tbody tr")
    expect(members).to_have_count(1)
    expect(page.locator("#now")).to_be_hidden()

    page.locator("#at").fill(typed(begun_ms + DAY_MS))
    page.locator("#show").click()
    expect(members).to_have_count(len(FORMER))
    expect(page.locator(".matrix td.owned")).to_have_count(PARTITIONS)
    expect(page.locator("#as-of")).to_contain_text(f"As it was at {typed(begun_ms + DAY_MS).replace('T', ' ')}")
    expect(page.locator("#as-of")).to_contain_text(f"nothing changed from {typed(begun_ms).replace('T', ' ')}")
    expect(page.locator(".tile", has_text="Lag")).to_have_count(0)
    expect(page.locator("#offsets tbody tr")).to_have_count(PARTITIONS)

    stage.write(*classic(GROUP, {"orders-0": [0, 1, 2], "orders-9": [3, 4, 5]}, generation=5))
    # Events go on being shown; only the group stands still.
    expect(page.locator("#events li").first).to_contain_text("Rebalanced to generation 5")
    expect(members).to_have_count(len(FORMER))
    page.reload()
    expect(members).to_have_count(len(FORMER))
    page.locator("#now").click()
    expect(members).to_have_count(2)
    expect(page.locator("#as-of")).to_be_hidden()
    page.go_back()
    expect(members).to_have_count(len(FORMER))

    page.locator("#at").fill(typed(begun_ms - DAY_MS))
    page.keyboard.press("Enter")
    expect(page.locator("#as-of")).to_contain_text("does not go back to")
    expect(page.locator("#members-section")).to_be_hidden()
    watched.expect_problem("410 (Gone)")


def test_events_go_back_as_far_as_the_history(remembering: Stage, open_page: OpenPage) -> None:
    """Page by page to the first one, into the timeline too; each leads to the group as it was then."""
    page = open_page(f"{remembering.url}/group/{quote(GROUP, safe='')}").page
    events, earlier = page.locator("#events li"), page.locator("#earlier")
    own = len(remembering.board.latest_events(1_000, group=GROUP))
    expect(events).to_have_count(own)

    earlier.click()
    expect(events).not_to_have_count(own)
    expect(events).not_to_have_count(own + KEPT)
    page.locator("#span").select_option(label="1 week")
    expect(events).to_have_count(own + KEPT)
    earlier.click()
    expect(earlier).to_have_text("No earlier events are kept")
    expect(events.last).to_contain_text(f"m{KEPT} joined")

    page.locator("#events .when").last.click()
    expect(page.locator("#members tbody tr")).to_have_count(len(FORMER))


def test_a_plan_burns_down(remembering: Stage, open_page: OpenPage) -> None:
    """Groups and members by protocol from where the history begins, over the longest span in which there is a line."""
    page = open_page(f"{remembering.url}/plan").page

    expect(page.locator(".panel-name")).to_have_text(["Groups", "Members"])
    expect(page.locator("#burn-note")).to_contain_text("The history begins shortly before")
    expect(page.locator("#span")).to_have_value("604800")
    lines = page.locator(".panels .legend button")
    expect(lines.filter(has_text="classic protocol").last).to_have_text("classic protocol3")
    expect(page.locator("td[data-label='Rebalances a day']")).to_have_text("0")
    page.get_by_role("searchbox").fill("none-such")
    page.keyboard.press("Enter")
    expect(page).to_have_url(f"{remembering.url}/plan?match=none-such")
    expect(lines.filter(has_text="classic protocol").last).to_have_text("classic protocol0")


@pytest.mark.parametrize("age_ms", [5 * 60_000])
def test_a_young_history_is_shown_in_a_span_of_its_own(remembering: Stage, open_page: OpenPage) -> None:
    """A point or two of a week would be no line; a span that is chosen stays."""
    page = open_page(f"{remembering.url}/plan").page

    expect(page.locator("#burn-note")).to_contain_text("The history begins shortly before")
    expect(page.locator("#span")).to_have_value("3600")
    page.locator("#span").select_option("604800")
    expect(page.locator("#burn-note")).to_contain_text("The history begins shortly before")
    expect(page.locator("#span")).to_have_value("604800")


def test_without_a_history_nothing_is_offered(stage: Stage, open_page: OpenPage) -> None:
    """What would lead nowhere is not there."""
    stage.play_kinds()
    page = open_page(f"{stage.url}/group/billing").page

    expect(page.locator("#tiles .tile").first).to_be_visible()
    for control in ("#at", "#earlier", "#span option[value='86400']", ".when"):
        expect(page.locator(control)).to_have_count(0)
    page.goto(f"{stage.url}/plan")
    expect(page.locator("main")).to_contain_text("Not known: this monitor keeps no history")

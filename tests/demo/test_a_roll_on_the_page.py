"""The demo's rolling upgrade, by real consumers on a real broker through the real job, followed on the page."""

import time
from collections.abc import Sequence
from typing import Final

import pytest
from playwright.sync_api import Page, expect

from streaming.demo.scenario import GROUPS, ROLLED_GROUP, TOPICS
from tests.demo.conftest import Demo
from tests.left_out import needs
from tests.page.browser import OpenPage

pytestmark = [
    pytest.mark.broker,
    pytest.mark.spark,
    pytest.mark.timeout(600),
    needs("chromium"),
]

ADDRESS_SECONDS: Final = 120.0
ROLLED_SECONDS: Final = 200.0
PHASES: Final = ("classic", "upgrading", "upgraded", "downgrading", "downgraded")

# Remembers each text that a selector ever showed: a phase may last for less than a look of the test takes. An observer
# is called before anything else gets to see the change, so what the test has seen is remembered.
REMEMBER: Final = """([name, selector]) => {
    const seen = (window.seen ??= {})[name] = [];
    const look = () => {
        const text = document.querySelector(selector)?.textContent ?? "";
        if (text && seen.at(-1) !== text) seen.push(text);
    };
    new MutationObserver(look).observe(document, { subtree: true, childList: true, characterData: true });
    look();
}"""


def remembered(page: Page, name: str) -> list[str]:
    seen: list[str] = page.evaluate("name => window.seen[name]", name)
    return seen


def await_phase(page: Page, phase: str) -> None:
    deadline = time.monotonic() + ROLLED_SECONDS
    while phase not in remembered(page, "phase"):
        assert time.monotonic() < deadline, f"{phase} was not shown, but {remembered(page, 'phase')}"
        page.wait_for_timeout(200)


def in_order(wanted: Sequence[str], seen: Sequence[str]) -> bool:
    """Whether these were seen, in this order, whatever else was."""
    rest = iter(seen)
    return all(any(text == each for each in rest) for text in wanted)


# The browser first: beside JVMs that start it may take longer than the group stays classic.
@pytest.mark.usefixtures("browser")
def test_a_real_roll_is_followed_on_every_page(demo: Demo, open_page: OpenPage) -> None:
    """Classic, upgrading, upgraded, downgrading, downgraded; the verdict, the matrix and the timeline beside it."""
    overview = open_page(demo.address).page
    expect(overview.locator("#groups td.group a").filter(has_text=ROLLED_GROUP)).to_be_visible(
        timeout=ADDRESS_SECONDS * 1_000
    )
    group = open_page(f"{demo.address}/group/{ROLLED_GROUP}").page
    group.evaluate(REMEMBER, ["phase", "#tiles .tile:nth-of-type(3) dd"])
    group.evaluate(REMEMBER, ["revoking", ".matrix td.revoking"])
    roll = open_page(f"{demo.address}/roll?q={ROLLED_GROUP}").page
    roll.evaluate(REMEMBER, ["word", "#word"])
    roll.evaluate(REMEMBER, ["done", "#members-done"])
    expect(overview.locator("#groups tbody tr")).to_have_count(len(GROUPS))

    await_phase(group, "upgraded")
    expect(roll.locator("#members-done")).to_have_text("100 %")
    expect(roll.locator("#word")).to_have_text("Go on")
    expect(overview.locator("tr", has_text=ROLLED_GROUP)).to_contain_text("upgraded")
    # The last member may still be on its way back: it left as a classic one, and all others are upgraded.
    expect(group.locator(".speaks.consumer").first).to_be_visible()
    expect(group.locator(".speaks.classic")).to_have_count(0)
    expect(group.locator(".matrix td.owned")).to_have_count(TOPICS["orders"])
    await_phase(group, "downgraded")
    expect(roll.locator("#members-done")).to_have_text("0 %")

    assert in_order(PHASES, remembered(group, "phase")), remembered(group, "phase")
    assert in_order(["0 %", "100 %", "0 %"], remembered(roll, "done")), remembered(roll, "done")
    assert "Go on" in remembered(roll, "word")
    kinds = group.locator("#events li").evaluate_all("items => items.map((item) => item.dataset.kind)")
    rolled = ["downgrade_completed", "downgrade_started", "upgrade_completed", "upgrade_started"]
    assert in_order(rolled, kinds), "\n".join(kinds)
    expect(group.locator(".panels canvas")).to_have_count(2)
    expect(group.locator(".panels .legend .value").first).not_to_have_text("\u2013")
    expect(roll.locator("#events")).to_contain_text("The downgrade is complete")
    expect(overview.locator("#groups tr.critical")).to_have_count(0)
    for page in (overview, group, roll):
        expect(page.locator("#link")).to_have_text("live")
        page.close()

"""Every page by the rules of axe-core, in light and dark, and on a phone."""

import re
import zipfile
from collections.abc import Iterator
from functools import cache
from typing import Final

import pytest
from playwright.sync_api import Page, expect

from lab import coordinator_events as happens
from streaming.demo.embedded_broker import DEFAULT_JARS_DIR
from tests.page.browser import PHONE, OpenPage
from tests.page.stage import ROLLED, STREAMS, TWICE, Stage, classic

JARS: Final = DEFAULT_JARS_DIR.parent / "judge"
OLD: Final = {f"orders-{n}": {"t": [2 * n, 2 * n + 1]} for n in range(3)}

# Address → what is there once it shows its figures.
PAGES: Final = {
    "/": "#groups td.group a",
    f"/group/{ROLLED}": ".panels canvas",
    f"/group/{TWICE}": "#warnings .critical",
    f"/group/{STREAMS}": ".matrix",
    "/roll": "#reasons li",
    "/plan": "tbody tr",
    "/topic/t": "#groups td.group a",
}

VIOLATIONS: Final = """async () => {
  const { violations } = await axe.run(document, { resultTypes: ["violations"] });
  const why = ({ any, all }) => [...any, ...all].map(({ message }) => message);
  return violations.map(({ id, nodes }) => `${id}: ${nodes.map((node) => `${node.html} ${why(node)}`).join(" | ")}`);
}"""

CUT: Final = """() => {
  const wide = (element, room) => element.getClientRects().length && element.scrollWidth > room.clientWidth + 1;
  const tables = [...document.querySelectorAll("table.rows")];
  const cut = tables.filter((table) => wide(table, table.closest(".scroll"))).map(({ id }) => `table ${id}`);
  const { scrollWidth, clientWidth } = document.documentElement;
  return [...cut, ...(scrollWidth > clientWidth ? [`page of ${scrollWidth}`] : [])];
}"""


@cache
def axe() -> str:
    """The script of axe-core, which `make setup` fetches."""
    (jar,) = JARS.glob("axe-core-*.jar")
    with zipfile.ZipFile(jar) as archive:
        (name,) = (each for each in archive.namelist() if each.endswith("/axe.min.js"))
        return archive.read(name).decode("utf-8")


@pytest.fixture(scope="module")
def full() -> Iterator[Stage]:
    """A monitor with a group of every kind, one that is rolled, one with an alarm, lag, and long names."""
    with Stage() as stage:
        stage.play_kinds()
        stage.own_twice()
        stage.write(*classic(ROLLED, {name: parts["t"] for name, parts in OLD.items()}))
        stage.write(*happens.converted_to_consumer(ROLLED, generation=4, members=OLD))
        targets = {**OLD, "orders-0": {"t": [0]}, "orders-new": {"t": [1]}}
        stage.write(*happens.consumer_join(ROLLED, "orders-new", epoch=5, targets=targets, assigned={}))
        stage.commit("a-group-whose-name-is-longer-than-a-phone-is-wide.and-goes-on", 1_234_567)
        stage.commit(ROLLED, {n: 200_000 * n for n in range(6)})
        for _ in range(3):
            stage.move_log_ends(100)
            stage.sample_lag()
        yield stage


def is_dark(page: Page) -> bool:
    ground: str = page.evaluate("getComputedStyle(document.body).backgroundColor")
    return int(re.findall(r"\d+", ground)[0]) < 100


def violations(page: Page) -> list[str]:
    found: list[str] = page.evaluate(VIOLATIONS)
    return found


@pytest.mark.parametrize("address", PAGES)
def test_a_page_is_for_everybody(full: Stage, open_page: OpenPage, address: str) -> None:
    """No rule of axe-core is broken in light, in dark, and on a phone, where no table and no page is cut."""
    watched = open_page(f"{full.url}{address}", reduced_motion="reduce")
    page = watched.page
    expect(page.locator(PAGES[address]).first).to_be_visible()
    expect(page.locator("#link")).to_have_text("live")
    page.evaluate(axe())

    assert not is_dark(page)
    assert [] == violations(page)
    page.emulate_media(color_scheme="dark", reduced_motion="reduce")
    assert is_dark(page)
    assert [] == violations(page)
    page.set_viewport_size({"width": PHONE["width"], "height": PHONE["height"]})
    assert [] == page.evaluate(CUT)
    assert [] == violations(page)
    # axe-core looks at canvases in a way that browsers remark on.
    watched.expect_problem("willReadFrequently")

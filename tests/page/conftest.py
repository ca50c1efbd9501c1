"""A real Chromium, and pages in it that may complain of nothing and ask only the monitor."""

from collections.abc import Iterator

import pytest
from playwright.sync_api import Browser, expect, sync_playwright

from tests.left_out import needs
from tests.page.browser import CHROMIUM, PATIENCE_MS, OpenPage, Watched
from tests.page.stage import Stage


def pytest_collection_modifyitems(items: list[pytest.Item]) -> None:
    for item in items:
        if item.path.parent.name == "page":
            item.add_marker(needs("chromium"))


# Of the package, not of the session: while it runs, its thread has an event loop, and other tests run theirs.
@pytest.fixture(scope="package")
def browser() -> Iterator[Browser]:
    expect.set_options(timeout=PATIENCE_MS)
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=CHROMIUM, args=["--no-sandbox"])
        yield browser
        browser.close()


@pytest.fixture
def open_page(browser: Browser) -> Iterator[OpenPage]:
    """Opens an address in a tab of its own; at the test's end nothing may have gone wrong in it."""
    opened: list[Watched] = []

    def open_(address: str, **context: object) -> Watched:
        opened.append(Watched(browser, address, **context))
        return opened[-1]

    yield open_
    for watched in opened:
        watched.close()
    for watched in opened:
        assert [] == watched.problems


@pytest.fixture
def stage() -> Iterator[Stage]:
    with Stage() as stage:
        yield stage

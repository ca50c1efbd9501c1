"""Tabs of a real Chromium that remember what went wrong in them."""

from typing import Any, Final, Protocol
from urllib.parse import urlsplit

from playwright.sync_api import Browser, ConsoleMessage, Page, Request

from tests.left_out import program

CHROMIUM: Final = program("chromium")

LAPTOP: Final = {"width": 1280, "height": 900}
PHONE: Final = {"width": 390, "height": 844}
PATIENCE_MS: Final = 60_000
"""Other tests run beside these; what is there sooner is seen sooner."""


class Watched:
    """A tab, open at an address; `problems` holds what no page of ours may do."""

    def __init__(self, browser: Browser, address: str, **context: Any) -> None:
        self.problems: list[str] = []
        self._host = urlsplit(address).netloc
        self._context = browser.new_context(**{"viewport": LAPTOP, **context})
        self.page: Page = self._context.new_page()
        self.page.set_default_timeout(PATIENCE_MS)
        self.page.on("console", self._console)
        self.page.on("pageerror", lambda error: self.problems.append(f"error: {error}"))
        self.page.on("request", self._request)
        self.page.goto(address)

    def expect_problem(self, part: str) -> None:
        """Browsers say on the console what was refused or not found: where a test provokes it, that may be."""
        self.problems[:] = [problem for problem in self.problems if part not in problem]

    def close(self) -> None:
        self._context.close()

    def _console(self, message: ConsoleMessage) -> None:
        if message.type in ("error", "warning"):
            self.problems.append(f"console {message.type}: {message.text}")

    def _request(self, request: Request) -> None:
        if urlsplit(request.url).netloc != self._host:
            self.problems.append(f"request to somebody else: {request.url[:200]}")


class OpenPage(Protocol):
    """Opens an address in a tab that is closed, and judged, at the test's end."""

    def __call__(self, address: str, **context: Any) -> Watched: ...

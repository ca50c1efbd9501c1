"""Pictures for the README, of a running demo: `python docs/take_pictures.py URL`.

Opens the pages in headless Chromium, lets the demo run for a while so that there is a past to show, and waits until
partitions of the rolled group are on their way from one member to another, up; then all pages are photographed.
"""

import shutil
import sys
import time
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Final

from playwright.sync_api import Browser, Page, sync_playwright

ROLLED_GROUP: Final = "orders-service"
PICTURES: Final = Path(__file__).resolve().parent / "pictures"
WAIT_SECONDS: Final = 300
PAST_SECONDS: Final = 60
LARGEST_BYTES: Final = 200_000

# Name → (address, what the browser is like).
SHOTS: Final[dict[str, tuple[str, dict[str, Any]]]] = {
    "group": (f"/group/{ROLLED_GROUP}", {"viewport": {"width": 1280, "height": 1000}}),
    "roll": (f"/roll?q={ROLLED_GROUP}", {"viewport": {"width": 1280, "height": 900}}),
    "groups": ("/", {"viewport": {"width": 1280, "height": 640}}),
    "dark": (f"/group/{ROLLED_GROUP}", {"viewport": {"width": 1280, "height": 1000}, "color_scheme": "dark"}),
    "phone": ("/roll", {"viewport": {"width": 390, "height": 844}, "color_scheme": "dark"}),
}


def main(url: str) -> int:
    """Take the pictures; returns the exit status."""
    chromium = shutil.which("chromium") or shutil.which("chromium-browser")
    if chromium is None:
        return _failed("chromium: found none on PATH, accepted: Debian's package chromium", 2)
    PICTURES.mkdir(parents=True, exist_ok=True)
    with _browser(chromium) as browser:
        pages = {name: browser.new_page(**settings) for name, (_, settings) in SHOTS.items()}
        for name, page in pages.items():
            page.goto(url + SHOTS[name][0])
        if not _await_move(pages["group"]):
            return _failed(f"{ROLLED_GROUP} moved no partition between protocols within {WAIT_SECONDS} s", 1)
        for name, page in pages.items():
            page.screenshot(path=PICTURES / f"{name}.png")
    large = [path.name for path in PICTURES.glob("*.png") if path.stat().st_size > LARGEST_BYTES]
    return _failed(f"{', '.join(large)}: more than {LARGEST_BYTES} bytes", 1) if large else 0


@contextmanager
def _browser(chromium: str) -> Iterator[Browser]:
    with sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=chromium, args=["--no-sandbox"])
        yield browser
        browser.close()


def _await_move(group: Page) -> bool:
    """Wait until the group has a past, members of both protocols, and a partition that one of them waits for."""
    deadline = time.monotonic() + WAIT_SECONDS
    group.locator(".matrix td.owned").first.wait_for(timeout=WAIT_SECONDS * 1_000)
    group.wait_for_timeout(PAST_SECONDS * 1_000)
    upgrading = group.locator("#tiles dd", has_text="upgrading")
    moving = group.locator(".matrix td.revoking, .matrix td.target")
    while time.monotonic() < deadline:
        if upgrading.count() and moving.count():
            return True
        group.wait_for_timeout(50)
    return False


def _failed(message: str, status: int) -> int:
    sys.stderr.write(f"error: {message}\n")
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1].rstrip("/")))

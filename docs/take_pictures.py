"""Pictures for the README, of a running demo: `python docs/take_pictures.py URL`.

Waits until the rolled group is half-way through its upgrade, then lets headless Chromium photograph the page of all
groups and the page of that group. The demo's page follows by itself, so each is given a moment to fill.
"""

import json
import shutil
import subprocess
import sys
import tempfile
import time
import urllib.request
from pathlib import Path
from typing import Final

ROLLED_GROUP: Final = "orders-service"
PICTURES: Final = Path(__file__).resolve().parent / "pictures"
WAIT_SECONDS: Final = 240
SETTLE_MS: Final = 6_000


def main(url: str) -> int:
    """Take both pictures; returns the exit status."""
    browser = shutil.which("chromium") or shutil.which("chromium-browser")
    if browser is None:
        print("error: chromium: found none on PATH, accepted: Debian's package chromium", file=sys.stderr)  # noqa: T201 - the answer
        return 2
    deadline = time.monotonic() + WAIT_SECONDS
    while _phase(url) != "upgrading":
        if time.monotonic() > deadline:
            print(f"error: {ROLLED_GROUP} was not upgraded within {WAIT_SECONDS} s", file=sys.stderr)  # noqa: T201 - the answer
            return 1
        time.sleep(0.2)
    PICTURES.mkdir(parents=True, exist_ok=True)
    shots = [("group.png", f"{url}/group/{ROLLED_GROUP}", "1280,1000"), ("groups.png", f"{url}/", "1280,900")]
    for name, address, size in shots:
        _take(browser, address, PICTURES / name, size)
    return 0


def _phase(url: str) -> str | None:
    try:
        with urllib.request.urlopen(f"{url}/api/v1/groups/{ROLLED_GROUP}", timeout=5) as answer:  # noqa: S310 - the demo's address
            return str(json.load(answer)["migration"]["phase"])
    except OSError:
        return None


def _take(browser: str, address: str, picture: Path, size: str) -> None:
    with tempfile.TemporaryDirectory() as profile:
        subprocess.run(  # noqa: S603 - arguments of our own
            [
                browser,
                "--headless",
                "--no-sandbox",
                "--disable-gpu",
                "--disable-background-networking",
                "--hide-scrollbars",
                f"--user-data-dir={profile}",
                f"--window-size={size}",
                f"--virtual-time-budget={SETTLE_MS}",
                f"--screenshot={picture}",
                address,
            ],
            check=True,
            capture_output=True,
            timeout=60,
        )


if __name__ == "__main__":
    sys.exit(main(sys.argv[1].rstrip("/")))

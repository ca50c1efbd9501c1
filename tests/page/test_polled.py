"""Polled groups in the browser: that they are, what is not known of them, and that an outage leaves nothing green."""

from playwright.sync_api import expect

from streaming.base.batch_rows import BatchRows
from streaming.polling.poller import GroupPoller
from tests.page.browser import OpenPage
from tests.page.stage import Stage, now_ms
from tests.streaming.polling.fake_rounds import FakeRounds, classic, consumer, listed

NOT_KNOWN = "\u2013"


def test_polled_groups_show_what_is_known_and_nothing_else(stage: Stage, open_page: OpenPage) -> None:
    """On every page it is said above everything; what only the log has is a dash; without answers all figures go."""
    cluster = FakeRounds(round=listed(old=classic("a"), mixed=consumer(("b", 1), ("c", 0))))
    poller = GroupPoller(
        cluster.connect,
        lambda rows, at_ms: stage.board.apply(at_ms, BatchRows(rows), at_ms),
        interval_ms=5_000,
        clock_ms=now_ms,
    )
    stage.board.health.show_polls(poller.status)
    poller.poll()
    stage.move_log_ends(1)

    page = open_page(stage.url).page
    expect(page.locator("#link")).to_have_text("polled")
    expect(page.locator("#banner")).to_contain_text("Polled every 5.0 s, as the log is not read")
    expect(page.locator("#groups tbody tr")).to_have_count(2)
    old = page.locator("#groups tbody tr", has_text="old").locator("td, th")
    expect(old.nth(9)).to_have_text(NOT_KNOWN)
    expect(old.nth(10)).to_have_text(NOT_KNOWN)
    expect(page.locator("#tiles .tile", has_text="Rebalancing").locator(".note")).to_have_text(f"{NOT_KNOWN} completed")
    expect(page.locator("#groups tbody tr", has_text="mixed")).to_contain_text("mixed 1/2")

    roll = open_page(f"{stage.url}/roll").page
    expect(roll.locator("#tiles .tile", has_text="Left over").locator("dd")).to_have_text(NOT_KNOWN)
    expect(roll.locator("#tiles .tile", has_text="Owned twice").locator("dd")).to_have_text(NOT_KNOWN)

    group = open_page(f"{stage.url}/group/old").page
    expect(group.locator("#tiles .tile", has_text="Generation").locator("dd")).to_have_text(NOT_KNOWN)
    expect(group.locator("#tiles .tile", has_text="Rebalances")).to_have_count(0)

    cluster.down = OSError("connection refused")
    poller.poll()
    expect(page.locator("#link")).to_have_text("polled, stale")
    expect(page.locator("#banner")).to_contain_text("(connection refused): what you see is from then.")
    expect(page.locator("#tiles .tile .note", has_text="cannot tell: no answer from the brokers")).not_to_have_count(0)
    expect(page.locator("#groups tbody tr")).to_have_count(2)

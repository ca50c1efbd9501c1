"""What the page says when the monitor is slow, silent, gone, or another one."""

from playwright.sync_api import expect

from lab import builders
from tests.page.browser import OpenPage
from tests.page.stage import STABLE, Stage, classic


def test_a_monitor_that_is_gone_leaves_the_page_stale(open_page: OpenPage) -> None:
    """Shown by pill, banner and the loss of colour, figures kept; another monitor at the address brings it to life."""
    with Stage() as first:
        first.write(*classic(STABLE, {"m-1": [0, 1, 2, 3, 4, 5]}))
        watched = open_page(first.url)
        page = watched.page
        expect(page.locator("#groups tbody tr")).to_contain_text(STABLE)
        expect(page.locator("#link")).to_have_text("live")
        port = first.server.port

    expect(page.locator("#link")).to_contain_text("stale")
    expect(page.locator("#banner")).to_contain_text("No word from the monitor since")
    expect(page.locator("#groups tbody tr")).to_contain_text(STABLE)
    assert "grayscale(1)" == page.evaluate("getComputedStyle(document.querySelector('main')).filter")

    with Stage(port) as second:
        second.write(*classic("another", {"m-1": [0, 1, 2, 3, 4, 5]}))
        expect(page.locator("#link")).to_have_text("live")
        expect(page.locator("#banner")).to_be_hidden()
        expect(page.locator("#groups tbody tr")).to_contain_text("another")
        page.close()
    watched.expect_problem("net::ERR_")
    watched.expect_problem("Failed to fetch")


def test_a_hidden_page_holds_no_connection(stage: Stage, open_page: OpenPage) -> None:
    """A browser has six connections to an address; a tab in the background must not take one for ever."""
    page = open_page(stage.url).page
    expect(page.locator("#link")).to_have_text("live")
    hide = "hidden => { Object.defineProperty(document, 'hidden', { value: hidden, configurable: true }); "
    tell = "document.dispatchEvent(new Event('visibilitychange')); }"

    page.evaluate(hide + tell, arg=True)
    stage.commit("while-away", 0)
    page.wait_for_timeout(2_500)
    expect(page.locator("#groups tbody tr")).to_have_count(0)
    page.evaluate(hide + tell, arg=False)

    expect(page.locator("#groups tbody tr")).to_contain_text("while-away")
    expect(page.locator("#events li")).to_contain_text("A group appeared")


def test_catching_up_is_said_above_everything(open_page: OpenPage) -> None:
    """While the replica is not at the end of the log, what is shown is the past: how far, is shown."""
    with Stage(behind=500) as stage:
        page = open_page(stage.url).page
        expect(page.locator("#link")).to_have_text("catching up")
        expect(page.locator("#banner")).to_contain_text("500 records to go")

        stage.catch_up_to(500)
        stage.move_log_ends(1)

        expect(page.locator("#link")).to_have_text("live")
        expect(page.locator("#banner")).to_be_hidden()
        page.close()


def test_many_changes_in_a_second_arrive_as_one(stage: Stage, open_page: OpenPage) -> None:
    """A thousand commits between two looks cost the page one change."""
    page = open_page(stage.url).page
    expect(page.locator("#link")).to_have_text("live")
    page.evaluate("""() => {
        window.changes = 0;
        new MutationObserver(() => { window.changes += 1; })
            .observe(document.querySelector('#groups tbody'), { childList: true, subtree: true, characterData: true });
    }""")

    for step in range(200):
        stage.write(*(builders.offset_commit("busy", "t", part, 9_000 + step) for part in range(5)))
    expect(page.locator("#groups tbody tr td.lag")).to_have_text(f"{(10_000 - 9_199) * 5:,}")

    assert 12 > page.evaluate("window.changes")

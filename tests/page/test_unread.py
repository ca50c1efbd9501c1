"""While a partition of the offsets topic is not read: its groups are unknown, others as ever, and no sum is fine."""

import re

from playwright.sync_api import Page, expect

from coordinator_model.state.shards import offsets_partition
from tests.page.browser import OpenPage
from tests.page.stage import Stage, classic, now_ms

MEMBERS = {"m-1": [0, 1, 2, 3, 4, 5]}
PARTITIONS = 50
LOST, SEEN = "orders", "billing"
"""Of two groups one hashes to the partition that is not read; neither is read from that partition."""

NUMBER = offsets_partition(LOST, PARTITIONS)
WHY = f"artition {NUMBER} of the offsets topic has no leader, since"


def lose(stage: Stage) -> None:
    assert offsets_partition(SEEN, PARTITIONS) != NUMBER
    stage.board.health.set_unread({NUMBER: now_ms()}, PARTITIONS)


def find(stage: Stage) -> None:
    """The leader is back, and what it has is read."""
    stage.board.health.set_unread({}, PARTITIONS)


def row(page: Page, group: str) -> str:
    return f"#groups tbody tr:has(bdi:text-is('{group}'))"


def test_coordinator_that_did_not_load_is_said_above_all(stage: Stage, open_page: OpenPage) -> None:
    """With its partition; what the log has of the groups is shown as ever. It goes once it has loaded."""
    stage.write(*classic(LOST, MEMBERS))
    page = open_page(stage.url).page
    expect(page.locator("#link")).to_have_text("live")

    stage.board.findings.set_not_loaded({NUMBER: now_ms()})

    expect(page.locator("#banner")).to_contain_text(
        f"The coordinator of partition {NUMBER} of the offsets topic has not loaded: its groups neither join nor commit"
    )
    expect(page.locator(row(page, LOST) + " td.state")).to_have_text("Stable")

    stage.board.findings.set_not_loaded({})

    expect(page.locator("#banner")).to_be_hidden()


def test_groups_that_may_be_there_are_unknown(stage: Stage, open_page: OpenPage) -> None:
    """Their rows say so; the others stay; tiles are not fine; all of it is over when the leader is back."""
    stage.write(*classic(LOST, MEMBERS), *classic(SEEN, MEMBERS))
    page = open_page(stage.url).page
    attention = page.locator("#tiles .tile", has=page.get_by_text("Need a look", exact=True))
    expect(page.locator("#link")).to_have_text("live")
    expect(attention).to_have_class("tile fine")

    lose(stage)

    expect(page.locator(row(page, LOST))).to_have_class("unread")
    expect(page.locator(row(page, LOST))).to_contain_text(f"unknown: partition {NUMBER} is not read")
    expect(page.locator(row(page, LOST) + " td.state")).to_have_text("unknown")
    expect(page.locator(row(page, SEEN) + " td.state")).to_have_text("Stable")
    expect(page.locator("#link")).to_have_text("live, in part")
    expect(page.locator("#banner")).to_contain_text(WHY)
    expect(attention).to_have_class("tile")
    expect(attention).to_contain_text(f"not of all: p{WHY}")
    expect(page.locator("#count")).to_contain_text("not of all")

    find(stage)

    expect(page.locator("#link")).to_have_text("live")
    expect(page.locator(row(page, LOST) + " td.state")).to_have_text("Stable")
    expect(attention).to_have_class("tile fine")


def test_a_group_s_page_says_what_is_not_known(stage: Stage, open_page: OpenPage) -> None:
    """Of a group that is known its figures, of a new name whether there is such a group; elsewhere nothing changes."""
    stage.write(*classic(LOST, MEMBERS), *classic(SEEN, MEMBERS))
    lose(stage)
    watched = open_page(f"{stage.url}/group/{LOST}")
    page = watched.page
    expect(page.locator("#badges")).to_contain_text("unknown, was Stable")
    expect(page.locator("#warnings")).to_contain_text(f"unknown: partition {NUMBER} is not read")
    expect(page.locator("#tiles .tile").first).to_contain_text(f"cannot tell: p{WHY}")

    page.goto(f"{stage.url}/group/{SEEN}")
    expect(page.locator("#badges")).to_contain_text("Stable")
    expect(page.locator("#tiles .tile", has_text="cannot tell")).to_have_count(0)

    names = (f"new-{number}" for number in range(1_000))
    new = next(name for name in names if offsets_partition(name, PARTITIONS) == NUMBER)
    page.goto(f"{stage.url}/group/{new}")
    expect(page.locator("#missing")).to_contain_text(f"Not known: p{WHY}")
    page.close()
    watched.expect_problem("503 (Service Unavailable)")


def test_a_roll_is_not_told_to_go_on(stage: Stage, open_page: OpenPage) -> None:
    """Of all groups the verdict cannot tell; of those searched for that are elsewhere it is as ever."""
    stage.write(*classic(LOST, MEMBERS), *classic(SEEN, MEMBERS))
    page = open_page(f"{stage.url}/roll").page
    expect(page.locator("#word")).to_have_text("Go on")

    lose(stage)

    expect(page.locator("#word")).to_have_text("Cannot tell")
    expect(page.locator("#reasons")).to_contain_text(WHY)
    expect(page.locator("#members-done")).to_have_text("\u2013")
    expect(page.locator(row(page, LOST))).to_have_class("unread")
    page.fill("#search", SEEN)
    expect(page.locator("#word")).to_have_text("Go on")
    expect(page.locator("#members-done")).to_have_text("0 %")
    page.fill("#search", LOST)
    expect(page.locator("#word")).to_have_text("Cannot tell")


def test_the_plan_knows_nothing_of_them(stage: Stage, open_page: OpenPage) -> None:
    """Unknown, with what to wait for; the plan is made again once they are read."""
    stage.write(*classic(LOST, MEMBERS), *classic(SEEN, MEMBERS))
    lose(stage)
    page = open_page(f"{stage.url}/plan").page
    expect(page.locator("tbody tr", has_text=LOST)).to_contain_text("unknown")
    expect(page.locator("tbody tr", has_text=LOST)).to_contain_text("partition unread")
    expect(page.locator("tbody tr", has_text=SEEN)).to_contain_text("ready")
    expect(page.locator("p.banner.moving[role=alert]")).to_contain_text(re.compile(WHY))

    find(stage)

    expect(page.locator("tbody tr", has_text=LOST)).to_contain_text("ready")

"""The page of one group: who owns what, what it waits for, what happened."""

from playwright.sync_api import Locator, Page, expect

from coordinator_model.groups import streams
from coordinator_model.migration.upgrade_blockers import ASSIGNMENT_USER_DATA, BLOCKERS, MALFORMED
from lab import builders
from lab import coordinator_events as happens
from lab.share_state import share_snapshot, share_update
from tests.page.browser import OpenPage
from tests.page.stage import CONNECT, PARTITIONS, ROLLED, SHARED, STABLE, STREAMS, TWICE, Stage, classic

SIGNS = {"●": "owned", "◐": "revoking", "○": "waiting", "!": "twice", "s": "standby", "w": "warm-up", "": "-"}
OLD = {f"orders-{n}": {"t": [2 * n, 2 * n + 1]} for n in range(3)}


def matrix(page: Page, at: int = 0) -> dict[str, list[str]]:
    """Member → what its cells say, of one topic's table."""
    rows = page.locator(".matrix").nth(at).locator("tbody tr").all()
    return {
        row.locator("th bdi").inner_text(): [SIGNS[sign] for sign in row.locator("td").all_inner_texts()]
        for row in rows
    }


def marks(page: Page, kind: str) -> int:
    return page.locator(f".matrix td.{kind}").count()


def test_a_rebalance_is_followed_in_the_matrix(stage: Stage, open_page: OpenPage) -> None:
    """A partition is owned, then to be revoked while the newcomer waits for it, then the newcomer's."""
    stage.write(*classic(ROLLED, {name: parts["t"] for name, parts in OLD.items()}))
    stage.commit(ROLLED, {n: n for n in range(PARTITIONS)})
    page = open_page(f"{stage.url}/group/{ROLLED}").page
    expect(page.locator(".matrix td.owned")).to_have_count(PARTITIONS)
    expect(page.locator("#badges")).to_contain_text("classic group")
    assert ["lag", "·", "1", "2", "3", "4", "5"] == page.locator(".matrix tr.lag > *").all_inner_texts()

    stage.write(*happens.converted_to_consumer(ROLLED, generation=4, members=OLD))
    targets = {**OLD, "orders-0": {"t": [0]}, "orders-new": {"t": [1]}}
    stage.write(*happens.consumer_join(ROLLED, "orders-new", epoch=5, targets=targets, assigned={}))
    revoking = happens.consumer_moves(ROLLED, "orders-0", epoch=4, assigned={"t": [0]}, pending={"t": [1]}, state=1)
    stage.write(*revoking)

    expect(page.locator(".matrix td.revoking")).to_have_count(1)
    expect(page.locator(".matrix td.target")).to_have_count(1)
    expect(page.locator("#badges")).to_contain_text("Reconciling")
    expect(page.locator(".tile", has_text="Migration")).to_contain_text("upgrading")
    expect(page.locator("#members")).to_contain_text("to be revoked: t 1")
    expect(page.locator("#members")).to_contain_text("waits for t 1, which client · ders-0 has yet to release")
    expect(said_now(page)).to_contain_text("A rebalance to epoch 5 began, 4 members, because a member joined")
    assert "waiting" == matrix(page)["client · rs-new"][1]

    for name, parts in targets.items():
        stage.write(*happens.consumer_moves(ROLLED, name, epoch=5, assigned=parts))

    expect(page.locator(".matrix td.revoking, .matrix td.target")).to_have_count(0)
    expect(page.locator("#badges")).to_contain_text("Stable")
    expect(page.locator("#events li").first).to_contain_text("Rebalanced to epoch 5 in")
    expect(said_now(page)).not_to_contain_text("A rebalance to epoch 5 began")
    assert "owned" == matrix(page)["client · rs-new"][1]


def test_a_group_without_consumers_is_out_of_scope(stage: Stage, open_page: OpenPage) -> None:
    """It says what it is, and nothing is in its way."""
    stage.play_kinds()
    page = open_page(f"{stage.url}/group/{CONNECT}").page

    expect(page.locator(".tile", has_text="Migration")).to_contain_text("out of scope")
    expect(page.locator(".tile", has_text="Migration")).to_contain_text("protocol type connect")
    expect(page.locator("#warnings li")).to_have_count(0)


def test_a_partition_owned_twice_is_red_in_both_rows(stage: Stage, open_page: OpenPage) -> None:
    """Both owners are named, and all of it goes when it is over."""
    stage.own_twice()
    page = open_page(f"{stage.url}/group/{TWICE}").page

    expect(page.locator(".matrix td.twice")).to_have_count(2)
    expect(page.locator("#warnings li.critical")).to_contain_text("Owned twice: t/3 by client · dger-a and")
    assert ["owned", "owned", "owned", "twice", "-", "-"] == matrix(page)["client · dger-a"]

    stage.own_once()

    expect(page.locator(".matrix td.twice")).to_have_count(0)
    expect(page.locator("#warnings li.critical")).to_have_count(0)


def test_partitions_of_nobody_are_marked(stage: Stage, open_page: OpenPage) -> None:
    """Which, from the first moment; an alarm it is once the watch has found that it lasts."""
    stage.write(*classic(STABLE, {"m-1": [0, 1, 2, 4]}))
    page = open_page(f"{stage.url}/group/{STABLE}").page

    expect(page.locator(".matrix th.orphan")).to_have_text(["3", "5"])
    expect(page.locator("#warnings li")).to_have_count(0)
    stage.board.findings.set_overdue({"partition_unassigned": [STABLE]})
    expect(page.locator("#warnings li.warning")).to_contain_text("No member reads t 3, 5")


def test_share_groups_own_together_without_alarm(stage: Stage, open_page: OpenPage) -> None:
    """Members of a share group read the same partitions by design."""
    stage.play_kinds()
    page = open_page(f"{stage.url}/group/{SHARED}").page

    expect(page.locator(".matrix td.owned")).to_have_count(8)
    assert 0 == marks(page, "twice")
    expect(page.locator("#warnings li")).to_have_count(0)


def test_streams_groups_show_tasks(stage: Stage, open_page: OpenPage) -> None:
    """Active tasks, standbys and warm-ups by subtopology, and the processes they are in."""
    stage.play_kinds()
    page = open_page(f"{stage.url}/group/{STREAMS}").page

    expect(page.locator(".topic h3")).to_have_text(["Subtopology 0 · t · 6 tasks", "Subtopology 1 · u · 2 tasks"])
    first, second = matrix(page, 0), matrix(page, 1)
    assert ["owned", "owned", "owned", "standby", "-", "-"] == first["streams-a · eams-a"]
    assert ["warm-up", "owned"] == second["streams-b · eams-b"]
    expect(page.locator("#members")).to_contain_text(
        "active 0_0\u20132, 1_0; standby 0_3 · process process-of-streams-a"
    )

    stage.write(
        builders.streams_group_epoch(STREAMS, 3, validated_topology_epoch=0),
        builders.streams_group_target_assignment(STREAMS, "streams-a", active={"0": [0, 1], "1": [0]}),
        builders.streams_group_target_assignment(STREAMS, "streams-b", active={"0": [2, 3, 4, 5], "1": [1]}),
        builders.streams_group_target_assignment_epoch(STREAMS, 3),
        builders.streams_group_current_assignment(
            STREAMS,
            "streams-a",
            epoch=2,
            state=streams.MEMBER_UNREVOKED,
            active={"0": {0: 1, 1: 1}, "1": {0: 1}},
            active_pending_revocation={"0": {2: 1}},
        ),
    )
    expect(page.locator(".matrix td.revoking")).to_have_count(1)
    assert ["owned", "owned", "revoking", "-", "-", "-"] == matrix(page, 0)["streams-a · eams-a"]
    assert "waiting" == matrix(page, 0)["streams-b · eams-b"][2]


def test_a_topic_that_nobody_reads_any_more_is_set_back(stage: Stage, open_page: OpenPage) -> None:
    """Its commits stay for days after the last reader: shown, listed as an event, and no alarm."""
    stage.write(*classic(STABLE, {"m-1": [0, 1, 2, 3, 4, 5]}))
    stage.commit(STABLE, 1)
    stage.commit(STABLE, {0: 7}, topic="u")
    page = open_page(f"{stage.url}/group/{STABLE}").page

    unread = page.locator("#offsets td.zero[title]").filter(has_text="u")
    expect(unread).to_have_attribute("title", "no member reads this topic any more")
    expect(page.locator("#offsets tbody tr")).to_have_count(PARTITIONS + 1)


def said_now(page: Page) -> Locator:
    """What the chart says of the moment at its end, by key."""
    page.locator(".panels").focus()
    page.keyboard.press("ArrowRight")
    return page.locator(".cursor-note")


def times(page: Page) -> list[str]:
    """Where the axis begins and ends, as the pointer says at its edges; a chart as wide as it is."""
    over = page.locator(".u-over").first
    box = over.bounding_box()
    assert box is not None
    said = []
    for x in (1, box["width"] - 2):
        over.hover(position={"x": x, "y": 40})
        said.append((page.locator(".cursor-note").text_content() or "").partition("\n")[0])
    return said


def test_lag_is_drawn_by_partition_and_in_seconds(stage: Stage, open_page: OpenPage) -> None:
    """Values at the pointer, by mouse and key; the legend switches lines; a drag zooms, a button takes it back."""
    stage.play_kinds()
    for _ in range(6):
        stage.move_log_ends(100)
        stage.sample_lag()
    page = open_page(f"{stage.url}/group/{STABLE}").page

    lines = page.locator(".panels .legend button")
    expect(lines).to_have_count(PARTITIONS + 1)
    expect(page.locator(".panel-name")).to_have_text(
        ["Lag by partition, records", "Lag time, oldest record not committed"]
    )
    expect(said_now(page)).to_be_visible()
    page.keyboard.press("ArrowLeft")
    expect(lines.first).to_have_text("partition 0600")
    lines.first.click()
    expect(lines.first).to_have_attribute("aria-pressed", "false")

    begin, end = times(page)
    over = page.locator(".u-over").first
    over.hover(position={"x": 100, "y": 40})
    page.mouse.down()
    over.hover(position={"x": 300, "y": 40})
    page.mouse.up()
    whole = page.get_by_role("button", name="Whole span")
    expect(whole).to_be_visible()
    zoomed_begin, zoomed_end = times(page)
    assert begin < zoomed_begin < zoomed_end < end
    expect(lines.first).to_have_attribute("aria-pressed", "false")
    whole.click()
    expect(whole).to_be_hidden()
    assert zoomed_end < times(page)[1]


def test_what_a_broker_would_refuse_is_said_in_the_words_of_the_gate(stage: Stage, open_page: OpenPage) -> None:
    """Every reason of the group has its sentence; the codes are no words."""
    members = [
        builders.member("own-assignor", assignment_bytes=builders.assignment({"t": [0, 1]}, user_data=b"data")),
        builders.member("undecodable", assignment_bytes=b"\x00"),
    ]
    stage.write(builders.group_metadata(STABLE, generation=3, members=members))

    page = open_page(f"{stage.url}/group/{STABLE}").page

    refused = page.locator("#warnings li", has_text="A broker would refuse to upgrade this group")
    codes = (ASSIGNMENT_USER_DATA, MALFORMED)
    expect(refused).to_have_count(len(codes))
    for code in codes:
        expect(refused.filter(has_text=BLOCKERS[code])).to_have_count(1)


def test_a_group_that_is_gone_says_so_and_comes_back(stage: Stage, open_page: OpenPage) -> None:
    """A page left open outlives its group: what happened stays, what is no more goes."""
    watched = open_page(f"{stage.url}/group/{SHARED}")
    page = watched.page
    expect(page.locator("#missing")).to_be_visible()

    stage.play_kinds()
    expect(page.locator("#missing")).to_be_hidden()
    expect(page.locator(".matrix td.owned")).to_have_count(8)

    stage.write(*happens.share_leave(SHARED, "share-a", epoch=3), *happens.share_leave(SHARED, "share-b", epoch=4))
    stage.write(*happens.share_group_deleted(SHARED))
    expect(page.locator("#missing")).to_be_visible()
    expect(page.locator(".matrix")).to_be_hidden()
    expect(page.locator("#events li").first).to_contain_text("The group was deleted")
    watched.expect_problem("404 (Not Found)")


def test_share_partitions_are_listed_with_what_was_given_up(stage: Stage, open_page: OpenPage) -> None:
    """Where delivery begins and is not done, lag as Kafka's tool has it, and that lag is not known without that log."""
    stage.write(*happens.share_join(SHARED, "share-a", epoch=1, targets={"share-a": {"t": [0, 1]}}))
    page = open_page(f"{stage.url}/group/{SHARED}").page
    expect(page.locator(".tile", has_text="Lag")).to_contain_text("was not looked for yet")
    expect(page.locator("#shares-section")).to_be_hidden()

    end = stage.log_end
    stage.write_shares(
        share_snapshot(SHARED, "t", 0, start_offset=end - 20),
        share_update(
            *(SHARED, "t", 0),
            *((end - 20, end - 12, 2, 1), (end - 11, end - 11, 4, 5), (end - 9, end - 9, 0, 3)),
            delivery_complete_count=10,
        ),
    )
    row = page.locator("#shares tbody tr")
    expect(row).to_have_count(1)
    texts = [cell.replace(",", "") for cell in row.locator("td").all_inner_texts()]
    assert ["t", "0", str(end - 20), str(end - 10), "10"] == texts[:5]
    assert ["1", "3", "1", "0"] == texts[6:]
    expect(page.locator("#events li").first).to_contain_text("given up")

"""Figures are said alike: on the page as in the terminal."""

from typing import Any

from coordinator_model.kinds import words
from streaming.board.attention import LAG_GROWS
from tests.page.browser import OpenPage
from tests.page.stage import Stage

SECONDS = (
    0,
    0.0004,
    0.04,
    0.094,
    0.095,
    0.25,
    0.44,
    9.94,
    9.96,
    12.5,
    59.4,
    59.7,
    60,
    200,
    3_599.6,
    7_500,
    86_400,
    1e6,
)
SHARES = ((0, 0), (0, 3), (1, 3), (2, 3), (299, 300), (300, 300))
NUMBERS = ((), (3,), (0, 1), (0, 1, 2, 7), (1, 3, 4, 5, 6, 9))


def test_durations_and_shares_are_rounded_alike(stage: Stage, open_page: OpenPage) -> None:
    """Milliseconds to days, percents, and runs of partitions."""
    page = open_page(stage.url).page
    said: list[Any] = page.evaluate(
        """async ([seconds, shares, numbers]) => {
            const { duration, percent, ranges } = await import("/page/common.js");
            return [seconds.map(duration), shares.map(([done, all]) => percent(done, all)), numbers.map(ranges)];
        }""",
        [SECONDS, SHARES, NUMBERS],
    )

    assert [list(map(words.duration, SECONDS))] == said[:1]
    assert [words.percent(*share) for share in SHARES] == said[1]
    assert list(map(words.ranges, NUMBERS)) == said[2]


def test_trend_says_what_the_groups_reasons_say(stage: Stage, open_page: OpenPage) -> None:
    """A lag that grows by little is level alone, and rises where *lag grows* stands beside it."""
    page = open_page(stage.url).page
    said: list[str] = page.evaluate(
        """async ([values, reasons]) => {
            const { drawTrend } = await import("/page/trends.js");
            return reasons.map((attention) => {
                const cell = document.createElement("td");
                drawTrend(cell, values, values.at(-1), attention);
                return cell.textContent;
            });
        }""",
        [[1_000] * 59 + [1_004], [[], [{"text": f"{LAG_GROWS} and nothing is committed"}]]],
    )

    assert ["level", "rising"] == said

"""Groups on a terminal: what needs a look first, figures whole at any width, hostile names harmless."""

import io
from typing import Any

import pytest
from rich.console import Console, RenderableType

from lab import builders
from lab import coordinator_events as happens
from streaming.board import group_answer
from streaming.board.board import Board
from streaming.cli.render.plain import groups_table
from streaming.cli.render.rich_view import believed, event_lines, group_picture, groups_picture, summary_line
from tests.streaming.board_rows import Shard
from tests.streaming.boards import NOW_MS, THEN_MS, board_of, classic_group, log_ends, sample

HOSTILE = ("line\nbreak", "\x1b[31mred\x1b[0m", "\u202egnp.exe", "[bold]markup[/bold]", " ", "x" * 1_000, "[/red]")


def shown(picture: RenderableType, width: int = 120) -> list[str]:
    """Lines as a terminal of that width gets them, without colours."""
    console = Console(file=io.StringIO(), width=width, force_terminal=False)
    console.print(picture)
    assert isinstance(console.file, io.StringIO)
    return console.file.getvalue().rstrip("\n").split("\n")


def some_board() -> Board:
    """A stable classic group with lag, one between protocols, one with a partition owned twice."""
    shard = Shard()
    sample(ends := log_ends(t=3), NOW_MS - 30_000, "t", 0, 0, 0)
    sample(ends, NOW_MS, "t", 2_000_000, 120, 100)
    classic_group(shard, "billing", {"billing-1": {"t": [0, 1]}, "billing-2": {"t": [2]}})
    old = {"a": {"t": [0, 1]}, "b": {"t": [2]}}
    events = [
        [builders.offset_commit("billing", "t", partition, 100) for partition in range(3)],
        happens.converted_to_consumer("rolled", generation=3, members=old),
        happens.consumer_join("rolled", "c", epoch=4, targets={**old, "c": {"t": []}}),
        happens.consumer_moves("rolled", "a", epoch=3, assigned={"t": [0]}, pending={"t": [1]}, state=1),
        happens.consumer_join("twice", "one", epoch=1, targets={"one": {"t": [0, 1]}}),
        happens.consumer_join("twice", "two", epoch=2, targets={"one": {"t": [0, 1]}, "two": {"t": [2]}}),
        happens.consumer_moves("twice", "one", epoch=2, assigned={"t": [0, 1, 2]}),
    ]
    shard.pending += [(THEN_MS, *record) for records in events for record in records]
    return board_of(shard, ends)


def group(name: str) -> dict[str, Any]:
    found = group_answer.view(some_board(), name, NOW_MS)
    assert found is not None
    return found


def test_what_needs_a_look_stands_first() -> None:
    """The worst on top with its reason, what is well after it by name, and a summary of all."""
    groups = list(group_answer.views(some_board(), NOW_MS))
    lines = shown(groups_picture(groups, 120))

    assert ["twice", "rolled", "billing"] == [line.strip("! ").split()[0] for line in lines[1:]]
    assert lines[1].startswith("!")
    assert lines[1].rstrip().endswith("1 partition owned twice")
    assert "mixed 1/3" in lines[2]
    assert ["3 groups  1 critical, 0 warnings  lag 1,999,920  1 between protocols"] == shown(summary_line(groups))


@pytest.mark.parametrize("width", [40, 60, 80, 100, 120, 200])
def test_figures_are_whole_at_any_width(width: int) -> None:
    """Names give way, columns are left out; no figure is ever cut, and no row takes two lines."""
    lines = shown(groups_picture(list(group_answer.views(some_board(), NOW_MS)), width), max(width, 50))

    assert 4 == len(lines)
    assert "1,999,920" in lines[3]
    assert "1/3" in lines[2]


@pytest.mark.parametrize("length", [55, 32_000])
@pytest.mark.parametrize("width", [76, 80, 110])
def test_a_long_name_cuts_no_other_column(width: int, length: int) -> None:
    """Names of groups, topics and members give way to what is right of them, however long a client made them."""
    shard, name = Shard(), ("settlement-" * length)[:length]
    classic_group(shard, name, {name: {name: [0]}})
    shard.pending.append((THEN_MS, *builders.offset_commit(name, name, 0, 1_999_920)))
    board = board_of(shard)
    listed = shown(groups_picture(list(group_answer.views(board, NOW_MS)), width), width)
    whole = group_answer.view(board, name, NOW_MS)
    assert whole is not None
    text = "\n".join(shown(group_picture(whole, [], width, NOW_MS), width))

    assert 2 == len(listed)
    assert "MIGRATION" in listed[0]
    assert "classic" in listed[1]
    assert "1,999,920" in text
    assert "LAG TIME" in text
    assert {"STATE", "OWNS"} <= set(text.split())


def test_lag_that_is_not_known_is_no_lag_of_0() -> None:
    """The summary counts what is known; one group is one group."""
    shard = Shard()
    classic_group(shard, "one", {"a": {"t": [0]}})
    board = board_of(shard)

    assert ["1 group  nothing needs a look  lag -"] == shown(summary_line(list(group_answer.views(board, NOW_MS))))


def test_lag_that_is_known_in_part_is_a_lower_bound() -> None:
    """In the row, in the sum of all and of one group; without any figure it stays a dash."""
    shard = Shard()
    sample(ends := log_ends(t=2), NOW_MS, "t", 140)
    for name, partitions in (("one", (0, 1)), ("none", (1,))):
        classic_group(shard, name, {"a": {"t": [0, 1]}})
        shard.pending += [(THEN_MS, *builders.offset_commit(name, "t", partition, 100)) for partition in partitions]
    groups = list(group_answer.views(board_of(shard, ends), NOW_MS))
    row = next(line for line in shown(groups_picture(groups, 120)) if line.strip().startswith("one"))
    (one,) = (of for of in groups if of["group"] == "one")

    assert shown(summary_line(groups)) == ["2 groups  nothing needs a look  lag ≥ 40"]
    assert ["≥", "40"] == row.split()[4:6]
    assert "lag ≥ 40, > 0 s (not known of 1 partition)" in shown(group_picture(one, (), 120, NOW_MS))[0]
    assert [">=", "40"] == groups_table([one]).split("\n")[1].split()[-4:-2]


def test_a_group_is_shown_with_its_matrix() -> None:
    """Members by partitions: owned, to be revoked, waited for; lag above, reasons and events around."""
    board = some_board()
    lines = shown(group_picture(group("rolled"), board.latest_events(5, group="rolled"), 120, NOW_MS))

    assert lines[0].startswith("rolled  Reconciling  consumer  epoch 4 (assignment 4)")
    assert "info: rebalancing for 10 s" in lines
    (first,) = [line for line in lines if line.startswith("client · a") and "●" in line]
    assert ["●", "◐", "·"] == first.split()[3:]
    assert "to be revoked t:1" in "\n".join(lines)
    assert any("A rebalance to epoch 4 began" in line for line in lines)


def test_a_partition_owned_twice_is_marked_in_both_rows() -> None:
    """As on the page."""
    lines = shown(group_picture(group("twice"), [], 120, NOW_MS))

    assert "critical: 1 partition owned twice" in lines
    assert 2 == sum(line.rstrip().endswith("!") for line in lines)


def test_a_matrix_that_does_not_fit_is_left_to_the_list() -> None:
    """On a narrow terminal who owns what is reported in words."""
    narrow = "\n".join(shown(group_picture(group("rolled"), [], 20, NOW_MS), 60))

    assert "◐" not in narrow
    assert "t:0" in narrow


@pytest.mark.parametrize("name", HOSTILE)
def test_hostile_names_steer_nothing(name: str) -> None:
    """No control character, no markup and no line break of a name reaches the terminal; an empty look is quoted."""
    shard = Shard()
    member = builders.member(name, {"t": [0]}, instance_id=name, client_id=name, client_host=name)
    shard.pending.append((THEN_MS, *builders.group_metadata(name, generation=1, members=[member])))
    shard.pending.append((THEN_MS, *builders.offset_commit(name, "t", 0, 1, metadata=name)))
    board = board_of(shard)
    found = list(group_answer.views(board, NOW_MS))
    events = board.latest_events(10)

    lines = shown(groups_picture(found, 80), 80)
    assert 2 == len(lines)
    assert lines[1].strip("! ").startswith(("line\\x0a", "\\x1b[31m", "\\x202e", "[bold]", "“ ”", "xxx", "[/red]"))
    everything = [
        *lines,
        *shown(group_picture(found[0], events, 80, NOW_MS), 80),
        *(line for event in event_lines(events, with_group=True) for line in shown(event, 80)),
    ]
    assert [] == [line for line in everything if not line.isprintable()]


def test_rows_under_doubt_have_no_colour() -> None:
    """Green is for what is known now: those of a moment before are drawn as they are, in one colour."""
    groups = list(group_answer.views(some_board(), NOW_MS))
    console = Console(width=120, file=io.StringIO(), force_terminal=True, color_system="standard")
    doubt = {"reason": "no answer from the brokers", "since": NOW_MS, "as_of": NOW_MS}

    def colours(picture: RenderableType) -> set[str]:
        styles = [segment.style for segment in console.render(picture)]
        return {style.color.name for style in styles if style and style.color}

    plain = groups_picture(groups, 120)
    assert {"green", "red", "yellow"} <= colours(plain) == colours(believed(lambda: plain, None))
    assert {"yellow"} == colours(believed(lambda: plain, doubt))

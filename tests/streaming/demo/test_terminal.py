"""What the demo shows: lines where output is piped, a table on a terminal."""

import io
import threading
from typing import Any

import pytest
from rich.console import Console, Group

from streaming.demo.terminal import Terminal, event_line, event_rows, groups_table

EVENT: dict[str, Any] = {
    "time": 1_795_246_819_567,
    "group": "orders-service",
    "kind": "upgrade_completed",
    "severity": "info",
    "partition": 7,
    "offset": 41,
    "detail": {"members": 3, "online": True},
    "inferred": False,
}


def group(name: str, **changes: Any) -> dict[str, Any]:
    shown = {
        "group": name,
        "type": "consumer",
        "state": "Stable",
        "epoch": 8,
        "members": [{"protocol": "classic"}, {"protocol": "consumer"}, {"protocol": "consumer"}],
        "migration": {"phase": "upgrading"},
        "lag": 42,
    }
    return {**shown, **changes}


class TerminalOutput(io.StringIO):
    def isatty(self) -> bool:
        return True


def drawn(renderable: Any) -> list[str]:
    output = io.StringIO()
    Console(file=output, width=120).print(renderable)
    return [line.rstrip() for line in output.getvalue().splitlines()]


def test_an_event_is_one_line() -> None:
    """A line is time, kind, group and a sentence."""
    said = "The upgrade is complete: 3 members on the consumer protocol"
    expected = f"2026-11-21T07:40:19.567Z upgrade_completed orders-service {said}"

    assert expected == event_line(EVENT)


def test_a_hostile_name_stays_on_its_line() -> None:
    """A group's name cannot end the line it stands on, nor steer the terminal."""
    assert "a\\x0ab\\x1b[2J" in event_line({**EVENT, "group": "a\nb\x1b[2J"})


def test_half_a_log_is_said_and_has_no_colour() -> None:
    """Above the groups that are there so far stands since when the log is read; at its end that is gone."""
    doubts: list[Any] = [{"reason": "the monitor is still reading the log", "since": EVENT["time"], "far": "42 % read"}]
    terminal = Terminal(lambda: [group("g")], address="", doubt=lambda: doubts[-1], output=TerminalOutput())
    console = Console(file=io.StringIO(), width=120, force_terminal=True, color_system="standard")

    def green() -> bool:
        styles = [segment.style for segment in console.render(terminal.picture())]
        return any(style.color.name == "green" for style in styles if style and style.color)

    said = "not known yet: the monitor is still reading the log, since 2026-11-21 07:40:19 UTC: 42 % read"
    assert said in drawn(terminal.picture())
    assert not green()

    doubts.append(None)
    assert not any("not known" in line for line in drawn(terminal.picture()))
    assert green()


def test_piped_output_holds_events_only() -> None:
    """Where output is no terminal, events are lines there and steps are remarks elsewhere."""
    output, remarks = io.StringIO(), io.StringIO()
    terminal = Terminal(list, address="http://127.0.0.1:9464/", output=output, remarks=remarks)

    terminal.step("a member joins")
    terminal.event(EVENT)

    assert f"{event_line(EVENT)}\n" == output.getvalue()
    assert "demo: a member joins\n" == remarks.getvalue()


def test_piped_output_ends_with_the_event_it_is_given() -> None:
    """Without a terminal there is nothing to draw, and running is waiting."""
    stopping = threading.Event()
    output = io.StringIO()
    runner = threading.Thread(target=Terminal(list, address="", output=output).run, args=(stopping,))
    runner.start()
    stopping.set()
    runner.join(5)

    assert not runner.is_alive()
    assert "" == output.getvalue()


def test_members_are_counted_by_protocol() -> None:
    """A row shows how many members speak which protocol, and what the group lags in all."""
    header, row = drawn(groups_table([group("orders-service")]))

    assert ["GROUP", "TYPE", "STATE", "EPOCH", "CLASSIC", "CONSUMER", "MIGRATION", "LAG"] == header.split()
    assert ["orders-service", "consumer", "Stable", "8", "1", "2", "upgrading", "42"] == row.split()


def test_lag_that_is_not_known_is_a_dash() -> None:
    """Where no lag is known, there is no figure."""
    assert "-" == drawn(groups_table([group("g", lag=None)]))[1].split()[-1]


def test_groups_are_in_order_of_their_names() -> None:
    """Rows stay where they are from one second to the next."""
    rows = drawn(groups_table([group("b"), group("a"), group("[bold]c")]))[1:]

    assert ["[bold]c", "a", "b"] == [row.split()[0] for row in rows]


def test_the_picture_holds_address_groups_events_and_steps() -> None:
    """A terminal shows where the page is, the groups, the last events and what the demo does."""
    terminal = Terminal(lambda: [group("g")], address="http://127.0.0.1:9464/", output=TerminalOutput())
    terminal.event(EVENT)
    terminal.step("a member joins")

    lines = drawn(terminal.picture())

    assert terminal.is_live
    assert lines[0].startswith("http://127.0.0.1:9464/")
    assert any(line.startswith("g ") for line in lines)
    assert any("07:40:19.567Z" in line and "The upgrade is complete" in line for line in lines)
    assert "a member joins" == lines[-1]


def test_a_small_terminal_shows_all_figures_and_the_latest_step(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of the usual 80 columns and 24 lines: no figure is cut, and events give way to what is done right now."""
    monkeypatch.setenv("COLUMNS", "80")
    monkeypatch.setenv("LINES", "24")
    names = ("audit-trail", "nightly-export", "orders-service", "payments-service")
    rolled = [group(name, state="Reconciling", migration={"phase": "downgrading"}, lag=123_456) for name in names]
    doubt = {"reason": "the monitor is still reading the log", "since": EVENT["time"], "far": "42 % read"}
    terminal = Terminal(lambda: rolled, address="", doubt=lambda: doubt, output=TerminalOutput())
    for number in range(20):
        terminal.event({**EVENT, "time": EVENT["time"] + number})
        terminal.step(f"payments-service: step {number}, which takes more room than one line of this terminal has")

    output = io.StringIO()
    Console(file=output, width=80, height=24).print(terminal.picture())
    lines = [line.rstrip() for line in output.getvalue().splitlines()]

    assert 24 == len(lines)
    assert ["payments-service: step 19, which takes more room than one line of this terminal", "has"] == lines[-2:]
    assert any(line.startswith("07:40:19.586Z") for line in lines)
    rows = [line for line in lines if "Reconciling" in line]
    assert ["downgrading 123456"] * 4 == [line[-18:] for line in rows]


def test_a_long_detail_is_cut_at_the_edge() -> None:
    """Time and group keep their places whatever the detail holds; an event stays on one row."""
    long = {**EVENT, "kind": "member_left", "detail": {"member_id": "m" * 500}}
    rows = drawn(Group(*event_rows([EVENT, long])))

    assert 2 == len(rows)
    assert all(row.startswith("07:40:19.567Z  orders-service  ") for row in rows)
    assert rows[1].endswith("…")

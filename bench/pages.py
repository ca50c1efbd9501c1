"""Puts figures into pages of docs/ and draws them: `python -m bench.pages [--check]`.

What a page says in words is written by hand and speaks of no single figure; between a line `<!-- figures: NAME -->` and
`<!-- end of figures -->` stands what `bench/results.json` holds, put there by this command. Charts are whole files.
"""

import argparse
import re
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import Any, Final

from bench import model, results
from bench.charts import Bar, chart
from bench.figures import rounded
from bench.goals import BATCH_COSTS, GOALS, Figures, Goal, all_figures
from bench.tables import reported, spread, spread_of, table

DOCS: Final = Path(__file__).resolve().parent.parent / "docs"
PAGES: Final = ("performance.md", "lab.md", "scale.md")
COMMAND: Final = "python -m bench.pages"

_BLOCK: Final = re.compile(r"(<!-- figures: ([\w-]+) -->\n).*?(<!-- end of figures -->)", re.DOTALL)
_NONE: Final = model.NOT_MEASURED
_REPORTED_PARTS: Final = {
    "catch-up": "Catch-up",
    "latency": "Commit to metric",
    "events": "Join or leave to event",
    "wide-group": "A wide group",
    "storm": "A storm of rebalances",
    "memory": "Memory",
    "metrics": "The page of metrics",
    "restart": "Restart",
    "idle": "An idle cluster",
    "replay": "Replay of a recording",
    "peers": "As beside other monitors",
    "million-machine": "Many groups on one machine",
    "million-cluster": "A million groups, share by share",
}


def main(arguments: Sequence[str] | None = None) -> int:
    """Write, or with `--check` compare; the exit status is 1 where something is not as it should be."""
    parser = argparse.ArgumentParser(prog=COMMAND, description="Write what was measured into the pages.")
    parser.add_argument("--check", action="store_true", help="compare with what is written, and write nothing")
    parser.add_argument("--out", type=Path, default=DOCS, metavar="DIR", help="where the pages are")
    options = parser.parse_args(arguments)
    stale = []
    for name, text in files(results.load(), options.out).items():
        file = options.out / name
        if file.is_file() and file.read_text(encoding="utf-8") == text:
            continue
        stale.append(name)
        if not options.check:
            file.parent.mkdir(parents=True, exist_ok=True)
            file.write_text(text, encoding="utf-8")
    if options.check and stale:
        sys.stderr.write(f"error: {options.out}: {', '.join(stale)} stale; run `{COMMAND}` and commit the result\n")
        return 1
    return 0


def files(held: Mapping[str, Any], docs: Path) -> dict[str, str]:
    """File name → text of every page, with these results in it, and of every chart.

    Raises:
        KeyError: a page asks for figures that there is no such name of.
    """
    made = {
        name: _BLOCK.sub(
            lambda block: f"{block[1]}\n{FRAGMENTS[block[2]](held)}\n\n{block[3]}", (docs / name).read_text("utf-8")
        )
        for name in PAGES
    }
    figures = all_figures(held)
    return made | {f"pictures/{name}.svg": text for name, text in charts(figures).items()}


def charts(figures: Figures) -> dict[str, str]:
    """Name → SVG."""
    shares = [
        Bar(
            label=SHORT[number],
            median=100 * _share(goal, measured.median),
            lowest=100 * _share(goal, measured.lowest),
            highest=100 * _share(goal, measured.highest),
            goal=100,
        )
        for number, goal in enumerate(GOALS)
        if (measured := _measured(goal, figures)) is not None
    ]
    drawn = {"performance-goals": chart("Share of each goal that is used up (dashed: the goal)", shares, "%")}
    for name, title, unit, rows in CHARTS:
        drawn[f"performance-{name}"] = chart(
            title, [_bar(label, figures[of]) for label, of in rows if of in figures], unit
        )
    return drawn


SHORT: Final = (
    "catch-up by bare Spark read",
    "catch-up, records/s",
    "cold start",
    "memory after it",
    "commit to metric, median",
    "commit to metric, 99 %",
    "processor at 1,000 commits/s",
    "join or leave to event, 99 %",
    "batches by size of state",
    "wide group by narrow one",
    "storm of rebalances",
    "first start, 100,000 groups",
    "memory",
    "board, bytes a group",
    "the driver's sums",
    "series of a quiet group",
    "first page of metrics",
    "page of metrics",
    "batches during that page",
    "restart",
    "idle",
    "a million groups: catch-up",
    "a million groups: restart",
    "a million groups: page",
    "a million groups: memory",
)
"""What the chart calls each goal, in their order."""

CHARTS: Final[tuple[tuple[str, str, str, tuple[tuple[str, str], ...]], ...]] = (
    (
        "catch-up",
        "The same log read to its end",
        "s",
        (
            ("plain client that only reads", "catch-up/plain_read_seconds"),
            ("bare Spark read", "catch-up/bare_spark_seconds"),
            ("catch-up, warm", "catch-up/seconds"),
            ("process started, until ready", "catch-up/cold_ready_seconds"),
        ),
    ),
    (
        "latency",
        "Commit to metric, 1,000 commits a second",
        "s",
        (
            ("acknowledged to the producer, median", "latency/ack_p50_seconds"),
            ("acknowledged, 99 %", "latency/ack_p99_seconds"),
            ("visible, median", "latency/p50_seconds"),
            ("visible, 99 %", "latency/p99_seconds"),
            ("micro-batch, median", "latency/batch_p50_seconds"),
        ),
    ),
    (
        "batch-cost",
        "Micro-batches under the same 1,000 commits a second",
        "s",
        tuple(
            (f"{int(part.rpartition('-')[2]):,} groups, {label}", f"{part}/batch_{key}_seconds")
            for part in BATCH_COSTS
            for label, key in (("median", "p50"), ("99 %", "p99"))
        ),
    ),
    (
        "memory",
        "Memory at 100,000 groups and 300,000 offsets, by process",
        "MiB",
        (
            ("driver: board, page, samplers", "memory/pss_mib of monitor (Python)"),
            ("Spark's JVM", "memory/pss_mib of Spark (JVM)"),
            ("Spark's Python workers", "memory/pss_mib of Spark's Python workers"),
        ),
    ),
)


def _bar(label: str, held: Mapping[str, Any]) -> Bar:
    return Bar(
        label=label,
        median=held["median"],
        lowest=held["lowest"],
        highest=held["highest"],
        reference=held["reference"],
    )


def _measured(goal: Goal, figures: Figures) -> Any:  # noqa: ANN401 - Measured or nothing
    try:
        return goal.value(figures)
    except KeyError:
        return None


def _share(goal: Goal, value: float) -> float:
    """How much of a goal a value uses up: 1 is all of it."""
    return value / goal.limit if goal.at_most is not None else goal.limit / value


def _goals(held: Mapping[str, Any]) -> str:
    figures = all_figures(held)
    rows = []
    for goal in GOALS:
        measured = _measured(goal, figures)
        bound = f"{'≤' if goal.at_most is not None else '≥'} {goal.limit:,g} {goal.unit}"
        if measured is None:
            rows.append((goal.what, bound, _NONE, "", "", goal.limits))
            continue
        verdict = "met" if goal.is_met(measured) else "**missed**"
        shown = f" ({spread(measured.lowest, measured.highest)})" if measured.highest > measured.lowest else ""
        references = "; ".join(
            f"{label}: {reported(figures[name])}" for name, label in goal.references if name in figures
        )
        rows.append(
            (goal.what, bound, f"{rounded(measured.median):,g}{shown}", references or "-", verdict, goal.limits)
        )
    return table(("goal", "limit", "measured (spread)", "reference in the same run", "", "what limits it"), rows)


def _machine(held: Mapping[str, Any]) -> str:
    of = held["machine"]
    if not of:
        return _NONE
    dates = sorted({part["date"] for part in held["parts"].values()})
    return (
        f"{of['cores']} cores ({of['processor']}), {of['memory_gib']} GiB, {of['system']}, Python {of['python']}, "
        f"Java {of['java']}, Spark {of['spark']}; measured {' to '.join(dict.fromkeys((dates[0], dates[-1])))}. "
        "Broker, load and measuring run on the same cores."
    )


def _parts(held: Mapping[str, Any]) -> str:
    """All figures of every part that has a heading of its own."""
    sections = []
    for name, title in _REPORTED_PARTS.items():
        part = held["parts"].get(name)
        if part is None:
            continue
        sizes = ", ".join(f"{measure} {value:,g}" for measure, value in part["size"].items())
        sections.append(f"### {title}\n\n`{name}`: {sizes}.\n\n{_figure_table(part['figures'])}")
    return "\n\n".join(sections) or _NONE


def _batch_cost(held: Mapping[str, Any]) -> str:
    rows = []
    for name in BATCH_COSTS:
        part = held["parts"].get(name)
        if part is not None:
            figures = part["figures"]
            names = ("batch_p50_seconds", "batch_p99_seconds", "cpu_seconds_a_batch", "cpu_share", "others_share")
            rows.append((f"{part['size']['groups']:,g}", *(reported(figures[each], unit=False) for each in names)))
    heads = (
        "groups in state",
        "median, s",
        "99th hundredth, s",
        "processor time a batch, s",
        "cores used",
        "by others",
    )
    return table(heads, rows) if rows else _NONE


def _slopes(held: Mapping[str, Any]) -> str:
    rows = [
        (
            law.what,
            law.grows_with,
            _NONE if (slope := law.slope(all_figures(held))) is None else law.reported(slope),
            law.ends,
        )
        for law in model.LAWS
    ]
    return table(("what", "grows with", "measured", "where one machine ends"), rows)


def _cluster(held: Mapping[str, Any]) -> str:
    rows = model.cluster(all_figures(held))
    heads = (
        "executors",
        "groups an executor",
        "its state, GiB",
        "first catch-up, s",
        "micro-batch, s",
        "driver's process, GiB",
        "restart, s",
    )
    return table(heads, rows) if rows else _NONE


def _limits(held: Mapping[str, Any]) -> str:
    return table(*model.measured(all_figures(held)))


FRAGMENTS: Final[Mapping[str, Callable[[Mapping[str, Any]], str]]] = {
    "goals": _goals,
    "machine": _machine,
    "parts": _parts,
    "batch-cost": _batch_cost,
    "slopes": _slopes,
    "cluster": _cluster,
    "limits": _limits,
}


def _figure_table(figures: Mapping[str, Mapping[str, Any]]) -> str:
    rows = [
        (
            name.replace("_", " ") + (" (reference)" if of["reference"] else ""),
            f"{of['median']:,g}",
            spread_of(of),
            of["unit"],
        )
        for name, of in figures.items()
    ]
    return table(("figure", "median", "spread", "unit"), rows)


if __name__ == "__main__":
    sys.exit(main())

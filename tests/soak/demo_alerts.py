"""`make soak-alerts MINUTES=30`: the healthy demo under a real Prometheus, and which alerts come of it.

    EXPECTED            what may fire, each with its reason; what else fires, or what of this does not, is a failure
    demo_samples.txt    the samples that alerts read, kept by WRITE=1; in `make test` promtool replays them

A line of samples is a series in promtool's own notation, so many equal values in a row written once: `0x119` is 120
zeros, `_x4` four scrapes without it, `stale` its end.
"""

import argparse
import json
import os
import sys
import tempfile
import time
from collections.abc import Iterator, Sequence
from contextlib import ExitStack
from itertools import groupby
from pathlib import Path
from typing import Any, Final

from dashboards.alerts import ALERTS
from dashboards.build import GENERATED, RULES
from dashboards.signals import SIGNALS
from lab.monitor_process import CommandProcess, until
from streaming.demo.scenario import ROLLED_GROUP
from tests.dashboards.prometheus_tools import answer, running_prometheus

SAMPLES: Final = Path(__file__).parent / "demo_samples.txt"
EVERY_SECONDS: Final = 15
"""Between two scrapes, and two looks of the rules: as most who run Prometheus have it."""

UP_SECONDS: Final = 240.0
SHOWN_SECONDS: Final = 60.0

EXPECTED: Final = {
    ("KafkaGroupUnexpectedDowngrade", ROLLED_GROUP): "the demo takes it back to the classic protocol, again and again",
    ("KafkaGroupUnexpectedUpgrade", ROLLED_GROUP): "the demo converts it, again and again, and announces it to no one",
}
"""(alert, group) → why it fires although all is well."""

Fired = set[tuple[str, str]]

FIRED: Final = 'max by (alertname, group) (max_over_time(ALERTS{{alertstate="firing"}}[{seconds}s]))'


def main() -> int:
    """Run; returns 1 where something else fired than is expected."""
    parser = argparse.ArgumentParser(prog="make soak-alerts", description=__doc__)
    parser.add_argument("--minutes", type=float, default=30.0)
    parser.add_argument("--write", action="store_true", help=f"keep the samples in {SAMPLES.name}, for the tests")
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="soak-alerts-") as made, ExitStack() as stack:
        directory = Path(made)
        environment = {"TMPDIR": made, "COLUMNS": "80"}
        demo = stack.enter_context(
            CommandProcess(directory / "demo", "demo", "--set", "http.port=0", environment=environment)
        )
        until(lambda: bool(demo.output_lines()) or demo.exit_status is not None, UP_SECONDS, "no address is printed")
        assert demo.exit_status is None, demo.error_lines()
        target = demo.output_lines()[0].split()[1].rstrip("/").removeprefix("http://")
        prometheus = stack.enter_context(running_prometheus(directory, scraping(target)))
        seconds = round(60 * options.minutes)
        watch(demo, prometheus, seconds)
        fired = fired_within(prometheus, seconds)
        kept = list(samples(prometheus, seconds))
    if options.write:
        SAMPLES.write_text("".join(f"{line}\n" for line in kept), encoding="utf-8")
    for name, group in sorted(fired | EXPECTED.keys()):
        what = (
            ("expected" if (name, group) in EXPECTED else "NOT EXPECTED") if (name, group) in fired else "DID NOT FIRE"
        )
        _say(f"{what:<12} {name} {group}  {EXPECTED.get((name, group), '')}".rstrip())
    _say(f"{kept[0][2:]}; {len(kept) - 1} series; load average at the end {os.getloadavg()[0]:.1f}")
    return 0 if fired == EXPECTED.keys() else 1


def watch(demo: CommandProcess, prometheus: str, seconds: int) -> None:
    """Wait so long, and say once a minute what is pending or fires."""
    begun = time.monotonic()
    while (gone := time.monotonic() - begun) < seconds:
        time.sleep(min(SHOWN_SECONDS, seconds - gone))
        assert demo.exit_status is None, demo.error_lines()
        now = sorted(
            f"{of['alertname']} {of.get('group', '')} {of['alertstate']}"
            for of in (each["metric"] for each in answer(prometheus, "ALERTS"))
        )
        _say(f"{(time.monotonic() - begun) / 60:4.1f} min  {'; '.join(now) or 'no alert'}")


def fired_within(prometheus: str, seconds: int) -> Fired:
    """(alert, group) of all that fired in the last seconds; no group where it is not about one."""
    found = (each["metric"] for each in answer(prometheus, FIRED.format(seconds=seconds)))
    return {(of["alertname"], of.get("group", "")) for of in found}


def samples(prometheus: str, seconds: int) -> Iterator[str]:
    """How many scrapes, and what they had of each series that alerts read, a line each, without job and instance."""
    found = [each for name in metrics() for each in answer(prometheus, f"{name}[{seconds}s]")]
    begun = min(float(each["values"][0][0]) for each in found)
    scrapes = 1 + max(_scrape(each["values"][-1][0], begun) for each in found)
    yield f"# {scrapes} scrapes, {EVERY_SECONDS} s apart"
    for each in found:
        values: list[str | None] = [None] * scrapes
        for moment, value in each["values"]:
            values[_scrape(moment, begun)] = f"{float(value):.10g}"
        labels = {name: value for name, value in each["metric"].items() if name not in ("__name__", "instance", "job")}
        text = ", ".join(f"{name}={json.dumps(value)}" for name, value in sorted(labels.items()))
        yield f"{each['metric']['__name__']}{{{text}}} {encoded(values)}"


def metrics() -> list[str]:
    """Names of all metrics that alerts read."""
    return sorted({metric for alert in ALERTS for signal in alert.signals for metric in SIGNALS[signal].metrics})


def encoded(values: Sequence[str | None]) -> str:
    """Values, one a scrape, in promtool's notation; a series that is not scraped any more is stale from then on."""
    words = []
    for value, run in groupby(values):
        many = len(list(run))
        if value is not None:
            words.append(value if many == 1 else f"{value}x{many - 1}")
            continue
        if words:
            words.append("stale")
            many -= 1
        words += [f"_x{many}"] if many else []
    return " ".join(words)


def replayed(text: str) -> dict[str, Any]:
    """A file for `promtool test rules`: of these samples come the alerts of `EXPECTED`, and no other."""
    head, *lines = text.splitlines()
    seconds = EVERY_SECONDS * (int(head.split()[1]) - 1)
    series = [dict(zip(("series", "values"), line.split("} ", 1), strict=True)) for line in lines]
    expected = [
        {"labels": f'{{alertname="{name}", group="{group}"}}' if group else f'{{alertname="{name}"}}', "value": 1}
        for name, group in EXPECTED
    ]
    asked = {"expr": FIRED.format(seconds=seconds), "eval_time": f"{seconds}s", "exp_samples": expected}
    test = {
        "interval": f"{EVERY_SECONDS}s",
        "input_series": [{**each, "series": each["series"] + "}"} for each in series],
        "promql_expr_test": [asked],
    }
    return {"rule_files": [str(GENERATED / RULES)], "evaluation_interval": f"{EVERY_SECONDS}s", "tests": [test]}


def scraping(target: str) -> str:
    """Prometheus's configuration: the committed rules, and the demo's monitor."""
    return json.dumps(
        {
            "global": {"scrape_interval": f"{EVERY_SECONDS}s", "evaluation_interval": f"{EVERY_SECONDS}s"},
            "rule_files": [str(GENERATED / RULES)],
            "scrape_configs": [{"job_name": "group-monitor", "static_configs": [{"targets": [target]}]}],
        }
    )


def _scrape(moment: float, begun: float) -> int:
    return round((float(moment) - begun) / EVERY_SECONDS)


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

"""`make histories HISTORIES=2000`: random lawful histories by Kafka's own coordinator, and no alarm without a cause.

Of each ten seeds one has subscriptions of older versions, and one has brokers whose clocks are set.
"""

import argparse
import gc
import sys
import tempfile
from collections import Counter
from pathlib import Path
from typing import Final

from tests.simulator.kafka.judged import alarms, explanation, judged, unexplained
from tests.simulator.kafka.jvm import Kind, lawful_histories

PROGRESS_EVERY: Final = 100


def main() -> int:
    """Run; returns 1 where something was found."""
    parser = argparse.ArgumentParser(prog="make histories", description=__doc__)
    parser.add_argument("--histories", type=int, default=2_000)
    parser.add_argument("--seed", type=int, default=0, help="of the first; the others count on from there")
    options = parser.parse_args()
    kinds: Counter[tuple[str, str, str]] = Counter()
    found = records = 0
    gc.disable()  # as `replay` does
    with tempfile.TemporaryDirectory(prefix="histories-") as directory, lawful_histories(Path(directory)) as histories:
        for seed in range(options.seed, options.seed + options.histories):
            history = histories.of(seed, kind_of(seed))
            said = judged(history)
            records += history.records
            kinds.update((of.kind, of.severity, explanation(of, history) or "nothing") for of in alarms(said))
            for line in unexplained(history, said):
                found += 1
                _say(f"seed {seed} ({history.kind}), {line}")
            gc.collect()
            if (seed + 1) % PROGRESS_EVERY == 0:
                _say(f"{seed + 1 - options.seed} of {options.histories}")
    _say("\n| kind | severity | explained by | alarms |\n|---|---|---|---|")
    for (kind, severity, deed), count in sorted(kinds.items()):
        _say(f"| {kind} | {severity} | {deed} | {count} |")
    _say(f"\n{options.histories} histories, {records} records, {found} findings")
    return int(found > 0)


def kind_of(seed: int) -> Kind:
    """Which kind the history of a seed is of."""
    return {8: "old", 9: "clocks"}.get(seed % 10, "plain")  # type: ignore[return-value] # a dict's values are any text


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

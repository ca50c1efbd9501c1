"""`make faults`: puts a monitor through the matrix of faults, round by round, and writes down what came of it.

    python -m tests.faults [--rounds N] [--which NAME[,NAME…]]

Ends with status 1 where anything was lost, reported twice or shown otherwise. The page is made of what was noted:
`python -m tests.doc_tables`.
"""

import argparse
import sys
import tempfile
import time
import traceback
from pathlib import Path

from streaming.demo.embedded_broker import EmbeddedBroker
from tests.faults import results
from tests.faults.compaction import EAGER_CLEANER
from tests.faults.matrix import FAULTS, LOG_SETTINGS, OF_THREE, OPTIONS, PLACED
from tests.faults.three_brokers import ThreeBrokers
from tests.faults.trial import tried


def cluster(name: str, directory: Path) -> EmbeddedBroker | ThreeBrokers:
    """What a fault is done on."""
    if name in OF_THREE:
        return ThreeBrokers(directory, properties=OF_THREE[name])
    return EmbeddedBroker(directory, offsets_partitions=1, properties=EAGER_CLEANER)


def main() -> int:
    parser = argparse.ArgumentParser(prog="python -m tests.faults", description="Put a monitor through faults.")
    parser.add_argument("--rounds", type=int, default=1, help="how often each fault is done")
    parser.add_argument("--which", default=",".join(FAULTS), help="names of faults, by default all")
    chosen = parser.parse_args()
    names = chosen.which.split(",")
    if unknown := [name for name in names if name not in FAULTS]:
        parser.error(f"--which: found {', '.join(unknown)}, accepted: {', '.join(FAULTS)}")
    failed = 0
    with tempfile.TemporaryDirectory(prefix="faults-") as held:
        directory = Path(held)
        for name in names:
            begun = time.monotonic()
            try:
                with cluster(name, directory / f"{name}-broker") as broker:
                    found = tried(
                        name,
                        FAULTS[name],
                        broker,
                        directory,
                        chosen.rounds,
                        options=OPTIONS.get(name, ()),
                        placed=PLACED.get(name),
                        log_settings=LOG_SETTINGS.get(name),
                    )
            except Exception as error:  # noqa: BLE001 - a fault that fails must not take along those after it
                sys.stdout.write(f"{name}: {''.join(traceback.format_exception(error))}")
                sys.stdout.flush()
                failed += 1
                continue
            sys.stdout.write(f"{found}  ({time.monotonic() - begun:.0f} s)\n")
            sys.stdout.flush()
            results.save([found])
            failed += bool(found.lost or found.repeated or found.wrong)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())

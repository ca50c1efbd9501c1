"""Compare recordings: `python -m tests.kafka_replay FILE…` prints what differs, and exits with 1 if something does."""

import sys
from pathlib import Path
from tempfile import TemporaryDirectory

from tests.kafka_replay.comparison import Comparison, compare
from tests.kafka_replay.judge import kafka_judge
from tests.kafka_replay.logs import of_recording


def main(paths: list[str]) -> int:
    """Returns the exit status."""
    found = Comparison()
    with TemporaryDirectory() as directory, kafka_judge(Path(directory)) as judge:
        for path in paths:
            for log in of_recording(Path(path)):
                compare(log, judge, found)
    sys.stdout.writelines(f"{fault}\n" for fault in found.faults)
    sys.stdout.writelines(f"by design: {name}\n" for name in sorted(found.by_design))
    return 1 if found.faults else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

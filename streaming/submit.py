"""The command line as a file, for spark-submit, which runs files: `spark-submit … submit.py run --config FILE`."""

import sys
from pathlib import Path

# Spark puts the file's own directory first, whose rooms would stand for other libraries.
sys.path[0] = str(Path(__file__).resolve().parents[1])

from streaming.__main__ import main  # noqa: E402 - found from now on

if __name__ == "__main__":
    sys.exit(main())

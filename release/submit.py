"""The command line as a file, for spark-submit, which runs files: `spark-submit … submit.py run --config FILE`."""

import sys

from streaming.__main__ import main

if __name__ == "__main__":
    sys.exit(main())

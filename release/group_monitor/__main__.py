"""`python -m group_monitor`: the same as `group-monitor`."""

import sys

from group_monitor import main

sys.exit(main())

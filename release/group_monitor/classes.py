"""`python -m group_monitor.classes`: what `make classes` does, for an installed wheel."""

import sys

from group_monitor import use_packages

use_packages()

from streaming.monitor.cds_training import main  # noqa: E402 - found from now on

sys.exit(main())

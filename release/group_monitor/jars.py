"""`python -m group_monitor.jars [--from DIR]`: Kafka's jars for an installed wheel, fetched or copied; prints where."""

import sys

from group_monitor import use_packages

use_packages()

from streaming.spark.kafka_jars import main  # noqa: E402 - found from now on

sys.exit(main())

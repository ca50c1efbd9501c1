"""What the demo writes is its account's alone, as of `run`."""

import pytest

from tests.demo.conftest import Demo
from tests.integration.test_second_account import is_open_to_others, written_files

pytestmark = [pytest.mark.broker, pytest.mark.spark, pytest.mark.timeout(600)]


def test_files_of_the_demo_are_this_account_s_alone(demo: Demo) -> None:
    """Monitor, broker and members: no other account may do anything with what the kernel says they write to."""
    files = written_files(demo.process)

    assert {"spark.log", "broker.log"} <= {path.name for path in files}
    assert [] == [str(path) for path in files if is_open_to_others(path)]

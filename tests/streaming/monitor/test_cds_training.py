"""What makes the archive of classes: a script, of which Spark's workers get what they need."""

from collections.abc import Iterator
from typing import Any

import pyspark.cloudpickle
import pytest
from pyspark.sql.datasource import InputPartition

from streaming.monitor import cds_training
from streaming.query.schemas import PACKED

cloudpickle: Any = pyspark.cloudpickle


@pytest.fixture
def _as_a_script() -> Iterator[None]:
    """What the module defines is pickled whole, not by its name, as if the module were the one that was started."""
    cloudpickle.register_pickle_by_value(cds_training)
    yield
    cloudpickle.unregister_pickle_by_value(cds_training)


@pytest.mark.usefixtures("_as_a_script")
def test_workers_get_its_log() -> None:
    """A worker reads what the script's own log has: all that it needs can be sent to it.

    It once held a codec, which cannot, and a fresh clone went without the archive.
    """
    source = cloudpickle.loads(cloudpickle.dumps(cds_training.RehearsedLog))
    reader = cloudpickle.loads(cloudpickle.dumps(cds_training.RehearsedLogReader([7])))

    assert "rehearsed_log" == source.name()
    (batch,) = reader.read(InputPartition(0))
    assert PACKED.fieldNames() == batch.schema.names

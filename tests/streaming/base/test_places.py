"""Where the program's files are does not depend on where its command is run."""

from streaming.base.places import CACHE, IS_CHECKOUT, ROOT
from streaming.spark import kafka_jars


def test_jars_of_a_checkout_are_found_from_any_directory() -> None:
    """A demo or a rehearsal that is started elsewhere takes those that `make setup` fetched."""
    assert IS_CHECKOUT
    assert ROOT / ".cache" == CACHE
    assert kafka_jars.DIRECTORY.is_absolute()

"""Where the jars of Spark's Kafka connector are: what `make setup` fetched, or what a wheel of ours brought."""

from pathlib import Path
from typing import Final

from streaming.config_sections import SparkSection

_PACKAGED: Final = Path(__file__).resolve().parent / "jars"
_CHECKOUT: Final = Path(__file__).resolve().parent.parent


def directory_of(configured: Path) -> Path:
    """The directory meant by `spark.jars_dir`: as it is, or below the checkout from wherever the command is called.

    Where nothing else is said, and there is no checkout, that of the wheel if it brought any.
    """
    found = configured if configured.is_absolute() or configured.is_dir() else _CHECKOUT / configured
    if configured == SparkSection().jars_dir and not found.is_dir() and _PACKAGED.is_dir():
        return _PACKAGED
    return found

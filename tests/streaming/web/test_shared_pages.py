"""Pages of metrics that are made once for all who ask in the same moment."""

import asyncio
from unittest.mock import MagicMock

import pytest

from streaming.metrics.group_metrics import GroupShard
from streaming.web.history_api import BusyError
from streaming.web.shared_pages import SharedPages


def test_a_page_that_is_asked_for_while_the_monitor_ends_is_refused_in_one_line() -> None:
    """Its threads take nothing any more; that is no fault of the server, to be logged with its traceback."""

    async def asked() -> None:
        pages = SharedPages(MagicMock(), MagicMock())
        pages.close()
        await pages.page(MagicMock(gone=False), GroupShard(0, 1), openmetrics=False)

    with pytest.raises(BusyError, match="found it ending"):
        asyncio.run(asked())

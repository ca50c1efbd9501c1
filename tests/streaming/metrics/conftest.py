"""Figures of the process stand still while a test compares pages: they are those of its beginning."""

import pytest
from prometheus_client import Metric

from streaming.metrics import monitor_metrics


class Still:
    """A collector of what another one collected."""

    def __init__(self) -> None:
        self._held = list(monitor_metrics._process.collect())

    def collect(self) -> list[Metric]:
        return self._held


@pytest.fixture(autouse=True)
def _still_process(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(monitor_metrics, "_process", Still())

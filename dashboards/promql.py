"""How a question to the metrics is written down: a signal, and PromQL in which signals stand by name.

Three words in a signal's expression are filled in where it is used:

    {CLUSTER}   matchers of the cluster
    {GROUP}     matchers of the cluster and the group
    [WINDOW]    the time looked back over, of a subquery [WINDOW:]
"""

import re
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final

COUNT: Final = "locale"
"""Grafana's unit of what is counted: 12,345 and not 12 K, which an axis of whole numbers would show several times."""

_USE: Final = re.compile(r"\$(\w+)(?:\[([\w@:]+)\])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Signal:
    """One question to the metrics.

    Attributes:
        name: what panels and alerts call it.
        expr: PromQL with the words of this module's docstring.
        unit: Grafana's word for the unit.
        meaning: one sentence, with its full stop.
        labels: labels of the answer.
    """

    name: str
    expr: str
    unit: str
    meaning: str
    labels: tuple[str, ...]

    @property
    def metrics(self) -> frozenset[str]:
        """Names of the metrics it reads, a histogram's without the suffix."""
        return frozenset(name.removesuffix("_bucket") for name in re.findall(r"(\w+)\{", self.expr))

    @property
    def windowed(self) -> bool:
        """Whether it looks back over a time."""
        return any(use in self.expr for use in ("[WINDOW]", "[WINDOW:", "offset WINDOW"))

    def promql(self, *, cluster: str = "", group: str = "", window: str | None = None) -> str:
        """The expression with matchers and window filled in.

        Args:
            cluster: matchers of the cluster, e.g. `cluster="a"`; empty for all.
            group: matchers of the group alone.
            window: Prometheus's or Grafana's word for the time to look back over.

        Raises:
            ValueError: a window is missing, or given where none is used.
        """
        if self.windowed is (window is None):
            raise ValueError(f"{self.name}: found window {window!r}, accepted: {'one' if self.windowed else 'none'}")
        both = ", ".join(filter(None, (cluster, group)))
        text = _matched(_matched(self.expr, "CLUSTER", cluster), "GROUP", both)
        return text.replace("WINDOW", window or "")


def _matched(expr: str, word: str, matchers: str) -> str:
    """The expression with a word in braces replaced, alone or in front of other matchers; no braces for nothing."""
    with_more = f"{{{matchers}, " if matchers else "{"
    alone = f"{{{matchers}}}" if matchers else ""
    return expr.replace(f"{{{word}, ", with_more).replace(f"{{{word}}}", alone)


def expanded(text: str, signals: Mapping[str, Signal], *, cluster: str = "", group: str = "") -> str:
    """PromQL in which signals stand by name, as `$rebalances[5m]`, with their expressions in place.

    Args:
        text: the names, and PromQL between them.
        signals: name → signal.
        cluster: matchers of all metrics; empty for none.
        group: matchers of those that are about a group; empty for all groups.

    Each expression is put in brackets: `$signal > 0` compares the whole of a signal, also of one that ends in
    `unless …`, to whose right side the comparison would bind otherwise.

    Raises:
        KeyError: there is no such signal.
    """
    return _USE.sub(lambda use: f"({signals[use[1]].promql(cluster=cluster, group=group, window=use[2])})", text)


def used(text: str) -> list[str]:
    """Names of the signals in a text for `expanded`."""
    return [name for name, _ in _USE.findall(text)]

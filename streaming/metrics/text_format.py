"""Parts of Prometheus's text: labels, heads, and how samples begin. Columns of samples are put together in `page.py`.

What is written is compared with prometheus-client's own writing in the tests.
"""

from collections.abc import Iterable, Sequence
from functools import lru_cache
from typing import Final

from streaming.base.text import SURELY_SHORT, cut
from streaming.metrics.catalogue import CATALOGUE, CLUSTER, CLUSTER_NAME

END_OF_OPENMETRICS: Final = "# EOF\n"

_ESCAPES: Final = str.maketrans({"\\": "\\\\", '"': '\\"', "\n": "\\n"})


def escaped(value: str) -> str:
    """A label's value as it is written; a long one is cut (`base.text.cut`)."""
    return _escaped(cut(value))


def _escaped(value: str) -> str:
    if value.isprintable() and '"' not in value and "\\" not in value:
        return value
    # Any UTF-8 is a label value; half a surrogate pair is none, and would take the whole page with it.
    text = value if value.isascii() else value.encode("utf-8", "backslashreplace").decode("utf-8")
    return text.translate(_ESCAPES)


def escaped_all(values: Sequence[str]) -> Sequence[str]:
    """What `escaped` makes of many values, which mostly are written as they are."""
    joined = "".join(values)
    is_plain = _escaped(joined) == joined and max(map(len, values), default=0) <= SURELY_SHORT
    return values if is_plain else list(map(escaped, values))


def labelled(**labels: str) -> str:
    """Labels as they follow others: `,group="g",topic="t"`."""
    return "".join(f',{name}="{escaped(value)}"' for name, value in labels.items())


label = lru_cache(16_384)(labelled)
"""The same of what many samples have in common: remembered."""


def head(name: str, *, openmetrics: bool) -> str:
    """The two lines before a metric's samples. OpenMetrics names a counter without its suffix."""
    metric = CATALOGUE[name]
    shown = name.removesuffix("_total") if openmetrics and metric.kind == "counter" else name
    return f"# HELP {shown} {metric.help}\n# TYPE {shown} {metric.kind}\n"


def start(name: str, cluster: str, suffix: str = "") -> str:
    """How every sample of a metric begins, up to the labels that tell it from others."""
    labels = f'{CLUSTER}="{escaped(cluster)}"'
    if CLUSTER_NAME in CATALOGUE[name].labels:
        labels += f',{CLUSTER_NAME}="{escaped(cluster)}"'
    return f"{name}{suffix}{{{labels}"


def lines(begin: str, samples: Iterable[tuple[str, float]]) -> str:
    """The text of samples, (labels, value) each, that begin like this."""
    return "".join([f"{begin}{labels}}} {value}\n" for labels, value in samples])

"""What who builds boards and rules may set: limits, matchers, names of severities, addresses.

As kubernetes-mixin's `_config`: names are flat, each limit's ends with its unit. `group-monitor dashboards settings`
lists them.
"""

import difflib
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any, Final

from dashboards.thresholds import LIMITS, duration, spoken

CRITICAL: Final = "critical"
WARNING: Final = "warning"
INFO: Final = "info"

_TOKEN: Final = re.compile(rf"@({'|'.join(sorted(LIMITS, key=len, reverse=True))})\b(?::(duration|words|reason)\b)?")
_SET_BY_USER: Final = "the limit that was set"
_CLUSTERS: Final = "cluster=~`${cluster:regex}`"
"""What every query of a board asks for, and where further matchers go."""

_MATCHERS: Final = re.compile(r'\w+(=|!=|=~|!~)"[^"`]*"(, ?\w+(=|!=|=~|!~)"[^"`]*")*')
_TEXTS: Final[Mapping[str, tuple[str, re.Pattern[str], str, str]]] = {
    "selector": ("", _MATCHERS, 'matchers of labels, as job="group-monitor"', "matchers that every query has"),
    "group_pattern": ("", re.compile(r'[^"`\\]+'), "a regular expression", "groups that alerts are about; empty: all"),
    "datasource": ("", re.compile(r'[^"]+'), "a data source's name", "data source that boards show first"),
    "runbook_url": ("", re.compile(r"https?://\S+"), "a whole address, http://… or https://…", "where the runbook is"),
    "grafana_url": ("", re.compile(r"https?://\S+"), "a whole address, http://… or https://…", "where Grafana is"),
    "severity_critical": (CRITICAL, re.compile(r"[\w.-]+"), "a word", "the label of what wakes somebody"),
    "severity_warning": (WARNING, re.compile(r"[\w.-]+"), "a word", "of what is looked at the same day"),
    "severity_info": (INFO, re.compile(r"[\w.-]+"), "a word", "of what is looked at if it was not intended"),
}
"""Name → default, what is accepted as a pattern and in words, what it is."""


class SettingError(ValueError):
    """A setting is not known, not of its kind, or not changed here: in one line."""


@dataclass(frozen=True, slots=True)
class Setting:
    """One line of the list of settings."""

    name: str
    default: int | str
    meaning: str


def listed() -> list[Setting]:
    """All settings, in the order of their list."""
    texts = [Setting(name, default, meaning) for name, (default, _, _, meaning) in _TEXTS.items()]
    limits = [Setting(limit.name, limit.value, limit.reason) for limit in LIMITS.values() if limit.is_set_here]
    return texts + limits


@dataclass(frozen=True, slots=True)
class Settings:
    """Everything that is set; what is not has its default.

    Attributes:
        limits: name → figure, of limits that differ.
        texts: name → text, of texts that differ.
    """

    limits: Mapping[str, int] = field(default_factory=dict)
    texts: Mapping[str, str] = field(default_factory=dict)

    def with_value(self, name: str, value: object) -> "Settings":
        """The same with one setting more.

        Raises:
            SettingError: the name is not known or not to be set here, or the value is not of its kind.
        """
        if name in _TEXTS:
            _, pattern, accepted, _ = _TEXTS[name]
            if not isinstance(value, str) or not pattern.fullmatch(value):
                raise SettingError(f"{name}: found {value!r}, accepted: {accepted}")
            return replace(self, texts={**self.texts, name: value})
        limit = LIMITS.get(name)
        if limit is None:
            near = difflib.get_close_matches(name, [each.name for each in listed()], n=1, cutoff=0.0)
            raise SettingError(f"{name}: found a name that is not known, accepted: {near[0]} (the nearest)")
        if limit.option is not None:
            where = f"set {limit.option} of its configuration" if limit.option else "no option changes it"
            raise SettingError(f"{name}: found a limit that the monitor's own events judge by as well: {where}")
        text = str(value)
        if isinstance(value, bool) or not re.fullmatch(r"[1-9]\d{0,8}", text):
            raise SettingError(f"{name}: found {text!r}, accepted: a whole number, 1 or more")
        return replace(self, limits={**self.limits, name: int(text)})

    @property
    def selector(self) -> str:
        """Matchers of all metrics; empty for none."""
        return self._text("selector")

    @property
    def of_groups(self) -> str:
        """Matchers of what is about a group; empty for all."""
        pattern = self._text("group_pattern")
        return f'group=~"{pattern}"' if pattern else ""

    @property
    def severities(self) -> dict[str, str]:
        """Severity → the name it is given."""
        return {severity: self._text(f"severity_{severity}") for severity in (CRITICAL, WARNING, INFO)}

    @property
    def runbook_url(self) -> str | None:
        """Where the runbook is published."""
        return self._text("runbook_url") or None

    @property
    def grafana_url(self) -> str | None:
        """Where Grafana is."""
        return self._text("grafana_url") or None

    def filled(self, value: Any) -> Any:  # noqa: ANN401 - any JSON
        """JSON with figures in the place of limits' names; a text that is a name alone becomes a number."""

        def figured(text: str) -> int | str:
            alone = _TOKEN.fullmatch(text)
            return self._value(alone[1]) if alone and not alone[2] else _TOKEN.sub(self._put, text)

        return _with_texts(value, figured)

    def board(self, written: dict[str, Any]) -> dict[str, Any]:
        """A dashboard in Grafana's classic schema with all that is set."""
        words = self._words()

        def worded(text: str) -> str:
            for word, other in words.items():
                text = text.replace(word, other)
            return text

        made: dict[str, Any] = _with_texts(self.filled(written), worded)
        datasource = self._text("datasource")
        for variable in made.get("templating", {}).get("list", ()) if datasource else ():
            if variable["type"] == "datasource":
                variable["current"] = {"selected": True, "text": datasource, "value": datasource}
        return made

    def without_selector_of_alerts(self, expr: str) -> str:
        """PromQL that asks for alerts without it: Prometheus's own series carry no label of a scrape."""
        return expr.replace(f"ALERTS{{{self.selector}, ", "ALERTS{") if self.selector else expr

    def _words(self) -> dict[str, str]:
        """What is in the place of what in a board's queries: those of panels, marks, and the variable of clusters."""
        named = {
            f'"severity", "{severity}"': f'"severity", "{own}"'
            for severity, own in self.severities.items()
            if severity != own
        }
        if not self.selector:
            return named
        return named | {
            _CLUSTERS: f"{self.selector}, {_CLUSTERS}",
            "(group_monitor_ready, cluster)": f"(group_monitor_ready{{{self.selector}}}, cluster)",
            f"ALERTS{{{self.selector}, ": "ALERTS{",
        }

    def _text(self, name: str) -> str:
        return self.texts.get(name, _TEXTS[name][0])

    def _value(self, name: str) -> int:
        return self.limits.get(name, LIMITS[name].value)

    def _put(self, found: re.Match[str]) -> str:
        name, form = found[1], found[2]
        value = self._value(name)
        match form:
            case "duration":
                return duration(value)
            case "words":
                return spoken(value)
            case "reason":
                # Ours is about our figure.
                return LIMITS[name].reason if value == LIMITS[name].value else f"{_SET_BY_USER} ({name})"
        return str(value)


def in_percent_signs(value: Any) -> Any:  # noqa: ANN401 - any JSON
    """JSON with limits' names as `%name%` and `%name:duration%`: of these, none is the beginning of another."""
    return _with_texts(value, lambda text: _TOKEN.sub(lambda found: f"%{found[0].removeprefix('@')}%", text))


def _with_texts(value: Any, changed: Callable[[str], Any]) -> Any:  # noqa: ANN401 - any JSON
    """JSON with something else in the place of each text, keys aside."""
    if isinstance(value, Mapping):
        return {key: _with_texts(item, changed) for key, item in value.items()}
    if isinstance(value, list):
        return [_with_texts(item, changed) for item in value]
    return changed(value) if isinstance(value, str) else value


DEFAULTS: Final = Settings()
"""What is committed."""

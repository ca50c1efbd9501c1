"""House style: how a stat, a time series, a table, a state timeline and a text look, and nothing about what they show.

What holds for every panel: a title, a description made of the meanings of its signals and the reason of its limit, a
unit, the board's data source, a legend. The SDK hides legends and leaves ids out by default; `board.py` gives the ids.
A limit colours from where an alert would begin: what is red on the wall is what somebody is paged about.
"""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any, Final, Literal

from dashboards.promql import COUNT
from dashboards.sdk import (
    common,
    common_model,
    dashboard,
    dashboard_model,
    prometheus,
    prometheus_model,
    stat,
    statetimeline,
    table,
    text,
    text_model,
    timeseries,
)
from dashboards.signals import SIGNALS
from dashboards.thresholds import Limit

Panel = stat.Panel | timeseries.Panel | table.Panel | statetimeline.Panel | text.Panel
Colour = Literal["green", "yellow", "orange", "red", "blue", "purple", "text"]

DATASOURCE: Final = common_model.DataSourceRef(type_val="prometheus", uid="${datasource}")
GROUP_BOARD: Final = "group-monitor-group"
RUNBOOK_BOARD: Final = "group-monitor-runbook"

NOT_KNOWN: Final = "not known"
"""What a panel says when there is no series: never a colour that means well."""

TIMELINE_INTERVAL: Final = "15s"
"""How finely a timeline is looked at, and its least step, whatever the data source says of its scrapes.

A step that is shorter has no evaluation in it, and so a gap. A week at every 15 seconds is what
Prometheus holds at once.
"""

BAR_INTERVAL: Final = "3m"
"""The least width of a bar.

A bar counts over `$__rate_interval`: its own width and one scrape more, so that what is counted between the last scrape
of a bar and the first one of the next is in one of them. That is so where a bar is three scrapes wide or wider: up to
scrapes of a minute.
"""

STATE_COLOURS: Final[Mapping[str, Colour]] = {
    "Empty": "text",
    "Stable": "green",
    "Assigning": "yellow",
    "Reconciling": "orange",
    "NotReady": "red",
}
PHASE_COLOURS: Final[Mapping[str, Colour]] = {
    "classic": "blue",
    "blocked": "red",
    "upgrading": "yellow",
    "upgraded": "green",
    "downgrading": "orange",
    "downgraded": "purple",
}
READINESS_COLOURS: Final[Mapping[str, Colour]] = {
    "blocked": "red",
    "unknown": "orange",
    "care": "yellow",
    "ready": "blue",
    "done": "green",
    "out_of_scope": "text",
}
PROTOCOL_COLOURS: Final[Mapping[str, Colour]] = {
    "classic": "blue",
    "consumer": "green",
    "share": "purple",
    "streams": "orange",
}
LEAST_TOP: Final = 2
"""An axis of counts reaches this far at least: to 100, as Grafana draws noughts, a limit of one lies on the floor."""

NARROWEST: Final = 150
"""Pixels that Grafana gives a column of a table at least, where nothing is said of it."""

FIXED_WIDTHS: Final[Mapping[str, int]] = {
    "alertname": 300,
    "cluster": 70,
    "type": 95,
    "protocol": 150,
    "state": 105,
    "severity": 85,
    "partition": 80,
    "phase": 110,
    "members": 80,
    "upgraded": 85,
    "share": 60,
    "mixed for": 80,
    "lag": 75,
    "lag in time": 90,
    "two owners": 95,
    "no owner": 80,
    "rebalances": 95,
    "found": 65,
    "gate": 100,
    "effect": 80,
    "how many": 90,
}
"""Column → its width in pixels: as wide as its heading and what it usually holds."""

LEAST_WIDTHS: Final[Mapping[str, int]] = {"group": 130, "topic": 80, "reason": 145, "code": 160}
"""Column → the least width in pixels of one that holds a name: such columns share alike what the others leave."""

ROWS: Final = 12
"""Rows of a timeline, which Grafana 10.0 cannot page: more of them are no words."""

WIDEST: Final = 24
"""Columns of the grid that a panel as wide as the screen has; in such a table the cluster's name shares as well."""

FILTERED: Final = frozenset({"alertname", "group", "topic", "reason", "code"})
"""Columns that can be filtered: Grafana 10 puts the filter's sign beside a heading, and cuts a narrow one for it."""

READY_TEXTS: Final[Mapping[int, tuple[str, Colour]]] = {0: ("catching up", "orange"), 1: ("ready", "green")}
VERDICT_COLOURS: Final[Mapping[str, Colour]] = {"open": "green", "cannot_tell": "yellow", "closed": "red"}


@dataclass(frozen=True, slots=True)
class Scope:
    """What the board's variables choose: matchers of the cluster, and of the group alone."""

    cluster: str
    group: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Query:
    """A signal as a panel asks for it.

    Attributes:
        signal: its name.
        legend: Grafana's format of a series' name; in a table the name of the column.
        window: the time a signal looks back over, if it does; None for the usual one of the panel.
        over: what is taken of it, `%s` standing for the signal, e.g. `sum by (cluster) (%s)`.
        zero_when_ready: no answer counts as 0 of a cluster whose monitor is ready and reads the log; else unknown.
    """

    signal: str
    legend: str = ""
    window: str | None = None
    over: str = "%s"
    zero_when_ready: bool = False

    @property
    def unit(self) -> str:
        """The signal's; a number of things is no time, whatever is known of them."""
        return COUNT if self.over.startswith("count ") else SIGNALS[self.signal].unit

    def promql(self, scope: Scope, window: str) -> str:
        """The whole expression in a scope; the window is for signals that look back and say nothing themselves."""
        signal = SIGNALS[self.signal]
        looked_back = (self.window or window) if signal.windowed else None
        asked = self.over % signal.promql(cluster=scope.cluster, group=scope.group, window=looked_back)
        if not self.zero_when_ready:
            return asked
        ready, polled = (SIGNALS[name].promql(cluster=scope.cluster) for name in ("ready", "polled"))
        return f"({asked}) or on (cluster) (({ready} == 1) * 0 unless on (cluster) {polled})"


def stat_panel(  # noqa: PLR0913 - what can be said of a panel
    scope: Scope,
    title: str,
    query: Query,
    *,
    span: int = 4,
    limit: Limit | None = None,
    colour: Colour = "red",
    texts: Mapping[int, tuple[str, Colour]] | None = None,
    show_name: bool = False,
    height: int = 4,
) -> stat.Panel:
    """One figure, large: how it is now. With `texts`, numbers are shown as words; with `show_name`, the legend is."""
    panel = (
        stat.Panel()
        .title(title)
        .description(_description([query], limit))
        .datasource(DATASOURCE)
        .span(span)
        .height(height)
        .unit(query.unit)
        .with_target(_target(scope, query, "A", "$__range", instant=True))
        .reduce_options(common.ReduceDataOptions().calcs(["lastNotNull"]))
        .text_mode(common_model.BigValueTextMode.NAME if show_name else common_model.BigValueTextMode.AUTO)
        .graph_mode(common_model.BigValueGraphMode.NONE)
        .color_mode(common_model.BigValueColorMode.NONE)
        .no_value(NOT_KNOWN)
        .mappings([_NOTHING_KNOWN, *([] if texts is None else [_mapping(texts)])])
    )
    _whole_numbers(panel, [query])
    if limit is not None:
        panel.color_mode(common_model.BigValueColorMode.BACKGROUND_SOLID)
        panel.thresholds(_thresholds(limit, "green", colour))
    if texts is not None:
        panel.color_mode(common_model.BigValueColorMode.BACKGROUND_SOLID).thresholds(_NO_THRESHOLDS)
    return panel


def monitor_panel(span: int = 3, height: int = 4) -> stat.Panel:
    """May the board be believed: whether the monitor is alive and has caught up with the log."""
    ready = Query(signal="ready", legend="{{cluster}}")
    of = Scope("cluster=~`${cluster:regex}`")
    return stat_panel(of, "Monitor", ready, span=span, texts=READY_TEXTS, height=height)


def timeseries_panel(  # noqa: PLR0913 - as above
    scope: Scope,
    title: str,
    queries: Sequence[Query],
    *,
    span: int = 12,
    height: int = 8,
    limit: Limit | None = None,
    colour: Colour = "red",
    stacked: bool = False,
    bars: bool = False,
    overlaid: bool = False,
    colours: Mapping[str, Colour] | None = None,
    links: bool = False,
) -> timeseries.Panel:
    """Lines over time; `bars` for counts per interval, `links` where a series is a group and leads to its board.

    Bars are stacked, `overlaid` ones, of which one counts what another counts too, are not. `colours` are by legend:
    what has a colour of its own elsewhere has it here. A series that has a value only for moments is drawn as points.
    """
    sparse = all("> 0" in query.over for query in queries)
    panel = (
        timeseries.Panel()
        .title(title)
        .description(_description(queries, limit))
        .datasource(DATASOURCE)
        .span(span)
        .height(height)
        .unit(_unit(queries))
        .min(0)
        .legend(
            common.VizLegendOptions()
            .show_legend(True)
            .display_mode(common_model.LegendDisplayMode.LIST)
            .placement(common_model.LegendPlacement.BOTTOM)
            # What comes and goes has a largest value; its last one would be read as a figure of now.
            .calcs(["max" if bars or stacked or any("> 0" in query.over for query in queries) else "lastNotNull"])
        )
        .tooltip(
            common.VizTooltipOptions()
            .mode(common_model.TooltipDisplayMode.MULTI)
            .sort(common_model.SortOrder.DESCENDING)
        )
        .line_width(2)
        .fill_opacity(8)
        .show_points(common_model.VisibilityMode.NEVER)
        .color_scheme(dashboard.FieldColor().mode(dashboard_model.FieldColorModeId.PALETTE_CLASSIC))
    )
    _whole_numbers(panel, queries)
    if _unit(queries) == COUNT:
        panel.axis_soft_max(LEAST_TOP)
    if sparse and not bars and not stacked:
        panel.show_points(common_model.VisibilityMode.ALWAYS).point_size(5)
    for name, own in (colours or {}).items():
        panel.override_by_name(name, [_value("color", {"mode": "fixed", "fixedColor": own})])
    for query, letter in zip(queries, _LETTERS, strict=False):
        panel.with_target(_target(scope, query, letter, "$__rate_interval"))
    if bars:
        panel.interval(BAR_INTERVAL).draw_style(common_model.GraphDrawStyle.BARS).fill_opacity(80)
    if stacked or (bars and not overlaid):
        panel.stacking(common.StackingConfig().mode(common_model.StackingMode.NORMAL))
    if stacked:
        panel.fill_opacity(40)
    if limit is not None:
        panel.thresholds(_thresholds(limit, "green", colour))
        panel.thresholds_style(common.GraphThresholdsStyleConfig().mode(common_model.GraphThresholdsStyleMode.DASHED))
    if links:
        panel.data_links([_link("Open ${__field.labels.group}", _group_url("__field.labels"))])
    return panel


def timeline_panel(  # noqa: PLR0913 - as above
    scope: Scope,
    title: str,
    query: Query,
    texts: Mapping[int, tuple[str, Colour]],
    *,
    span: int = 24,
    height: int = 5,
    links: bool = False,
) -> statetimeline.Panel:
    """What state something was in when: a row a series, a colour and a word a state.

    Each step shows the largest code of its time: a state that lasted less than a step is not skipped.
    """
    query = replace(query, over=f"max_over_time(({query.over})[$__interval:{TIMELINE_INTERVAL}])")
    panel = (
        statetimeline.Panel()
        .title(title)
        .description(_description([query], None))
        .datasource(DATASOURCE)
        .span(span)
        .height(height)
        .unit(query.unit)
        .with_target(_target(scope, query, "A", "$__rate_interval"))
        .interval(TIMELINE_INTERVAL)
        .mappings([_mapping(texts)])
        # Grafana's own, continuous colours would take the legend away; the words' colours are those of the mapping.
        .color_scheme(dashboard.FieldColor().mode(dashboard_model.FieldColorModeId.PALETTE_CLASSIC))
        .show_value(common_model.VisibilityMode.AUTO)
        .merge_values(True)
        .row_height(0.85)
        .per_page(ROWS)
        .legend(
            common.VizLegendOptions()
            .show_legend(True)
            .display_mode(common_model.LegendDisplayMode.LIST)
            .placement(common_model.LegendPlacement.BOTTOM)
        )
    )
    if links:
        panel.data_links([_link("Open ${__field.labels.group}", _group_url("__field.labels"))])
    return panel


def table_panel(  # noqa: PLR0913 - as above
    scope: Scope,
    title: str,
    queries: Sequence[Query],
    *,
    span: int = WIDEST,
    height: int = 9,
    sort_by: str | None = None,
    ranked: tuple[str, Sequence[str]] | None = None,
    limits: Mapping[str, tuple[Limit, Colour]] | None = None,
    hidden: Sequence[str] = (),
    texts: Mapping[str, Mapping[int, tuple[str, Colour]]] | None = None,
) -> table.Panel:
    """How it is now, a row for each set of labels; a column for each query that has a legend.

    A query without a legend gives its labels only. `limits` and `texts` are by column; `hidden` are labels left out.
    Rows are sorted by a column, largest first, or `ranked` by the words of a label in the order given.
    A group is a link to its board, an alert one to the runbook.
    """
    panel = (
        table.Panel()
        .title(title)
        .description(_description(queries, None))
        .datasource(DATASOURCE)
        .span(span)
        .height(height)
        .unit(COUNT)
        .cell_height(common_model.TableCellHeight.SM)
        .filterable(False)
        .no_value("-")
        .with_transformation(dashboard_model.DataTransformerConfig(id_val="merge", options={}))
    )
    if ranked is not None:
        queries = [replace(query, over=_ranked(query.over, *ranked)) for query in queries]
        options = {"fields": {}, "sort": [{"field": _RANK}]}
        panel.with_transformation(dashboard_model.DataTransformerConfig(id_val="sortBy", options=options))
    panel.with_transformation(_organized(queries, hidden if ranked is None else (*hidden, _RANK)))
    for query, letter in zip(queries, _LETTERS, strict=False):
        panel.with_target(_target(scope, query, letter, "$__range", instant=True, as_table=True))
        if query.legend:
            panel.override_by_name(query.legend, _column(query, span, limits or {}, texts or {}))
    for column in _labels(queries, hidden):
        if properties := _links(column) + _width(column, span):
            panel.override_by_name(column, properties)
    if sort_by is not None:
        panel.sort_by([common.TableSortByFieldState().display_name(sort_by).desc(True)])
    return panel


_RANK: Final = "rank"
"""A label that only sorts; it is no column."""


def _ranked(over: str, label: str, words: Sequence[str]) -> str:
    """The same with a rank: the place of a label's word among these."""
    for place, word in enumerate(words):
        over = f'label_replace({over}, "{_RANK}", "{place}", "{label}", "{word}")'
    return over


def text_panel(title: str, content: str, *, span: int = 24, height: int = 6) -> text.Panel:
    """Markdown."""
    return text.Panel().title(title).span(span).height(height).mode(text_model.TextMode.MARKDOWN).content(content)


def words(codes: Mapping[str, int], colours: Mapping[str, Colour]) -> dict[int, tuple[str, Colour]]:
    """Number → (word, colour), for the panels that draw codes."""
    return {code: (word, colours[word]) for word, code in codes.items()}


_NOTHING_KNOWN: Final = dashboard_model.SpecialValueMap(
    options=dashboard_model.DashboardSpecialValueMapOptions(
        match=dashboard_model.SpecialValueMatch.NULL_AND_NAN,
        result=dashboard_model.ValueMappingResult(text=NOT_KNOWN, color="text", index=0),
    )
)
_NO_THRESHOLDS: Final = (
    dashboard.ThresholdsConfig()
    .mode(dashboard_model.ThresholdsMode.ABSOLUTE)
    .steps([dashboard_model.Threshold(value=None, color="text")])
)


def _whole_numbers(panel: stat.Panel | timeseries.Panel, queries: Sequence[Query]) -> None:
    """What is counted has no decimals: half a group is a trick of the axis."""
    if _unit(queries) == COUNT:
        panel.decimals(0)


_LETTERS: Final = "ABCDEFGHIJKLMNOPQRSTUVWXYZ"


def _target(  # noqa: PLR0913 - what can be said of a query
    scope: Scope, query: Query, letter: str, window: str, *, instant: bool = False, as_table: bool = False
) -> prometheus.Dataquery:
    target = prometheus.Dataquery().ref_id(letter).datasource(DATASOURCE).expr(query.promql(scope, window))
    target.format(prometheus_model.PromQueryFormat.TABLE if as_table else prometheus_model.PromQueryFormat.TIME_SERIES)
    if query.legend and not as_table:
        target.legend_format(query.legend)
    return target.instant() if instant else target.range()


def _description(queries: Sequence[Query], limit: Limit | None) -> str:
    sentences = [SIGNALS[query.signal].meaning for query in queries]
    for most in re.findall(r"topk\((\d+),", " ".join(query.over for query in queries)):
        sentences += [f"At most {most} are drawn at a time, the largest."]
    if limit is not None:
        sentences.append(f"Coloured above {limit}: {limit.why}.")
    return " ".join(dict.fromkeys(sentences))


def _unit(queries: Sequence[Query]) -> str:
    """The one unit of a panel's signals; what is counted in different ones has panels of its own."""
    units = {query.unit for query in queries}
    if len(units) > 1:
        raise ValueError(f"{[query.signal for query in queries]}: found units {sorted(units)}, accepted: one")
    return units.pop()


def _thresholds(limit: Limit, below: Colour, above: Colour) -> dashboard.ThresholdsConfig:
    # Grafana colours from the value on, alerts fire above it: of whole things that is one more than none.
    start: Any = str(limit) if limit.is_set_here else limit.value or 1
    steps = [dashboard_model.Threshold(value=None, color=below), dashboard_model.Threshold(value=start, color=above)]
    return dashboard.ThresholdsConfig().mode(dashboard_model.ThresholdsMode.ABSOLUTE).steps(steps)


def _mapping(texts: Mapping[int, tuple[str, Colour]]) -> dashboard_model.ValueMap:
    return dashboard_model.ValueMap(
        options={
            str(code): dashboard_model.ValueMappingResult(text=word, color=colour, index=index)
            for index, (code, (word, colour)) in enumerate(texts.items())
        }
    )


def _organized(queries: Sequence[Query], hidden: Sequence[str]) -> dashboard_model.DataTransformerConfig:
    # With several queries Grafana names a value after its query; with one, `Value` is all there is.
    values = ["Value"] if len(queries) == 1 else [f"Value #{letter}" for letter in _LETTERS[: len(queries)]]
    named = {value: query.legend for value, query in zip(values, queries, strict=True) if query.legend}
    dropped = ["Time", *(value for value in values if value not in named), *hidden]
    order = [*_labels(queries, hidden), *named]
    return dashboard_model.DataTransformerConfig(
        id_val="organize",
        options={
            "excludeByName": dict.fromkeys(dropped, True),
            "renameByName": named,
            "indexByName": {name: index for index, name in enumerate(order)},
        },
    )


def _labels(queries: Sequence[Query], hidden: Sequence[str]) -> list[str]:
    """The columns of a table that hold labels, in their order."""
    found = dict.fromkeys(label for query in queries for label in SIGNALS[query.signal].labels)
    return [label for label in found if label not in hidden]


def _links(column: str) -> list[dashboard_model.DynamicConfigValue]:
    links = {
        "group": _plain_link("Open ${__value.text}", _group_url()),
        "alertname": _plain_link("Open the runbook", f"/d/{RUNBOOK_BOARD}"),
    }
    return [_value("links", [links[column]])] if column in links else []


def _width(column: str, span: int) -> list[dashboard_model.DynamicConfigValue]:
    shares = column in LEAST_WIDTHS or (column == "cluster" and span == WIDEST)
    given = {**FIXED_WIDTHS, **LEAST_WIDTHS}.get(column)
    properties = [] if given is None else [_value("custom.minWidth" if shares else "custom.width", given)]
    return [*properties, _value("custom.filterable", True)] if column in FILTERED else properties


def _column(
    query: Query,
    span: int,
    limits: Mapping[str, tuple[Limit, Colour]],
    texts: Mapping[str, Mapping[int, tuple[str, Colour]]],
) -> list[dashboard_model.DynamicConfigValue]:
    properties = [_value("unit", query.unit), *_width(query.legend, span)]
    if query.unit == COUNT:
        properties.append(_value("decimals", 0))
    coloured = {"type": "color-background", "mode": "basic"}
    if query.legend in limits:
        steps = _thresholds(limits[query.legend][0], "text", limits[query.legend][1]).build()
        properties += [_value("thresholds", steps), _value("custom.cellOptions", {"type": "color-text"})]
    if query.legend in texts:
        properties += [_value("mappings", [_mapping(texts[query.legend])]), _value("custom.cellOptions", coloured)]
    return properties


def _value(name: str, value: object) -> dashboard_model.DynamicConfigValue:
    return dashboard_model.DynamicConfigValue(id_val=name, value=value)


def _link(title: str, url: str) -> dashboard.DashboardLink:
    return dashboard.DashboardLink(title).url(url)


def _plain_link(title: str, url: str) -> dict[str, Any]:
    return {"title": title, "url": url}


def _group_url(fields: str = "__data.fields") -> str:
    # Names of groups are anything: a slash or an ampersand must not end the address.
    return (
        f"/d/{GROUP_BOARD}?${{datasource:queryparam}}&var-cluster=${{{fields}.cluster:percentencode}}"
        f"&var-group=${{{fields}.group:percentencode}}&${{__url_time_range}}"
    )

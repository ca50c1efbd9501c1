"""The same boards in Grafana's second schema: `dashboards build --schema v2`, for Grafana 12.2 and later.

Classic boards are a list of panels on one grid. In the second schema a board is a resource, as in Kubernetes:
elements by name, and beside them the layout, here a row for each heading. What a panel asks and how it looks is alike
in both, so a board is written down once (`board.py`) and taken apart here; nothing is decided here.
"""

import json
from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from typing import Any, Final

from dashboards.board import panels
from dashboards.sdk import JSONEncoder, v2_model

API_VERSION: Final = "dashboard.grafana.app/v2beta1"

_CURSOR: Final = {
    0: v2_model.DashboardCursorSync.OFF,
    1: v2_model.DashboardCursorSync.CROSSHAIR,
    2: v2_model.DashboardCursorSync.TOOLTIP,
}
_REFRESH: Final = {
    0: v2_model.VariableRefresh.NEVER,
    1: v2_model.VariableRefresh.ON_DASHBOARD_LOAD,
    2: v2_model.VariableRefresh.ON_TIME_RANGE_CHANGED,
}
_SORT: Final = dict(enumerate(v2_model.VariableSort))

# What stands in the envelope of a query rather than in the query itself.
_ENVELOPE: Final = frozenset({"datasource", "refId", "hide"})


def resource(classic: Mapping[str, Any]) -> dict[str, Any]:
    """The resource of the second schema that shows what a classic dashboard shows."""
    held = panels(classic)
    spec = v2_model.Dashboard(
        title=classic["title"],
        description=classic["description"],
        tags=classic["tags"],
        editable=classic["editable"],
        cursor_sync=_CURSOR[classic["graphTooltip"]],
        time_settings=v2_model.TimeSettingsSpec(
            timezone=classic["timezone"],
            from_val=classic["time"]["from"],
            to=classic["time"]["to"],
            auto_refresh=classic["refresh"],
        ),
        links=[_link(link) for link in classic["links"]],
        variables=[_variable(variable) for variable in classic.get("templating", {}).get("list", [])],
        annotations=[_annotation(annotation) for annotation in classic["annotations"].get("list", [])],
        elements={_name(panel): _panel(panel) for panel in held},
        layout=v2_model.RowsLayoutKind(
            spec=v2_model.RowsLayoutSpec(rows=[_row(heading, held) for heading, held in _rows(classic["panels"])])
        ),
    )
    made = {"apiVersion": API_VERSION, "kind": "Dashboard", "metadata": {"name": classic["uid"]}, "spec": spec}
    # The SDK writes what only releases after 12.2 know, and these boards say nothing by it.
    written: dict[str, Any] = json.loads(json.dumps(made, cls=JSONEncoder))
    for link in written["spec"]["links"]:
        link.pop("placement", None)
    for variable in written["spec"]["variables"]:
        variable["spec"].pop("regexApplyTo", None)
    return written


def _name(panel: Mapping[str, Any]) -> str:
    return f"panel-{panel['id']}"


def _rows(listed: Sequence[Mapping[str, Any]]) -> Iterator[tuple[Mapping[str, Any], Sequence[Mapping[str, Any]]]]:
    """Headings with what stands under them: a classic row is a panel that others follow, or, collapsed, holds them."""
    starts = [index for index, panel in enumerate(listed) if panel["type"] == "row"]
    for start, end in pairwise([*starts, len(listed)]):
        yield listed[start], listed[start]["panels"] or listed[start + 1 : end]


def _row(heading: Mapping[str, Any], held: Sequence[Mapping[str, Any]]) -> v2_model.RowsLayoutRowKind:
    top = min(panel["gridPos"]["y"] for panel in held)
    items = [
        v2_model.GridLayoutItemKind(
            spec=v2_model.GridLayoutItemSpec(
                x=panel["gridPos"]["x"],
                y=panel["gridPos"]["y"] - top,
                width=panel["gridPos"]["w"],
                height=panel["gridPos"]["h"],
                element=v2_model.ElementReference(name=_name(panel)),
            )
        )
        for panel in held
    ]
    grid = v2_model.GridLayoutKind(spec=v2_model.GridLayoutSpec(items=items))
    return v2_model.RowsLayoutRowKind(
        spec=v2_model.RowsLayoutRowSpec(title=heading["title"], collapse=heading["collapsed"], layout=grid)
    )


def _panel(panel: Mapping[str, Any]) -> v2_model.PanelKind:
    queries = [
        v2_model.PanelQueryKind(
            spec=v2_model.PanelQuerySpec(
                query=_query({name: value for name, value in target.items() if name not in _ENVELOPE}),
                ref_id=target["refId"],
                hidden=False,
            )
        )
        for target in panel.get("targets", [])
    ]
    transformations = [
        v2_model.TransformationKind(
            kind=each["id"], spec=v2_model.DataTransformerConfig(id_val=each["id"], options=each["options"])
        )
        for each in panel.get("transformations", [])
    ]
    data = v2_model.QueryGroupSpec(
        queries=queries,
        transformations=transformations,
        query_options=v2_model.QueryOptionsSpec(interval=panel.get("interval")),
    )
    look = v2_model.VizConfigSpec(
        options=panel.get("options", {}),
        field_config=v2_model.FieldConfigSource.from_json(panel.get("fieldConfig", {"defaults": {}, "overrides": []})),
    )
    return v2_model.PanelKind(
        spec=v2_model.PanelSpec(
            id_val=panel["id"],
            title=panel["title"],
            description=panel.get("description", ""),
            transparent=panel["transparent"],
            data=v2_model.QueryGroupKind(spec=data),
            viz_config=v2_model.VizConfigKind(group=panel["type"], version="", spec=look),
        )
    )


def _query(spec: Mapping[str, Any]) -> v2_model.DataQueryKind:
    source = v2_model.Dashboardv2beta1DataQueryKindDatasource(name="${datasource}")
    return v2_model.DataQueryKind(group="prometheus", version="v0", datasource=source, spec=dict(spec))


def _annotation(annotation: Mapping[str, Any]) -> v2_model.AnnotationQueryKind:
    asked = {name: annotation[name] for name in ("expr", "step", "titleFormat", "textFormat", "tagKeys")}
    return v2_model.AnnotationQueryKind(
        spec=v2_model.AnnotationQuerySpec(
            name=annotation["name"],
            enable=annotation["enable"],
            hide=False,
            icon_color=annotation["iconColor"],
            query=_query({**asked, "refId": "Anno"}),
            filter_val=v2_model.AnnotationPanelFilter(exclude=False, ids=annotation["filter"]["ids"]),
            legacy_options=asked,
        )
    )


def _link(link: Mapping[str, Any]) -> v2_model.DashboardLink:
    return v2_model.DashboardLink(
        title=link["title"],
        type_val=v2_model.DashboardLinkType(link["type"]),
        icon=link["icon"],
        tooltip=link["tooltip"],
        tags=link["tags"],
        as_dropdown=link["asDropdown"],
        target_blank=link["targetBlank"],
        include_vars=link["includeVars"],
        keep_time=link["keepTime"],
    )


def _variable(variable: Mapping[str, Any]) -> v2_model.DatasourceVariableKind | v2_model.QueryVariableKind:
    if variable["type"] == "datasource":
        return v2_model.DatasourceVariableKind(
            spec=v2_model.DatasourceVariableSpec(
                name=variable["name"], label=variable["label"], plugin_id=variable["query"]
            )
        )
    current = variable.get("current", {"text": "", "value": ""})
    return v2_model.QueryVariableKind(
        spec=v2_model.QueryVariableSpec(
            name=variable["name"],
            label=variable["label"],
            current=v2_model.VariableOption(text=current["text"], value=current["value"]),
            refresh=_REFRESH[variable["refresh"]],
            sort=_SORT[variable["sort"]],
            query=_query(variable["query"]),
            definition=variable["definition"],
            regex=variable.get("regex", ""),
            multi=variable["multi"],
            include_all=variable["includeAll"],
            all_value=variable.get("allValue"),
            allow_custom_value=True,
        )
    )

"""The second schema shows what the classic one shows: nothing is lost and nothing is added on the way."""

import json
from collections.abc import Iterator
from typing import Any, Final

import pytest

from dashboards import sdk
from dashboards.board import panels as board_panels
from dashboards.build import V2, boards

CLASSIC: Final = boards()
RESOURCES: Final = boards(V2)


def panels(name: str) -> list[dict[str, Any]]:
    return board_panels(CLASSIC[name])


def element(name: str, panel: dict[str, Any]) -> dict[str, Any]:
    """The element of a resource that is a classic panel."""
    found: dict[str, Any] = RESOURCES[name]["spec"]["elements"][f"panel-{panel['id']}"]["spec"]
    return found


def kinds(value: Any) -> Iterator[dict[str, Any]]:
    """Every object below a value that says of what kind it is."""
    if isinstance(value, dict):
        if "kind" in value and "spec" in value:
            yield value
        for item in value.values():
            yield from kinds(item)
    elif isinstance(value, list):
        for item in value:
            yield from kinds(item)


@pytest.mark.parametrize("name", CLASSIC)
def test_is_a_resource(name: str) -> None:
    """It is known by the uid of the classic board, so that links lead to it, under the same title."""
    made = RESOURCES[name]

    assert ("dashboard.grafana.app/v2beta1", "Dashboard") == (made["apiVersion"], made["kind"])
    assert CLASSIC[name]["uid"] == made["metadata"]["name"]
    assert CLASSIC[name]["title"] == made["spec"]["title"]
    assert CLASSIC[name]["tags"] == made["spec"]["links"][0]["tags"]


@pytest.mark.parametrize("name", CLASSIC)
def test_panels_ask_and_look_the_same(name: str) -> None:
    """Expression, legend, description, options and field configuration of every panel are those of the classic one."""
    assert len(panels(name)) == len(RESOURCES[name]["spec"]["elements"])
    for panel in panels(name):
        made = element(name, panel)
        asked = [query["spec"] for query in made["data"]["spec"]["queries"]]
        look = made["vizConfig"]

        assert (panel["title"], panel.get("description", "")) == (made["title"], made["description"])
        assert [
            {**query["query"]["spec"], "refId": query["refId"], "datasource": target["datasource"]}
            for query, target in zip(asked, panel.get("targets", []), strict=True)
        ] == panel.get("targets", [])
        assert all(query["query"]["datasource"] == {"name": "${datasource}"} for query in asked)
        assert (panel["type"], panel["options"]) == (look["group"], look["spec"]["options"])
        assert panel.get("fieldConfig", {"defaults": {}, "overrides": []}) == look["spec"]["fieldConfig"]
        assert panel.get("interval") == made["data"]["spec"]["queryOptions"].get("interval")
        assert panel.get("transformations", []) == [
            {"id": each["kind"], "options": each["spec"]["options"]} for each in made["data"]["spec"]["transformations"]
        ]


@pytest.mark.parametrize("name", CLASSIC)
def test_rows_hold_what_stood_under_their_heading(name: str) -> None:
    """Each row has its panels, as wide and high as before and in the same places, counted from the row's top."""
    listed = CLASSIC[name]["panels"]
    headings = [panel for panel in listed if panel["type"] == "row"]
    rows = RESOURCES[name]["spec"]["layout"]["spec"]["rows"]

    assert [heading["title"] for heading in headings] == [row["spec"]["title"] for row in rows]
    placed = {
        item["spec"]["element"]["name"]: (item["spec"]["x"], item["spec"]["y"] + heading["gridPos"]["y"] + 1)
        for heading, row in zip(headings, rows, strict=True)
        for item in row["spec"]["layout"]["spec"]["items"]
    }
    assert {f"panel-{panel['id']}": (panel["gridPos"]["x"], panel["gridPos"]["y"]) for panel in panels(name)} == placed


@pytest.mark.parametrize("name", CLASSIC)
def test_variables_and_episodes_are_the_same(name: str) -> None:
    """What can be chosen above a board, and what is marked over its graphs."""
    spec = RESOURCES[name]["spec"]
    chosen = [variable["spec"] for variable in spec["variables"]]
    classic = CLASSIC[name].get("templating", {}).get("list", [])

    assert [(each["name"], each["label"], each["multi"]) for each in classic] == [
        (each["name"], each["label"], each["multi"]) for each in chosen
    ]
    assert [each["query"]["query"] for each in classic if each["type"] == "query"] == [
        each["query"]["spec"]["query"] for each in chosen if "query" in each
    ]
    assert [(each["name"], each["expr"]) for each in CLASSIC[name]["annotations"].get("list", [])] == [
        (each["spec"]["name"], each["spec"]["query"]["spec"]["expr"]) for each in spec["annotations"]
    ]


@pytest.mark.parametrize("name", CLASSIC)
def test_every_kind_is_one_the_sdk_knows(name: str) -> None:
    """Objects are of kinds that Grafana's own types have, with no field beyond them."""
    found = list(kinds(RESOURCES[name]["spec"]))

    assert found
    for each in found:
        model = getattr(sdk.v2_model, f"{each['kind']}Kind", None)
        if model is None:
            # A transformation is of the kind of its id.
            assert each["kind"] in {"merge", "organize", "sortBy"}
            continue
        # The SDK's types name what they write; they were not made to compare, so what they write is compared.
        assert each.keys() <= json.loads(json.dumps(model(), cls=sdk.JSONEncoder)).keys() | {"datasource", "labels"}

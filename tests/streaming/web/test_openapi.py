"""The OpenAPI description: every route is in it, and every answer is as it says."""

import re
from collections.abc import Iterator
from typing import Any, Final

import httpx
import jsonschema
import pytest
from starlette.routing import Route

from streaming.board.board import Board
from streaming.end_offsets.store import EndOffsets
from streaming.metrics.exporter import Exporter
from streaming.web import openapi
from streaming.web.api_answers import Api
from streaming.web.openapi import ANSWERS, OPERATIONS, PARAMETERS, STREAM
from streaming.web.routes import Pages
from tests.page.stage import CONNECT, HOSTILE_NAMES, STABLE, Stage

DESCRIPTION: Final = openapi.description()

ADDRESSES: Final = {
    "/api/v1/overview": ["/api/v1/overview"],
    "/api/v1/groups": ["/api/v1/groups", "/api/v1/groups?topic=t"],
    "/api/v1/groups/{name}": [f"/api/v1/groups/{STABLE}", f"/api/v1/groups/{CONNECT}", "/api/v1/groups/nobody"],
    "/api/v1/search": ["/api/v1/search?topic=t", "/api/v1/search"],
    "/api/v1/copies": ["/api/v1/copies"],
    "/api/v1/topics": ["/api/v1/topics"],
    "/api/v1/topics/{name}": ["/api/v1/topics/t", "/api/v1/topics/nowhere"],
    "/api/v1/lag": ["/api/v1/lag", f"/api/v1/lag?group={STABLE}", "/api/v1/lag?group=nobody"],
    "/api/v1/history": [f"/api/v1/history?name={STABLE}"],
    "/api/v1/history/{name}": [f"/api/v1/history/{STABLE}"],
    "/api/v1/gate/upgrade": ["/api/v1/gate/upgrade", "/api/v1/gate/upgrade?max_size=0"],
    "/api/v1/gate/downgrade": ["/api/v1/gate/downgrade", "/api/v1/gate/downgrade?group=nobody"],
    "/api/v1/plan": ["/api/v1/plan", "/api/v1/plan?match=nobody"],
    "/api/v1/burndown": ["/api/v1/burndown"],
    "/api/v1/report/{name}": [f"/api/v1/report/{STABLE}?since=0", "/api/v1/report/nobody?since=0"],
    "/api/v1/events": ["/api/v1/events", "/api/v1/events?limit=0"],
    "/api/v1/openapi.json": ["/api/v1/openapi.json"],
}  # fmt: skip


def routes() -> set[str]:
    """Addresses of the API that the application has, but for the one that says which gates there are."""
    board = Board(EndOffsets())
    found = Pages(Api(board, "c"), Exporter(board, "c"))._routes()
    assert all(isinstance(each, Route) for each in found)
    return {re.sub(r":\w+}", "}", each.path) for each in found if each.path.startswith("/api/")} - {
        "/api/v1/gate/{gate}"
    }


def test_every_route_is_described() -> None:
    """And nothing else is."""
    assert routes() == set(OPERATIONS)


def test_it_is_what_it_says_it_is() -> None:
    """Each schema is one, each reference leads somewhere, and each answer, parameter and operation id is used once."""
    for schema in DESCRIPTION["components"]["schemas"].values():
        jsonschema.Draft202012Validator.check_schema(schema)
    text = openapi.text()
    references = set(re.findall(r'"#/components/schemas/(\w+)"', text))
    ids = re.findall(r'"operationId": "(\w+)"', text)

    assert {*ANSWERS, "Any"} == references
    assert set(PARAMETERS) == {name for of in OPERATIONS.values() for name in of.query.split()}
    assert len(ids) == len(set(ids)) == len(OPERATIONS)


def test_the_file_is_up_to_date() -> None:
    """That is what the generator writes."""
    assert openapi.text() == openapi.FILE.read_text("utf-8")


@pytest.fixture(scope="module")
def stage() -> Iterator[Stage]:
    """Groups of every kind, one with an alarm, with lag over time."""
    with Stage() as stage:
        stage.play_recording()
        stage.play_kinds()
        stage.own_twice()
        for name in HOSTILE_NAMES[:4]:
            stage.commit(name, 5)
        stage.sample_lag()
        yield stage


def validator(answer: dict[str, Any]) -> jsonschema.Draft202012Validator:
    return jsonschema.Draft202012Validator({**answer, "components": DESCRIPTION["components"]})


@pytest.mark.parametrize(
    ("path", "address"), [(path, address) for path, addresses in ADDRESSES.items() for address in addresses]
)
def test_answers_are_as_described(stage: Stage, path: str, address: str) -> None:
    """Status and content of what is found, and of what is refused."""
    answer = httpx.get(stage.url + address)
    described = DESCRIPTION["paths"][path]["get"]["responses"][str(answer.status_code)]
    schema = described["content"][answer.headers["content-type"].partition(";")[0]]["schema"]

    assert [] == [f"{error.json_path}: {error.message}" for error in validator(schema).iter_errors(answer.json())]


def test_every_answer_is_asked_for() -> None:
    """All but the streams, which do not end."""
    streams = {path for path, of in OPERATIONS.items() if of.media_type == STREAM}

    assert set(OPERATIONS) - streams == set(ADDRESSES)


@pytest.mark.parametrize(
    ("change", "at"),
    [({"lag": "many"}, "$.lag"), ({"members": [{}]}, "$.members[0]"), ({"offsets": None}, "$.offsets")],
)
def test_an_answer_that_is_another_is_noticed(stage: Stage, change: dict[str, Any], at: str) -> None:
    """The description says enough to be wrong."""
    group = {**httpx.get(f"{stage.url}/api/v1/groups/{STABLE}").json(), **change}

    errors = [error.json_path for error in validator({"$ref": "#/components/schemas/Group"}).iter_errors(group)]
    assert at in errors


@pytest.mark.parametrize("path", ADDRESSES)
def test_parameters_are_those_the_route_takes(stage: Stage, path: str) -> None:
    """A parameter that is none is refused with the names of those that are."""
    refused = httpx.get(stage.url + path.replace("{name}", STABLE), params={"bogus": "1"})
    accepted = set(refused.json()["error"].partition("accepted: ")[2].split(", ")) - {"nothing"}

    assert (400, set(OPERATIONS[path].query.split())) == (refused.status_code, accepted)

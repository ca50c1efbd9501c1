"""The OpenAPI 3.1 description of /api/v1: `python -m streaming.web.openapi [--check]` writes it down.

Its schemas are those of the types that answers have (`base/answers.py`). Fields may be added in a later release, so an
object may have others.
"""

import json
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from types import NoneType, UnionType
from typing import Any, Final, Union, get_args, get_origin, get_type_hints, is_typeddict

from streaming.base import answers
from streaming.base.places import ROOT
from streaming.base.version import release

FILE: Final = ROOT / "docs" / "schemas" / "openapi.json"

ANSWERS: Final[Mapping[str, Any]] = {
    name.removesuffix("Answer"): of for name, of in vars(answers).items() if name.endswith("Answer")
}
"""Name of an answer → its type."""

PARAMETERS: Final[Mapping[str, str]] = {
    "topic": "Groups that have to do with this topic: a name or a shell pattern, as of the next four.",
    "owner": "Groups of this owner by the configuration's expectations.",
    "client_id": "Groups with a member of this client id.",
    "host": "Groups with a member on this host.",
    "instance_id": "Groups with a static member of this id.",
    "type": "Groups of this type: classic, consumer, share, streams.",
    "state": "Groups in this state, as Kafka's tools print it.",
    "name": "The name, where a path cannot hold it: `.`, `..`, nothing.",
    "group": "This group; for a gate, a plan and its burn-down as often as there are groups.",
    "match": "Groups whose names this shell pattern matches, besides those named by `group`.",
    "since": "From this time on: milliseconds since 1970, or ISO 8601; for a stream, the id of the last event seen.",
    "until": "Up to this time.",
    "at": "The group as it was at this time.",
    "limit": "The latest so many.",
    "format": "Report: json (as described), markdown or html, which come as files.",
    "max_size": "Upgrade gate: in place of the brokers' group.consumer.max.size.",
    "target_version": "Downgrade gate: the release that brokers are rolled to.",
    "as_shown": "Gate: of the groups as the live stream shows them; `version` is how the ids of its events begin.",
}
"""Query parameter → what it asks for."""

STREAM: Final = "text/event-stream"
_JSON: Final = "application/json"
_PLAIN: Final = {
    str: "string",
    int: "integer",
    float: "number",
    bool: "boolean",
    NoneType: "null",
    answers.JsonObject: "object",
}
_SEARCH: Final = "topic owner client_id host instance_id"

ERRORS: Final[Mapping[int, str]] = {
    400: "A parameter is not what is accepted.",
    401: "Credentials are missing or wrong.",
    404: "There is no such thing, as far as the log is read: else 503.",
    410: "The history does not go back so far, or cannot be read.",
    501: "No history is kept.",
    503: "Too much is asked at once; or, with a `doubt`, it is unknown whether it exists.",
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Operation:
    """What a GET of an address answers.

    Attributes:
        summary: in a sentence.
        answer: a name of `ANSWERS`; of a stream, of each event's data.
        query: names of `PARAMETERS`.
        errors: statuses besides 400 and 401.
        media_type: of the answer.
    """

    summary: str
    answer: str
    query: str = ""
    errors: tuple[int, ...] = ()
    media_type: str = _JSON


_HISTORY: Final = Operation(
    summary="What happened to a group, or how it was.",
    answer="History",
    query="name since until at limit",
    errors=(404, 410, 501, 503),
)

OPERATIONS: Final[Mapping[str, Operation]] = {
    "/api/v1/overview": Operation(summary="A line on every group, and the latest events.", answer="Overview"),
    "/api/v1/groups": Operation(summary="Groups with lag.", answer="Groups", query=f"{_SEARCH} type state"),
    "/api/v1/groups/{name}": Operation(summary="One group with lag.", answer="Group", query="name", errors=(404, 503)),
    "/api/v1/search": Operation(summary="Names of groups.", answer="Names", query=_SEARCH),
    "/api/v1/copies": Operation(
        summary="Groups with records in several partitions of the offsets topic, and the one each lives in.",
        answer="CopiedGroups",
    ),
    "/api/v1/topics": Operation(summary="Topics that groups have to do with.", answer="Topics"),
    "/api/v1/topics/{name}": Operation(
        summary="One topic, and every group that has to do with it, with its lag there.",
        answer="Topic",
        query="name",
        errors=(404, 503),
    ),
    "/api/v1/lag": Operation(summary="Lag of the last hour.", answer="Lag", query="group", errors=(404, 503)),
    "/api/v1/history": _HISTORY,
    "/api/v1/history/{name}": _HISTORY,
    "/api/v1/gate/upgrade": Operation(
        summary="May consumers be rolled now?", answer="Gate", query="group max_size as_shown", errors=(404, 503)
    ),
    "/api/v1/gate/downgrade": Operation(
        summary="May brokers be rolled now?", answer="Gate", query="group target_version as_shown", errors=(404, 503)
    ),
    "/api/v1/plan": Operation(
        summary="Readiness of groups, in waves.", answer="Plan", query="group match", errors=(404, 503)
    ),
    "/api/v1/burndown": Operation(
        summary="The migration over time: groups and members by protocol, null where it is not known.",
        answer="BurnDown",
        query="group match since",
        errors=(410, 501, 503),
    ),
    "/api/v1/report/{name}": Operation(
        summary="What a roll of a group cost.",
        answer="Roll",
        query="name since until format",
        errors=(404, 410, 503),
    ),
    "/api/v1/events": Operation(summary="The latest events, oldest first.", answer="Events", query="group since limit"),
    "/api/v1/events/stream": Operation(
        summary="Events as they come; after a break, those since Last-Event-ID.",
        answer="Event",
        query="group",
        errors=(503,),
        media_type=STREAM,
    ),
    "/api/v1/live": Operation(
        summary="Every second what changed, for the page.",
        answer="Any",
        query="group since",
        errors=(503,),
        media_type=STREAM,
    ),
    "/api/v1/openapi.json": Operation(summary="This description.", answer="Description"),
}
"""Address → what a GET of it answers."""


def description() -> dict[str, Any]:
    """The document."""
    return {
        "openapi": "3.1.0",
        "info": {
            "title": "group-monitor",
            "version": release(),
            "description": "Consumer groups of a Kafka cluster, as its coordinator's log has them. Times are "
            "milliseconds since 1970, null is what is not known. Fields may be added.",
        },
        "paths": {path: {"get": _operation(path, of)} for path, of in OPERATIONS.items()},
        "components": {
            "schemas": {"Any": {"type": "object"}, **{name: _object(of) for name, of in ANSWERS.items()}},
            "securitySchemes": {
                "token": {"type": "http", "scheme": "bearer"},
                "password": {"type": "http", "scheme": "basic"},
            },
        },
        "security": [{}, {"token": []}, {"password": []}],
    }


def _operation(path: str, of: Operation) -> dict[str, Any]:
    in_path = [part[1:-1] for part in path.split("/") if part.startswith("{")]
    query = [
        {"name": name, "in": "query", "description": PARAMETERS[name], "schema": {"type": "string"}}
        for name in of.query.split()
    ]
    path_parameters = [{"name": name, "in": "path", "required": True, "schema": {"type": "string"}} for name in in_path]
    errors = {
        str(status): {"description": ERRORS[status], "content": _content("Error")} for status in (400, 401, *of.errors)
    }
    return {
        "operationId": "_".join(part.strip("{}") for part in path.removesuffix(".json").split("/")[3:]),
        "summary": of.summary,
        "parameters": path_parameters + query,
        "responses": {"200": {"description": of.summary, "content": _content(of.answer, of.media_type)}, **errors},
    }


def _content(answer: str, media_type: str = _JSON) -> dict[str, Any]:
    return {media_type: {"schema": _ref(answer)}}


def _ref(name: str) -> dict[str, Any]:
    return {"$ref": f"#/components/schemas/{name}"}


def _object(answer: Any) -> dict[str, Any]:  # noqa: ANN401 - a TypedDict has no type of its own
    fields = get_type_hints(answer)
    return {
        "type": "object",
        "required": [name for name in fields if name in answer.__required_keys__],
        "properties": {name: _schema(of) for name, of in fields.items()},
    }


def _schema(of: Any) -> dict[str, Any]:  # noqa: ANN401 - a type, of whatever kind
    if of in _PLAIN:
        return {"type": _PLAIN[of]}
    if of is Any:
        return {}
    if is_typeddict(of):
        return _ref(of.__name__.removesuffix("Answer"))
    within = get_args(of)
    if get_origin(of) in (UnionType, Union):
        return {"anyOf": [*map(_schema, within)]}
    if get_origin(of) is Sequence:
        return {"type": "array", "items": _schema(within[0])}
    return {"type": "object", "additionalProperties": _schema(within[1])}


def text() -> str:
    """The document as the file has it."""
    return json.dumps(description(), indent=1) + "\n"


def main(arguments: list[str]) -> int:
    """Write the file, or with `--check` say whether it is up to date; returns the exit status."""
    if "--check" not in arguments:
        FILE.write_text(text(), encoding="utf-8")
        return 0
    if FILE.is_file() and FILE.read_text(encoding="utf-8") == text():
        return 0
    sys.stderr.write("error: docs/schemas/openapi.json is not up to date, run: python -m streaming.web.openapi\n")
    return 1


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

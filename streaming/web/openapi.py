"""The OpenAPI 3.1 description of /api/v1, from one table: `python -m streaming.web.openapi [--check]` writes it down.

An answer is written as its fields: `name:type`, with `?` where the value may be null, `[]` for a list, `{}` for an
object of such values by name, `~` before the name where the field is not always there. A type is one of JSON Schema's,
`any`, or the name of another answer. Fields may be added in a later release, so an object may have others.
"""

import json
import sys
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

from streaming.base.places import ROOT
from streaming.base.version import release

FILE: Final = ROOT / "docs" / "schemas" / "openapi.json"

ANSWERS: Final[Mapping[str, str]] = {
    "Error": "error:string ~doubt:object",
    "Unread": "partition:integer reason:string since:integer as_of:integer",
    "Event": "id:string time:integer group:string? kind:string severity:string partition:integer offset:integer "
    "detail:object inferred:boolean text:string",
    "Attention": "severity:string code:string text:string since:integer?",
    "Member": "member_id:string instance_id:string? client_id:string client_host:string protocol:string epoch:integer? "
    "state:string ~assigned:any{} ~pending_revocation:any{} ~target:any{}",
    "Offset": "topic:string partition:integer offset:integer? leader_epoch:integer? metadata:string? "
    "commit_timestamp:integer? topic_id:string? log_end_offset:integer? log_start_offset:integer? "
    "last_stable_offset:integer? lag:integer? stable_lag:integer? lag_seconds:number? lag_seconds_at_least:boolean "
    "lag_method:string records_lost:boolean",
    "Group": "group:string type:string state:string epoch:integer? assignment_epoch:integer? protocol:string? "
    "simple:boolean members:Member[] offsets:Offset[] migration:object owner:string? lag:integer? at_least:integer? "
    "unknown_lags:integer max_lag:integer? max_lag_seconds:number? max_lag_seconds_at_least:boolean "
    "rebalances:integer? rebalancing_since:integer? "
    "duplicates:any{}? unassigned:any{}? attention:Attention[] ~copies:Copies ~log_lacks:Lack[] "
    "~doubt:object?",
    "Lack": "code:string text:string",
    "Copies": "partitions:integer[] lives_in:integer",
    "CopiedGroup": "group:string partitions:integer[] lives_in:integer",
    "CopiedGroups": "groups:CopiedGroup[] left_out:integer",
    "Groups": "groups:Group[] left_out:integer cannot_tell:integer doubt:object? unread:Unread[]",
    "Names": "groups:string[] left_out:integer cannot_tell:integer unread:Unread[]",
    "ListedTopic": "topic:string partitions:integer? groups:integer",
    "Topics": "topics:ListedTopic[] left_out:integer unread:Unread[]",
    "Reader": "group:string owner:string? type:string state:string members:integer subscribed:boolean? "
    "assigned_partitions:integer committed_partitions:integer lag:integer? at_least:integer? unknown_lags:integer "
    "max_lag:integer? max_lag_seconds:number? max_lag_seconds_at_least:boolean ~doubt:Unread",
    "Topic": "topic:string topic_id:string? partitions:integer? groups:Reader[] left_out:integer cannot_tell:integer "
    "ready:boolean missing:object[] doubt:object? unread:Unread[] end_offset_age_seconds:number?",
    "LeftOut": "groups:integer topics:integer",
    "Row": "group:string type:string state:string simple:boolean epoch:integer? classic_members:integer "
    "consumer_members:integer absent_members:integer phase:string? blockers:string[] mixed_since:integer? "
    "leftovers:integer? upgrades:integer? downgrades:integer? lag:integer? at_least:integer? "
    "unknown_lags:integer max_lag:integer? max_lag_seconds:number? "
    "max_lag_seconds_at_least:boolean rebalances:integer? rebalancing_since:integer? duplicate_partitions:integer? "
    "unassigned_partitions:integer? attention:Attention[] ~doubt:Unread",
    "Overview": "cluster:string time:integer ready:boolean missing:object[] doubt:object? ~sinks:object[] "
    "~source:object ~without_leader:integer[] ~unreadable:integer[] ~not_loaded:integer[] unread:Unread[] "
    "left_out:LeftOut end_offset_age_seconds:number? replica_lag_records:integer? "
    "open_transaction_records:integer? events:Event[] trends:object groups:Row[]",
    "Events": "events:Event[]",
    "Lag": "times:integer[] ~groups:any{} ~group:string ~lag:any[] ~max_lag_seconds:any[] ~partition_count:integer "
    "~partitions:object[]",
    "History": "group:string ~events:Event[] ~as_of:any ~doubt:Unread",
    "Reason": "effect:string code:string group:string? text:string",
    "Gate": "gate:string verdict:string reasons:Reason[] groups:integer{} ~target_version:string? "
    "~leftover_records:integer{} ~unknown_records:integer{} ~offset_versions:integer{} ~log_scan:any "
    "~cluster_id:string? ~version:string",
    "Remedy": "code:string remedy:string",
    "Planned": "group:string readiness:string reasons:Remedy[] members:integer partitions:integer? protocol:string? "
    "assignor:string? assignor_after:string? rebalances_a_day:number? lag:integer? wave:integer? owner:string? "
    "static_ids:integer note:string? kind:string?",
    "Kind": "kind:string groups:integer rehearse:string",
    "Plan": "ready:boolean missing:object[] doubt:object? unread:Unread[] left_out:integer groups:Planned[] "
    "waves:integer counts:integer{} kinds:Kind[]",
    "BurnDown": "times:integer[] groups:any{} members:any{}",
    "SpannedRoll": "direction:string since:integer until:integer ended:string?",
    "Roll": "format:string group:string since:integer until:integer rebalances:integer partitions_moved:integer "
    "ownerless_seconds:object? lag_added:object? causes:integer{} conversions:integer{} verdicts:string[] "
    "open_alarms:string[] rolls:SpannedRoll[] events:object[] known_until:integer complete:boolean unknown:string[] "
    "notes:string[]",
    "Description": "openapi:string info:object paths:object components:object",
}
"""Name of an answer → its fields."""

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
            "schemas": {"Any": {"type": "object"}, **{name: _object(fields) for name, fields in ANSWERS.items()}},
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


def _object(fields: str) -> dict[str, Any]:
    pairs = [field.split(":") for field in fields.split()]
    return {
        "type": "object",
        "required": [name for name, _ in pairs if not name.startswith("~")],
        "properties": {name.removeprefix("~"): _type(of) for name, of in pairs},
    }


def _type(of: str) -> dict[str, Any]:
    if of.endswith("?"):
        return {"anyOf": [_type(of[:-1]), {"type": "null"}]}
    if of.endswith("[]"):
        return {"type": "array", "items": _type(of[:-2])}
    if of.endswith("{}"):
        return {"type": "object", "additionalProperties": _type(of[:-2])}
    if of == "any":
        return {}
    return _ref(of) if of in ANSWERS else {"type": of}


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

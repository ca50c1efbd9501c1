"""JSON Schema (2020-12) of the configuration file, from the declarations of the options."""

from typing import Any, Final

from streaming.config.sections import Config

DIALECT: Final = "https://json-schema.org/draft/2020-12/schema"

_REFERENCE: Final = {"type": "string", "pattern": r"\$\{(env:[A-Za-z_][A-Za-z0-9_]*|file:[^{}]+)\}"}
"""What may stand in the place of any value: see `loading`."""


_KEYWORDS: Final = {"ge": "minimum", "le": "maximum"}
"""pydantic's own names of bounds, which it leaves where a check stands before them."""


def json_schema() -> dict[str, Any]:
    """Of a file, whose values may be references; an option that is not known is refused, as it is by the program.

    Rules that hold between options, and secrets' being references, are beyond it: `group-monitor check` knows them.
    """
    made = Config.model_json_schema()
    for section in (made, *made["$defs"].values()):
        for name, of in section["properties"].items():
            if "$ref" not in of:
                section["properties"][name] = _or_reference(of)
    return {"$schema": DIALECT, **made, "title": "Configuration of group-monitor"}


def _or_reference(of: dict[str, Any]) -> dict[str, Any]:
    of = _in_its_keywords(of)
    about: dict[str, Any] = {name: of[name] for name in ("title", "description", "default", "accepted") if name in of}
    rest = {name: value for name, value in of.items() if name not in about}
    if rest.get("type") == "string" and not rest.keys() - {"type"}:
        return of
    return {**about, "anyOf": [rest, _REFERENCE]}


def _in_its_keywords(of: dict[str, Any]) -> dict[str, Any]:
    renamed = {_KEYWORDS.get(name, name): value for name, value in of.items()}
    choices = {name: [_in_its_keywords(each) for each in value] for name, value in renamed.items() if name == "anyOf"}
    return renamed | choices

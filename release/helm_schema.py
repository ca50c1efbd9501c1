"""Writes values.schema.json of the Helm chart: the chart's own values, and the configuration's schema in their midst.

`python -m release.helm_schema [--check]`; draft 7, the newest that every Helm 3 reads.
"""

import json
import sys
from pathlib import Path
from typing import Any, Final

from streaming.config.schema import json_schema

OUT: Final = Path(__file__).resolve().parent.parent / "conf" / "helm" / "group-monitor" / "values.schema.json"

_TEXT: Final = {"type": "string", "minLength": 1}
_PORT: Final = {"type": "integer", "minimum": 1, "maximum": 65535}


def _object(**properties: Any) -> dict[str, Any]:  # noqa: ANN401 - schemas
    return {"type": "object", "additionalProperties": False, "properties": properties, "required": sorted(properties)}


def schema() -> dict[str, Any]:
    """Of values.yaml. What belongs to Kubernetes (resources, env) is left to Kubernetes."""
    configuration = json_schema()
    own = _object(
        image=_object(repository=_TEXT, tag={"type": "string"}),
        config={"type": "object", "additionalProperties": False, "properties": configuration["properties"]},
        standby={"type": "boolean"},
        secret=_object(name=_TEXT, key=_TEXT),
        tls=_object(secretName={"type": "string"}, serverName={"type": "string"}, caKey={"type": "string"}),
        env={"type": "array", "items": {"type": "object", "required": ["name"]}},
        resources={"type": "object"},
        storage=_object(size=_TEXT, className={"type": "string"}),
        networkPolicy=_object(
            enabled={"type": "boolean"},
            kafkaPorts={"type": "array", "minItems": 1, "items": _PORT},
            access={"type": "object", "minProperties": 1, "additionalProperties": {"type": "string"}},
        ),
        rehearsal=_object(
            enabled={"type": "boolean"},
            schedule=_TEXT,
            releases={"type": "array", "items": {"type": "string", "pattern": "^[0-9]+\\.[0-9]+\\.[0-9]+$"}},
            resources={"type": "object"},
        ),
        podMonitor=_object(enabled={"type": "boolean"}, interval={"type": "string", "pattern": "^[0-9]+(ms|s|m)$"}),
    )
    # Helm adds `global` to the values of every chart.
    own["properties"]["global"] = {"type": "object"}
    return {"$schema": "http://json-schema.org/draft-07/schema#", **own, "$defs": configuration["$defs"]}


def main() -> int:
    """Write it, or compare with what is there; returns the exit status."""
    text = json.dumps(schema(), indent=1, ensure_ascii=False) + "\n"
    if "--check" not in sys.argv:
        OUT.write_text(text, "utf-8")
        return 0
    if OUT.read_text("utf-8") == text:
        return 0
    sys.stderr.write(f"error: {OUT.name} of the chart is not up to date, run: python -m release.helm_schema\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())

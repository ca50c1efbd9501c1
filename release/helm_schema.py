"""Writes what the Helm chart has of ours: the schema of its values, and alert rules with names in the place of limits.

`python -m release.helm_schema [--check]`. The schema is of draft 7, the newest that every Helm 3 reads; in its midst is
that of the configuration. The rules, with the limits they have by default, are also what kustomize applies.
"""

import json
import sys
from pathlib import Path
from typing import Any, Final

import yaml

from dashboards import alerts
from dashboards.settings import in_percent_signs
from dashboards.thresholds import LIMITS, duration, spoken
from streaming.config.schema import json_schema

CONF: Final = Path(__file__).resolve().parent.parent / "conf"
CHART: Final = CONF / "helm" / "group-monitor"
SCHEMA: Final = CHART / "values.schema.json"
RULES: Final = CHART / "files" / "rules.json"
DEFAULTS: Final = CHART / "files" / "limits.json"
KUSTOMIZED: Final = CONF / "kubernetes-prometheus" / "prometheusrule.yaml"
COMMAND: Final = "python -m release.helm_schema"

_TEXT: Final = {"type": "string", "minLength": 1}
_WORDS: Final = {"type": "object", "additionalProperties": {"type": "string"}}
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
        podMonitor=_object(
            enabled={"enum": ["auto", True, False]},
            interval={"type": "string", "pattern": "^[0-9]+(ms|s|m)$"},
            labels=_WORDS,
        ),
        prometheusRule=_object(
            enabled={"type": "boolean"},
            labels=_WORDS,
            limits={
                "type": "object",
                "additionalProperties": False,
                "properties": {
                    name: {"type": "integer", "minimum": 1} for name, limit in LIMITS.items() if limit.is_set_here
                },
            },
        ),
        dashboards=_object(enabled={"type": "boolean"}, labels=_WORDS, annotations=_WORDS),
    )
    # Helm leaves out what is set to null.
    own["properties"]["fsGroup"] = {"type": ["integer", "null"], "minimum": 1}
    # Helm adds `global` to the values of every chart.
    own["properties"]["global"] = {"type": "object"}
    return {"$schema": "http://json-schema.org/draft-07/schema#", **own, "$defs": configuration["$defs"]}


def rules() -> dict[str, Any]:
    """The rules with names in the place of limits, for the chart to put its values in."""
    made: dict[str, Any] = in_percent_signs(alerts.rules(None))
    return made


def limits() -> dict[str, dict[str, object]]:
    """Name → what stands in rules for a limit in each of its forms, by default."""
    return {
        name: {
            "value": limit.value,
            "duration": duration(limit.value),
            "words": spoken(limit.value),
            "reason": limit.reason,
        }
        for name, limit in LIMITS.items()
        if limit.is_set_here
    }


def prometheus_rule() -> str:
    """The rules as the Prometheus operator reads them."""
    head = {
        "apiVersion": "monitoring.coreos.com/v1",
        "kind": "PrometheusRule",
        "metadata": {"name": "group-monitor", "labels": {"app.kubernetes.io/name": "group-monitor"}},
        "spec": alerts.rules(),
    }
    return f"# Made by `{COMMAND}`.\n" + yaml.safe_dump(head, sort_keys=False, allow_unicode=True, width=120)


def files() -> dict[Path, str]:
    """File → its text."""
    return {
        SCHEMA: json.dumps(schema(), indent=1, ensure_ascii=False) + "\n",
        RULES: json.dumps(rules(), indent=1, ensure_ascii=False) + "\n",
        DEFAULTS: json.dumps(limits(), indent=1, ensure_ascii=False) + "\n",
        KUSTOMIZED: prometheus_rule(),
    }


def main() -> int:
    """Write them, or compare with what is there; returns the exit status."""
    stale = {file: text for file, text in files().items() if not file.is_file() or file.read_text("utf-8") != text}
    if "--check" not in sys.argv:
        for file, text in stale.items():
            file.parent.mkdir(exist_ok=True)
            file.write_text(text, "utf-8")
        return 0
    if not stale:
        return 0
    names = ", ".join(file.name for file in stale)
    sys.stderr.write(f"error: {names} of chart and manifests not up to date, run: {COMMAND}\n")
    return 1


if __name__ == "__main__":
    sys.exit(main())

"""The JSON Schema of the configuration: it takes the files that the program takes, and refuses what that refuses."""

from pathlib import Path
from typing import Any, Final

import jsonschema
import pytest
import yaml

from streaming.config.loading import Config, load, options
from streaming.config.schema import json_schema

ROOT: Final = Path(__file__).resolve().parents[3]
SCHEMA: Final = json_schema()
VALIDATOR: Final = jsonschema.Draft202012Validator(SCHEMA)


def accepted(text: str) -> bool:
    return bool(VALIDATOR.is_valid(yaml.safe_load(text)))


def test_it_is_a_schema() -> None:
    """Of its dialect, each keyword of the type that it has there; none is pydantic's own."""
    jsonschema.Draft202012Validator.check_schema(SCHEMA)

    assert {"ge", "le"}.isdisjoint(keywords(SCHEMA))


def keywords(value: Any) -> set[str]:
    if isinstance(value, list):
        return set().union(*map(keywords, value))
    return {*value, *keywords(list(value.values()))} if isinstance(value, dict) else set()


def test_every_option_is_in_it_with_what_it_means() -> None:
    """Where the program looks for it: section and name, description and default."""
    for dotted, field in options(Config):
        at = SCHEMA
        for name in dotted.split("."):
            at = at["properties"][name]
            at = SCHEMA["$defs"][at["$ref"].rpartition("/")[2]] if "$ref" in at else at
        assert field.description == at["description"], dotted


@pytest.mark.parametrize("name", ["local.yaml", "reference.yaml"])
def test_files_of_the_program_are_accepted(name: str) -> None:
    """Those that come with it."""
    assert [] == [
        error.message for error in VALIDATOR.iter_errors(yaml.safe_load((ROOT / "conf" / name).read_text("utf-8")))
    ]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        ("kafka: {bootstrap_servers: ['a:9092', 'b:9092']}", True),
        ("http: {port: 9464}", True),
        ("http: {port: '${env:PORT}'}", True),
        ("http: {token: '${file:/run/secrets/token}'}", True),
        ("http: {port: 65536}", False),
        ("http: {port: true}", False),
        ("http: {prot: 9464}", False),
        ("htpp: {port: 9464}", False),
        ("spark: {shuffle_partitions: 0}", False),
        ("source: {isolation: exakt}", False),
        ("metrics: {partition_series: 7}", False),
        ("metrics: {partition_series: auto}", True),
        ("metrics: {partition_series: false}", True),
        ("metrics: {partition_series_limit: 0}", False),
    ],
)
def test_schema_and_program_agree(text: str, expected: bool, tmp_path: Path) -> None:
    """On values, references, and names that are not known."""
    file = tmp_path / "c.yaml"
    file.write_text(text, "utf-8")
    (tmp_path / "token").write_text("a-token-of-some-length", "utf-8")
    said = text.replace("/run/secrets", str(tmp_path))
    file.write_text(said, "utf-8")

    assert expected == accepted(said)
    assert expected == taken(file)


def taken(file: Path) -> bool:
    from streaming.base.errors import UsageError

    try:
        load(file, {"PORT": "9464"})
    except UsageError:
        return False
    return True

"""The bill of materials lists what is installed, always in the same bytes; the audit shows what it could learn."""

import json
import re
import subprocess
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from supply import audit, components, sbom
from supply.components import LOCK, Jar
from tests.http_server import Answer, Asked, HttpServer, in_json

LOCK_TEXT = LOCK.read_text("utf-8")


@pytest.fixture(scope="module")
def jars() -> list[Jar]:
    return components.jars()


@pytest.fixture(scope="module")
def bill(jars: list[Jar]) -> dict[str, Any]:
    made: dict[str, Any] = json.loads(sbom.bill(components.packages(LOCK_TEXT), jars, components.kept()))
    return made


def test_all_of_the_lock_is_listed(bill: dict[str, Any]) -> None:
    """Every line that pins something, with its digests, and nothing else of the registry."""
    pinned = {tuple(found) for found in re.findall(r"^([\w.-]+)==([\w.+!-]+)", LOCK_TEXT, re.MULTILINE)}
    listed = {(of["name"], of["version"]) for of in bill["components"] if of["purl"].startswith("pkg:pypi/")}
    digests = {hash_["content"] for of in bill["components"] for hash_ in of["hashes"]}

    assert pinned == listed
    assert len(pinned) > 60
    assert set(re.findall(r"sha256:([0-9a-f]{64})", LOCK_TEXT)) <= digests


def test_all_jars_are_listed(bill: dict[str, Any]) -> None:
    """Those fetched for the broker and for the tests, and those in Spark; with coordinates where they can be known."""
    listed = {(of["name"], of.get("version")) for of in bill["components"] if not of["purl"].startswith("pkg:pypi/")}

    assert {("kafka-clients", "4.3.1"), ("spark-core_2.13", "4.2.1"), ("ecj", "3.42.0")} <= listed
    assert "pkg:maven/org.apache.spark/spark-core_2.13@4.2.1" in {of["purl"] for of in bill["components"]}


def test_what_the_checkout_keeps_of_others_is_listed(bill: dict[str, Any]) -> None:
    """The chart library, by its release, licence and digests; its licence's text stands beside it."""
    listed = [of for of in bill["components"] if of["purl"].startswith("pkg:npm/")]

    assert ["pkg:npm/uplot@1.6.32"] * 2 == [of["purl"] for of in listed]
    assert ["MIT"] * 2 == [of["licenses"][0]["license"]["id"] for of in listed]
    # As the npm registry has them in uplot-1.6.32.tgz: they are not changed here.
    assert {
        "df630c6a8d6f8eeaff264b50f73ce5b114f646ffd9a0bb74f049b0a00135fa04",
        "19c8d4c6ad88929a79f4ae49d6f7161566dfd0ba3d15cc495e974f787eb78f1f",
    } == {of["hashes"][0]["content"] for of in listed}
    assert "Leon Sorokin" in (components.ROOT / "streaming" / "web" / "page" / "uplot.LICENSE").read_text("utf-8")


def test_setup_fetches_what_is_listed(tmp_path: Path) -> None:
    """Spark's, the broker's and the tests' jars; not what only `make bench` needs."""
    plan = subprocess.run(  # noqa: S603 - the words are ours
        ["make", "-n", "setup", f"CACHE={tmp_path}"],  # noqa: S607 - the make of this machine
        cwd=components.ROOT,
        capture_output=True,
        text=True,
        check=True,
    ).stdout

    assert {"spark", "kafka", "judge"} == {of.name for of in components.JAR_DIRECTORIES}
    assert {"spark", "kafka", "judge"} == set(re.findall(r"-confs (\w+)", plan))


def test_the_same_lock_makes_the_same_bytes(
    jars: list[Jar], tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    """In whatever order things were found; nothing in it is of the moment or the machine."""
    few = jars[::40]
    for name, found in (("one", few), ("two", few[::-1])):
        monkeypatch.setattr(components, "jars", lambda found=found: found)
        assert 0 == sbom.main(["--out", str(tmp_path / name)])
    one, two = ((tmp_path / name).read_bytes() for name in ("one", "two"))

    assert one == two
    assert b"timestamp" not in one
    assert str(Path.home()).encode() not in one
    assert f" packages, {len(few)} jars, 2 files of others\n" in capsys.readouterr().out


def test_another_file_of_a_version_is_another_bill() -> None:
    """The serial number is of what is listed, digests included."""
    jar = Jar("org", "a", "1", "0" * 64)
    serials = {json.loads(sbom.bill([], [each]))["serialNumber"] for each in (jar, Jar("org", "a", "1", "1" * 64))}

    assert 2 == len(serials)


def test_a_line_that_pins_nothing_is_named() -> None:
    """A lock that is not one is no reason to list less."""
    with pytest.raises(ValueError, match=r"requirements\.lock: found 'six>=1', accepted: NAME==VERSION"):
        components.packages("six>=1 \\\n    --hash=sha256:00\n")


@pytest.fixture
def service() -> Iterator[str]:
    """Answers as OSV's documentation of `querybatch` has it: something is known of one package."""

    def answered(question: Asked) -> Answer:
        known = {"vulns": [{"id": "GHSA-1", "modified": "2026-01-01T00:00:00Z"}]}
        urls = [query["package"]["purl"] for query in question.json()["queries"]]
        return in_json({"results": [known if url == "pkg:pypi/bad@1" else {} for url in urls]})

    with HttpServer(answered) as server:
        yield f"{server.url}/v1/querybatch"


def asked(tmp_path: Path, service: str, accepted: dict[str, str], urls: list[str]) -> int:
    bill, reasons = tmp_path / "bill", tmp_path / "accepted"
    bill.write_text(json.dumps({"components": [{"purl": url} for url in urls]}))
    reasons.write_text(json.dumps(accepted))
    return audit.main(["--bill", str(bill), "--accepted", str(reasons), "--service", service])


def test_what_is_known_fails_unless_it_is_accepted(
    service: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    """1 with what and of which; 0 once there is a reason, and a reason that is needed no more is named."""
    urls = ["pkg:pypi/good@1", "pkg:pypi/bad@1", "pkg:generic/unasked@1"]

    assert 1 == asked(tmp_path, service, {}, urls)
    assert "pkg:pypi/bad@1 GHSA-1 NOT ACCEPTED\n2 packages asked about" in capsys.readouterr().out
    assert 0 == asked(tmp_path, service, {"GHSA-1": "not called by us", "GHSA-2": "long ago"}, urls)
    said = capsys.readouterr().out
    assert "GHSA-1 not called by us" in said
    assert "GHSA-2 is accepted and found no more" in said


def test_nobody_to_ask_is_reported(tmp_path: Path, capsys: pytest.CaptureFixture[str]) -> None:
    """3, which is not 0: nothing was learned."""
    assert 3 == asked(tmp_path, "http://127.0.0.1:1/", {}, ["pkg:pypi/good@1"])
    assert "error: --service: found http://127.0.0.1:1/ (" in capsys.readouterr().err


def test_without_a_bill_nothing_is_asked(tmp_path: Path) -> None:
    """2: it is to be made first."""
    assert 2 == audit.main(["--bill", str(tmp_path / "none")])

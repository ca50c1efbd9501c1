"""Asks OSV (osv.dev) about everything in the bill of materials: `python -m supply.audit`, after `supply.sbom`.

Exit status: 0 nothing is known of anything, or only what is accepted with a reason; 1 something is; 2 the bill of
materials or the list of what is accepted cannot be read; 3 no source answered.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, Final
from urllib.error import URLError
from urllib.request import Request, urlopen

from supply.components import ROOT
from supply.sbom import OUT

SERVICE: Final = "https://api.osv.dev/v1/querybatch"
ACCEPTED: Final = ROOT / "conf" / "audit.json"
"""Identifier of a vulnerability → why it does not concern us. One that is found no more is to be taken out."""

_TIMEOUT_SECONDS: Final = 60
_MOST_OF_A_QUERY: Final = 500


def package_urls(bill: Mapping[str, Any]) -> list[str]:
    """What can be asked about: components of a registry, each once, sorted."""
    urls = {str(component.get("purl", "")) for component in bill["components"]}
    return sorted(url for url in urls if url.startswith(("pkg:pypi/", "pkg:maven/")))


def findings(urls: Sequence[str], service: str) -> Iterator[tuple[str, str]]:
    """(package URL, identifier) of every vulnerability that is known.

    Raises:
        OSError: no answer.
        ValueError: the answer is not what was asked for.
    """
    for first in range(0, len(urls), _MOST_OF_A_QUERY):
        part = urls[first : first + _MOST_OF_A_QUERY]
        body = json.dumps({"queries": [{"package": {"purl": url}} for url in part]}).encode()
        request = Request(service, data=body, headers={"Content-Type": "application/json"})  # noqa: S310 - https, or what was said
        with urlopen(request, timeout=_TIMEOUT_SECONDS) as response:  # noqa: S310 - as above
            answers = json.loads(response.read())["results"]
        for url, answer in zip(part, answers, strict=True):
            for known in answer.get("vulns", ()):
                yield url, str(known["id"])


def main(arguments: Sequence[str] | None = None) -> int:
    """Ask, and say what is known; returns the exit status."""
    parser = argparse.ArgumentParser(prog="python -m supply.audit", description="Ask OSV about all dependencies.")
    parser.add_argument("--bill", type=Path, default=OUT, help="the bill of materials")
    parser.add_argument("--accepted", type=Path, default=ACCEPTED, help="JSON: identifier to reason")
    parser.add_argument("--service", default=SERVICE, help="OSV's address for queries")
    given = parser.parse_args(arguments)
    try:
        urls = package_urls(json.loads(given.bill.read_text("utf-8")))
        accepted = json.loads(given.accepted.read_text("utf-8"))
    except (OSError, ValueError, KeyError) as error:
        sys.stderr.write(f"error: --bill, --accepted: found {error}, accepted: what `make sbom` writes, and JSON\n")
        return 2
    try:
        found = list(findings(urls, given.service))
    except (OSError, ValueError, KeyError) as error:
        reason = getattr(error, "reason", error) if isinstance(error, URLError) else error
        sys.stderr.write(f"error: --service: found {given.service} ({reason}), accepted: OSV within reach\n")
        return 3
    for url, identifier in sorted(found):
        sys.stdout.write(f"{url} {identifier} {accepted.get(identifier, 'NOT ACCEPTED')}\n")
    gone = accepted.keys() - {identifier for _, identifier in found}
    for identifier in sorted(gone):
        sys.stdout.write(f"{identifier} is accepted and found no more\n")
    new = {identifier for _, identifier in found} - accepted.keys()
    sys.stdout.write(f"{len(urls)} packages asked about, {len(new)} vulnerabilities beside those accepted\n")
    return 1 if new else 0


if __name__ == "__main__":
    sys.exit(main())

"""Attacks that a test of `make test` tries as a whole, without a monitor that runs: `make attack` runs these tests.

What they ask takes nothing from a process that is there: an option that fails open, a file that claims much, a name
that steers a terminal.
"""

import subprocess
import sys
import tempfile
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Final
from xml.etree import ElementTree as ET

ROOT: Final = Path(__file__).resolve().parents[2]

HELD, BROKEN, LEFT_OUT = "held", "broken", "left out"
"""What came of a test; it is left out where a program is not there that it needs."""

SECONDS: Final = 900
"""All of them together, on a machine that others use as well."""


@dataclass(frozen=True, slots=True)
class ByTest:
    """An attack, what came of it once, and its test."""

    does: str
    before: str
    test: str


_CONFIG: Final = "tests/streaming/config/test_loading.py"
_EXHAUSTION: Final = "tests/streaming/web/test_exhaustion.py"
_HARDENING: Final = "tests/streaming/web/test_hardening.py"
_NAMES: Final = "tests/streaming/web/test_hostile_names.py"
_FILES: Final = "tests/streaming/recording/test_file_format.py"

BY_TESTS: Final = (
    ByTest(
        "A group's name of 32 KB in `groups`, `describe` and `watch` on a terminal",
        "every row had 32,000 columns",
        "tests/streaming/cli/test_rich_view.py::test_a_long_name_cuts_no_other_column",
    ),
    ByTest(
        "The same in `groups` and `plan` where it is piped",
        "every row had 32,000 columns",
        "tests/streaming/cli/test_plain.py::test_a_long_name_does_not_widen_a_table",
    ),
    ByTest(
        "Two names that are the same but for their end, 32 KB on",
        "labels of 32 KB each",
        "tests/streaming/metrics/test_exporter.py::test_a_long_name_is_cut_in_labels_alone",
    ),
    ByTest(
        "Two Prometheus servers on eight shards, beside connections that read nothing",
        "not tried",
        f"{_EXHAUSTION}::test_two_prometheus_servers_on_eight_shards_lose_no_scrape",
    ),
    ByTest(
        "Requests whose clients hang up at once",
        "all of them were worked out",
        f"{_EXHAUSTION}::test_nothing_is_worked_out_for_who_is_gone",
    ),
    ByTest(
        "Connections from many addresses of one network of IPv6",
        "each address counted for itself",
        f"{_HARDENING}::test_a_network_of_ipv6_is_one_caller",
    ),
    ByTest(
        "Guesses of a password from many addresses",
        "each address had the guesses of one",
        f"{_EXHAUSTION}::test_many_addresses_guess_no_more_than_one",
    ),
    ByTest(
        "A JVM that does not answer",
        "waited for without end",
        "tests/streaming/spark/test_deadlines.py::test_a_call_without_an_answer_is_an_error",
    ),
    ByTest(
        "Lines of one kind without end in the log",
        "all were written",
        "tests/streaming/base/test_log_limit.py::test_so_many_lines_of_a_kind_are_written_in_a_minute",
    ),
    ByTest(
        "A group of 5,000 members with 4 KB each, which is lawful and is to be followed",
        "not tried",
        "tests/streaming/query/test_unreadable.py::test_the_largest_group_there_can_be_is_followed",
    ),
    ByTest(
        "A commit of a group whose partition has a batch that cannot be read",
        "nothing was in doubt",
        "tests/streaming/query/test_unreadable.py::test_they_stay_known",
    ),
    ByTest(
        "An empty token",
        "it started beyond loopback and let everyone in",
        f"{_CONFIG}::test_an_empty_secret_is_refused",
    ),
    ByTest(
        "A token or password of few characters",
        "taken",
        f"{_CONFIG}::test_a_secret_of_callers_is_not_soon_guessed",
    ),
    ByTest(
        "A name of somebody else's for a monitor beyond loopback without credentials",
        "answered",
        f"{_HARDENING}::test_without_authentication_names_are_refused_on_every_address",
    ),
    ByTest(
        "`/ready` without credentials",
        "names of groups, addresses of brokers",
        "tests/streaming/web/test_server.py::test_probes_name_nothing_to_who_has_no_credentials",
    ),
    ByTest(
        "An answer that sends a command to another host or port",
        "the token went there",
        "tests/streaming/cli/test_client.py::test_credentials_go_to_no_other_origin",
    ),
    ByTest(
        "A recording of 126 bytes that claims a billion partitions",
        "all memory",
        f"{_FILES}::test_a_header_of_a_billion_partitions_takes_no_memory",
    ),
    ByTest(
        "A link where `record --out` writes",
        "followed, and readable by all",
        f"{_FILES}::test_what_others_left_under_its_name_is_not_followed",
    ),
    ByTest(
        "A name with a line break in `report` and all other commands",
        "it began a line",
        f"{_NAMES}::test_no_name_begins_a_line",
    ),
    ByTest(
        "A broker that claims an answer of 2 GB",
        "as much memory",
        "tests/streaming/kafka/test_false_broker.py::test_what_it_claims_is_not_believed",
    ),
    ByTest(
        "A group that a question names again and again",
        "counted as often",
        "tests/streaming/web/test_server.py::test_a_group_that_is_named_twice_counts_once",
    ),
    ByTest(
        "A configuration that is nested without end",
        "a traceback",
        f"{_CONFIG}::test_a_file_that_is_nested_without_end_is_refused",
    ),
    ByTest(
        "A jar that is another than the one that was tried",
        "taken",
        "tests/supply/test_jars.py::test_what_a_wheel_fetches_is_compared",
    ),
    ByTest(
        "An image that was built again under the same version",
        "taken",
        "tests/test_compose.py::test_images_have_a_version_and_a_digest",
    ),
    ByTest(
        "Someone on the network of Kubernetes who listens to requests with the token",
        "heard it: no TLS in the chart",
        "tests/test_helm.py::test_with_a_secret_of_tls_the_token_does_not_go_in_clear",
    ),
    ByTest(
        "Quotes and Grafana's own words in a group's name, chosen on a board",
        "not tried",
        "tests/dashboards/test_hostile_names.py::test_boards_ask_for_the_group_that_was_chosen",
    ),
    ByTest(
        "Markup and templates in a group's name that is in an alert",
        "not tried",
        "tests/dashboards/test_hostile_names.py::test_alerts_show_names_as_text",
    ),
    ByTest(
        "A broker that names a host of somebody else's",
        "not tried",
        "tests/integration/test_kafka_security.py::test_a_host_that_a_broker_names_gets_no_credentials",
    ),
    ByTest(
        "A state directory that any account may write to",
        "not tried",
        "tests/streaming/cli/test_check_state_directory.py::test_directory_that_others_may_write_to_is_named",
    ),
)


def run(rows: Sequence[ByTest] = BY_TESTS) -> dict[str, str]:
    """Run their tests; test → what came of it: the worst, where it has several cases."""
    with tempfile.TemporaryDirectory(prefix="attack-") as directory:
        report = Path(directory) / "report.xml"
        command = [sys.executable, "-P", "-m", "pytest", "-q", "--no-header", "-p", "no:cacheprovider"]
        files = sorted({row.test.partition("::")[0] for row in rows})
        named = " or ".join(sorted({row.test.rpartition("::")[2] for row in rows}))
        subprocess.run(  # noqa: S603 - our own interpreter and tests
            [*command, f"--junitxml={report}", "-k", named, *files], cwd=ROOT, timeout=SECONDS, check=False
        )
        found = dict(_cases(report)) if report.is_file() else {}
    return {row.test: found.get(_named(row.test), BROKEN) for row in rows}


def _cases(report: Path) -> Iterator[tuple[tuple[str, str], str]]:
    """(module, test) → what came of it; the worst of its cases comes last."""
    found = []
    for case in ET.parse(report).getroot().iter("testcase"):  # noqa: S314 - pytest has just written it
        of = {child.tag for child in case}
        outcome = BROKEN if of & {"failure", "error"} else LEFT_OUT if "skipped" in of else HELD
        # A class stands behind its module.
        place, name = case.get("classname", ""), case.get("name", "").partition("[")[0]
        module = ".".join(part for part in place.split(".") if not part[:1].isupper())
        found.append(((module, name), outcome))
    return iter(sorted(found, key=lambda of: (HELD, LEFT_OUT, BROKEN).index(of[1])))


def _named(test: str) -> tuple[str, str]:
    file, _, name = test.partition("::")
    return file.removesuffix(".py").replace("/", "."), name.rpartition("::")[2]

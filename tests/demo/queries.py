"""Every question of every board and rule, put to a real Prometheus that scrapes the real demo: is there an answer?

Each query is asked again and again until it is answered: a roll has its phases, and what is drawn of one is not there
in the next. A rule compares, and in a sound cluster it finds nothing; so it is executed as it is, and whether it could
find anything is asked of the signals it compares.
"""

import json
import time
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any, Final
from urllib.request import urlopen

from dashboards.alerts import ALERTS
from dashboards.board import panels
from dashboards.build import GENERATED, RULES, boards
from dashboards.promql import Signal
from dashboards.signals import SIGNALS
from streaming.demo.scenario import GROUPS
from tests.dashboards.prometheus_tools import answer

LONGEST_SECONDS: Final = 270.0
ROUND_SECONDS: Final = 2.0

SHORT: Final = "10s"
"""In the place of a time that a demo does not last: what is compared with a quarter of an hour ago."""

# What Grafana puts in the place of its own words, for a Prometheus that scrapes every second.
WORDS: Final = {
    "offset $__range": f"offset {SHORT}",
    "$__rate_interval": "20s",
    "$__interval": "1m",
    "$__range": "5m",
    "${cluster:regex}": ".*",
    "${groups:regex}": ".*",
    "${topic:regex}": ".*",
}

NO_ALERT: Final = "an alert fires only where the machine is too slow for its members"
LAG_KNOWN: Final = "the lag of each partition is known within seconds"
ONE_OWNER: Final = "every partition has one owner"
NO_TRANSACTION: Final = "nobody commits in transactions"
NOT_SERVED: Final = "the demo writes no topics for `serve`"
UNDERSTOOD: Final = "every record of the demo's broker is understood"
NO_LOSS: Final = "a round of a rebalance is lost only where members are late, and a counter has no series before that"
NO_CLAIM: Final = "a claim is stale only where a member is late, and a counter has no series before that"
ON_ITS_OWN: Final = "each instance id has one process, which is bounced once, unless the machine is slow"
ALL_ARE_BACK: Final = "every member of the demo's rolls comes back"
NOT_EXPECTED: Final = "nothing is expected of the demo's groups"
HISTOGRAM_OFF: Final = "metrics.rebalance_histogram is off by default"
NO_QUEUE: Final = "the demo has no share group"
CLEAN: Final = "what is upgraded in the demo is carried over as it was"

# Where it stands → why the demo has no answer. One that is answered has to go from here.
UNANSWERED: Final[dict[str, str]] = {
    "Group: Duration of rebalances A": HISTOGRAM_OFF,
    "Group: Duration of rebalances B": HISTOGRAM_OFF,
    "Group: Given up A": NO_QUEUE,
    "Group: Given up B": NO_QUEUE,
    "Group: Delivered again A": NO_QUEUE,
    "Group: Delivered again B": NO_QUEUE,
    "Group: First offset not done A": NO_QUEUE,
    "Group: Share partitions A": NO_QUEUE,
    "Group: Share partitions C": NO_QUEUE,
    "Group: Share partitions D": NO_QUEUE,
    "Group: Delivered again, all partitions A": NO_QUEUE,
    "Group: First offset not done, the longest A": NO_QUEUE,
    "Rules: KafkaGroupShareStalled share_group_stalled": NO_QUEUE,
    "Monitor health: Groups E": NO_QUEUE,
    "Rules: KafkaGroupShareStalled share_stalls": NO_QUEUE,
    "Rules: KafkaGroupShareRecordsGivenUp share_given_up": NO_QUEUE,
    "Rolling upgrade: In the way A": "no member blocks an upgrade",
    "Rolling upgrade: Left over B": "a downgrade by a broker of today leaves nothing",
    "Monitor health: Open transactions A": NO_TRANSACTION,
    "Monitor health: Age of open transactions A": NO_TRANSACTION,
    "Monitor health: Coordinators moved A": "one broker coordinates all groups",
    "Monitor health: Records not understood A": UNDERSTOOD,
    "Monitor health: Records not understood B": UNDERSTOOD,
    "Monitor health: Records not understood C": UNDERSTOOD,
    "Monitor health: Records not understood D": UNDERSTOOD,
    "Monitor health: Silence of the monitor A": NOT_SERVED,
    "Rules: KafkaGroupMonitorAway source_age": NOT_SERVED,
    "Rules: KafkaGroupUnknownRecords new_unknown_records": UNDERSTOOD,
    "Rolling upgrade: Conversions C": CLEAN,
    "Rules: KafkaGroupPollIntervalExceeded slow_pollers": "no demo lasts for three poll intervals",
    "Rolling upgrade: Members not back A": ALL_ARE_BACK,
    "Rules: KafkaGroupMembersNotBack members_not_back": ALL_ARE_BACK,
    "Rules: KafkaGroupMembersNotBack fewer_expected": NOT_EXPECTED,
    "Rules: KafkaGroupDuplicateOwner sharing_expected": NOT_EXPECTED,
    "Rules: KafkaGroupStaleClaims sharing_expected": NOT_EXPECTED,
    "Rules: KafkaGroupStaticMemberAbsent restarts_expected": NOT_EXPECTED,
    "Rules: KafkaGroupStaticMemberRestarting restarts_expected": NOT_EXPECTED,
    "Rules: KafkaGroupRebalanceStorm restarts_expected": NOT_EXPECTED,
    "Rules: KafkaGroupUnsettled restarts_expected": NOT_EXPECTED,
    "Rules: KafkaGroupRebalanceRoundsLost restarts_expected": NOT_EXPECTED,
    "Rules: KafkaGroupOffsetRewound rewinds_expected": NOT_EXPECTED,
    "Group: Events B": NOT_EXPECTED,
    "Rules: KafkaGroupUpgradeUnclean unclean_upgrades": CLEAN,
    "Monitor health: Groups C": "the log is read, so no group is polled",
    "Group: Lag by partition B": NO_TRANSACTION,
    "Group: Static members replaced B": "a classic group does not show who is away, so none returns",
    "Rules: KafkaGroupUndecodableRecords new_undecodable_records": UNDERSTOOD,
    "Rules: KafkaGroupNewerValueVersions new_newer_value_versions": UNDERSTOOD,
}

# Where it stands → why the machine, or the moment at which Prometheus looks, decides whether there is an answer.
BY_CHANCE: Final[dict[str, str]] = {
    "Group: Lag not known A": LAG_KNOWN,
    "Rules: KafkaGroupLagNotKnown unknown_lag_partitions": LAG_KNOWN,
    "Rules: KafkaGroupLagGrowingWithoutCommits held_growing": NO_ALERT,
    "Rules: KafkaGroupConsumerStopped held_stopped": NO_ALERT,
    "Rules: KafkaGroupRebalanceStorm open_storm": NO_ALERT,
    "Overview: Needs a look A": NO_ALERT,
    "Overview: (Alerts) A": NO_ALERT,
    "Overview: Partitions with two owners or with none A": ONE_OWNER,
    "Group: (Alerts) A": NO_ALERT,
    "Rolling upgrade: (Alerts) A": NO_ALERT,
    "Rolling upgrade: Partitions with two owners or with none A": ONE_OWNER,
    "Group: Rebalances C": NO_LOSS,
    "Rules: KafkaGroupRebalanceRoundsLost rounds_lost": NO_LOSS,
    "Group: Stale claims A": NO_CLAIM,
    "Rules: KafkaGroupStaleClaims stale_claims": NO_CLAIM,
    "Group: Members to look at A": ON_ITS_OWN,
    "Group: Static members C": ON_ITS_OWN,
    "Group: Static members D": ON_ITS_OWN,
    "Rules: KafkaGroupStaticMemberContended contended_members": ON_ITS_OWN,
    "Rules: KafkaGroupStaticMemberRestarting restarting_members": ON_ITS_OWN,
    "Rules: KafkaGroupMonitorDown monitor_gone": "the monitor is there, unless a scrape takes longer than its second",
    "Monitor health: Distance to the end of the log B": "between two micro-batches the monitor is at the end",
    "Group: Rebalances B": "a member that comes back in time makes a rebalance avoidable, one that is slow does not",
    "Overview: Partitions with two owners or with none B": "a partition on its way is without an owner for a moment",
    "Rolling upgrade: Partitions with two owners or with none B": "as on the overview",
}


@dataclass(frozen=True)
class Question:
    """One query: the board it belongs to, what it is called there, and the forms in which it may be answered."""

    board: str
    name: str
    forms: tuple[str, ...]

    @property
    def where(self) -> str:
        return f"{self.board}: {self.name}"


def questions() -> list[Question]:
    """Of boards each target of each panel and each mark; of rules each signal they compare."""
    return [*of_boards(), *of_rules()]


def of_boards() -> Iterator[Question]:
    """Each target of each panel, and each mark over the graphs."""
    for made in boards().values():
        board = made["title"].removeprefix("Kafka groups: ")
        for panel in panels(made):
            for target in panel.get("targets", []):
                yield Question(board, f"{panel['title']} {target['refId']}", forms(target["expr"]))
        for mark in made["annotations"].get("list", []):
            yield Question(board, f"({mark['name']}) A", forms(mark["expr"]))


def of_rules() -> Iterator[Question]:
    """Each signal that a rule compares."""
    for alert in ALERTS:
        for name in dict.fromkeys(alert.signals):
            signal = SIGNALS[name]
            yield Question("Rules", f"{alert.name} {name}", (signal.promql(window=window(signal)),))


def forms(expr: str) -> tuple[str, ...]:
    """A query with Grafana's words filled in, and for each group where the board is about one."""
    for word, value in WORDS.items():
        expr = expr.replace(word, value)
    one = "${group:raw}"
    return tuple(expr.replace(one, group) for group in GROUPS) if one in expr else (expr,)


def window(signal: Signal) -> str | None:
    """The time a signal looks back over here: far, but for what has to have been there at the beginning."""
    if not signal.windowed:
        return None
    return SHORT if "offset WINDOW" in signal.expr else "5m"


@dataclass
class Asked:
    """What was answered, what was not, and what Prometheus refused."""

    answered: set[str]
    open: set[str]
    rule_errors: list[str]


def ask(prometheus: str) -> Asked:
    """Ask until every query is answered that has to be, or for minutes."""
    pending = {question.where: question for question in questions()}
    answered: set[str] = set()
    deadline = time.monotonic() + LONGEST_SECONDS
    while time.monotonic() < deadline and pending.keys() - UNANSWERED.keys() - BY_CHANCE.keys():
        for where, question in list(pending.items()):
            if any(answer(prometheus, form) for form in question.forms):
                answered.add(where)
                del pending[where]
        time.sleep(ROUND_SECONDS)
    rules = [rule for group in rules_of(prometheus) for rule in group["rules"]]
    return Asked(
        answered, set(pending), [f"{rule['name']}: {rule['lastError']}" for rule in rules if "lastError" in rule]
    )


def rules_of(prometheus: str) -> list[dict[str, Any]]:
    with urlopen(f"{prometheus}/api/v1/rules", timeout=10) as response:  # noqa: S310 - loopback
        groups: list[dict[str, Any]] = json.load(response)["data"]["groups"]
    return groups


def scraping(target: str) -> str:
    """Prometheus's configuration: the committed rules, everything every second."""
    return json.dumps(
        {
            "global": {"scrape_interval": "1s", "evaluation_interval": "1s"},
            "rule_files": [str(GENERATED / RULES)],
            "scrape_configs": [{"job_name": "group-monitor", "static_configs": [{"targets": [target]}]}],
        }
    )

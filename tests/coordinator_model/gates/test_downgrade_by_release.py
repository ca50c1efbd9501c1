"""A named release: what is still in the log, finalized features, brokers' own files; and releases not known.

Every case that stops has a neighbour that stays silent.
"""

from typing import Any

import pytest

from coordinator_model.gates import broker_releases
from coordinator_model.gates.downgrade import downgrade_gate
from coordinator_model.gates.verdict import BrokerSettings, Cluster, LogScan
from coordinator_model.kinds.words import percent_of
from lab.builders import new_group_metadata
from tests.histories import at, history

CLEAN = LogScan()
KRAFT = BrokerSettings(features={"metadata.version": 7}, static_protocols=())
SILENT = BrokerSettings(features={}, static_protocols=())


def asked(target: str | None, *, scan: LogScan | None = CLEAN, settings: BrokerSettings = SILENT) -> dict[str, Any]:
    """The downgrade gate on one classic group that is at rest."""
    states = history(at(0, new_group_metadata("g"))).replayed().states.values()
    return downgrade_gate(states, Cluster(group_configs=(), settings=settings, log_scan=scan), target)


def found(answer: dict[str, Any]) -> list[tuple[str, str]]:
    """(effect, code) of each reason."""
    return [(of["effect"], of["code"]) for of in answer["reasons"]]


# -- what is still in the log -----------------------------------------------------------------------------------------


FOUND = {
    "records": {"records": {3: 2}},
    "tombstones": {"tombstones": {23: 1}},
    "values of version 4": {"value_versions": {4: 9}},
    "all of these": {"records": {12: 1, 5: 3}, "tombstones": {5: 7}, "value_versions": {4: 1}},
}
"""What of a newer release a scan found."""


@pytest.mark.parametrize("share", [1.0, 0.5])
@pytest.mark.parametrize("counts", FOUND.values(), ids=FOUND)
@pytest.mark.parametrize("target", ["2.3", "2.8.2", "3.0", "3.3.2", "3.4", "3.4.0"])
def test_what_is_physically_in_the_log_stops_releases_before_3_4_1(
    target: str, counts: dict[str, Any], share: float
) -> None:
    """Live or not, a tombstone or a record, all of the log read or half of it: such a broker fails on one."""
    answer = asked(target, scan=LogScan(**counts, share=share, seconds=1.0))

    assert "closed" == answer["verdict"]
    assert [("stop", "log_records"), ("note", "cleaner")] == found(answer)
    assert "active segment is never cleaned" in answer["reasons"][1]["text"]


@pytest.mark.parametrize("counts", FOUND.values(), ids=FOUND)
@pytest.mark.parametrize("target", ["3.4.1", "3.5", "3.9.1", "4.0", "4.3.1"])
def test_the_same_is_no_reason_for_those_that_pass_over_it(target: str, counts: dict[str, Any]) -> None:
    """KIP-915 is in 3.4.1 and 3.5."""
    answer = asked(target, scan=LogScan(**counts, seconds=1.0))

    assert ("open", []) == (answer["verdict"], found(answer))


@pytest.mark.parametrize(
    "scan",
    [
        None,
        LogScan(share=0.0),
        LogScan(share=0.97, seconds=120.0),
        LogScan(share=1.0, under_way=True),
        LogScan(unreadable=1, seconds=1.0),
    ],
)
def test_without_a_whole_scan_there_is_no_telling(scan: LogScan | None) -> None:
    """None, one that did not get through, one under way, a batch not read: nothing found so far means nothing."""
    answer = asked("3.3", scan=scan)

    assert "cannot_tell" == answer["verdict"]
    assert [("unknown", "log_records")] == found(answer)


def test_whole_scan_that_found_nothing_opens() -> None:
    """The answer says what was read."""
    answer = asked("3.3", scan=LogScan(seconds=2.0))

    assert ("open", []) == (answer["verdict"], found(answer))
    assert {"complete": True, "records": {}, "tombstones": {}, "value_versions": {}} == {
        key: answer["log_scan"][key] for key in ("complete", "records", "tombstones", "value_versions")
    }


def test_record_types_are_counted_in_the_words_of_the_reason() -> None:
    """Records and tombstones apart: a tombstone goes a day after it was cleaned, a record stays."""
    answer = asked("3.3", scan=LogScan(records={5: 2}, tombstones={5: 1, 3: 7}, value_versions={4: 9}))

    text = answer["reasons"][0]["text"]
    assert "type 3: 0 records and 7 tombstones, type 5: 2 records and 1 tombstones, 9 values of version 4" in text


# -- releases ---------------------------------------------------------------------------------------------------------


@pytest.mark.parametrize("target", ["9.9", "5.0", "4.4", "4.10.1", "3.10", "2.9", "2.2", "1.1", "0.11", "nonsense", ""])
def test_gate_never_opens_for_a_release_that_nothing_is_known_of(target: str) -> None:
    """Later ones may read other records, and what never was is a slip of the finger."""
    answer = asked(target)

    assert "cannot_tell" == answer["verdict"]
    assert ("unknown", "unknown_release") in found(answer)


# -- finalized features -----------------------------------------------------------------------------------------------

OF_4_3 = {
    "metadata.version": 30,
    "group.version": 1,
    "share.version": 1,
    "streams.version": 1,
    "transaction.version": 2,
}


@pytest.mark.parametrize(
    ("target", "barred"),
    [
        ("3.2", ["group", "metadata", "share", "streams", "transaction"]),
        ("3.9", ["group", "metadata", "share", "streams", "transaction"]),
        ("4.0", ["metadata", "share", "streams"]),
        ("4.1", ["metadata", "streams"]),
        ("4.2", ["metadata"]),
        ("4.3", []),
    ],
)
def test_finalized_features_bar_releases_below_what_they_need(target: str, barred: list[str]) -> None:
    """Of a cluster that finalized all that 4.3 has."""
    answer = asked(target, settings=BrokerSettings(features=OF_4_3, static_protocols=()))
    stopped = [
        of["text"].partition(".")[0] for of in answer["reasons"] if (of["effect"], of["code"]) == ("stop", "features")
    ]

    assert barred == stopped
    assert ("closed" if barred else "open") == answer["verdict"]


@pytest.mark.parametrize("feature", sorted(broker_releases.LEVELS))
@pytest.mark.parametrize("target", ["3.3", "3.4.1", "3.5", "3.6", "3.7", "3.8", "3.9", "4.0", "4.1", "4.2", "4.3"])
def test_highest_level_of_a_release_is_silent_and_the_next_one_stops(target: str, feature: str) -> None:
    """Feature by feature, release by release."""
    version = broker_releases.version_of(target)
    assert version is not None
    highest = broker_releases.highest_level(feature, version)
    assert highest is not None

    at_most = asked(target, settings=BrokerSettings(features={feature: highest}, static_protocols=()))
    beyond = asked(target, settings=BrokerSettings(features={feature: highest + 1}, static_protocols=()))

    assert ([], [("stop", "features")]) == (found(at_most), found(beyond))


def test_features_that_brokers_do_not_say_leave_it_open_to_doubt() -> None:
    """Out of reach, or from before they said."""
    answer = asked("3.9", settings=BrokerSettings(static_protocols=()))

    assert ("cannot_tell", [("unknown", "features")]) == (answer["verdict"], found(answer))


def test_feature_of_a_later_release_leaves_it_open_to_doubt() -> None:
    """Nothing is known here of what brokers support of it."""
    answer = asked("4.3", settings=BrokerSettings(features={"coffee.version": 1}, static_protocols=()))

    assert ("cannot_tell", [("unknown", "features")]) == (answer["verdict"], found(answer))


def test_without_a_release_finalized_features_are_noted() -> None:
    """Only the release decides; that there is something to decide is said."""
    answer = asked(None, settings=KRAFT)

    assert ("open", [("note", "features"), ("note", "log_records")]) == (answer["verdict"], found(answer))
    assert "metadata.version=7" in answer["reasons"][0]["text"]


# -- the brokers' own files -------------------------------------------------------------------------------------------


@pytest.mark.parametrize(
    ("protocols", "target", "expected"),
    [
        (("classic", "consumer"), "3.9", "consumer"),
        (("classic", "consumer", "share", "streams"), "4.1", "streams"),
        (("classic", "consumer"), "4.0", None),
        (("classic",), "3.5", None),
        ((), "3.5", None),
    ],
)
def test_settings_to_take_back_in_the_brokers_files_are_noted(
    protocols: tuple[str, ...], target: str, expected: str | None
) -> None:
    """No reason to wait: each is taken back while its broker is down."""
    answer = asked(target, settings=BrokerSettings(features={}, static_protocols=protocols))

    assert "open" == answer["verdict"]
    assert [("note", "static_settings")] * (expected is not None) == found(answer)
    assert all(f"lists {expected} in" in of["text"] for of in answer["reasons"])


def test_brokers_that_do_not_say_what_is_in_their_files_are_noted() -> None:
    """The operator looks there."""
    answer = asked("4.0", settings=BrokerSettings(features={}))

    assert ("open", [("note", "static_settings")]) == (answer["verdict"], found(answer))


@pytest.mark.parametrize(("share", "shown"), [(0.8596, "85 %"), (0.29, "29 %"), (0.9999, "99 %")])
def test_share_of_a_scan_is_rounded_down_wherever_it_is_shown(share: float, shown: str) -> None:
    """In the reason, and by who reads the figure: one thing has one percentage."""
    answer = asked("3.3", scan=LogScan(share=share, seconds=120.0, under_way=True))
    (text,) = [reason["text"] for reason in answer["reasons"] if reason["code"] == "log_records"]

    assert (True, shown) == (f"({shown})" in text, f"{percent_of(answer['log_scan']['share'])} %")

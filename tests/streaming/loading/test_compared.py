"""What a release makes of a log, beside what the log holds."""

from dataclasses import replace
from pathlib import Path
from typing import Any, Final

import pytest

from lab import builders
from streaming.loading import forms
from streaming.loading.asked import AnsweredGroup, Answers
from streaming.loading.compared import FORMAT, is_lost, named, release_view
from streaming.loading.loader_words import Failure, LoaderSaid
from streaming.loading.source import ExpectedGroup, Source
from streaming.recording.file_format import Header, RecordedRecord

AT: Final = ("orders", 0)
OFFSETS: Final = {AT: (7, 1, "")}
FAILURE: Final = Failure(said="Group g is not a consumer group", offset=1, text="Group g is not a consumer group")


def group(
    type_: str = "classic",
    members: int = 0,
    epoch: int | None = None,
    offsets: Any = OFFSETS,
    own_sessions: int = 0,
) -> ExpectedGroup:
    return ExpectedGroup(
        type=type_, partition=3, members=members, epoch=epoch, offsets=offsets, own_sessions=own_sessions
    )


def view(
    expected: ExpectedGroup,
    found: AnsweredGroup | None,
    *,
    offsets: Any = OFFSETS,
    failure: Failure | None = None,
    release: str = "4.3.1",
    record: RecordedRecord | None = None,
) -> dict[str, Any]:
    """Of one group `g` in partition 3."""
    source, answers = one_group(expected, found, offsets)
    said = LoaderSaid({3}, {}) if failure is None else LoaderSaid(set(), {3: failure})
    return release_view(release, source, said, answers, {} if record is None else {3: record}, 1.0)


def one_group(expected: ExpectedGroup, found: AnsweredGroup | None, offsets: Any) -> tuple[Source, Answers]:
    source = Source(
        file=Path("log"),
        option="--from",
        header=Header(kafka_version="4.3.1", offsets_topic_partitions=5, topics=()),
        cluster_id=None,
        read_at_ms=0,
        records={3: 9},
        groups={"g": expected},
        classic=frozenset({"g"}),
    )
    return source, Answers(
        groups={} if found is None else {"g": found}, offsets={} if offsets is None else {"g": offsets}, seconds=0.0
    )


def answered(type_: str = "classic", members: int | None = 0, epoch: int | None = None) -> AnsweredGroup:
    return AnsweredGroup(type=type_, members=members, epoch=epoch)


@pytest.mark.parametrize(
    ("expected", "found"),
    [
        (group(), answered()),
        (group("classic", members=2), answered("classic", members=2)),
        (group("classic", members=2), answered("classic", members=0)),
        (group("consumer", members=2, epoch=5), answered("consumer", members=2, epoch=5)),
        (group("streams", members=2, epoch=5), answered("streams", members=None)),
        (group("consumer", members=3, epoch=5, own_sessions=2), answered("consumer", members=1, epoch=7)),
        (group("share", members=2), answered("share", members=2, epoch=4)),
    ],
)
def test_a_log_of_which_nothing_is_lost(expected: ExpectedGroup, found: AnsweredGroup) -> None:
    """Also where a classic session ran out meanwhile, or the release does not describe the group, or we know no epoch.

    Members of a consumer group that speak the classic protocol have sessions of their own, too.
    """
    seen = view(expected, found)

    assert not is_lost(seen)
    assert (True, [], []) == (seen["loads"], seen["groups_missing"], seen["groups_changed"])
    assert (0, 0) == (seen["offsets_missing"], seen["offsets_different"])


@pytest.mark.parametrize(
    ("expected", "found", "offsets"),
    [
        (group(), None, OFFSETS),
        (group(), answered(), None),
        (group(), answered(), {AT: (8, 1, "")}),
        (group(), answered(), {AT: (7, 2, "")}),
        (group(), answered(), {AT: (7, 1, "m")}),
        (group("consumer", members=2, epoch=5), answered("consumer", members=1, epoch=5), OFFSETS),
        (group("consumer", members=2, epoch=5), answered("consumer", members=2, epoch=4), OFFSETS),
        (group("consumer", members=2, epoch=5), answered("classic"), OFFSETS),
        (group("classic", members=1), answered("classic", members=2), OFFSETS),
        (group("consumer", members=3, epoch=5, own_sessions=1), answered("consumer", members=1, epoch=7), OFFSETS),
        (group("consumer", members=3, epoch=5, own_sessions=1), answered("consumer", members=3, epoch=7), OFFSETS),
    ],
)
def test_what_is_lost(expected: ExpectedGroup, found: AnsweredGroup | None, offsets: Any) -> None:
    """A group, its type, a member, an epoch, an offset and what was committed with it."""
    assert is_lost(view(expected, found, offsets=offsets))


def test_offsets_that_are_missing_and_different_are_counted_apart() -> None:
    """One of each, of three."""
    expected = group(offsets={("a", 0): (1, -1, ""), ("a", 1): (2, -1, ""), ("a", 2): (3, -1, "")})

    seen = view(expected, answered(), offsets={("a", 0): (1, -1, ""), ("a", 1): (9, -1, "")})

    assert (1, 1) == (seen["offsets_missing"], seen["offsets_different"])


@pytest.mark.parametrize(
    ("type_", "release", "by_design"),
    [
        ("consumer", "3.9.2", True),
        ("consumer", "4.0.0", False),
        ("streams", "4.1.1", True),
        ("streams", "4.2.1", False),
    ],
)
def test_a_release_that_does_not_serve_a_type_keeps_its_offsets(type_: str, release: str, by_design: bool) -> None:
    """It becomes a classic group without members (KIP-915), which is no loss."""
    seen = view(group(type_, members=2, epoch=5), answered("classic"), release=release)

    (change,) = seen["groups_changed"]
    assert (by_design, f"{type_}, 2 members, epoch 5", "classic, 0 members") == (
        change["by_design"],
        change["was"],
        change["is"],
    )
    assert is_lost(seen) != by_design


def test_a_group_without_offsets_that_is_not_served_is_gone_by_design() -> None:
    """There is nothing that such a release could keep of it."""
    seen = view(group("consumer", members=2, epoch=5, offsets={}), None, offsets=None, release="3.9.2")

    assert ([], [None]) == (seen["groups_missing"], [of["is"] for of in seen["groups_changed"]])
    assert not is_lost(seen)


def test_offsets_that_go_are_never_by_design() -> None:
    """A release that does not serve the group keeps them."""
    assert is_lost(view(group("consumer", members=2, epoch=5), answered("classic"), offsets=None, release="3.9.2"))


def test_all_goes_with_a_partition_that_fails() -> None:
    """The record at which it fails, the broker's words, the fault and where it was seen, and what is lost."""
    key, value = builders.group_metadata("g", generation=1, members=[])
    seen = view(group(), None, offsets=None, failure=FAILURE, record=RecordedRecord(3, 41, 5, key, value))

    (partition,) = seen["partitions"]
    assert (False, ["g"], 1) == (seen["loads"], seen["groups_missing"], seen["offsets_missing"])
    assert {
        "partition": 3,
        "records": 9,
        "loaded": False,
        "at_offset": 41,
        "group": "g",
        "record_type": "GROUP_METADATA",
        "said": FAILURE.said,
        "known": "KAFKA-21117",
        "mended_in": [],
    }.items() <= partition.items()
    assert "4.3.1" in partition["seen_on"]


def test_more_than_the_log_holds_is_shown_and_no_loss() -> None:
    """A group, and an offset of another, that the broker alone has; of a partition that failed nothing counts."""
    source, answers = one_group(group(), answered(), {**OFFSETS, ("orders", 1): (3, -1, "")})
    answers = replace(answers, groups={**answers.groups, "more": answered()})

    seen = [
        release_view("4.3.1", source, said, answers, {}, 1.0)
        for said in (LoaderSaid({3}, {}), LoaderSaid(set(), dict.fromkeys(range(5), FAILURE)))
    ]

    assert [(["more"], 1), ([], 0)] == [(of["groups_more"], of["offsets_more"]) for of in seen]
    assert [False, True] == [is_lost(of) for of in seen]
    report = {"cluster_id": None, "time": 0, "records": 9, "not_rehearsed": [], "not_compared": [], "releases": seen}
    assert "answered by the broker alone" in forms.text(report)


def test_a_partition_that_loads_has_nothing_to_say() -> None:
    """Null from the offset on."""
    (partition,) = view(group(), answered())["partitions"]

    assert [3, 9, True, None, None, None, None, None] == [
        partition[name]
        for name in ("partition", "records", "loaded", "at_offset", "group", "record_type", "said", "known")
    ]


def test_a_group_of_a_partition_that_fails_is_missing_whatever_is_answered() -> None:
    """The former coordinator goes on with what it read before."""
    seen = view(group(), answered(), offsets={AT: (8, 1, "")}, failure=FAILURE)

    assert (["g"], 1, 0) == (seen["groups_missing"], seen["offsets_missing"], seen["offsets_different"])


def test_a_record_of_a_type_that_is_not_known_here() -> None:
    """It has its number."""
    assert "18" == named(RecordedRecord(0, 0, 0, b"\x00\x12\x00\x01g", None))[1]


@pytest.mark.parametrize("form", [forms.text, forms.markdown, forms.html_page])
def test_every_form_says_what_failed(form: Any) -> None:
    """Release, partition, fault, what goes with it, what is not rehearsed; a name cannot become markup."""
    failed = view(group(), None, offsets=None, failure=FAILURE)
    failed["partitions"][0]["group"] = "<b>g</b>"
    report = {
        "format": FORMAT,
        "cluster_id": "b3duLWNsdXN0ZXItaWQtMQ",
        "time": 1_795_000_000_000,
        "records": 9,
        "not_rehearsed": ["partition 4: offset commits of an open transaction, among its last 2 offsets"],
        "not_compared": ["6 records of type 11, which do not decode here"],
        "releases": [failed, {"release": "3.9.2", "partitions": [], "cannot_tell": "no jars"}],
    }

    said = " ".join(form(report).split())

    assert all(
        part in said.replace("\\", "")
        for part in (
            "4.3.1",
            "partition 3 fails",
            "KAFKA-21117",
            "1 group, 1 offset",
            "no jars",
            "open",
            "type 11",
        )
    )
    assert "<b>" not in said.replace("\\<b\\>", "") or form is forms.text

"""Snapshots: what a checkpoint holds must be read by this release and the next."""

import json
from dataclasses import MISSING, fields, is_dataclass
from typing import Any, Final

import pytest
from hypothesis import given

from coordinator_model.state.alarms import FORMER_FIELDS, Opened
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.membership import (
    Claim,
    ClassicGroup,
    ClassicMember,
    DeliveryState,
    InternalTopics,
    Membership,
    ModernGroup,
    ModernMember,
    StreamsClaim,
    TaskTarget,
    UserEndpoint,
)
from coordinator_model.state.offsets import CommittedOffset, OffsetBucket
from coordinator_model.state.packed_offsets import SnapshotFormatError, dump_offsets, load_offsets, words_of
from coordinator_model.state.rule_memory import (
    Absences,
    CarriedMember,
    ClassicProgress,
    ComingAndGoing,
    Deleted,
    Deletions,
    Downgrade,
    Ending,
    EpochAnomaly,
    FormerMember,
    GroupCounters,
    Handover,
    InstanceHistory,
    LostOffsets,
    Migration,
    Place,
    PollRun,
    Rebalance,
    Restless,
    Rewinds,
    Rewound,
    Roll,
    Scaling,
    Step,
    Upgrade,
    Vacancy,
)
from coordinator_model.state.snapshot import FORMAT, dump_group, load_group, offsets_of_text, text_of_offsets
from tests.histories import History, recorded
from tests.history_strategies import nonsense

CLASSIC: Final = ClassicGroup(
    generation=3,
    protocol_type="consumer",
    protocol="range",
    leader="a",
    state_timestamp_ms=9,
    members={
        "a": ClassicMember(
            member_id="a",
            instance_id="i",
            client_id="c",
            client_host="/h",
            rebalance_timeout_ms=1,
            session_timeout_ms=2,
            claim=Claim(
                version=3,
                topics=("t",),
                owned={"t": (0, 1)},
                generation=2,
                rack_id="r",
                streams=StreamsClaim(process_id="p", active={"0": (1,)}, copies={"0_2": 7}),
                user_data_bytes=4,
                malformed=True,
            ),
            assigned={"t": (0,), "ü/\n": (2**31 - 1,)},
            assignment_user_data=True,
            assignment_malformed=True,
            streams_active={"0": (1,)},
            streams_standby={"1": (2,)},
        )
    },
)
MODERN: Final = ModernGroup(
    family="consumer",
    epoch=5,
    assignment_epoch=4,
    epoch_live=True,
    assignment_epoch_live=True,
    partition_metadata_live=True,
    closed=True,
    members={
        "b": ModernMember(
            member_id="b",
            metadata_live=True,
            current_live=True,
            instance_id="i",
            rack_id="r",
            client_id="c",
            client_host="/h",
            subscribed_topics=("t", "u"),
            subscribed_regex="rx",
            rebalance_timeout_ms=1,
            server_assignor="uniform",
            uses_classic_protocol=True,
            classic_session_timeout_ms=2,
            claims={"range": Claim(version=0), "opaque": None},
            epoch=-2,
            previous_epoch=4,
            state=127,
            assigned={"t": (0,)},
            pending_revocation={"t": (1,)},
            newest_partition_epoch=3,
            partition_epochs={"t": (3,)},
            topology_epoch=1,
            process_id="p",
            standby_tasks={"s": (0,)},
            warmup_tasks={"s": (1,)},
            standby_pending_revocation={"s": (2,)},
            warmup_pending_revocation={"s": (3,)},
            user_endpoint=UserEndpoint(host="h", port=8080),
            client_tags={"zone": "a"},
        )
    },
    targets={"b": {"t": (0, 1)}},
    task_targets={"b": TaskTarget(active={"s": (0,)}, standby={"s": (1,)}, warmup={"s": (2,)})},
    regexes={"rx": ("t",)},
    metadata_hash=-1,
    partition_counts={"t": 2},
    topic_ids={"t": "an id"},
    topology_epoch=0,
    validated_topology_epoch=2,
    validation_told=True,
    subtopologies={"s": ("t",)},
    internal_topics={"s": InternalTopics(repartition_source=("r",), repartition_sink=("x",), changelog=("l",))},
    delivery_state=DeliveryState(initializing={"t": (0,)}, initialized={"t": (1,)}, deleting=("u",)),
)
INSTANCE: Final = InstanceHistory(
    member_id="a",
    since_ms=1,
    former=(FormerMember(member_id="z", since_ms=0),),
    bounces=1,
    replaced_ms=(1,),
    replaced_offset=2,
    takeovers=3,
    restarts=2,
    restarted_ms=9,
    process="c /h",
    displaced={"d /h": 1},
    taken_back=1,
    absent_since_ms=0,
)

BACK: Final = Rewinds(
    time_ms=1,
    offset=2,
    group_empty=False,
    simple=True,
    partitions={
        "t/0": Rewound(
            before=5,
            to=3,
            former_owner="a",
            present_owner="b",
            handover_ms=1,
            unclear_since_ms=9,
            highest=7,
            back_ms=4,
            times=2,
        )
    },
)
FULL: Final = GroupState(
    name="g",
    partition=7,
    membership=Membership(family="classic", classic=CLASSIC, modern=MODERN),
    offset_count=2,
    buckets={"t": (0, 156)},
    announced=True,
    built=True,
    migration=Migration(
        direction="upgrade",
        mixed_since_ms=0,
        mixed_before=True,
        peak_classic=1,
        peak_consumer=2,
        changed_ms=3,
        changed_offset=4,
        members_before=4,
        completed_ms=5,
        completed_members=2,
        recent_members=3,
        recent_members_ms=6,
        recent_left_ms=7,
        roll=Roll(
            members_before=4,
            session_ms=60_000,
            places=(Place(since_ms=1, offset=2, instance_id="i", client_id="c", client_host="/h"),),
            ahead=(Place(since_ms=1, offset=2, instance_id="j", client_id="d", client_host="/h"),),
            since_ms=1,
            offset=2,
            complete_ms=3,
        ),
        vacancies=(Vacancy(classic=True, since_ms=1, client_id="c", client_host="/h"),),
        was_downgraded=True,
        downgrade=Downgrade(
            begun_ms=1,
            completed_ms=2,
            generation=3,
            differing=("a",),
            unsettled=("b",),
            watching=False,
            offsets_back={"t/0": 7},
        ),
        upgrade=Upgrade(
            begun_ms=1,
            generation=5,
            epoch=4,
            assignor_before="range",
            assignor_after="uniform",
            round_under_way=True,
            missing=("a",),
            moved=("b",),
            wrong=("epoch",),
            may_have_left=True,
            offsets_back={"t/0": 7},
        ),
        offsets_back={"t/1": 8},
        offsets_back_ms=9,
        blocked_since_ms=3,
        classic_members={"a": ClassicProgress(situation="behind", since_ms=1, joined_ms=2)},
    ),
    rebalance=Rebalance(
        since_ms=1,
        offset=0,
        from_epoch=2,
        owners={"b": {"t": (0,)}},
        partition_counts={"t": 1},
        causes=("join", "leave"),
        assigning_since_ms=3,
        unsettled_since_ms={"b": 4},
        partitions_moved=1,
        clock_jumped=True,
    ),
    rewinds=BACK,
    awaited_rewinds=(BACK,),
    deletions=Deletions(
        time_ms=1, offset=2, partitions={"t/0": Deleted(offset=5, age_ms=6, may_be=("retention", "reset"))}
    ),
    lost_offsets={"t": LostOffsets(time_ms=1, offsets={"0": 5}, recreated=True)},
    handovers=(Handover(time_ms=1, former_owners={"b": {"t": (0,)}}),),
    rounds_lost_ms=3,
    absences=Absences(
        since_ms=1,
        offset=2,
        changed_ms=3,
        changed_offset=4,
        member_id="a",
        client_id="c",
        client_host="/h",
        protocol="consumer",
        session_timeout_ms=5,
        tasks=True,
        instance_ids=("i", "j"),
        since_before=("j",),
        partitions={"t": (0, 1)},
        reported=True,
        before_live_tail=True,
    ),
    poll_runs=(
        PollRun(
            name="c /h",
            since_ms=1,
            left_ms=2,
            offset=3,
            timeout_ms=4,
            leaves=2,
            member_id="a",
            joined_ms=5,
            is_guess=True,
        ),
    ),
    recent_rebalances_ms=(1, 2),
    recent_rebalance_members=(3,),
    members_since_rebalance=2,
    last_rebalance_offset=7,
    restless=Restless(
        since_ms=1,
        offset=2,
        from_epoch=3,
        last_ms=4,
        under_way=True,
        epochs=5,
        counted=4,
        members=3,
        joined=2,
        left=1,
        comings={"i": ComingAndGoing(instance_id="i", client_id="c", client_host="/h", joined=2, left=1)},
    ),
    departed={"j": INSTANCE},
    endings={"rebalance_storm/": Ending(kind="rebalance_storm", name="", offset=1, time_ms=2)},
    instances={"i": INSTANCE},
    counters=GroupCounters(
        rebalances=1,
        rounds_lost=2,
        partitions_moved=3,
        partitions_kept=2,
        stale_claims=4,
        static_replacements=5,
        static_returns=10,
        rebalances_saved=11,
        offset_resets=13,
        rebalances_avoidable=12,
        upgrades=6,
        downgrades=7,
        duration_buckets=[8] * 11,
        duration_sum_ms=9,
    ),
    scaling=Scaling(direction="up", since_ms=1, last_ms=2, members_before=3, members_after=4, changed=5, rebalances=6),
    held_ms=2,
    held_offset=3,
    alarms={"duplicate_assignment": {"t/0": Opened(since_ms=1, offset=2, members=("a", "b"), detail="d")}},
    newer_versions={"3": 1},
    whole=True,
    withheld=True,
    polled_state="Stable",
    topic_ids={"t": ("A" * 22,)},
    step=Step(
        timestamp_ms=1,
        last_offset=2,
        before=Membership(family="consumer", modern=MODERN),
        whole_before=True,
        anomalies=(
            EpochAnomaly(
                rule="member_epoch", expected="at least 2", found="1", member_id="b", partitions={"t/0": ("b",)}
            ),
        ),
        ended_type="classic",
        ended_epoch=3,
        targets={"b": {"t": (1,)}},
        carried={
            "a": CarriedMember(
                instance_id="i",
                described=True,
                classic=True,
                claimed_generation=3,
                epoch=4,
                assigned={"t": (0,)},
                target={"t": (1,)},
            )
        },
        carried_epoch=4,
    ),
    last_step_ms=3,
    last_step_offset=4,
)
"""A state in which no field has its default."""

BUCKET: Final = OffsetBucket(
    topic="t", number=1, commits=2, rewinds=1, offsets={64: CommittedOffset(5, 1, "m", 9, "A" * 22, 1)}
)


def defaults_in(value: Any, path: str) -> list[str]:
    """Paths of the dataclass fields within `value` that have their default."""
    if isinstance(value, dict):
        return [found for key, item in value.items() for found in defaults_in(item, f"{path}[{key}]")]
    if not is_dataclass(value):
        return []
    found: list[str] = []
    for part in fields(value):
        item = getattr(value, part.name)
        default = part.default_factory() if part.default_factory is not MISSING else part.default
        here = f"{path}.{part.name}"
        found += [here] if item == default else defaults_in(item, here)
    return found


def test_example_has_a_value_in_every_field() -> None:
    """A field added to the state must be added here, or nothing shows that it is kept."""
    ignored = {"FULL.known_ids", "FULL.step.before.classic", "FULL.membership.modern.members[b].claims[range].topics"}
    ignored |= {
        f"FULL.membership.modern.members[b].claims[range].{name}"
        for name in ("owned", "generation", "rack_id", "streams", "user_data_bytes", "malformed")
    }
    ignored |= {path.replace(".membership.", ".step.before.") for path in ignored}

    assert set() == set(defaults_in(FULL, "FULL")) - ignored


ON_DISK: Final = frozenset(
    """
    absences absent_since_ms active alarms announced anomalies assigned assigning_since_ms assignment_epoch
    assignment_epoch_live assignment_malformed assignment_user_data assignor_after assignor_before
    before before_live_tail begun_ms blocked_since_ms blockers_reported bounces buckets built carried carried_epoch
    causes changed changed_ms changed_offset changelog claim claimed_generation claims classic
    classic_members classic_session_timeout_ms client_host client_id client_tags clock_jumped closed
    comings completed_members completed_ms contended copies counted counters current_live deleting
    delivery_state departed described detail differing direction displaced downgrade downgrades
    duplicates duration_buckets duration_sum_ms ended_epoch ended_type endings epoch epoch_live epochs
    expected family former former_owner former_owners found from_epoch generation group_empty
    handover_ms handovers held_ms held_offset host initialized initializing instance_id instance_ids instances
    internal_topics joined joined_ms kind last_ms last_offset last_rebalance_offset last_step_ms
    last_step_offset leader leaves left left_ms leftovers_reported malformed may_have_left member_id members
    members_after members_before members_since_rebalance membership
    metadata_hash metadata_live migration missing mixed_before mixed_since_ms
    modern moved name newer_versions newest_partition_epoch offset offset_count offset_resets
    offsets_back offsets_back_ms open_alarms open_claims owned owners partition partition_counts
    partition_epochs partition_metadata_live partitions partitions_kept partitions_moved peak_classic
    peak_consumer pending_revocation polled_state port present_owner poll_runs previous_epoch process process_id
    protocol protocol_type rack_id rebalance rebalance_timeout_ms rebalances rebalances_avoidable
    rebalances_saved recent_left_ms recent_members recent_members_ms recent_rebalance_members
    recent_rebalances_ms reported roll places session_ms complete_ms regexes repartition_sink
    repartition_source replaced_ms replaced_offset restarted_ms restarting restarts restless rewinds
    rounds_lost rounds_lost_ms rule scaling server_assignor session_timeout_ms simple since_before since_ms situation
    stale_claims standby standby_pending_revocation standby_tasks state state_timestamp_ms
    static_replacements static_returns step storm streams streams_active streams_standby
    subscribed_regex subscribed_topics subtopologies taken_back takeovers target targets task_targets tasks
    time_ms
    timeout_ms timestamp_ms to topic_ids topics topology_epoch under_way unsettled unsettled_since_ms upgrade
    upgrades user_data_bytes user_endpoint uses_classic_protocol vacancies validated_topology_epoch
    validation_told version warmup warmup_pending_revocation warmup_tasks was_downgraded watching whole
    whole_before withheld wrong
    """.split()  # noqa: SIM905 - a name a line would be two hundred lines
)
"""Fields of a group's snapshot, as state directories have them; some only those of the release before."""


def test_fields_on_disk_keep_their_names() -> None:
    """A field by another name is not found in the state of the release before, and silently takes its default."""
    found: set[str] = set()
    json.loads(dump_group(FULL), object_pairs_hook=lambda pairs: found.update(name for name, _ in pairs))

    assert set() == ON_DISK - found - {*FORMER_FIELDS}


def test_group_comes_back_as_it_was() -> None:
    """Every field, in full."""
    assert load_group(dump_group(FULL)) == FULL


def test_empty_group_comes_back_as_it_was() -> None:
    """What has its default is left out of the text: a group that knows nothing takes a line."""
    state = GroupState(name="g", partition=7)

    assert f'[{FORMAT},{{"name":"g","partition":7}}]' == dump_group(state)
    assert state == load_group(dump_group(state))


def test_offsets_come_back_as_they_were() -> None:
    """Partition numbers are numbers again."""
    for bucket in (BUCKET, OffsetBucket(topic="", number=-1)):
        packed = dump_offsets(bucket)
        assert bucket == load_offsets(*packed)
        assert packed == offsets_of_text(text_of_offsets(packed))


def test_snapshot_is_compact_text() -> None:
    """It is written for every changed group of every batch: no spaces, and names as they are."""
    text = dump_group(GroupState(name="группа", partition=0))

    assert '[1,{"name":"группа","partition":0}]' == text


def test_loaded_state_shares_nothing_with_the_dumped_one() -> None:
    """Changing one leaves the other."""
    loaded = load_group(dump_group(FULL))
    assert loaded.membership.modern is not None
    loaded.membership.modern.members.clear()
    loaded.counters.duration_buckets[0] += 1

    assert FULL == load_group(dump_group(FULL))


# -- other releases ---------------------------------------------------------------------------------------------------


def test_text_of_an_older_release_lacks_what_came_later() -> None:
    """A field that it does not have takes its default."""
    number, body = json.loads(dump_group(FULL))
    del body["instances"], body["rebalance"]["causes"], body["membership"]["classic"]["members"]["a"]["claim"]

    loaded = load_group(json.dumps([number, body]))

    assert ({}, ()) == (loaded.instances, loaded.rebalance.causes if loaded.rebalance else None)
    assert loaded.membership.classic is not None
    assert loaded.membership.classic.members["a"].claim is None


def test_text_of_a_newer_release_may_hold_more() -> None:
    """A field that is not known here is passed over, at any depth."""
    number, body = json.loads(dump_group(FULL))
    body["novelty"] = {"x": 1}
    body["membership"]["modern"]["members"]["b"]["novelty"] = [1]

    assert load_group(json.dumps([number, body])) == FULL


@pytest.mark.parametrize(
    ("load", "text", "reads"),
    [
        (load_group, dump_group(FULL), "1"),
        (words_of, dump_offsets(BUCKET)[1], "2"),
        (offsets_of_text, text_of_offsets(dump_offsets(BUCKET)), "1 or 2"),
    ],
)
def test_format_of_another_meaning_is_refused(load: Any, text: str, reads: str) -> None:
    """It says which it found and which it reads."""
    with pytest.raises(SnapshotFormatError, match=f"found 3, this release reads {reads}$"):
        load(f"[3{text[2:]}")


@pytest.mark.parametrize(
    "text",
    [
        (
            '[1,{"topic":"t","number":1,"commits":7,"rewinds":2,"offsets":{"65":{"offset":-1},"64":{"offset":12,'
            '"leader_epoch":3,"metadata":"m","commit_timestamp_ms":99,"topic_id":"an id"}}}]'
        ),
        (
            '[2,{"topic":"t","said":[["m","an id",null],["",null,null]],"which":[0,1]}]\n'
            "AQAAAAAAAAAHAAAAAAAAAAIAAAAAAAAAAgAAAAAAAABAAAAAAAAAAAwAAAAAAAAA"
            "YwAAAAAAAAADAAAAAAAAAEEAAAAAAAAA////////////////////////////////"
        ),
    ],
    ids=["release 0.1", "packed"],
)
def test_offsets_are_what_they_were(text: str) -> None:
    """Text of each format there was: whatever changes in the code, this must load, and is written in the last one."""
    known = CommittedOffset(offset=12, leader_epoch=3, metadata="m", commit_timestamp_ms=99, topic_id="an id")
    bucket = OffsetBucket(
        topic="t", number=1, commits=7, rewinds=2, offsets={64: known, 65: CommittedOffset(offset=-1)}
    )

    numbers, words = offsets_of_text(text)
    assert bucket == load_offsets(numbers, words)
    assert '[2,{"topic":"t","said":[["m","an id",null],["",null,null]],"which":[0,1]}]' == words
    assert (numbers, words) == dump_offsets(bucket)


def test_format_1_is_what_it_was() -> None:
    """Text as release 0.1 wrote it: whatever changes in the code, this must load."""
    text = (
        '[1,{"name":"g","partition":7,"membership":{"family":"consumer","modern":{"family":"consumer","epoch":2,'
        '"assignment_epoch":2,"epoch_live":true,"assignment_epoch_live":true,"members":{"a":{"member_id":"a",'
        '"metadata_live":true,"current_live":true,"client_id":"c","epoch":2,"previous_epoch":0,'
        '"assigned":{"t":[0,1]}}},"targets":{"a":{"t":[0,1]}}}},"offset_count":1,"buckets":{"t":[0]},'
        '"announced":true}]'
    )

    state = load_group(text)

    modern = state.membership.modern_group
    assert modern is not None
    assert ("g", 7, 1, {"t": (0,)}) == (state.name, state.partition, state.offset_count, state.buckets)
    assert (2, 2, {"a": {"t": (0, 1)}}) == (modern.epoch, modern.assignment_epoch, modern.targets)
    assert ("c", 2, {"t": (0, 1)}) == (
        modern.members["a"].client_id,
        modern.members["a"].epoch,
        modern.members["a"].assigned,
    )
    assert text == dump_group(state)


# -- real states ------------------------------------------------------------------------------------------------------


def test_states_of_a_real_broker_come_back_as_they_were() -> None:
    """Groups and offset buckets of the recording."""
    for state in recorded().replayed().states.values():
        assert state == load_group(dump_group(state))


@given(nonsense())
def test_any_state_comes_back_as_it_was(log: History) -> None:
    """States that no broker would lead to as well."""
    for state in log.replayed().states.values():
        assert state == load_group(dump_group(state))

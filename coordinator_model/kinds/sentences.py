"""The sentence of each kind of event that needs more than a text; the kind's row (`table.py`) names it.

A sentence names what the event's detail has, and leaves out what it lacks: those kept by a former release have less.
Names in it are the clients' own, to be made safe by what shows them. No time stands in it as a number, and no field
or code by its name.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, Final

from coordinator_model.kinds.words import alternatives, counted, duration, listed, member, partitions, tasks

Detail = Mapping[str, Any]

LOG_PARTITION: Final = "log_partition"
"""Under which a sentence finds the partition of the offsets topic that its event is of, beside the detail."""

_MINUTE_MS: Final = 60_000
_HOUR_MS: Final = 3_600_000

CAUSES: Final[Mapping[str, str]] = {
    "conversion": "its type changed",
    "join": "a member joined",
    "leave": "a member left",
    "expiry": "a session or a rebalance timeout expired",
    "static_return": "a static member came back",
    "subscription": "a subscription changed",
    "wildcard": "a pattern matches other topics",
    "partition_count": "a topic has more partitions",
    "follow_up": "it is the second round of a cooperative rebalance",
    "metadata": "topics or racks changed",
    "rejoin": "the leader rejoined, or topics changed",
}
"""Cause of a rebalance (`rules/rebalance_causes.py`) → how it goes on after "because"."""

BLOCKERS: Final[Mapping[str, str]] = {
    "assignment_user_data": "a custom assignor's user data is in the assignment",
    "malformed_embedded_protocol": "a member's subscription or assignment is not in the consumer protocol's format",
    "librdkafka_cooperative_sticky": (
        "its leader is librdkafka's on cooperative-sticky: when members rejoin, assignments have user data"
    ),
}
"""Reason for which a broker refuses an upgrade (`migration/upgrade_blockers.py`) → what it means."""

_WRONG: Final[Mapping[str, str]] = {
    "epoch": "its epoch does not go on from the generation",
    "members": "members are missing",
    "assignments": "members have other partitions",
    "offsets": "committed offsets went back or are gone",
}

_DELETED_BY: Final[Mapping[str, str]] = {
    "topic_deleted": "the topic was deleted",
    "offset_delete": "an admin deleted {}",
    "expiry": "{} expired",
    "group_deleted": "the group was deleted",
}
"""What may have deleted offsets (`rules/deletions.py`) → how it is said of it, or of them."""

_RULES: Final[Mapping[str, str]] = {
    "group_epoch": "the group epoch",
    "generation": "the generation",
    "assignment_epoch": "the assignment epoch",
    "member_epoch": "the member epoch",
    "conversion_epoch": "the epoch after a conversion",
    "one_kind": "the group's type",
    "assignment_bound": "the assignment epoch beside the group's",
    "member_bound": "the member epoch beside the assignment's",
    "previous_epoch": "the member's previous epoch",
    "partition_epoch": "the epoch in which a partition was assigned",
    "member_state": "the member's state",
    "held_and_pending": "what the member owns and what it is to revoke",
    "beyond_target": "what the member owns beside its target",
    "target_overlap": "the targets of two members",
    "member_records": "the member's records",
    "leader": "the leader",
    "generation_zero": "a generation without number",
    "same_generation": "a generation written again",
}
"""Rule of `rules/epochs.py` or `rules/record_consistency.py` → what contradicts."""

_PROCESSES: Final[Mapping[str, str]] = {
    "one_process": "one process that restarts",
    "two_processes": "two processes",
    "two_processes_on_one_host": "two processes on one host",
}

_STUCK_ON: Final[Mapping[str, str]] = {
    "members": "members have yet to join or to release partitions",
    "partitions": "partitions that others have yet to release",
    "assignor": "the assignor has yet to compute an assignment",
}


def _who(of: Detail) -> str:
    return member(str(of.get("member_id") or "A member"), of.get("instance_id"), of.get("client_id"))


def _static(of: Detail) -> str:
    return f"static member {of.get('instance_id') or 'without an id'}"


def _first(text: str) -> str:
    """At the head of a sentence."""
    return text[:1].upper() + text[1:]


def _names(of: Detail, field: str) -> str:
    return listed([member(str(each)) for each in of.get(field) or ()])


def _clauses(head: str, *more: str) -> str:
    """The head, and after a semicolon each thing more there is to say."""
    return "; ".join(filter(None, (head, *more)))


def _span(of: Detail, field: str, before: str, after: str = "") -> str:
    """A duration between words, or nothing where it is not known."""
    ms = of.get(field)
    return "" if ms is None else f"{before}{duration(ms / 1_000)}{after}"


def _number(of: Detail, field: str, one: str, many: str = "") -> str:
    found = of.get(field)
    return "" if found is None else counted(int(found), one, many)


def _round(of: Detail) -> str:
    """Which assignment: the generation of a classic group, the epoch of others."""
    for field in ("generation", "epoch"):
        if of.get(field) is not None:
            return f"{field} {of[field]:,}"
    return ""


def _because(of: Detail) -> str:
    causes = [CAUSES.get(cause, cause.replace("_", " ")) for cause in of.get("causes") or ()]
    grown = [f"{name} from {each['from']} to {each['to']}" for name, each in (of.get("partition_count") or {}).items()]
    topics = [
        f"{word} {listed(list(of[field]))}"
        for field, word in (("topics_added", "with"), ("topics_removed", "without"))
        if of.get(field)
    ]
    about = ", ".join(filter(None, (listed(grown), *topics)))
    return f"because {alternatives(causes)}{f' ({about})' if about else ''}" if causes else ""


def _plain(code: object) -> str:
    """A code that no table has, of another release: its words."""
    return str(code).replace("_", " ")


def _held(of: Detail, partitions_of: Mapping[str, Any] | None) -> str:
    """Partitions by topic; of a streams group, tasks by subtopology. Nothing where there are none."""
    return (tasks if of.get("tasks") else partitions)(partitions_of or {})


def _place(of: Detail, at: str) -> str:
    """`t/4`; of a streams group the task `0_4`."""
    return "_".join(at.rsplit("/", 1)) if of.get("tasks") else at


def _where(of: Detail) -> str:
    """Who it is, and where it runs: client and host of it."""
    client = f" of {of['client_id']}" if of.get("instance_id") and of.get("client_id") else ""
    return f"{_who(of)}{client}{f' on {host}' if (host := of.get('client_host')) else ''}"


def _owners(of: Detail) -> str:
    """`t/4 by a and b`, of partitions with more than one."""
    known = {each["member_id"]: _where(each) for each in of.get("members") or ()}
    return listed(
        [
            f"{_place(of, at)} by {alternatives([known.get(id_) or member(id_) for id_ in ids])}"
            for at, ids in of["partitions"].items()
        ],
        "; ",
    )


def group_created(of: Detail, _: int) -> str:
    if of.get("simple"):
        return "A group appeared that only commits offsets"
    return f"A {of['type']} group appeared" if of.get("type") else "A group appeared"


def group_emptied(of: Detail, _: int) -> str:
    at = f", at {'generation' if of.get('type') == 'classic' else 'epoch'} {of['epoch']:,}" if "epoch" in of else ""
    return f"The last member left{at}"


def member_joined(of: Detail, _: int) -> str:
    protocol = f" on the {of['protocol']} protocol" if of.get("protocol") else ""
    host = f", from {of['client_host']}" if of.get("client_host") else ""
    return f"{_who(of)} joined{protocol}{host}"


def member_left(of: Detail, _: int) -> str:
    return f"{_who(of)} left, or its session expired"


def member_fenced(of: Detail, _: int) -> str:
    late = _span(of, "waited_ms", " after ") + _span(of, "timeout_ms", " (its rebalance timeout is ", ")")
    held = _held(of, of.get("not_released"))
    return _clauses(f"{_who(of)} was removed{late}", held and f"it had not released {held}")


def rebalance_started(of: Detail, _: int) -> str:
    to = f" to {_round(of)}" if _round(of) else ""
    return ", ".join(filter(None, (f"A rebalance{to} began", _number(of, "members", "member"), _because(of))))


def rebalance_completed(of: Detail, _: int) -> str:
    cost = [_number(of, "partitions_moved", "partition") + " moved" if "partitions_moved" in of else ""]
    if of.get("partitions_kept") is not None:
        cost.append(f"{of['partitions_kept']:,} kept")
    done = f"Rebalanced{f' to {_round(of)}' if _round(of) else ''}{_span(of, 'duration_ms', ' in ')}"
    scaling = of.get("scaling")
    episode = ""
    if scaling and scaling.get("rebalances", 0) > scaling.get("rebalances_needed", 1):
        sizes = f"from {scaling['members_before']:,} to {counted(scaling['members_after'], 'member')}"
        episode = f"scaling {sizes} took {counted(scaling['rebalances'], 'rebalance')}, one would have done"
    said = ", ".join(filter(None, (done, _number(of, "members", "member"), *cost, _because(of))))
    return _clauses(said, episode)


_AS: Final[Mapping[str, str]] = {"standby": " as a standby task", "warmup": " as a warm-up task"}
"""Role in which a streams member holds a task → how it is said; active ones need no word."""


def rebalance_stuck(of: Detail, _: int) -> str:
    waits = _STUCK_ON.get(str(of.get("waiting_for")), "")
    late = []
    for each in of.get("members") or ():
        held, awaited = _held(of, each.get("will_not_release")), _held(of, each.get("awaits"))
        holders = [
            f"{_where(by)} still holds {_held(of, by.get('partitions'))}{_AS.get(str(by.get('as')), '')}"
            for by in each.get("held_by") or ()
        ]
        waits_for = f"waits for {awaited}{f' ({listed(holders, most=2)})' if holders else ''}"
        what = f"has yet to release {held}" if held else waits_for if awaited else "has yet to answer"
        late.append(f"{_who(each)} {what}{_span(each, 'late_ms', ' for ')}")
    if late:
        waits = listed(late, "; ")
    return f"The rebalance is stuck{_span(of, 'rebalancing_ms', ', under way for ')}{f': {waits}' if waits else ''}"


def rebalance_storm(of: Detail, _: int) -> str:
    rebalances = f"{_number(of, 'rebalances', 'rebalance') or 'Rebalances'}{_span(of, 'window_ms', ' in ')}"
    return f"{rebalances}, more than restarting {_number(of, 'members', 'member') or 'every member'} one by one takes"


def rebalance_rounds_lost(of: Detail, _: int) -> str:
    between = ""
    if "from_generation" in of and "to_generation" in of:
        between = f", between generations {of['from_generation']:,} and {of['to_generation']:,}"
    return f"{_number(of, 'rounds_lost', 'rebalance') or 'Rebalances'} began and did not complete{between}"


def partition_unassigned(of: Detail, _: int) -> str:
    asking, who = _number(of, "subscribed_members", "member"), _names(of, "members")
    return (
        f"No member owns {partitions(of['partitions'])}{_span(of, 'unassigned_ms', ', for ')}"
        f"{f'; subscribed: {asking}' if asking else ''}{f' ({who})' if asking and who else ''}"
    )


def handover_without_revocation(of: Detail, _: int) -> str:
    former, present = (member(str(of.get(field) or "a member")) for field in ("from_member_id", "to_member_id"))
    moved = partitions(of.get("partitions") or {}) or "Partitions"
    at = f" in {_round(of)}" if _round(of) else ""
    return f"{moved} went from {former} to {present}{at}, while {former} still claimed them"


def stale_claim(of: Detail, _: int) -> str:
    if of.get("contradicting"):
        return f"Members contradict each other: {_owners(of)} claimed at once"
    claimed, newest = of.get("claimed_generation"), of.get("newest_generation")
    held = partitions(of.get("partitions") or {}) or "partitions"
    return f"{_who(of)} joined claiming {held} of generation {claimed}, while the newest is {newest}"


def static_member_absent(of: Detail, _: int) -> str:
    held, ids = _held(of, of.get("partitions")), of.get("instance_ids") or ()
    span = _span(of, "session_timeout_ms", ", after ")
    if len(ids) > 1:
        keeps = f", and keep {held}" if held else ", and keep their places"
        before = [str(instance_id) for instance_id in of.get("away_before") or ()]
        were = f"; {listed(before)} of them long before" if before else ""
        return f"{len(ids):,} static members closed{keeps} until they are back or expire{span}: {listed(ids)}{were}"
    keeps = f", and keeps {held}" if held else ", and keeps its place"
    return f"{_first(_static(of))} closed{keeps} until it is back or its session expires{span}"


_GONE_BECAUSE: Final = {"one_day": "after a day", "group_deleted": "as the group ends"}


def static_members_back(of: Detail) -> str:
    ids: Sequence[str] = of.get("instance_ids") or ()
    missing: Sequence[str] = of.get("not_back") or ()
    if missing:
        when = _GONE_BECAUSE.get(of.get("why", ""), "by then")
        closed = counted(len(ids), "static member")
        return f"{listed(missing)} {'is' if len(missing) == 1 else 'are'} not back {when}, of {closed} that closed"
    if len(ids) == 1:
        return f"{ids[0]} is back, or replaced"
    return f"All {len(ids):,} static members are back, or replaced: {listed(ids)}" if ids else "Static members are back"


def _saved(of: Detail) -> str:
    return "which saved a rebalance" if of.get("rebalance_saved") else ""


def static_member_returned(of: Detail, _: int) -> str:
    back = f"{_first(_static(of))} came back{_span(of, 'absent_ms', ' after ')}"
    return ", ".join(filter(None, (back, _saved(of))))


def static_member_replaced(of: Detail, _: int) -> str:
    host = f" on {of['client_host']}" if of.get("client_host") else ""
    return ", ".join(filter(None, (f"Another process{host} took over {_static(of)}", _saved(of))))


def _take_overs(of: Detail, time_ms: int) -> str:
    times = _number(of, "replacements", "take-over")
    since = of.get("since")
    within = f" within {duration(max(0, time_ms - since) / 1_000)}" if since is not None and times else ""
    hosts = listed([str(host) for host in of.get("client_hosts") or ()])
    may_be = alternatives([_PROCESSES.get(each, _plain(each)) for each in of.get("may_be") or ()], "or")
    return _clauses(times + within, hosts and f"on {hosts}", may_be and f"it may be {may_be}")


def static_member_contended(of: Detail, time_ms: int) -> str:
    return f"Processes take {_static(of)} from each other: {_take_overs(of, time_ms)}"


def static_member_restarting(of: Detail, time_ms: int) -> str:
    return f"{_first(_static(of))} restarts again and again: {_take_overs(of, time_ms)}"


def _share_upgraded(of: Detail) -> str:
    if of.get("upgraded_members") is None or of.get("members") is None:
        return ""
    return f"{of['upgraded_members']:,} of {_number(of, 'members', 'member')} on the consumer protocol"


def upgrade_started(of: Detail, _: int) -> str:
    head = (
        "The roll turned round, to the consumer protocol"
        if of.get("turned_round")
        else "The upgrade goes on: a classic member came back"
        if of.get("resumed")
        else "The upgrade to the consumer protocol began"
    )
    assignor = of.get("assignor_before")
    return _clauses(
        head,
        _share_upgraded(of),
        f"its assignor was {assignor}" if assignor else "",
        "" if of.get("assignments_kept", True) else "members are missing, or have other partitions than before",
    )


def upgrade_completed(of: Detail, _: int) -> str:
    awaited = of.get("replacements_awaited")
    return _clauses(
        f"The upgrade is complete: {_number(of, 'members', 'member') or 'all members'} on the consumer protocol",
        _span(of, "mixed_ms", "both protocols for ") if of.get("mixed_ms") else "",
        _expected_back(awaited) if awaited else "",
    )


def _expected_back(members: int) -> str:
    """Of members that were there before an upgrade, and are not yet on the new protocol."""
    return f"{counted(members, 'more member')} {'is' if members == 1 else 'are'} expected to come back"


def upgrade_may_be_unclean(of: Detail) -> str:
    """An upgrade of which nothing but dynamic members is missing (`upgrade_check.py`)."""
    lost = of["members_not_carried_over"]
    them, they = ("A member", "it") if len(lost) == 1 else ("Members", "they")
    return (
        f"{them} of the last generation did not come along in the upgrade: {_names(of, 'members_not_carried_over')}; "
        f"{they} may have left just before"
    )


def upgrade_unclean(of: Detail, _: int) -> str:
    wrong = alternatives([_WRONG.get(each, _plain(each)) for each in of.get("wrong") or ()])
    first, generation = of.get("first_epoch"), of.get("generation")
    epochs = "epoch" in (of.get("wrong") or ()) and None not in (first, generation) and first != generation
    return _clauses(
        f"The upgrade was not clean{f': {wrong}' if wrong else ''}",
        f"it began at epoch {first:,} after generation {generation:,}" if epochs else "",
        *(
            f"{word} {_names(of, field)}"
            for field, word in (
                ("members_not_carried_over", "not carried over"),
                ("members_with_other_partitions", "with other partitions"),
                ("offsets_back", "offsets of"),
            )
            if of.get(field)
        ),
    )


def _reasons(of: Detail) -> str:
    return alternatives([BLOCKERS.get(each, str(each).replace("_", " ")) for each in of.get("reasons") or ()])


def upgrade_blocked(of: Detail, _: int) -> str:
    assignor = f" (assignor {of['protocol']})" if of.get("protocol") else ""
    return f"A broker would refuse the consumer protocol: {_reasons(of) or 'the group is not of consumers'}{assignor}"


def downgrade_started(of: Detail, _: int) -> str:
    head = (
        "The roll turned round, to the classic protocol"
        if of.get("turned_round")
        else "The downgrade to the classic protocol began"
    )
    begun_by = listed([_where(each) for each in of.get("begun_by") or ()], most=2)
    return _clauses(head, f"first with {begun_by}" if begun_by else "", _share_upgraded(of))


def downgrade_completed(of: Detail, _: int) -> str:
    left = sum((of.get("leftover_records") or {}).values())
    differing = _names(of, "members_not_given_their_target")
    back = listed([str(each) for each in of.get("offsets_back") or ()])
    return _clauses(
        "The downgrade is complete: a classic group"
        + (f" of {_number(of, 'members', 'member')}" if of.get("members") else ""),
        _span(of, "mixed_ms", "both protocols for ") if of.get("mixed_ms") else "",
        f"not given their targets: {differing}"
        if differing
        else "assignments kept"
        if of.get("assignments_kept")
        else "",
        f"offsets went back of {back}" if back else "",
        f"{counted(left, 'record')} left over" if left else "",
    )


def downgrade_unclean(of: Detail, _: int) -> str:
    types = listed([f"{count:,} of type {type_}" for type_, count in (of.get("record_types") or {}).items()])
    left = _number(of, "leftover_records", "record") or "Records"
    return f"{left} of the consumer protocol outlived the downgrade{f' ({types})' if types else ''}"


def migration_stalled(of: Detail, _: int) -> str:
    both = _span(of, "mixed_ms", ", both protocols for ")
    classic = _names(of, "classic_members")
    return _clauses(
        f"The roll has stalled: no member came or went for half an hour{both}",
        _share_upgraded(of),
        f"still on the classic one: {classic}" if classic else "",
    )


def members_not_back(of: Detail, _: int) -> str:
    away = _span(of, "missing_ms", ", missing for ")
    missing = _number(of, "missing", "member") or "Members"
    who = listed([_process(each) for each in of.get("missing_members") or ()], most=3)
    have = f"the group has {of['members']:,} of {of['members_before']:,}" if of.get("members_before") else ""
    return _clauses(f"{missing} did not come back after the roll{away}", have, f"last gone: {who}" if who else "")


def _process(of: Mapping[str, Any]) -> str:
    """A process by its instance id or client id, and where it ran."""
    name = of.get("instance_id") or of.get("client_id") or "a member"
    return f"{name} on {of['client_host']}" if of.get("client_host") else str(name)


_BACK: Final[Mapping[str, str]] = {
    "members_back": "The group has as many members as before the roll",
    "group_deleted": "The group whose members were missing after a roll was deleted",
    "one_day": "Members are missing since the roll, and are not waited for any more: a day is over",
}


def members_back(of: Detail) -> str:
    return _BACK.get(str(of.get("why")), _BACK["members_back"])


def group_unsettled(of: Detail, _: int) -> str:
    head = f"The group has not settled{_span(of, 'unsettled_ms', ' for ')}"
    epochs = _number(of, "epochs", "epoch")
    comings = [
        f"{each.get('instance_id') or each.get('client_id') or 'a member'}"
        f"{f' on {host}' if (host := each.get('client_host')) else ''} "
        f"joined {counted(each.get('joined', 0), 'time')} and left {counted(each.get('left', 0), 'time')}"
        for each in of.get("come_and_go") or ()
    ]
    return _clauses(f"{head}{f': {epochs}' if epochs else ''}", listed(comings, most=3))


def offset_rewound(of: Detail, _: int) -> str:
    offsets = of.get("offsets") or {}
    went = [f"{at} from {each['from']:,} to {_committed(each['to'])}" for at, each in offsets.items()]
    owners = ""
    if of.get("after_handover") and "back_ms" not in of:
        present = of.get("present_owner")
        to = f" to {member(str(present))}" if present else ""
        owners = f"handed over shortly before from {member(str(of.get('former_owner')))}{to}"
    empty = "the group had no members" if of.get("group_empty") else ""
    unclear = listed(of.get("may_be_recreated") or ())
    again = f"or {unclear} was deleted and made again: commits of it name no topic id" if unclear else ""
    back = _span(of, "back_ms", "and were where they had been after ", ": commits in the wrong order")
    if of.get("back"):
        back = f"back where it had been at once: {partitions(of['back'])}"
    head = f"Committed offsets went back: {listed(went) or partitions(of.get('partitions') or {})}"
    return _clauses(head, back, owners, empty, again)


def _committed(offset: int) -> str:
    return f"{offset:,}" if offset >= 0 else f"none ({offset})"


def offset_deleted(of: Detail, _: int) -> str:
    count = sum(map(len, of["partitions"].values())) if of.get("partitions") else 1
    which = partitions(of["partitions"]) if of.get("partitions") else f"{of.get('topic')}/{of.get('partition')}"
    causes = [of["cause"]] if of.get("cause") else list(of.get("may_be") or ())
    them = "it" if count == 1 else "they"
    said = [_DELETED_BY.get(cause, _plain(cause)) for cause in causes]
    by = alternatives([each.format("them" if each.endswith("{}") and count > 1 else them) for each in said], "or")
    age = _span(of, "age_ms", ", ", " after the commit" if count == 1 else " after the last commit of them")
    offsets = "The committed offset" if count == 1 else "The committed offsets"
    return _clauses(f"{offsets} of {which} went{age}", f"either {by}" if len(causes) > 1 else by)


def topic_recreated(of: Detail, _: int) -> str:
    to = f" (partition {of['partition']} at {of['to']:,})" if "partition" in of and "to" in of else ""
    return f"{of.get('topic')} was deleted and made again under its name: commits are to the new one{to}"


def epoch_anomaly(of: Detail, _: int) -> str:
    rule = str(of.get("rule"))
    whose = f" of {member(str(of['member_id']))}" if of.get("member_id") else ""
    at = f" on {_owners(of)}" if of.get("partitions") else ""
    restart = "restart that member" if whose else "restart its members, one after another"
    return (
        f"Records{_in_log(of)} contradict each other in {_RULES.get(rule, _plain(rule))}{whose}{at}: "
        f"{of.get('found')}, "
        f"where it has to be {of.get('expected')}; {restart}, and if it comes again have a recording of the group for "
        f"Kafka's developers"
    )


def _in_log(of: Detail) -> str:
    """Which partition of the offsets topic says so."""
    return "" if of.get(LOG_PARTITION) is None else f" in partition {of[LOG_PARTITION]} of the offsets topic"


def unknown_record(of: Detail, _: int) -> str:
    version = of.get("value_version")
    type_ = f"type {of.get('record_type')}"
    if version is not None:
        return f"A record of {type_} has value version {version}, newer than this release knows"
    return f"A record of {type_}, which this release does not know"


_ARCHIVED: Final = {
    "limit": "given up at the delivery limit",
    "rejected": "rejected by a member",
    "unclear": "archived, or there was no record",
}


def share_records_archived(of: Detail, _: int) -> str:
    first, last = of.get("first_offset"), of.get("last_offset")
    where = f"{of['topic']}/{of.get('topic_partition')}" if "topic" in of else "a share partition"
    which = f"Offset {first}" if first == last else f"Offsets {first} to {last}"
    if first is None:
        which = "Records"
    elif "records" in of:
        which = f"{counted(of['records'], 'record')}, offsets {first} to {last},"
    count = of.get("delivery_count")
    deliveries = "" if count is None else f", after {counted(count, 'delivery', 'deliveries')}"
    return f"{which} of {where}: {_ARCHIVED.get(str(of.get('why')), 'archived')}{deliveries}"


_STALLED: Final = {
    "nothing_done": "records wait, and nothing became done for ten minutes",
    "held_back": "one record holds back all that comes after it",
    "not_initialized": "records come, and it is not initialized",
}
"""Why a share partition does not get on → how it is said."""


def share_partition_stalled(of: Detail, _: int) -> str:
    where = f"{of['topic']}/{of.get('topic_partition')}" if "topic" in of else "A share partition"
    if of.get("cleared"):
        return f"{where} gets on again"
    first = of.get("first_offset")
    at = "" if first is None else f"; the first offset that is not done is {first}"
    return f"{where} does not get on: {_STALLED.get(str(of.get('why')), 'it stalls')}{at}"


def share_redelivering(of: Detail, _: int) -> str:
    if of.get("cleared"):
        return "Records are done at their first delivery again, or few are delivered again"
    if "redelivered" not in of:
        return "Records are delivered again and again"
    return (
        f"Of {counted(of['done'], 'record')} that became done, {of['redelivered']:,} had been delivered before in vain"
    )


def log_truncated(of: Detail, _: int) -> str:
    lost = f"{counted(of['to_offset'] - of['from_offset'], 'record')} from {of['from_offset']:,} on"
    groups = of.get("groups") or []
    changed = f"; it changed {listed(groups)}" if groups else ""
    return f"Partition {of['partition']} of the log lost {lost}, and was read again{changed}"


_NOT_LOADED_ENDS: Final = {
    "moved": "The coordinator of partition {} is another one, after {} in which none had loaded it",
    "no_leader": "Partition {} has no leader any more, after {} in which its coordinator had not loaded it",
}


def coordinator_not_loaded(of: Detail, time_ms: int) -> str:
    """One that does not load (`clocked/not_loaded.py`), or that none worked for a while (`clocked/silences.py`)."""
    partition, groups = of["partition"], of.get("groups") or []
    if "until" not in of:
        count = counted(of.get("groups_count", len(groups)), "group")
        return (
            f"The coordinator of partition {partition} did not load it: its leader answers {of['said']}, and {count} "
            f"can neither join nor commit: {listed(groups)}; {since(of, '', time_ms)}"
        )
    took = duration((of["until"] - of["since"]) / 1_000)
    if of.get("cleared"):
        loaded = "The coordinator of partition {} has loaded it, after {}"
        return _NOT_LOADED_ENDS.get(str(of.get("why")), loaded).format(partition, took)
    waited = f"; before its end no time runs for {listed(groups)}" if groups else ""
    silent = f"No coordinator worked in partition {partition} for {took}, or a clock was set ahead{waited}"
    return f"{silent}; {since(of, '', time_ms)}"


def group_in_two_partitions(of: Detail, _: int) -> str:
    at = [str(partition) for partition in of.get("partitions") or ()]
    where = f": {listed(at)}" if at else ""
    return (
        f"Records of the group are in several partitions of the offsets topic{where}; it lives in {of.get('lives_in')}"
    )


def duplicate_assignment(of: Detail, _: int) -> str:
    return f"Owned twice: {_owners(of)}"


def duplicate_assignment_cleared(of: Detail, _: int) -> str:
    return f"One owner again: {listed([_place(of, at) for at in of['partitions']])}"


def partitions_owned_again(of: Detail) -> str:
    return f"With an owner again: {partitions(of['partitions'])}"


def claims_over(of: Detail) -> str:
    if of.get("contradicting"):
        return "Claims no longer contradict each other"
    return f"{_who(of)} no longer claims what is not its own"


def contention_over(of: Detail) -> str:
    return f"Processes no longer take {_static(of)} from each other"


def poll_interval_exceeded(of: Detail, _: int) -> str:
    """A process that leaves and joins again and again (`rules/poll_intervals.py`)."""
    every = _span(of, "every_ms", ", one ")
    return _clauses(
        f"{_first(_process_of(of))} exceeds its poll interval again and again",
        f"it left and joined {_number(of, 'leaves', 'time') or 'often'} in a row"
        + (f"{every} after the other" if every else ""),
        _span(of, "rebalance_timeout_ms", "its max.poll.interval.ms is "),
    )


def polls_in_time(of: Detail) -> str:
    """The end of that."""
    return f"{_first(_process_of(of))} no longer exceeds its poll interval"


def _process_of(of: Detail) -> str:
    host = str(of.get("client_host") or "").removeprefix("/")
    return f"{of.get('client_id') or 'a client without a name'}{f' on {host}' if host else ''}"


def restarts_over(of: Detail) -> str:
    return f"{_first(_static(of))} no longer restarts"


def blockers_gone(of: Detail) -> str:
    return f"No longer in the way of an upgrade: {_reasons(of)}"


def records_agree(of: Detail) -> str:
    return f"Records agree again on {_RULES.get(str(of.get('rule')), 'what they say')}"


def since(of: Detail, what: str, time_ms: int) -> str:
    """`since 02:59 UTC`, and what has been so, of an event that is about the time from its own on."""
    # Of a rebalance that a coordinator was asked about there is no record since before it began.
    what = "nothing was written" if "described_members" in of else what
    return f"{what} since {time_ms // _HOUR_MS % 24:02}:{time_ms // _MINUTE_MS % 60:02} UTC".lstrip()

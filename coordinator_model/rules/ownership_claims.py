"""What classic members claim to own, against what they were given (KIP-341, KIP-429, KIP-792).

A member that joins says what it owns and in which generation it got it. The leader believes the claims of the
highest generation and must ignore older ones: a member that was away may name partitions that others have long been
given. From one GroupMetadataValue follows exactly

    stale claim                   a claim of an older generation than the newest one made in the same join
    contradicting claims          two claims of that newest generation on one partition
    hand-over without revocation  a partition claimed in that generation and assigned to another member at once,
                                  which a cooperative protocol forbids (KAFKA-14639)

Eager members own nothing while they join; only the sticky assignor's user data remembers for them, and hand-over is
then the rule. So the third question is not put to it.

A downgrade writes a GroupMetadataValue, too, with what each member said when it last joined the consumer group. Members
of that join one by one, so their claims are of different times and none of them is judged; neither are those of the
first record seen of a group, which a downgrade may have written. In the first round after it each names the epoch that
it had reached in the consumer group, which need not be the others': a claim is stale there only if it is older than
what the same member said before.

A claim of this very generation is of another one of its number: its record was lost with the log's tail, and the
coordinator counted on from the one before. Who was in it and who was not is nowhere written, so none is judged.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any, Final

from coordinator_model.groups.embedded_subscription import STICKY
from coordinator_model.rules import handovers, lasting
from coordinator_model.rules.lasting import About
from coordinator_model.rules.transition import Transition
from coordinator_model.state.events import INFO
from coordinator_model.state.findings import Finding
from coordinator_model.state.group_state import GroupState
from coordinator_model.state.membership import Claim, ClassicGroup, Partitions

CONTRADICTING: Final = ""
"""Whose the claims are that contradict each other: of no one member, so by no member's id."""


def stale_claims(transition: Transition) -> Iterator[Finding]:
    """Findings about the claims made in a new generation."""
    state, before, after = transition.state, transition.before.classic_group, transition.after.classic_group
    if after is None:
        yield from _still(transition, {})  # no member claims anything
        return
    if before is None or before.generation >= after.generation:
        return
    claims = {member.member_id: member.claim for member in after.members.values() if member.claim is not None}
    # Who was in the newest generation and got nothing there makes the claims of older ones stale, too.
    newest = max((claim.generation for claim in claims.values()), default=-1)
    if newest >= after.generation:
        return
    claims = {member_id: claim for member_id, claim in claims.items() if claim.owned and claim.generation >= 0}
    current = {member_id: claim for member_id, claim in claims.items() if claim.generation == newest}
    reached = _reached_in_consumer_group(state, before)
    found: dict[str, tuple[str, Finding]] = {}
    for member_id, claim in sorted(claims.items()):
        if claim.generation < min(newest, reached.get(member_id, newest)):
            state.counters.stale_claims += 1
            detail: dict[str, Any] = {
                "member_id": member_id,
                "claimed_generation": claim.generation,
                "newest_generation": newest,
                "partitions": _listed(claim.owned),
            }
            found[member_id] = (str(claim.generation), Finding("stale_claim", detail))
    twice = _claimed_twice(current)
    if twice:
        detail = {"contradicting": True, "claimed_generation": newest, "partitions": twice}
        found[CONTRADICTING] = (", ".join(twice), Finding("stale_claim", detail, inferred=True))
    yield from _still(transition, found)
    if after.protocol != STICKY:
        yield from _without_revocation(current, after)


def _reached_in_consumer_group(state: GroupState, before: ClassicGroup) -> dict[str, int]:
    """Member → which epoch it had reached at least when the group was downgraded; of no member in later rounds."""
    downgrade = state.migration.downgrade
    if downgrade is None or downgrade.completed_ms is None or downgrade.generation != before.generation:
        return {}
    return {of.member_id: -1 if of.claim is None else of.claim.generation for of in before.members.values()}


def _still(transition: Transition, found: Mapping[str, tuple[str, Finding]]) -> Iterator[Finding]:
    """What was not reported yet, and what is over: a member that repeats the same old claim is reported once."""
    state = transition.state
    if not transition.live:  # a claim that lasts is reported with the first generation of the live tail
        return
    # Another claim of the same member is another finding, and no end of the former one.
    holding = {
        whose: About(members=() if whose == CONTRADICTING else (whose,), detail=claimed)
        for whose, (claimed, _) in found.items()
    }
    opened, cleared = lasting.changes(state, "stale_claim", holding, transition.position)
    for whose in opened:
        yield found[whose][1]
    for whose in cleared:
        about = {"contradicting": True} if whose == CONTRADICTING else {"member_id": whose}
        yield Finding("stale_claim", {**about, "cleared": True}, severity=INFO)


def _claimed_twice(current: Mapping[str, Claim]) -> dict[str, tuple[str, ...]]:
    claimants: dict[tuple[str, int], list[str]] = {}
    for member_id, claim in sorted(current.items()):
        for place in _places(claim.owned):
            claimants.setdefault(place, []).append(member_id)
    return {f"{topic}/{p}": tuple(ids) for (topic, p), ids in sorted(claimants.items()) if len(ids) > 1}


def _without_revocation(current: Mapping[str, Claim], group: ClassicGroup) -> Iterator[Finding]:
    owner = handovers.by_place({member.member_id: member.assigned for member in group.members.values()})
    handed: dict[tuple[str, str], dict[str, list[int]]] = {}
    for member_id, claim in sorted(current.items()):
        for topic, partition in _places(claim.owned):
            to = owner.get((topic, partition), member_id)
            if to != member_id:
                handed.setdefault((member_id, to), {}).setdefault(topic, []).append(partition)
    for (member_id, to), partitions in sorted(handed.items()):
        yield Finding(
            "handover_without_revocation",
            {"from_member_id": member_id, "to_member_id": to, "partitions": partitions, "generation": group.generation},
        )


def _places(parts: Partitions) -> Iterator[tuple[str, int]]:
    for topic, partitions in parts.items():
        for partition in partitions:
            yield topic, partition


def _listed(parts: Partitions) -> dict[str, list[int]]:
    return {topic: list(partitions) for topic, partitions in parts.items()}

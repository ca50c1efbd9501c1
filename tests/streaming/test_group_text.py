"""What `describe` and `replay` print of one group."""

from streaming.cli.group_text import group_text
from tests.coordinator_model.test_classic_members import C2_REJOINS, CLASSIC, FIRST_UPGRADES
from tests.histories import history


def test_members_on_the_classic_protocol_have_a_table_of_their_own() -> None:
    """State, what each keeps, revokes and waits for; a question mark says that it is inferred."""
    group = history(CLASSIC, FIRST_UPGRADES, C2_REJOINS).replayed().view("g")
    (*_, told) = group_text(group)
    heads, c1, c2 = (line.split() for line in told.splitlines())

    assert ["CLASSIC-MEMBER", "STATE", "SINCE", "SITUATION", "REBALANCES", "KEEPS", "REVOKES", "WAITS-FOR"] == heads
    assert ["c1", "PrepareRebalance", "1970-01-01T00:00:01.000Z", "behind", "eager?", "t:0,1", "-", "-"] == c1
    assert [
        *("c2", "CompletingRebalance?", "1970-01-01T00:00:04.000Z", "revoking"),
        *("cooperative", "t:2", "t:3", "-"),
    ] == c2


def test_members_on_the_consumer_protocol_have_none() -> None:
    """Nor have those of a classic group."""
    assert not any("CLASSIC-MEMBER" in part for part in group_text(history(CLASSIC).replayed().view("g")))

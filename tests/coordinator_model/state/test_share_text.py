"""Share partitions as text come back as they were."""

from dataclasses import fields

from coordinator_model.state import share_text
from coordinator_model.state.share_partition import Batch, Crowd, GivenUp, SharePartition, SharePartitionId

ID = SharePartitionId('gr"oup\t\n', "41jvpIn1gGLxDdcxa2Vkng", 3)
CROWD = Crowd(since_ms=7, reported=10, kept={"limit": GivenUp(4, 9, 3, 5)}, offset=8, at_ms=9, ordinal=2)
FULL = SharePartition(
    id=ID,
    snapshot_epoch=1,
    state_epoch=2,
    leader_epoch=3,
    start_offset=4,
    delivery_complete_count=5,
    batches=[Batch(4, 6, 2, 1), Batch(8, 8, 0, 3)],
    create_ms=6,
    write_ms=7,
    log_partition=8,
    last_offset=9,
    last_ms=10,
    highest_start_offset=11,
    archived={"limit": 2},
    crowd=CROWD,
    moved_ms=12,
    done_ms=13,
)


def test_all_of_it_comes_back() -> None:
    """Each field has a value of its own here; none is left out."""
    values = [str(getattr(FULL, of.name)) for of in fields(SharePartition)]
    assert len(values) == len(set(values))

    assert share_text.load(ID, share_text.dump(FULL)) == FULL
    assert share_text.load(ID, share_text.dump(SharePartition(id=ID))) == SharePartition(id=ID)


def test_texts_are_lines() -> None:
    """Without line ends and tabs, whatever a group is called."""
    for text in (share_text.dump_id(ID), share_text.dump(FULL)):
        assert not {"\n", "\t"} & set(text)
    assert share_text.load_id(share_text.dump_id(ID)) == ID

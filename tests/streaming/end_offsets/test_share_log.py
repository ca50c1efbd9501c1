"""Whether the share coordinator's log is read, as it is shown."""

from streaming.end_offsets.share_log import ShareLogStatus


def is_known(status: ShareLogStatus) -> bool:
    return status.why_unknown is None


def test_it_is_known_once_it_was_read_to_the_end_it_had() -> None:
    """Later records are lag of the monitor's own; a partition that is all deleted needs no reading."""
    status = ShareLogStatus()
    status.see("readable")
    status.meet_ends({})
    assert not is_known(status)

    status.meet_ends({0: (0, 4), 1: (7, 7)})
    assert not is_known(status)
    status.follow({0: 3})
    status.meet_ends({0: (0, 9), 1: (7, 7)})
    assert not is_known(status)
    status.follow({0: 4})
    status.meet_ends({0: (0, 9), 1: (7, 7)})
    assert is_known(status)
    status.follow({0: 4})
    status.meet_ends({0: (0, 90), 1: (7, 70)})
    assert is_known(status)


def test_what_is_seen_of_the_topic_goes_before() -> None:
    """Also where it was read before."""
    status = ShareLogStatus()
    status.see("readable")
    status.meet_ends({0: (0, 0)})
    assert is_known(status)
    status.see("unreadable")
    assert "READ" in str(status.why_unknown)
    status.see("off", "a reason of its own")
    assert "a reason of its own" == status.why_unknown


def test_starting_over_it_is_to_be_read_again() -> None:
    """To the end that it has then."""
    status = ShareLogStatus()
    status.see("readable")
    status.meet_ends({0: (0, 0)})
    status.start_over()
    status.meet_ends({0: (0, 2)})

    assert not is_known(status)

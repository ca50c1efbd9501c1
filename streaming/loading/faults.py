"""Known faults of loaders: the number, its source, what the log holds then, and what was seen to help.

A row is found by what the broker said, and by whether the log has a record of the group as a classic one: where it has
none, a group that is *not a consumer group* was made of its offsets alone. What was seen, on brokers of which release,
`python -m tests.brokers.loading` finds and keeps; no row says more than that.

Which releases mend a fault, beside the pull requests, by their jars and by what they load:

    KAFKA-14869    in 3.4.1, and in 3.5.0
    KAFKA-17306    in 4.0.0, and not in 3.9.2, which has it once the consumer protocol is turned on
    KAFKA-19862    in 4.0.2, 4.1.2 and 4.2.0, and not in 4.0.0 and 4.1.1
    KAFKA-20254    picked to 4.2
"""

import re
from collections.abc import Callable
from dataclasses import dataclass
from typing import Final

from coordinator_model.kinds.words import alternatives

ReleaseNumbers = tuple[int, ...]

AGAIN: Final = (
    "the cleaner went over the log while it was read: once it is through, rehearse again, or restart the broker"
)
WAIT: Final = "put off the restart until the cleaner went over the partition, and rehearse again"
DELETE: Final = "delete the group, and rehearse again"
DELETE_AND_WAIT: Final = "delete the group, wait until the cleaner went over the partition, and rehearse again"


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault of loaders.

    Attributes:
        number: in Kafka's issue tracker.
        pulls: numbers of apache/kafka's pull requests that mend it, or are to.
        words: what a broker that has it says; `simple` in it is a group that has no record as a classic one.
        about: what the log holds then.
        seen_on: releases whose brokers were seen to have it.
        mended_in: the first release without it, of each minor release that had it; none while it is open.
        loaded_by: releases whose brokers were seen to load such a log.
        again_on: those whose brokers were seen to load such a log both as it is before the cleaner and after it.
        wait_on: releases on whose brokers the cleaner was seen to help.
        delete_on: those on which it helped to delete the group.
        delete_and_wait_on: those on which neither alone helped, and both did.
    """

    number: str
    pulls: tuple[int, ...]
    words: re.Pattern[str]
    about: str
    seen_on: tuple[str, ...] = ()
    mended_in: tuple[str, ...] = ()
    loaded_by: tuple[str, ...] = ()
    again_on: tuple[str, ...] = ()
    wait_on: tuple[str, ...] = ()
    delete_on: tuple[str, ...] = ()
    delete_and_wait_on: tuple[str, ...] = ()

    def is_spoken_of(self, text: str, is_classic: Callable[[str], bool]) -> bool:
        """Whether a broker that says this may mean it; arguments as those of `known`."""
        match = self.words.search(text)
        simple = None if match is None else match.groupdict().get("simple")
        return match is not None and (simple is None or not is_classic(simple))

    def may_be_in(self, release: str) -> bool:
        """Whether a release may have it: none that mends it does, and none of a later minor release."""
        version = numbers(release)
        mended = [numbers(of) for of in self.mended_in]
        if not mended or version[:2] > max(mended)[:2]:
            return not mended
        return not any(of[:2] == version[:2] and of <= version for of in mended)

    def remedies(self, release: str) -> list[str]:
        """What was seen to help on brokers of a release, a sentence each; later releases that load the log.

        One that has the fault once a protocol is turned on loads it as it is installed, and is none to go to.
        """
        later = [of for of in self.loaded_by if numbers(of) > numbers(release) and of not in self.seen_on]
        tried = (
            (self.again_on, AGAIN),
            (self.wait_on, WAIT),
            (self.delete_on, DELETE),
            (self.delete_and_wait_on, DELETE_AND_WAIT),
        )
        return [
            *([f"brokers of {alternatives(later)} load it"] if later else []),
            *(sentence for releases, sentence in tried if release in releases),
        ]


FAULTS: Final = (
    Fault(
        number="KAFKA-14869",
        pulls=(13511,),
        words=re.compile(r"Unknown (?:group metadata|offset) message version: \d+"),
        about="record types or value versions that only later releases know, be it as tombstones (KIP-915)",
        seen_on=("3.4.0",),
        mended_in=("3.4.1",),
        loaded_by=("3.4.1", "3.9.2", "4.0.0", "4.0.2", "4.1.1", "4.2.0", "4.2.1", "4.3.1"),
        delete_and_wait_on=("3.4.0",),
    ),
    Fault(
        number="KAFKA-17306",
        pulls=(16898,),
        words=re.compile(
            r"Consumer group .* not found|Member .* is not a member of group|"
            r"\bGroup (?P<simple>.*) is not a consumer group"
        ),
        about="a consumer group that was cleaned: its tombstones, or its offsets, stand before its other records",
        seen_on=("3.8.1", "3.9.2"),
        mended_in=("4.0.0",),
        loaded_by=("3.4.1", "3.9.2", "4.0.0", "4.0.2", "4.1.1", "4.2.0", "4.2.1", "4.3.1"),
    ),
    Fault(
        number="KAFKA-19862",
        pulls=(20907, 21118, 21119),
        words=re.compile(r"because the partition is still owned at (?:a different )?epoch"),
        about="the cleaner went over the log while it was read, or over a part of it",
        seen_on=("3.8.1", "3.9.2", "4.0.0", "4.1.1"),
        mended_in=("4.0.2", "4.1.2", "4.2.0"),
        loaded_by=("3.4.1", "3.9.2", "4.0.2", "4.2.0", "4.2.1", "4.3.1"),
        again_on=("4.0.0", "4.1.1"),
        wait_on=("4.0.0", "4.1.1"),
    ),
    Fault(
        number="KAFKA-20254",
        pulls=(21641,),
        words=re.compile(r"Group .* is not a streams group"),
        about="offsets of a streams group stand before its other records, as the cleaner leaves them",
        seen_on=("4.1.1", "4.2.0"),
        mended_in=("4.2.1",),
        loaded_by=("3.4.1", "3.9.2", "4.0.0", "4.0.2", "4.2.1", "4.3.1"),
        delete_and_wait_on=("4.1.1", "4.2.0"),
    ),
    Fault(
        number="KAFKA-21102",
        pulls=(23530,),
        words=re.compile(r"Received a tombstone record to delete .*\bmember .* but did not receive"),
        about="a member left; while the log was read the cleaner took all of its tombstones but the last",
        seen_on=("3.8.1", "3.9.2", "4.0.0", "4.0.2", "4.1.1", "4.2.0", "4.2.1", "4.3.1"),
        loaded_by=("3.4.1", "3.9.2"),
        again_on=("4.0.0", "4.0.2", "4.1.1", "4.2.0", "4.2.1", "4.3.1"),
    ),
    Fault(
        number="KAFKA-21117",
        pulls=(23514,),
        words=re.compile(r"Group .* is not a consumer group"),
        about="a group was upgraded and downgraded again, and the tombstone of the upgrade is cleaned away",
        seen_on=("3.8.1", "3.9.2", "4.0.0", "4.0.2", "4.1.1", "4.2.0", "4.2.1", "4.3.1"),
        loaded_by=("3.4.1", "3.9.2"),
        wait_on=("4.0.0", "4.0.2", "4.1.1", "4.2.0", "4.2.1", "4.3.1"),
    ),
)


def known(text: str, release: str, is_classic: Callable[[str], bool]) -> Fault | None:
    """The fault that a broker of a release speaks of; None for a fault that is not known.

    Args:
        text: what it said.
        release: its own.
        is_classic: whether the log has a record of a group of this name as a classic one.
    """
    return next((of for of in FAULTS if of.may_be_in(release) and of.is_spoken_of(text, is_classic)), None)


def numbers(release: str) -> ReleaseNumbers:
    """`3.4.1` in numbers."""
    return tuple(int(part) for part in release.split("."))

"""Known faults of loaders: the number, what the log holds then, and which releases mend it.

A row is found by what the broker said. What was seen on which release is in docs/before-brokers-restart.md; of remedies
only what was tried on a broker of the release stands here.

    number         source
    KAFKA-14869    apache/kafka pull request 13511 (KIP-915): in 3.4.1, and in 3.5.0
    KAFKA-19862    pull requests 20907, 21118 and 21119; in the jars of 4.0.2, 4.1.2 and 4.2.0, not in those of 4.0.0
                   and 4.1.1
    KAFKA-20254    pull request 21641, picked to 4.2
    KAFKA-21117    pull request 23514, open
"""

import re
from dataclasses import dataclass
from typing import Final

ReleaseNumbers = tuple[int, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Fault:
    """A fault of loaders.

    Attributes:
        number: in Kafka's issue tracker.
        words: what a broker that has it says.
        about: what the log holds then.
        seen_on: releases whose brokers were seen to have it (`python -m tests.brokers.loading`).
        mended_in: the first release without it, of each minor release that had it; none while it is open.
        remedies: what was seen to help, a sentence each.
    """

    number: str
    words: re.Pattern[str]
    about: str
    seen_on: tuple[str, ...] = ()
    mended_in: tuple[str, ...] = ()
    remedies: tuple[str, ...] = ()

    def may_be_in(self, release: str) -> bool:
        """Whether a release may have it: none that mends it does, and none of a later minor release."""
        version = numbers(release)
        mended = [numbers(of) for of in self.mended_in]
        if not mended or version[:2] > max(mended)[:2]:
            return not mended
        return not any(of[:2] == version[:2] and of <= version for of in mended)


FAULTS: Final = (
    Fault(
        number="KAFKA-14869",
        words=re.compile(r"Unknown (?:group metadata|offset) message version: \d+"),
        about="record types or value versions that only later releases know, be it as tombstones",
        seen_on=("3.4.0",),
        mended_in=("3.4.1",),
        remedies=("brokers of 3.4.1 and 3.9.2 load it",),
    ),
    Fault(
        number="KAFKA-19862",
        words=re.compile(r"because the partition is still owned at (?:a different )?epoch"),
        about="the cleaner went over the log while it was read, or over a part of it",
        seen_on=("4.0.0", "4.1.1"),
        mended_in=("4.0.2", "4.1.2", "4.2.0"),
        remedies=("brokers of 4.0.2, 4.2.0, 4.2.1 and 4.3.1 load it",),
    ),
    Fault(
        number="KAFKA-20254",
        words=re.compile(r"Group .* is not a streams group"),
        about="offsets of a streams group stand before its other records, as the cleaner leaves them",
        seen_on=("4.1.1", "4.2.0"),
        mended_in=("4.2.1",),
        remedies=(
            "brokers of 4.2.1 and 4.3.1 load it",
            "delete the group, wait until the cleaner went over it, and rehearse again (4.2.0: neither alone)",
        ),
    ),
    Fault(
        number="KAFKA-21117",
        words=re.compile(r"Group .* is not a consumer group"),
        about="a group was upgraded and downgraded again, and the tombstone of the upgrade is cleaned away",
        seen_on=("4.0.0", "4.0.2", "4.1.1", "4.2.0", "4.2.1", "4.3.1"),
        remedies=("put off the restart until the cleaner went over the partition, and rehearse again (4.2.0)",),
    ),
)


def known(text: str, release: str) -> Fault | None:
    """The fault that a broker of a release speaks of; None for a fault that is not known."""
    return next((of for of in FAULTS if of.words.search(text) is not None and of.may_be_in(release)), None)


def numbers(release: str) -> ReleaseNumbers:
    """`3.4.1` in numbers."""
    return tuple(int(part) for part in release.split("."))

"""What is kept of a page never shows: each page says what one made from scratch would say."""

import gzip
import itertools
import threading
from collections import Counter

import pytest

from streaming.base import throttle
from streaming.metrics import page_cache, sample_cache
from streaming.metrics.catalogue import CATALOGUE
from streaming.metrics.exporter import Exporter
from streaming.metrics.group_metrics import Moment, StateRow
from streaming.metrics.gzip_pieces import Deflated
from streaming.metrics.page_cache import KeptPages, Page
from tests import builders
from tests.streaming.board_rows import Shard
from tests.streaming.boards import CLUSTER, NOW_MS, THEN_MS, board_of, classic_group, log_ends, sample
from tests.streaming.random_boards import RandomBoard

OPENMETRICS = "application/openmetrics-text; version=1.0.0"


@pytest.fixture(autouse=True)
def small_chunks(monkeypatch: pytest.MonkeyPatch) -> None:
    """Chunks of three groups, so that a few dozen groups are as a hundred thousand."""
    monkeypatch.setattr(sample_cache, "CHUNK_GROUPS", 3)
    monkeypatch.setattr(sample_cache, "CHUNK_LINES", 12)
    monkeypatch.setattr(sample_cache, "MANY_GROUPS", 5)
    monkeypatch.setattr(throttle, "LOT", 3)


def said(page: bytes) -> list[tuple[str, list[tuple[str, float]]]]:
    """(metric's head, its samples sorted) in the order of the page; a metric that comes twice is there twice."""
    found: list[tuple[str, list[tuple[str, float]]]] = []
    for line in page.decode().split("\n")[:-1]:
        if line.startswith("# TYPE") or line == "# EOF":
            found.append((line, []))
        elif not line.startswith("#"):
            labels, _, value = line.rpartition(" ")
            assert labels.startswith(found[-1][0].split()[2])
            found[-1][1].append((labels, float(value)))
    for _, samples in found:
        samples.sort()
    return found


def sent(exporter: Exporter, accept: str, *, zipped: bool) -> bytes:
    """A page as a client has it once it has unpacked it."""
    pieces, _ = exporter.pieces(accept, gzip=zipped)
    page = b"".join(pieces)
    return gzip.decompress(page) if zipped else page


@pytest.mark.parametrize(
    ("seed", "partition_series"), [(1, True), (2, True), (4, True), (6, True), (12, True), (17, False)]
)
def test_a_page_says_what_one_made_from_scratch_says(seed: int, partition_series: bool) -> None:
    """Whatever happened between two pages, no sample is missing, of yesterday, or there twice; in every form."""
    walk = RandomBoard(seed, groups=16)

    def exporter() -> Exporter:
        return Exporter(walk.board, CLUSTER, partition_series=partition_series, clock_ms=lambda: walk.now_ms)

    kept = exporter()
    rested = 0
    for number in range(70):
        accept, zipped = ("", OPENMETRICS)[number % 2], number % 3 == 0
        found = said(sent(kept, accept, zipped=zipped))
        rested += kept_chunks(kept)

        assert said(sent(exporter(), accept, zipped=False)) == found, f"page {number}"
        assert len({head for head, _ in found}) == len(found)
        walk.step()
    assert rested > 70, "nothing was kept, so nothing was tried"


@pytest.mark.parametrize("seed", [3, 5, 8])
def test_what_happens_while_a_page_is_prepared_is_on_the_next_one(seed: int) -> None:
    """It is of the moment at which that began, however long the pauses are: the page asked for is of its own."""
    walk = RandomBoard(seed, groups=16)

    def exporter() -> Exporter:
        return Exporter(walk.board, CLUSTER, clock_ms=lambda: walk.now_ms)

    kept = exporter()
    pauses = itertools.count(1)
    for number in range(30):
        kept._pages.prepare(kept._moment, lambda: None if next(pauses) % 40 else walk.step())

        assert said(sent(exporter(), "", zipped=False)) == said(sent(kept, "", zipped=False)), f"page {number}"
    assert next(pauses) > 15 * 40, "too little happened meanwhile"


def kept_chunks(exporter: Exporter) -> int:
    """How many chunks of groups that rest an exporter has."""
    pages = exporter._pages
    return len(pages._states._chunks) + len(pages._findings._chunks) + len(pages._offsets._chunks)


def resting(names: list[str], committed: int = 9) -> tuple[Shard, Exporter, list[int]]:
    """An exporter that has made pages of these groups until they rest, and its clock."""
    shard = Shard()
    sample(ends := log_ends(orders=1), NOW_MS, "orders", 9)
    for name in names:
        classic_group(shard, name, {"m-1": {"orders": [0]}})
        shard.pending.append((THEN_MS, *builders.offset_commit(name, "orders", 0, committed, timestamp=NOW_MS)))
    clock = [NOW_MS]
    exporter = Exporter(board_of(shard, ends), CLUSTER, clock_ms=lambda: clock[0])
    exporter.render()
    return shard, exporter, clock


def test_a_group_that_rested_and_is_deleted_has_no_series_on_the_next_page() -> None:
    """Its lines go out of what is kept of it and others."""
    shard, exporter, _ = resting([f"g-{number}" for number in range(9)])
    gone = (builders.group_metadata_tombstone("g-4"), builders.offset_commit_tombstone("g-4", "orders", 0))
    exporter._board.apply(1, shard.write(*gone, timestamp_ms=THEN_MS), NOW_MS)
    page = exporter.render()[0].decode()

    assert 'group="g-4"' not in page
    assert all(f'group="g-{number}"' in page for number in range(9) if number != 4)


def test_a_commit_beyond_the_end_is_looked_at_until_the_log_has_come_so_far() -> None:
    """Its lag goes once it is too old to be fresher than the sample, and comes when the log reaches it."""
    _, exporter, clock = resting([f"g-{number}" for number in range(9)], committed=20)
    ends = exporter._board.ends

    def lags(high_watermark: int) -> int:
        clock[0] += 20_000
        sample(ends, clock[0], "orders", high_watermark, stable={0: 9})
        for _ in range(sample_cache.REST_PAGES + 1):
            page = exporter.render()[0].decode()
        return sum(line.startswith("kafka_consumergroup_group_lag{") for line in page.splitlines())

    assert [9, 0, 0, 9] == [lags(end) for end in (9, 9, 9, 25)]


def test_what_did_not_change_is_not_looked_at_again(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of groups that rest nothing is asked, but for the ages of their commits, however many they are."""
    shard, exporter, clock = resting([f"g-{number}" for number in range(60)])
    asked: list[str] = []
    row_of = sample_cache.Shelf._row_of

    def counted(self: sample_cache.Shelf[StateRow], name: str, moment: Moment) -> object:
        asked.append(name)
        return row_of(self, name, moment)

    monkeypatch.setattr(sample_cache.Shelf, "_row_of", counted)
    clock[0] += 17_000
    page = exporter.render()[0].decode()

    assert [] == asked
    assert 60 == sum(line.startswith("kafka_group_commit_age_seconds{") for line in page.splitlines())
    assert page.count('kafka_group_commit_age_seconds{cluster="prod",') == page.count(
        'topic="orders",partition="0"} 17.0'
    )

    commit = builders.offset_commit("g-7", "orders", 0, 9, timestamp=clock[0])
    exporter._board.apply(1, shard.write(commit, timestamp_ms=clock[0]), clock[0])
    exporter.render()

    assert "g-7" in asked
    assert 3 >= len(set(asked))


def test_few_groups_are_written_as_they_are() -> None:
    """Where not even a chunk is full nothing is kept and nothing compressed ahead."""
    _, exporter, _ = resting(["a", "b"])
    page = exporter._pages.page(lambda: Moment(exporter._board, NOW_MS))

    assert 0 == kept_chunks(exporter)
    assert [] == [part for _, parts in page.metrics for part in parts if isinstance(part, Deflated)]


def test_those_who_wait_for_a_page_get_one_begun_since() -> None:
    """However many ask at once, two pages are made for them: one that is under way, and one for all who waited."""
    _, exporter, _ = resting(["a"])
    pages = KeptPages(CLUSTER, partition_series=True, rebalance_histogram=True)
    begun, go_on = threading.Event(), threading.Event()
    moments: list[Moment] = []
    found = []

    def moment() -> Moment:
        begun.set()
        assert go_on.wait(60)
        moments.append(Moment(exporter._board, NOW_MS))
        return moments[-1]

    def ask() -> None:
        found.append(pages.page(moment))

    pages._lock = lock = CountingLock()  # type: ignore[assignment]  # it is one, and counts
    threads = [threading.Thread(target=ask) for _ in range(8)]
    threads[0].start()
    assert begun.wait(60)
    for thread in threads[1:]:
        thread.start()
    assert lock.all_there.wait(60)
    go_on.set()
    for thread in threads:
        thread.join(60)

    assert 2 == len(moments)
    assert [1, 7] == sorted(Counter(map(id, found)).values())


class CountingLock:
    """A lock that says when eight threads have come to it."""

    def __init__(self) -> None:
        self.all_there = threading.Event()
        self._lock = threading.Lock()
        self._came = itertools.count(1)

    def __enter__(self) -> None:
        if next(self._came) == 8:
            self.all_there.set()
        self._lock.acquire()

    def __exit__(self, *_: object) -> None:
        self._lock.release()


def test_nobody_waits_for_pauses() -> None:
    """Once somebody asks, what is prepared is made without any; the page they get was begun since."""
    _, exporter, _ = resting([f"g-{number}" for number in range(40)])
    pages = KeptPages(CLUSTER, partition_series=True, rebalance_histogram=True)
    moments: list[Moment] = []
    found: list[Page] = []
    pauses = itertools.count()

    def moment() -> Moment:
        moments.append(Moment(exporter._board, NOW_MS))
        return moments[-1]

    scraper = threading.Thread(target=lambda: found.append(pages.page(moment)))

    def pause() -> None:
        if next(pauses) == 2:
            scraper.start()
            assert pages._asking.anybody.wait(60)
            assert [] == found
            assert 1 == len(moments)

    pages.prepare(moment, pause)
    scraper.join(60)

    assert 3 == next(pauses)
    assert (2, 1) == (len(moments), len(found))

    pages.prepare(moment, pause)

    assert 3 < next(pauses), "nobody asks any more"


def test_preparing_stops_at_once() -> None:
    """A monitor that ends does not wait for it; what is there by then is not built on, and nothing is begun anew."""
    _, exporter, _ = resting([f"g-{number}" for number in range(40)])
    pages = exporter._pages = KeptPages(CLUSTER, partition_series=True, rebalance_histogram=True)
    pauses = itertools.count()

    def pause() -> None:
        if next(pauses) == 100:
            assert kept_chunks(exporter) > 0
            exporter.stop()

    pages.prepare(exporter._moment, pause)

    assert 101 == next(pauses)
    assert 0 == kept_chunks(exporter)

    pages.prepare(exporter._moment, pause)

    assert 102 == next(pauses)
    assert said(exporter.render()[0]) == said(Exporter(exporter._board, CLUSTER, clock_ms=lambda: NOW_MS).render()[0])


def test_a_page_that_fails_is_followed_by_a_whole_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """What an error left half done is not built on."""
    shard, exporter, _ = resting([f"g-{number}" for number in range(9)])
    before = said(exporter.render()[0])
    fill = sample_cache.Shelf._fill
    exporter._board.apply(
        1, shard.write(builders.offset_commit("g-1", "orders", 0, 9, timestamp=THEN_MS), timestamp_ms=THEN_MS), NOW_MS
    )

    def failing(*_: object) -> None:
        raise MemoryError

    monkeypatch.setattr(sample_cache.Shelf, "_fill", failing)
    with pytest.raises(MemoryError):
        exporter.render()
    monkeypatch.setattr(sample_cache.Shelf, "_fill", fill)
    after = said(exporter.render()[0])

    assert [head for head, _ in before] == [head for head, _ in after]
    assert said(Exporter(exporter._board, CLUSTER, clock_ms=lambda: NOW_MS).render()[0]) == after


def test_what_nobody_asks_for_is_let_go_of(monkeypatch: pytest.MonkeyPatch) -> None:
    """Of a monitor that is no longer scraped nothing stays as it was; whoever asks again gets a whole page."""
    _, exporter, _ = resting([f"g-{number}" for number in range(9)])
    before = said(exporter.render()[0])
    exporter.tidy()

    assert kept_chunks(exporter) > 0

    monkeypatch.setattr(page_cache, "UNASKED_SECONDS", -1.0)
    exporter.tidy()

    assert 0 == kept_chunks(exporter)
    assert before == said(exporter.render()[0])


@pytest.mark.parametrize(("groups", "is_many"), [(3, False), (9, True)])
def test_the_first_page_of_many_groups_is_prepared(monkeypatch: pytest.MonkeyPatch, groups: int, is_many: bool) -> None:
    """Once the board may be believed, and once more to tell who rests; of few groups it is no work."""
    monkeypatch.setattr("streaming.metrics.exporter.MANY_GROUPS", 5)
    shard = Shard()
    for number in range(groups):
        classic_group(shard, f"g-{number}", {"m-1": {"orders": [0]}})
    board = board_of(shard, ends := log_ends(orders=1))
    exporter = Exporter(board, CLUSTER, clock_ms=lambda: NOW_MS)
    exporter.tidy()

    assert 0 == kept_chunks(exporter)

    board.set_log_end_at_start({}, {})
    board.set_positions({}, {}, NOW_MS)
    sample(ends, NOW_MS, "orders", 9)
    exporter.tidy()

    assert board.ready()[0]
    assert is_many == (kept_chunks(exporter) > 0)

    exporter.tidy()
    monkeypatch.setattr(KeptPages, "page", lambda *_: pytest.fail("prepared again"))
    exporter.tidy()


def test_every_metric_has_a_writer() -> None:
    """A metric of the catalogue that no table feeds would be an error on the first page."""
    _, exporter, _ = resting(["a"])
    page = exporter._pages.page(lambda: Moment(exporter._board, NOW_MS))

    assert list(CATALOGUE) == [name for name, _ in page.metrics]

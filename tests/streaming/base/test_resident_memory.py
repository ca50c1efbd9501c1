"""Memory is returned once a process has stopped growing, and once only."""

from streaming.base.resident_memory import CALM_SECONDS, GROWN_BYTES, GrownMemory, resident_bytes


class Process:
    """One whose memory and clock are ours."""

    def __init__(self, resident: int = 100 * GROWN_BYTES) -> None:
        self.resident, self.now = resident, 0.0
        self.memory = GrownMemory(lambda: self.resident, lambda: self.now)

    def is_due(self, seconds: float, grown: int = 0) -> bool:
        """After so many seconds, in which it grew by so many bytes."""
        self.now, self.resident = self.now + seconds, self.resident + grown
        return self.memory.is_due()


def test_what_was_needed_for_a_while_is_due_once_it_stays() -> None:
    process = Process()
    assert not process.is_due(1, 2 * GROWN_BYTES)
    assert not process.is_due(CALM_SECONDS - 1)
    assert process.is_due(1)

    process.resident -= GROWN_BYTES
    process.memory.returned()
    assert not process.is_due(CALM_SECONDS)


def test_a_process_that_grows_has_use_for_it() -> None:
    process = Process()
    assert not any(process.is_due(CALM_SECONDS, GROWN_BYTES) for _ in range(5))


def test_a_little_more_is_not_worth_it() -> None:
    process = Process()
    process.is_due(1, GROWN_BYTES)
    assert not process.is_due(CALM_SECONDS)


def test_what_is_usual_is_the_least_there_was() -> None:
    """Else a process that has shrunk might grow by as much unseen."""
    process = Process()
    process.is_due(1, -GROWN_BYTES)
    process.is_due(1, GROWN_BYTES + 2 * 1024 * 1024)
    assert process.is_due(CALM_SECONDS)


def test_a_process_knows_how_much_it_has() -> None:
    before = resident_bytes()
    held = bytearray(GROWN_BYTES)
    assert resident_bytes() >= before + len(held) // 2

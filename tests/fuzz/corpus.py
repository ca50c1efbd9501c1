"""Inputs worth keeping: for each target a file with a line of base64 an input, short ones first."""

from base64 import b64decode, b64encode
from pathlib import Path
from typing import Final

from tests.fuzz.targets import FuzzedRecord, write_records
from tests.histories import recording

DIRECTORY: Final = Path(__file__).parent / "corpus"
RECORDINGS: Final = Path(__file__).resolve().parents[1] / "recordings"
_WINDOW: Final = 10
_LONGEST_KEPT: Final = 1_500


def read(target: str) -> list[bytes]:
    """The inputs kept for a target."""
    file = DIRECTORY / f"{target}.txt"
    return [b64decode(line) for line in file.read_text("ascii").splitlines()] if file.exists() else []


def write(target: str, inputs: set[bytes]) -> None:
    """Keep these inputs for a target."""
    kept = sorted((data for data in inputs if len(data) <= _LONGEST_KEPT), key=lambda data: (len(data), data))
    (DIRECTORY / f"{target}.txt").write_text("".join(f"{b64encode(data).decode()}\n" for data in kept), "ascii")


def seeds(target: str) -> list[bytes]:
    """What brokers wrote, as inputs: where there is no corpus yet, or another release's records are to be in it."""
    if target == "lines":
        texts = [path.read_bytes() for path in RECORDINGS.glob("*.ndjson")]
        cut = [b"\n".join(text.splitlines()[:4]) + b"\n" for text in texts]
        zipped = [path.read_bytes()[:2_000] for path in RECORDINGS.glob("4.3.1/*.gz")]
        return [*cut, *zipped]
    records = [
        FuzzedRecord(at % 3, of.key, of.value)
        for path in sorted(RECORDINGS.rglob("*.ndjson*"))
        for at, of in enumerate(recording(path).records)
    ]
    if target == "record":
        return [write_records([of]) for of in records]
    if target == "embedded":
        return sorted({of.value[at:] for of in records[:200] if of.value for at in range(0, len(of.value), 2)})
    if target == "runs":
        return [bytes((kind * 2, 3, n, 0)) * n for n in (5, 20) for kind in range(8)]
    return [write_records(records[at : at + _WINDOW]) for at in range(0, len(records), _WINDOW)]

"""One target under libFuzzer: `python -m tests.fuzz.engine PROGRAM TARGET [libFuzzer's arguments]`.

PROGRAM is what libFuzzer is to call itself when it starts itself again.
"""

import gc
import sys
from types import FunctionType

import atheris

with atheris.instrument_imports(
    include=[
        "coordinator_model",
        "streaming.recording.file_format",
        "streaming.query.commit_columns",
        "streaming.query.commit_compaction",
        "streaming.query.row_codec",
    ]
):
    from tests.fuzz import corpus, mutations, targets

_MADE_OF_TEXT = "<string>"


def main() -> None:
    """Run until libFuzzer's arguments say it is enough, or a property does not hold."""
    program, name, *arguments = sys.argv[1:]
    # Readers of structs are compiled from text, which the import hook does not see.
    for found in gc.get_objects():
        if isinstance(found, FunctionType) and found.__code__.co_filename == _MADE_OF_TEXT:
            atheris.instrument_func(found)
    # What is imported at the first call is no matter of an input, and takes long where no one is in a hurry.
    for data in corpus.read(name)[-1:]:
        targets.TARGETS[name](data)
    custom = {"custom_mutator": _mutator} if name in mutations.OF_RECORDS else {}
    atheris.Setup([program, *arguments], targets.TARGETS[name], **custom)
    atheris.Fuzz()


def _mutator(data: bytes, most: int, seed: int) -> bytes:
    return mutations.mutated(data, most, seed, atheris.Mutate)


if __name__ == "__main__":
    main()

"""`python -m tests.mutation.by_histories`: which mutants histories by chance find, by either coordinator.

Each mutant meets the histories of the same seeds, up to the first that finds it: those that the coordinator of
`tests/simulator` writes, judged by what it remembers; those of Kafka's own, judged by what was done in them; and the
faults that the first alone can write. No test written for a rule takes part.
"""

import argparse
import json
import os
import resource
import sys
import tempfile
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import asdict
from pathlib import Path
from typing import Final

from tests.mutation.__main__ import MEMORY, Finder, chosen_by
from tests.mutation.mutants import Mutant

SECONDS: Final = 120
"""Of the processor, for all histories of one judge: some mutants go on for ever."""

Judge = Callable[[], Iterable[object]]
"""What is found, a history or a fault after the other; nothing where a history is as it should be."""


def main() -> int:
    """Run; returns 1 where a history finds something of the rules as they are."""
    parser = argparse.ArgumentParser(prog="python -m tests.mutation.by_histories", description=__doc__)
    parser.add_argument("--seed", type=int, default=16)
    parser.add_argument("--mutants", type=int, default=60)
    parser.add_argument("--histories", type=int, default=30)
    options = parser.parse_args()
    with tempfile.TemporaryDirectory(prefix="mutants-") as name:
        directory, seeds = Path(name), range(options.histories)
        if _status(lambda: _write(directory, seeds)):
            sys.exit("error: Kafka's coordinator wrote no histories")
        judges: dict[str, Judge] = {
            "written by hand": lambda: _by_hand(seeds),
            "Kafka's": lambda: _by_kafkas(directory),
            "faults, by hand": lambda: _faults(seeds),
        }
        if found := [of for of, judge in judges.items() if _status(lambda judge=judge: _finds(judge))]:  # type: ignore[misc] # mypy asks for the type of a default
            sys.exit(f"error: without a mutant, something is found: {', '.join(found)}")
        return _hunt(chosen_by(options.seed, options.mutants, None), judges)


def _hunt(mutants: Iterable[Mutant], judges: Mapping[str, Judge]) -> int:
    killed: dict[str, set[Mutant]] = {of: set() for of in judges}
    met = 0
    for met, mutant in enumerate(mutants, 1):

        def broken(judge: Judge, mutant: Mutant = mutant) -> bool:
            resource.setrlimit(resource.RLIMIT_AS, (MEMORY, MEMORY))
            resource.setrlimit(resource.RLIMIT_CPU, (SECONDS, SECONDS))
            sys.meta_path.insert(0, Finder(mutant))
            return _finds(judge)

        for of, judge in judges.items():
            if _status(lambda judge=judge, broken=broken: broken(judge)):  # type: ignore[misc] # as above
                killed[of].add(mutant)
        _say(f"{met:3}  {', '.join(of for of in judges if mutant in killed[of]) or '-'}  {mutant}")
    for of, mutants_ in killed.items():
        alone = mutants_ - set().union(*(others for each, others in killed.items() if each != of))
        _say(f"{of}: {len(mutants_)} of {met} killed, {len(alone)} by these alone")
    return 0


def _finds(judge: Judge) -> bool:
    return any(True for _ in judge())


# -- what runs in forks, as it loads the model ------------------------------------------------------------------------


def _write(directory: Path, seeds: Iterable[int]) -> bool:
    from tests.simulator.kafka.__main__ import kind_of
    from tests.simulator.kafka.jvm import lawful_histories

    with lawful_histories(directory) as histories:
        for seed in seeds:
            history = histories.of(seed, kind_of(seed))
            kept = history.path.rename(directory / f"{seed}.ndjson")
            text = json.dumps({**asdict(history), "path": str(kept)})
            (directory / f"{seed}.json").write_text(text, encoding="utf-8")
    return False


def _by_kafkas(directory: Path) -> Iterator[object]:
    from tests.simulator.kafka.judged import judged, unexplained
    from tests.simulator.kafka.jvm import Deed, LawfulHistory

    for file in sorted(directory.glob("*.json")):
        fields = json.loads(file.read_text(encoding="utf-8"))
        done = tuple(Deed(**deed) for deed in fields["done"])
        history = LawfulHistory(**{**fields, "path": Path(fields["path"]), "done": done})
        yield from unexplained(history, judged(history))


def _by_hand(seeds: Iterable[int]) -> Iterator[object]:
    from coordinator_model.state.events import INFO
    from tests.side_by_side import comparable, is_by_design, lawful, log_of, oddities_said
    from tests.simulator import readers

    for seed in seeds:
        coordinator = lawful(seed)
        known, reported = coordinator.views(), log_of(coordinator).replayed()
        if known != comparable(reported.views, known) or readers.oddities(coordinator.log) != oddities_said(
            reported.events
        ):
            yield seed
        yield from (of for of in reported.events if of.severity != INFO and not is_by_design(of, coordinator))


def _faults(seeds: Iterable[int]) -> Iterator[object]:
    from tests.coordinator_model.test_simulated_faults import FAULTS, scene_of
    from tests.side_by_side import kinds

    for seed in seeds:
        for script, protocol, expected in FAULTS:
            scene = scene_of(seed, protocol)
            script(scene)
            events, _ = scene.reported()
            if expected != kinds(events, besides=expected):
                yield seed, script


# ----------------------------------------------------------------------------------------------------------------------

_KILLED: Final = 1


def _status(run: Callable[[], bool]) -> bool:
    """Whether it returns True, or ends in an error, in a fork of a process that has not loaded the model."""
    assert not any(name.startswith("coordinator_model") for name in sys.modules)
    sys.stdout.flush()
    child = os.fork()
    if child == 0:
        code = _KILLED
        try:
            code = _KILLED * run()
        finally:
            os._exit(code)
    return os.waitpid(child, 0)[1] != 0


def _say(line: str) -> None:
    sys.stdout.write(line + "\n")
    sys.stdout.flush()


if __name__ == "__main__":
    sys.exit(main())

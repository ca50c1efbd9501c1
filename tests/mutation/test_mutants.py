"""What `make mutants` makes of the rules."""

import ast
from random import Random

from tests.mutation.mutants import ROOT, modules, mutants, mutated


def test_each_mutant_is_one_change_that_python_reads() -> None:
    """What does not compile is found by any test, and what changes nothing by none: neither says anything of tests."""
    every = [mutant for path in modules() for mutant in mutants(path)]
    sources = {str(path.relative_to(ROOT)): ast.dump(ast.parse(path.read_text(encoding="utf-8"))) for path in modules()}

    assert len(every) > 2_000
    for mutant in Random(0).sample(every, 60):
        tree = mutated(mutant)
        compile(tree, mutant.path, "exec")
        assert ast.dump(tree) != sources[mutant.path], str(mutant)

"""What `make mutants` makes of the rules."""

import ast
from random import Random

from coordinator_model.rules import settling
from tests.mutation.in_place import Functions, changed
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


def test_function_gets_a_mutant_s_code_in_place_and_a_constant_does_not() -> None:
    """A constant is made as its module is loaded: it needs a process that has not loaded it."""
    path = ROOT / "coordinator_model" / "rules" / "settling.py"
    by_name = {(mutant.was, mutant.now): mutant for mutant in mutants(path)}
    codes = changed(by_name["return under_way or within(AT_REST_MS, last_ms, now_ms)", "return None"])
    assert codes is not None
    functions = Functions()

    functions.put_in(codes)
    try:
        assert settling.is_yet(0, 0, under_way=True) is None
    finally:
        functions.put_in([(now, was) for was, now in codes])
    assert settling.is_yet(0, 0, under_way=True)
    assert changed(by_name["60000", "60001"]) is None

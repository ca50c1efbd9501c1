"""Puts a mutant into a process that has loaded its module: its functions get the mutant's code.

What runs while a module is loaded - constants, tables, defaults, fields of a class - is not changed by that: such a
mutant needs a process that has not loaded the module.
"""

import ast
import gc
from collections.abc import Iterator
from types import CodeType, FunctionType

from tests.mutation.mutants import ROOT, Mutant, modules, mutated


def changed(mutant: Mutant) -> list[tuple[CodeType, CodeType]] | None:
    """The code of each function that the mutant changes, as it was and as it is; None where not only functions do."""
    source = ast.parse((ROOT / mutant.path).read_text(encoding="utf-8"))
    return _differences(_compiled(source, mutant), _compiled(mutated(mutant), mutant))


class Functions:
    """The functions of the mutated modules that this process has loaded, by whatever name they are known."""

    def __init__(self) -> None:
        self._by_place: dict[tuple[str, str, int], list[FunctionType]] = {}
        files = {str(path) for path in modules()}
        gc.unfreeze()  # what is frozen, as a monitor's start does, is not among the objects
        for function in gc.get_objects():
            if isinstance(function, FunctionType) and function.__code__.co_filename in files:
                self._by_place.setdefault(_place(function.__code__), []).append(function)

    def put_in(self, codes: list[tuple[CodeType, CodeType]]) -> None:
        """Give each that has a former code the new one."""
        for was, now in codes:
            for function in self._by_place[_place(was)]:
                function.__code__ = now


def _compiled(tree: ast.Module, mutant: Mutant) -> CodeType:
    code = compile(tree, str(ROOT / mutant.path), "exec", dont_inherit=True)
    assert isinstance(code, CodeType)
    return code


def _differences(was: CodeType, now: CodeType) -> list[tuple[CodeType, CodeType]] | None:
    """Of a module or of a class, which run once: the functions in it that differ."""
    olds, news = list(_nested(was)), list(_nested(now))
    if _own(was) != _own(now) or [_place(of) for of in olds] != [_place(of) for of in news]:
        return None
    if len({_place(of) for of in olds}) < len(olds):
        return None  # two lambdas on one line
    found: list[tuple[CodeType, CodeType]] = []
    for old, new in zip(olds, news, strict=True):
        if _runs_once(old):
            within = _differences(old, new)
            if within is None:
                return None
            found += within
        elif old != new:
            if old.co_freevars != new.co_freevars:
                return None
            found.append((old, new))
    return found


def _runs_once(code: CodeType) -> bool:
    """A class's body, or a comprehension of a constant: neither can be entered again."""
    optimized, newlocals = 0x1, 0x2
    return code.co_flags & (optimized | newlocals) != (optimized | newlocals) or code.co_name in _COMPREHENSIONS


_COMPREHENSIONS = ("<listcomp>", "<setcomp>", "<dictcomp>", "<genexpr>")


def _nested(code: CodeType) -> Iterator[CodeType]:
    return (of for of in code.co_consts if isinstance(of, CodeType))


def _own(code: CodeType) -> tuple[object, ...]:
    """What the code is without the code in it."""
    plain = [(type(of), of) for of in code.co_consts if not isinstance(of, CodeType)]
    return code.co_code, repr(plain), code.co_names, code.co_varnames


def _place(code: CodeType) -> tuple[str, str, int]:
    return code.co_filename, code.co_qualname, code.co_firstlineno

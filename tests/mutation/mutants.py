"""What can be wrong in one place of a module: each mutant is the module with one small change.

    in the source                      the mutant has
    a comparison                       its boundary moved, or its opposite
    `and`, `or`                        the other one, or one side alone
    `not x`, `-x`                      `x`
    arithmetic, set operations         the opposite operation
    a number, a text, True or False    the next number, another text, the other one
    `a if b else c`                    `a`, and `c`
    a condition, a lambda, a return    its opposite, one that gives None, None
    a call                             one keyword argument less; `min` for `max`, `any` for `all`
    a comprehension                    no condition
    a statement without a local name   nothing

Left alone: annotations, docstrings, imports, and what only type checkers read.
"""

import ast
import copy
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Final

ROOT: Final = Path(__file__).resolve().parent.parent.parent
MUTATED: Final = ("coordinator_model/rules", "coordinator_model/clocked")

_OPPOSITES: Final[dict[type[ast.AST], tuple[Any, ...]]] = {
    ast.Lt: (ast.LtE, ast.GtE),
    ast.LtE: (ast.Lt, ast.Gt),
    ast.Gt: (ast.GtE, ast.LtE),
    ast.GtE: (ast.Gt, ast.Lt),
    ast.Eq: (ast.NotEq,),
    ast.NotEq: (ast.Eq,),
    ast.Is: (ast.IsNot,),
    ast.IsNot: (ast.Is,),
    ast.In: (ast.NotIn,),
    ast.NotIn: (ast.In,),
    ast.And: (ast.Or,),
    ast.Or: (ast.And,),
    ast.Add: (ast.Sub,),
    ast.Sub: (ast.Add,),
    ast.Mult: (ast.FloorDiv,),
    ast.FloorDiv: (ast.Mult,),
    ast.Div: (ast.Mult,),
    ast.Mod: (ast.Mult,),
    ast.BitOr: (ast.BitAnd,),
    ast.BitAnd: (ast.BitOr,),
    ast.BitXor: (ast.BitOr,),
}
_OTHER_CALLS: Final = {"min": "max", "max": "min", "any": "all", "all": "any"}


@dataclass(frozen=True, slots=True, order=True)
class Mutant:
    """One change of one module. `node` is the number of what is changed in a walk, `variant` which of its changes."""

    path: str
    line: int
    node: int
    variant: int
    was: str
    now: str

    def __str__(self) -> str:
        return f"{self.path}:{self.line}  {self.was}  →  {self.now}"


def modules() -> list[Path]:
    """The modules that are mutated."""
    return sorted(path for room in MUTATED for path in (ROOT / room).glob("*.py") if path.name != "__init__.py")


def mutants(path: Path) -> Iterator[Mutant]:
    """Every mutant of a module."""
    name = str(path.relative_to(ROOT))
    for number, node in enumerate(_nodes(ast.parse(path.read_text(encoding="utf-8")))):
        for variant, changed in enumerate(_changes(node)):
            was, now = _short(node), _short(changed)
            if was != now:
                line = node.target.lineno if isinstance(node, ast.comprehension) else getattr(node, "lineno", 1)
                yield Mutant(name, line, number, variant, was, now)


def mutated(mutant: Mutant) -> ast.Module:
    """The module with the mutant's change."""
    tree = ast.parse((ROOT / mutant.path).read_text(encoding="utf-8"))
    for number, node in enumerate(_nodes(tree)):
        if number == mutant.node:
            _Replace(node, list(_changes(node))[mutant.variant]).visit(tree)
            return ast.fix_missing_locations(tree)
    raise LookupError(str(mutant))


class _Replace(ast.NodeTransformer):
    def __init__(self, node: ast.AST, by: ast.AST) -> None:
        self._node, self._by = node, by

    def visit(self, node: ast.AST) -> ast.AST:
        if node is self._node:
            return ast.copy_location(self._by, node) if isinstance(node, ast.expr | ast.stmt) else self._by
        return super().generic_visit(node)


def _nodes(tree: ast.Module) -> Iterator[ast.AST]:
    """What is run, in the order of the source; module-level unions are types."""
    for statement in tree.body:
        for node in _run(statement):
            union = isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr)
            if not (union and isinstance(statement, ast.Assign | ast.AnnAssign)):
                yield node


def _run(node: ast.AST) -> Iterator[ast.AST]:
    if isinstance(node, ast.Import | ast.ImportFrom) or _is_docstring(node) or _is_for_types(node):
        return
    yield node
    for name, value in ast.iter_fields(node):
        if name in ("annotation", "returns", "decorator_list", "ctx", "type_params", "bases"):
            continue
        for child in value if isinstance(value, list) else (value,):
            if isinstance(child, ast.AST):
                yield from _run(child)


def _is_docstring(node: ast.AST) -> bool:
    return isinstance(node, ast.Expr) and isinstance(node.value, ast.Constant)


def _is_for_types(node: ast.AST) -> bool:
    if isinstance(node, ast.ClassDef):
        return any(isinstance(base, ast.Name) and base.id == "Protocol" for base in node.bases)
    return isinstance(node, ast.If) and isinstance(node.test, ast.Name) and node.test.id == "TYPE_CHECKING"


def _changes(node: ast.AST) -> Iterator[ast.AST]:
    change = _CHANGES.get(type(node))
    if change is not None:
        yield from change(node)


def _compare(node: ast.Compare) -> Iterator[ast.AST]:
    for place, op in enumerate(node.ops):
        for other in _OPPOSITES[type(op)]:
            changed = copy.copy(node)
            changed.ops = [*node.ops[:place], other(), *node.ops[place + 1 :]]
            yield changed


def _bool_op(node: ast.BoolOp) -> Iterator[ast.AST]:
    yield ast.BoolOp(op=_OPPOSITES[type(node.op)][0](), values=node.values)
    for place in range(len(node.values)):
        values = node.values[:place] + node.values[place + 1 :]
        yield values[0] if len(values) == 1 else ast.BoolOp(op=node.op, values=values)


def _bin_op(node: ast.BinOp) -> Iterator[ast.AST]:
    for other in _OPPOSITES.get(type(node.op), ()):
        yield ast.BinOp(left=node.left, op=other(), right=node.right)


def _unary_op(node: ast.UnaryOp) -> Iterator[ast.AST]:
    yield node.operand


def _constant(node: ast.Constant) -> Iterator[ast.AST]:
    match node.value:
        case bool():
            yield ast.Constant(value=not node.value)
        case int():
            yield ast.Constant(value=node.value + 1)
        case str():
            yield ast.Constant(value=f"XX{node.value}")


def _if_exp(node: ast.IfExp) -> Iterator[ast.AST]:
    yield node.body
    yield node.orelse


def _branch(node: ast.If | ast.While) -> Iterator[ast.AST]:
    if not isinstance(node.test, ast.Compare | ast.BoolOp | ast.UnaryOp):
        changed = copy.copy(node)
        changed.test = ast.UnaryOp(op=ast.Not(), operand=node.test)
        yield changed


def _return(node: ast.Return) -> Iterator[ast.AST]:
    if node.value is not None and not isinstance(node.value, ast.Constant):
        yield ast.Return(value=ast.Constant(value=None))


def _lambda(node: ast.Lambda) -> Iterator[ast.AST]:
    yield ast.Lambda(args=node.args, body=ast.Constant(value=None))


def _statement(node: ast.AST) -> Iterator[ast.AST]:
    yield ast.Pass()


def _assign(node: ast.Assign) -> Iterator[ast.AST]:
    if all(isinstance(of, ast.Attribute | ast.Subscript) for of in node.targets):
        yield ast.Pass()


def _aug_assign(node: ast.AugAssign) -> Iterator[ast.AST]:
    yield ast.Pass()
    for other in _OPPOSITES.get(type(node.op), ()):
        yield ast.AugAssign(target=node.target, op=other(), value=node.value)


def _call(node: ast.Call) -> Iterator[ast.AST]:
    for place, keyword in enumerate(node.keywords):
        if keyword.arg is not None:
            yield ast.Call(func=node.func, args=node.args, keywords=node.keywords[:place] + node.keywords[place + 1 :])
    if isinstance(node.func, ast.Name) and node.func.id in _OTHER_CALLS:
        other = ast.Name(id=_OTHER_CALLS[node.func.id], ctx=ast.Load())
        yield ast.Call(func=other, args=node.args, keywords=node.keywords)


def _comprehension(node: ast.comprehension) -> Iterator[ast.AST]:
    for place in range(len(node.ifs)):
        changed = copy.copy(node)
        changed.ifs = node.ifs[:place] + node.ifs[place + 1 :]
        yield changed


_CHANGES: Final[dict[type[ast.AST], Callable[..., Iterator[ast.AST]]]] = {
    ast.Compare: _compare,
    ast.BoolOp: _bool_op,
    ast.BinOp: _bin_op,
    ast.UnaryOp: _unary_op,
    ast.Constant: _constant,
    ast.IfExp: _if_exp,
    ast.If: _branch,
    ast.While: _branch,
    ast.Return: _return,
    ast.Lambda: _lambda,
    ast.Expr: _statement,
    ast.Delete: _statement,
    ast.Continue: _statement,
    ast.Break: _statement,
    ast.Assign: _assign,
    ast.AugAssign: _aug_assign,
    ast.Call: _call,
    ast.comprehension: _comprehension,
}


def _short(node: ast.AST) -> str:
    text = ast.unparse(node).splitlines()[0].strip()
    return text if len(text) <= 100 else f"{text[:99]}…"

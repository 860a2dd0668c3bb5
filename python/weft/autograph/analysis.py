"""What control flow does to variables: which statements can be converted, and what goes in and out of each.

Definitions and uses come from beniget. A variable that a statement assigns is *live* if a value it got there is used
after, and *read* if a value from before is used inside; those two kinds are the statement's state, everything else is
local to it.
"""

from __future__ import annotations

import ast
import dataclasses
from collections.abc import Iterable

import beniget

from .definite import takes_all
from .jumps import SCOPES, Control, evaluated_with, own_nodes
from .outliving import read_later

# Methods that change a list, dict or set in place.
_MUTATORS = frozenset(
    [
        "append",
        "extend",
        "insert",
        "pop",
        "popitem",
        "remove",
        "clear",
        "update",
        "setdefault",
        "add",
        "discard",
        "sort",
        "reverse",
        "appendleft",
    ]
)
_NAMED = (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef, ast.ExceptHandler, ast.MatchStar, ast.MatchAs)
_FRAME_READERS = frozenset(("locals", "vars", "dir", "exec", "eval"))


@dataclasses.dataclass
class Variables:
    """The state of a statement: names of variables in order of their first definition, attributes ("self.n") and
    containers ("d") that are assigned to."""

    names: list[str]
    dead: list[str]  # of names: restored after a branch, not a result
    attributes: list[ast.Attribute]
    containers: list[tuple[ast.expr, bool]]  # bool: by subscript


# --- Statements that stay Python's ------------------------------------------------------------------------------------


def mark_python_only(function: ast.AST) -> None:
    """Gives every if, for and while of a function that cannot be converted an attribute python_only: the reason."""
    parents: dict[ast.AST, ast.AST] = {}
    nodes = list(own_nodes(function))
    for parent in [function, *nodes]:
        inside = ast.iter_child_nodes(parent) if parent is function else evaluated_with(parent)
        parents |= dict.fromkeys(inside, parent)
    controls: list[Control] = [n for n in nodes if isinstance(n, (ast.If, ast.For, ast.While))]
    global_names = {name: n.lineno for n in nodes if isinstance(n, ast.Global) for name in n.names}

    for s in controls:
        if isinstance(s, ast.While) and s.orelse and any(isinstance(n, ast.NamedExpr) for n in ast.walk(s.test)):
            s.python_only = "its test assigns with := and it has an `else`"  # type: ignore[attr-defined]
    for n in nodes:
        reason = _own_reason(n, global_names)
        while reason and (n := parents.get(n, function)) is not function:
            if isinstance(n, (ast.If, ast.For, ast.While)):
                if getattr(n, "reason_inside", None):
                    break  # and so have those around it
                n.reason_inside = reason  # type: ignore[union-attr]
    for s in controls:
        if not hasattr(s, "python_only"):
            reason = getattr(s, "reason_inside", None) or _inside_try(s, parents, function)
            if reason:
                s.python_only = reason  # type: ignore[union-attr]
    # A jump out of a statement that stays Python's takes along what it jumps out of or to.
    left = [_chain(n, parents, function) for n in nodes if isinstance(n, (ast.Return, ast.Break, ast.Continue))]
    words = [_word(n) for n in nodes if isinstance(n, (ast.Return, ast.Break, ast.Continue))]
    changed = True
    while changed:
        changed = False
        for chain, word in zip(left, words):
            reasons = [c.python_only for c in chain if hasattr(c, "python_only")]
            trying = next((c for c in chain if isinstance(c, ast.Try) and c.handlers), None)
            if trying is not None:
                reasons.append(f"it has a `{word}` inside the try/except of line {trying.lineno}")
            if reasons:
                for c in chain:
                    if isinstance(c, (ast.If, ast.For, ast.While)) and not hasattr(c, "python_only"):
                        c.python_only = reasons[0]  # type: ignore[union-attr]
                        changed = True


def _word(jump: ast.AST) -> str:
    return type(jump).__name__.lower()


def _chain(jump: ast.AST, parents: dict[ast.AST, ast.AST], function: ast.AST) -> list[ast.AST]:
    """What a jump leaves: the statements around it, up to and with the loop that it belongs to."""
    chain = []
    node: ast.AST = jump
    while parents[node] is not function:
        child, node = node, parents[node]
        chain.append(node)
        loop = isinstance(node, (ast.For, ast.While, ast.AsyncFor)) and child in node.body
        if loop and not isinstance(jump, ast.Return):
            break
    return chain


def _inside_try(s: ast.stmt, parents: dict[ast.AST, ast.AST], function: ast.AST) -> str | None:
    node: ast.AST = s
    while parents[node] is not function:
        node = parents[node]
        if isinstance(node, ast.Try) and node.handlers:
            return (
                f"it is inside the try/except of line {node.lineno}: exceptions are raised while tracing, "
                "not while the program runs"
            )
    return None


def _own_reason(n: ast.AST, global_names: dict[str, int]) -> str | None:
    """Why what is around a node stays Python's."""
    at = f"(line {getattr(n, 'lineno', 0)})"
    if isinstance(n, (ast.Yield, ast.YieldFrom)):
        return f"it has a `yield` {at}, and a traced program cannot be left and entered again"
    if isinstance(n, (ast.Await, ast.AsyncFor, ast.AsyncWith)):
        return f"it has `async` code {at}, which only Python can run"
    if isinstance(n, ast.Global):
        return f"it declares a global name {at}"
    if isinstance(n, ast.Name) and isinstance(n.ctx, (ast.Store, ast.Del)) and n.id in global_names:
        return f"it writes the global '{n.id}' {at}, which would hold a traced value after the trace"
    if isinstance(n, ast.Delete):
        for target in n.targets:
            if isinstance(target, ast.Name):
                return f"it deletes '{target.id}' {at}; whether a variable exists cannot depend on a traced value"
    if isinstance(n, ast.Raise):
        return f"it has a `raise` {at}, which would happen while tracing; use assert or weft.debug.check"
    if isinstance(n, (ast.Import, ast.ImportFrom)):
        return f"it has an `import` {at}"
    if (
        isinstance(n, ast.Call)
        and isinstance(n.func, ast.Name)
        and n.func.id in _FRAME_READERS
        and not (n.func.id in ("vars", "dir") and n.args)
    ):
        return f"it calls {n.func.id}() {at}, which needs Python's own frame"
    for target in targets(n):
        if isinstance(target, ast.Attribute) and _path(target) is None:
            return f"it assigns an attribute of a computed object {at}; give the object a name"
        if isinstance(target, ast.Subscript) and _path(_base(target)) is None:
            return f"it assigns an element of a computed object {at}; give the object a name"
    return None


def expression_reason(*nodes: ast.AST) -> str | None:
    """Why an expression that is evaluated only sometimes cannot become a function."""
    for node in nodes:
        for n in [node, *own_nodes(node)]:
            if isinstance(n, ast.NamedExpr):
                return f"it assigns '{n.target.id}' with := on one path only"
            if isinstance(n, (ast.Yield, ast.YieldFrom, ast.Await)):
                return "it has a `yield` or `await`"
    return None


# --- Targets ----------------------------------------------------------------------------------------------------------


def targets(n: ast.AST) -> list[ast.expr]:
    """The innermost targets of an assignment."""
    if isinstance(n, ast.Assign):
        found = list(n.targets)
    elif isinstance(n, (ast.AugAssign, ast.For)):
        found = [n.target]
    elif isinstance(n, ast.AnnAssign):
        found = [n.target] if n.value is not None else []
    elif isinstance(n, ast.With):
        found = [item.optional_vars for item in n.items if item.optional_vars is not None]
    elif isinstance(n, ast.Delete):
        found = list(n.targets)
    else:
        return []
    out: list[ast.expr] = []
    while found:
        target = found.pop(0)
        if isinstance(target, (ast.Tuple, ast.List)):
            found = target.elts + found
        elif isinstance(target, ast.Starred):
            found = [target.value, *found]
        else:
            out.append(target)
    return out


def _base(target: ast.expr) -> ast.expr:
    while isinstance(target, ast.Subscript):
        target = target.value
    return target


def _path(node: ast.expr) -> str | None:
    """ "self.cache" of a name or a chain of attributes of one."""
    if isinstance(node, ast.Name):
        return node.id
    if isinstance(node, ast.Attribute):
        inner = _path(node.value)
        return None if inner is None else f"{inner}.{node.attr}"
    return None


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Attribute):
        node = node.value
    assert isinstance(node, ast.Name)
    return node.id


def stored_names(nodes: Iterable[ast.AST]) -> list[str]:
    """The variables of this scope that nodes assign, in order."""
    names: dict[str, None] = {}
    for node in nodes:
        in_comprehensions: set[ast.AST] = set()
        for n in [node, *own_nodes(node)]:
            if isinstance(n, ast.comprehension):
                in_comprehensions |= set(ast.walk(n.target))
        for n in [node, *own_nodes(node)]:
            name = None
            if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store) and n not in in_comprehensions:
                name = n.id
            elif isinstance(n, _NAMED):
                name = n.name
            elif isinstance(n, ast.MatchMapping):
                name = n.rest
            elif isinstance(n, ast.alias):
                name = n.asname or n.name.split(".")[0]
            if name is not None:
                names[name] = None
    return list(names)


# --- Variables of statements ------------------------------------------------------------------------------------------


def parameters(function: ast.FunctionDef | ast.Lambda) -> list[str]:
    a = function.args
    found = [*a.posonlyargs, *a.args, *([a.vararg] if a.vararg else []), *a.kwonlyargs, *([a.kwarg] if a.kwarg else [])]
    return [p.arg for p in found]


class Scope:
    """One function: its variables, and what each of its statements does to them. `chains` has seen the function with an
    assignment in front for each of `undefined`: names -> the node that stands for "no value yet"."""

    def __init__(self, function: ast.FunctionDef, chains: beniget.DefUseChains, undefined: dict[str, ast.Name]):
        self.function = function
        nodes = list(own_nodes(function))
        self.outer = {name for n in nodes if isinstance(n, (ast.Nonlocal, ast.Global)) for name in n.names}
        self._globals = {name for n in nodes if isinstance(n, ast.Global) for name in n.names}
        written = [s for s in function.body if not hasattr(s, "stand_in")]
        self.order = list(dict.fromkeys([*parameters(function), *stored_names(written)]))
        self._inner = [n for n in nodes if isinstance(n, SCOPES)]
        self._written_inside = {
            name
            for scope in self._inner
            for n in ast.walk(scope)
            if isinstance(n, ast.Nonlocal)
            for name in n.names
            if name in self.order
        }
        self._captured = {name for scope in self._inner for name in _free_names(scope)}
        self._read_later = read_later(function, _MUTATORS.__contains__, _free_names)
        self._definitions: dict[str, list] = {}
        # The target of an augmented assignment is a definition, but not among the locals.
        augmented = [
            chains.chains[n.target]
            for n in nodes
            if isinstance(n, ast.AugAssign) and isinstance(n.target, ast.Name) and n.target in chains.chains
        ]
        for definition in dict.fromkeys([*chains.locals[function], *augmented]):
            self._definitions.setdefault(definition.name(), []).append(definition)
        # Loads that a variable without a value may reach.
        self.unsure: set[ast.AST] = set()
        for node in undefined.values():
            if node in chains.chains:
                self.unsure |= {u.node for u in chains.chains[node].users()}

    def variables(self, s: Control) -> Variables:
        header = s.iter if isinstance(s, ast.For) else s.test if isinstance(s, ast.If) else None
        before = set() if header is None else set(ast.walk(header))
        inside = set(ast.walk(s)) - before
        parts = [p for p in ast.iter_child_nodes(s) if p is not header]
        stored = stored_names(parts)
        has_call = any(isinstance(n, ast.Call) for n in inside)
        if has_call:
            stored += sorted(self._written_inside - set(stored))
        flags = list(getattr(s, "flags", ()))
        names, dead = [], []
        for name in stored:
            if name in self._globals:
                continue
            definitions = self._definitions.get(name, [])
            shared = (
                name in self.outer
                or name in self._written_inside
                or name in self._read_later
                or (name in self._captured and self._mentioned_outside(name, inside))
            )
            live = (
                shared
                or name in flags
                or any(d.node in inside and any(u.node not in inside for u in d.users()) for d in definitions)
            )
            read = shared or any(d.node not in inside and any(u.node in inside for u in d.users()) for d in definitions)
            if live or read:
                names.append(name)
            if read and not live:
                dead.append(name)
        rank = {name: i for i, name in enumerate(self.order)}
        names.sort(key=lambda n: rank.get(n, -1))
        attributes: dict[str, ast.Attribute] = {}
        containers: dict[str, tuple[ast.expr, bool]] = {}
        for n in parts:
            for m in [n, *own_nodes(n)]:
                for target in targets(m):
                    if isinstance(target, ast.Attribute) and _root(target) not in stored:
                        attributes[_path(target) or ""] = target
                    if isinstance(target, ast.Subscript) and _root(_base(target)) not in stored:
                        containers[_path(_base(target)) or ""] = (_base(target), True)
                if (
                    isinstance(m, ast.Call)
                    and isinstance(m.func, ast.Attribute)
                    and m.func.attr in _MUTATORS
                    and (path := _path(m.func.value)) is not None
                    and _root(m.func.value) not in stored
                ):
                    containers.setdefault(path, (m.func.value, False))
        return Variables(names, dead, list(attributes.values()), list(containers.values()))

    def _mentioned_outside(self, name: str, inside: set[ast.AST]) -> bool:
        for n in ast.walk(self.function):
            if n in inside or hasattr(n, "stands_for_undefined"):
                continue
            if (isinstance(n, ast.Name) and n.id == name) or (isinstance(n, ast.arg) and n.arg == name):
                return True
        return False


def _free_names(scope: ast.AST) -> set[str]:
    """Names that an inner scope may take from around it."""
    own: set[str] = set()
    if isinstance(scope, (ast.FunctionDef, ast.Lambda, ast.AsyncFunctionDef)):
        own = set(parameters(scope))  # type: ignore[arg-type]
        body = scope.body if isinstance(scope.body, list) else [scope.body]
        outer = {n for b in body for m in ast.walk(b) if isinstance(m, ast.Nonlocal) for n in m.names}
        own |= set(stored_names(body)) - outer
    return {n.id for n in ast.walk(scope) if isinstance(n, ast.Name)} - own


class Chains(beniget.DefUseChains):
    """Definitions and uses, without warnings: names from outside the function are unknown here on purpose."""

    def unbound_identifier(self, name, node):
        pass

    def warn(self, msg, node):
        pass

    def visit_Match(self, node):
        # Not beniget's, which binds the names of all patterns before any case runs, reads guards before the names
        # that their patterns bind, and takes one of the cases to be taken.
        self.visit(node.subject)
        ends = []
        for case in node.cases:
            with self.DefinitionContext(self._definitions[-1].copy()) as tried:
                self.visit(case.pattern)
                if case.guard is not None:
                    self.visit(case.guard)
            with self.DefinitionContext(tried.copy()) as end:
                self.process_body(case.body)
            ends.append(end)
            if takes_all(case):
                break
            # Names stay bound where the guard says no.
            self._join([self._definitions[-1], tried])
        else:
            ends.append(self._definitions[-1].copy())
        self._join(ends)

    def visit_MatchSingleton(self, node):
        return self.chains.setdefault(node, beniget.beniget.Def(node))  # its value is no node, but None, True or False

    def visit_MatchOr(self, node):
        known = self.chains.setdefault(node, beniget.beniget.Def(node))
        ends = []
        for pattern in node.patterns:
            with self.DefinitionContext(self._definitions[-1].copy()) as end:
                self.visit(pattern).add_user(known)
            ends.append(end)
        self._join(ends)
        return known

    def _join(self, ends):
        """From here on, a name has the definitions that it has at any of these ends."""
        for name in dict.fromkeys(name for end in ends for name in end):
            definitions = [d for end in ends if name in end for d in end[name]]
            self.set_definition(name, definitions)

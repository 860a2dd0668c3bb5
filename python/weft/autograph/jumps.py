"""return, break and continue inside control flow, written as flags and branches.

    for x in xs:                       did_break = False
        if x > 3:                      for x in xs:        # goes on while not did_break
            break                          did_break = False
        y = y + x                          if x > 3:
                                               did_break = True
                                           else:
                                               y = y + x

What follows a branch that always leaves moves into the other branch; only where some paths leave and some do not is a
flag asked. Flags are False at the start of every iteration, for otherwise there would be none.
"""

from __future__ import annotations

import ast
import copy
from collections.abc import Callable, Iterator

Control = ast.If | ast.For | ast.While
SCOPES = (ast.FunctionDef, ast.AsyncFunctionDef, ast.Lambda, ast.ClassDef)


def own_nodes(node: ast.AST) -> Iterator[ast.AST]:
    """The nodes below `node` that belong to the same scope; of inner scopes only the node itself and what is evaluated
    outside of them (decorators, defaults)."""
    pending = list(ast.iter_child_nodes(node))[::-1]
    while pending:
        node = pending.pop()
        yield node
        pending += evaluated_with(node)[::-1]


def evaluated_with(node: ast.AST) -> list[ast.AST]:
    """The nodes just below one that belong to its scope."""
    if not isinstance(node, SCOPES):
        return list(ast.iter_child_nodes(node))
    outside = getattr(node, "decorator_list", []) + getattr(node, "bases", [])
    if not isinstance(node, ast.ClassDef):
        outside += [default for default in [*node.args.defaults, *node.args.kw_defaults] if default is not None]
    return outside


def jumps_in(stmts: list[ast.stmt]) -> list[ast.stmt]:
    """The return, break and continue statements that leave a list of statements."""
    found: list[ast.stmt] = []

    def walk(stmt: ast.stmt, in_loop: bool) -> None:
        if isinstance(stmt, SCOPES):
            return
        if isinstance(stmt, ast.Return) or (isinstance(stmt, (ast.Break, ast.Continue)) and not in_loop):
            found.append(stmt)
        loop = isinstance(stmt, (ast.For, ast.AsyncFor, ast.While))
        for field in ("body", "orelse", "finalbody"):
            for child in getattr(stmt, field, []):
                walk(child, in_loop or (loop and field == "body"))
        for part in getattr(stmt, "handlers", []) + getattr(stmt, "cases", []):
            for child in part.body:
                walk(child, in_loop)

    for s in stmts:
        walk(s, False)
    return found


def escaping_jumps(stmt: ast.stmt) -> list[ast.stmt]:
    """The jumps below a statement that leave it."""
    return jumps_in([stmt])


def always_leaves(stmts: list[ast.stmt]) -> bool:
    """Whether control never reaches the end of the list."""
    for s in stmts:
        if isinstance(s, (ast.Return, ast.Break, ast.Continue, ast.Raise)):
            return True
        if isinstance(s, ast.If) and always_leaves(s.body) and always_leaves(s.orelse):
            return True
        if isinstance(s, ast.With) and always_leaves(s.body):
            return True
        if (
            isinstance(s, (ast.For, ast.While))
            and always_leaves(s.orelse)
            and not any(isinstance(j, ast.Break) for j in jumps_in(s.body))
        ):
            return True
        if (
            isinstance(s, ast.While)
            and isinstance(s.test, ast.Constant)
            and s.test.value
            and not any(isinstance(j, ast.Break) for j in jumps_in(s.body))
        ):
            return True
    return False


def always_returns(stmts: list[ast.stmt]) -> bool:
    """Whether control leaves the list in no other way than by `return`."""
    return always_leaves(stmts) and all(isinstance(j, ast.Return) for j in jumps_in(stmts))


class _Env:
    """What jumps become here: the names of flags, or None where they stay as they are."""

    def __init__(self, returned: str | None, broken: str | None = None, continued: str | None = None):
        self.returned, self.broken, self.continued = returned, broken, continued


_REAL = _Env(None)


class Jumps:
    """Rewrites the jumps of one function. Statements with an attribute python_only stay Python's, with their jumps."""

    def __init__(self, fresh: Callable[[str], str], ag: str):
        self._fresh, self._ag = fresh, ag
        self.return_value: str | None = None
        self._in_use: list[str] = []

    def function(self, node: ast.FunctionDef) -> None:
        """Rewrites a function's body in place."""
        lowered = any(
            isinstance(s, (ast.If, ast.For, ast.While))
            and not hasattr(s, "python_only")
            and any(isinstance(j, ast.Return) for j in escaping_jumps(s))
            for s in own_nodes(node)
        )
        env = _REAL
        body = node.body
        if lowered:
            env = _Env(self._fresh("did_return"))
            self.return_value = self._fresh("return_value")
            if not always_leaves(body):
                end = ast.Return(ast.Constant(None))
                locate(end, body[-1])
                body = [*body, end]
        new, _ = self._block(body, env)
        if lowered:
            assert env.returned is not None and self.return_value is not None
            first, last = node.body[0], body[-1]
            new.insert(_after_docstring(new), self._assign(env.returned, ast.Constant(False), first))
            result = ast.Return(ast.Name(self.return_value, ast.Load()))
            new.append(locate(result, last))
        node.body = new
        loaded = {n.id for s in new for n in ast.walk(s) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Load)}
        loaded |= {f for s in new for n in ast.walk(s) for f in getattr(n, "flags", ())}
        dead = {f for f in [env.returned, *self._in_use] if f is not None and f not in loaded}
        if dead:
            _drop_assignments(node, dead)

    # Returns the new statements and the flags that may be set when control leaves their end.
    def _block(self, stmts: list[ast.stmt], env: _Env) -> tuple[list[ast.stmt], set[str]]:
        out: list[ast.stmt] = []
        may: set[str] = set()
        for k, s in enumerate(stmts):
            rest = stmts[k + 1 :]
            if isinstance(s, ast.Return) and env.returned is not None:
                assert self.return_value is not None
                out.append(self._assign(self.return_value, s.value or ast.Constant(None), s))
                out.append(self._assign(env.returned, ast.Constant(True), s))
                return out, may | {env.returned}
            if isinstance(s, ast.Break) and env.broken is not None:
                return [*out, self._assign(env.broken, ast.Constant(True), s)], may | {env.broken}
            if isinstance(s, ast.Continue) and env.continued is not None:
                return [*out, self._assign(env.continued, ast.Constant(True), s)], may | {env.continued}
            if isinstance(s, (ast.Return, ast.Break, ast.Continue)):
                return [*out, s], may
            new, flags, took_rest = self._statement(s, rest, env)
            out += new
            may |= flags
            if took_rest:
                return out, may
            if flags and rest:
                after, later = self._block(rest, env)
                if after:
                    guard = ast.If(self._none_of(sorted(flags), rest[0]), after, [])
                    guard.returns = False, flags == {env.returned}  # type: ignore[attr-defined]
                    out.append(locate(guard, rest[0]))
                return out, may | later
        return out, may

    # The new statements, the flags that they may set, and whether `rest` is in them already.
    def _statement(self, s: ast.stmt, rest: list[ast.stmt], env: _Env) -> tuple[list[ast.stmt], set[str], bool]:
        if isinstance(s, SCOPES):
            return [s], set(), False
        if hasattr(s, "python_only"):
            return [self._children(s, _REAL)[0]], set(), False
        if isinstance(s, ast.If):
            jumps = bool(escaping_jumps(s)) and env is not _REAL
            in_body, in_else = always_leaves(s.body), always_leaves(s.orelse)
            took = jumps and in_body != in_else
            body, a = self._block(s.body + (rest if took and not in_body else []), env)
            orelse, b = self._block(s.orelse + (rest if took and not in_else else []), env)
            new = _copy(s)
            new.body, new.orelse = body or [locate(ast.Pass(), s)], orelse
            if env.returned is not None:
                new.returns = always_returns(s.body), always_returns(s.orelse)
            return [new], a | b, took or (in_body and in_else)
        if isinstance(s, (ast.For, ast.While)):
            return self._loop(s, env)
        return self._other(s, env)

    def _other(self, s: ast.stmt, env: _Env) -> tuple[list[ast.stmt], set[str], bool]:
        new, flags = self._children(s, env)
        return [new], flags, False

    def _children(self, s: ast.stmt, env: _Env) -> tuple[ast.stmt, set[str]]:
        new, flags = _copy(s), set()
        for field in ("body", "orelse", "finalbody"):
            inner = getattr(s, field, None)
            if isinstance(inner, list):
                block, more = self._block(inner, env)
                setattr(new, field, block)
                flags |= more
        for field in ("handlers", "cases"):
            if hasattr(s, field):
                copies = []
                for part in getattr(s, field):
                    part = _copy(part)
                    part.body, more = self._block(part.body, env)
                    flags |= more
                    copies.append(part)
                setattr(new, field, copies)
        return new, flags

    def _loop(self, s: ast.For | ast.While, env: _Env) -> tuple[list[ast.stmt], set[str], bool]:
        if isinstance(s, ast.While) and any(isinstance(n, ast.NamedExpr) for n in own_nodes(ast.Expr(s.test))):
            # What the test assigns, the body reads: so the test belongs to the body.
            test = s.test
            leave = locate(ast.If(ast.UnaryOp(ast.Not(), test), [ast.Break()], []), test)
            s = ast.copy_location(ast.While(locate(ast.Constant(True), test), [leave, *s.body], s.orelse), s)
        jumps = jumps_in(s.body)
        broken = self._fresh("did_break") if any(isinstance(j, ast.Break) for j in jumps) else None
        continued = self._fresh("did_continue") if any(isinstance(j, ast.Continue) for j in jumps) else None
        self._in_use += [f for f in (broken, continued) if f is not None]
        body, may = self._block(s.body, _Env(env.returned, broken, continued))
        flags = sorted(may - {continued})
        resets = [self._assign(f, ast.Constant(False), s.body[0]) for f in [*flags, continued] if f is not None]
        new = _copy(s)
        new.body, new.orelse = resets + body, []
        new.flags = tuple(flags)
        out: list[ast.stmt] = [self._assign(broken, ast.Constant(False), s)] if broken is not None else []
        if flags:
            go_on = self._none_of(flags, s)
            if isinstance(new, ast.For):
                # Stands where the flags are read, for whoever asks what is read where.
                new.proceed = locate(ast.Expr(go_on), s)  # type: ignore[attr-defined]
                new.body.append(new.proceed)  # type: ignore[attr-defined]
            elif isinstance(s.test, ast.Constant) and s.test.value:  # type: ignore[union-attr]
                new.test = go_on
            else:
                new.test = locate(ast.BoolOp(ast.And(), [go_on, s.test]), s.test)  # type: ignore[union-attr]
        out.append(new)
        leaves = {env.returned} & set(flags) if env.returned is not None else set()
        if s.orelse:
            orelse, more = self._block(s.orelse, env)
            if flags:
                out.append(locate(ast.If(self._none_of(flags, s.orelse[0]), orelse, []), s.orelse[0]))
            else:
                out += orelse
            leaves |= more
        return out, leaves, False

    def _assign(self, name: str, value: ast.expr, at: ast.AST) -> ast.stmt:
        return locate(ast.Assign([ast.Name(name, ast.Store())], value), at)

    def _none_of(self, flags: list[str], at: ast.AST) -> ast.expr:
        function = ast.Attribute(ast.Name(self._ag, ast.Load()), "none_of", ast.Load())
        return locate(ast.Call(function, [ast.Name(f, ast.Load()) for f in flags], []), at)


def _copy(node):
    return copy.copy(node)


def locate(node, at: ast.AST):
    """Gives a new node, and the new nodes below it, the place of another; only where it starts, if it has several
    lines."""
    if not hasattr(node, "lineno"):
        node.lineno, node.col_offset = at.lineno, at.col_offset  # type: ignore[attr-defined]
        one_line = at.end_lineno == at.lineno  # type: ignore[attr-defined]
        node.end_lineno = at.lineno  # type: ignore[attr-defined]
        node.end_col_offset = at.end_col_offset if one_line else at.col_offset  # type: ignore[attr-defined]
    for child in ast.iter_child_nodes(node):
        if "lineno" in child._attributes and not hasattr(child, "lineno"):
            locate(child, node)
    return node


def _after_docstring(body: list[ast.stmt]) -> int:
    first = body[0] if body else None
    return int(
        isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant) and isinstance(first.value.value, str)
    )


after_docstring = _after_docstring


def _drop_assignments(node: ast.AST, names: set[str]) -> None:
    for field, value in ast.iter_fields(node):
        if isinstance(value, list):
            kept = [
                s
                for s in value
                if not (
                    isinstance(s, ast.Assign)
                    and isinstance(s.targets[0], ast.Name)
                    and s.targets[0].id in names
                    and isinstance(s.value, ast.Constant)
                )
            ]
            if len(kept) != len(value):
                if not kept and field == "body":
                    kept = [locate(ast.Pass(), value[0])]
                value[:] = kept
            for s in value:
                if isinstance(s, ast.AST) and not isinstance(s, SCOPES):
                    _drop_assignments(s, names)

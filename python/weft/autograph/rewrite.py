"""From statements to calls: the converted function.

    if x < y:                 def if_body():
        s = x + y                 nonlocal s
    else:                         s = x + y
        s = y * y             def else_body():
                                  nonlocal s
                                  s = y * y
                              def get_state():
                                  return (s,)
                              def set_state(state):
                                  nonlocal s
                                  (s,) = state
                              ag.if_(x < y, if_body, else_body, get_state, set_state, ('s',))

Whether a condition is traced is found when the call runs (operators.py, loops.py). Every new node has the place of the
one that it stands for, so equations and tracebacks name the user's lines.
"""

from __future__ import annotations

import ast
import dataclasses
import types
from typing import Any

from .analysis import (
    Chains,
    Control,
    Scope,
    mark_python_only,
    parameters,
    stored_names,
    targets,
)
from .definite import definitely_assigned
from .expressions import MANY_TESTS, Expressions
from .jumps import Jumps, after_docstring, evaluated_with, locate, own_nodes
from .nodes import load, plain_arguments, store, strings

# What has no effect but its value, and ends.
_SIMPLE = (
    ast.Name,
    ast.Constant,
    ast.Attribute,
    ast.Subscript,
    ast.Slice,
    ast.Tuple,
    ast.List,
    ast.Compare,
    ast.BoolOp,
    ast.UnaryOp,
    ast.BinOp,
    ast.IfExp,
    ast.cmpop,
    ast.boolop,
    ast.unaryop,
    ast.operator,
    ast.expr_context,
)
_MODULES_WITHOUT_EFFECTS = ("weft.numpy", "weft.nn", "weft.scipy", "numpy", "math")


@dataclasses.dataclass
class Fact:
    """What is known of an `if`, `for` or `while`: why it stays Python's, or the variables that it leaves to what
    follows, those that it changes for nobody, attributes and containers that it assigns to."""

    control: Control
    python_only: str
    live: list[str] = dataclasses.field(default_factory=list)
    dead: list[str] = dataclasses.field(default_factory=list)
    written: list[str] = dataclasses.field(default_factory=list)


class Conversion:
    """Converts one function that a user wrote, with the functions inside it."""

    def __init__(self, node: ast.FunctionDef, free: list[str], space: dict[str, Any]):
        self._space = space
        taken = {n.id for n in ast.walk(node) if isinstance(n, ast.Name)} | set(free)
        taken |= {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)}
        taken |= {n.name for n in ast.walk(node) if isinstance(n, (ast.FunctionDef, ast.ClassDef))}
        taken |= {name for n in ast.walk(node) if isinstance(n, (ast.Global, ast.Nonlocal)) for name in n.names}
        self._taken = taken
        self._bound = {n.id for n in ast.walk(node) if isinstance(n, ast.Name) and isinstance(n.ctx, ast.Store)}
        self._bound |= {n.arg for n in ast.walk(node) if isinstance(n, ast.arg)} | set(free)
        self.synthetic: set[str] = set()
        self.facts: list[Fact] = []
        self.ag, self.state = self.fresh("ag"), self.fresh("state")
        self.node = node
        self.unsure: set[ast.AST] = set()
        _Annotations().visit(node)
        self.assigned = {f: definitely_assigned(f, self._locals(f)) for f in self._functions(node)}
        self._return_values: dict[ast.AST, str] = {}
        functions = self._functions(node)
        for function in functions:
            mark_python_only(function)
            jumps = Jumps(self.fresh, self.ag)
            jumps.function(function)
            if jumps.return_value is not None:
                self._return_values[function] = jumps.return_value
        functions = self._functions(node)
        undefined = {f: self._stand_ins(f) for f in functions}
        outer = ast.FunctionDef("outer", plain_arguments([*free, self.ag]), [node], [])
        chains = Chains()
        chains.visit(ast.Module([outer], []))
        self._scopes = {f: Scope(f, chains, undefined[f]) for f in functions}
        for scope in self._scopes.values():
            self.unsure |= scope.unsure
        for f in functions:
            f.body = [s for s in f.body if not hasattr(s, "stand_in")] or [locate(ast.Pass(), f)]
        # Inner functions first: they are statements of the outer ones.
        for f in reversed(functions):
            _FunctionRewriter(self, self._scopes[f], self._return_values.get(f)).run()

    def is_simple(self, test: ast.expr) -> bool:
        """Whether evaluating an expression earlier than Python would changes nothing."""
        pending: list[ast.AST] = [test]
        while pending:
            node = pending.pop()
            if isinstance(node, ast.Call):
                if not self._is_of_library(node.func) or any(isinstance(a, ast.Starred) for a in node.args):
                    return False
                pending += [*node.args, *(k.value for k in node.keywords)]
            elif isinstance(node, _SIMPLE):
                pending += ast.iter_child_nodes(node)
            else:
                return False
        return True

    def _is_of_library(self, function: ast.expr) -> bool:
        """Whether it is a function of a module of arithmetic: wnp.abs."""
        if not (isinstance(function, ast.Attribute) and isinstance(function.value, ast.Name)):
            return False
        module = None if function.value.id in self._bound else self._space.get(function.value.id)
        name = module.__name__ if isinstance(module, types.ModuleType) else ""
        return name in _MODULES_WITHOUT_EFFECTS or name.startswith("weft.scipy.")

    def fresh(self, base: str) -> str:
        name, k = base, 1
        while name in self._taken:
            name, k = f"{base}_{k}", k + 1
        self._taken.add(name)
        return name

    def _functions(self, node: ast.FunctionDef) -> list[ast.FunctionDef]:
        """The function and those inside it; generators and coroutines are left as they are."""
        found = [node]
        for n in ast.walk(node):
            if n is not node and isinstance(n, ast.FunctionDef):
                found.append(n)
        return found

    def _locals(self, function: ast.FunctionDef) -> set[str]:
        nodes = list(own_nodes(function))
        outer = {name for n in nodes if isinstance(n, (ast.Global, ast.Nonlocal)) for name in n.names}
        return set(stored_names(function.body)) - outer - set(parameters(function))

    def _stand_ins(self, function: ast.FunctionDef) -> dict[str, ast.Name]:
        """Puts an assignment in front of the function for each variable that control flow assigns, so that uses which
        it reaches are those that may find no value."""
        nodes = list(own_nodes(function))
        controls: list[ast.AST] = []  # those that are not inside another
        pending = list(ast.iter_child_nodes(function))[::-1]
        while pending:
            n = pending.pop()
            if isinstance(n, (ast.If, ast.For, ast.While, ast.Try, ast.Match)):
                controls.append(n)
            else:
                pending += evaluated_with(n)[::-1]
        outer = {name for n in nodes if isinstance(n, (ast.Global, ast.Nonlocal)) for name in n.names}
        names = [n for n in stored_names(controls) if n not in outer and n not in parameters(function)]
        stand_ins = {}
        at = after_docstring(function.body)
        for name in names:
            target = store(name)
            target.stands_for_undefined = True  # type: ignore[attr-defined]
            statement = locate(ast.Assign([target], ast.Constant(None)), function.body[0])
            statement.stand_in = True
            function.body.insert(at, statement)
            stand_ins[name] = target
        return stand_ins


class _FunctionRewriter:
    def __init__(self, conversion: Conversion, scope: Scope, return_value: str | None):
        self._c, self._scope, self._return_value = conversion, scope, return_value
        self._assigned = conversion.assigned[scope.function]
        self._expressions = Expressions(conversion.ag, conversion.unsure, scope.function)

    def run(self) -> None:
        function = self._scope.function
        bound = set(parameters(function)) | self._scope.outer
        function.body = self._owner(function.body, bound)

    def _owner(self, stmts: list[ast.stmt], bound: set[str]) -> list[ast.stmt]:
        """The body of a function: a block, and in front of it the variables that are first assigned further inside."""
        first = stmts[0]
        missing: dict[str, None] = {}
        body = self._block(stmts, bound, missing)
        undefined = [
            locate(ast.Assign([store(n)], self._call("undefined", [ast.Constant(self._label(n))])), first)
            for n in missing
        ]
        at = after_docstring(body)
        declarations = at
        while declarations < len(body) and isinstance(body[declarations], (ast.Global, ast.Nonlocal)):
            declarations += 1
        return body[:declarations] + undefined + body[declarations:]

    def _label(self, name: str) -> str:
        return "the returned value" if name == self._return_value else name

    def _block(self, stmts: list[ast.stmt], bound: set[str], missing: dict[str, None]) -> list[ast.stmt]:
        out: list[ast.stmt] = []
        for s in stmts:
            out += self._statement(s, bound, missing)
        return out

    def _statement(self, s: ast.stmt, bound: set[str], missing: dict[str, None]) -> list[ast.stmt]:
        if isinstance(s, (ast.If, ast.For, ast.While)) and not hasattr(s, "python_only"):
            return self._control(s, bound, missing)
        if isinstance(s, ast.Assert):
            if not __debug__:
                return []
            text = ast.Constant(ast.unparse(s.test))
            message = self._thunk(self._visit(s.msg), s.msg) if s.msg is not None else ast.Constant(None)
            call = self._call("assert_", [self._expressions.condition(s.test), message, text])
            return [locate(ast.Expr(locate(call, s)), s)]
        if isinstance(s, ast.Delete):
            out: list[ast.stmt] = []
            for target in s.targets:
                if isinstance(target, ast.Name) and target.id in missing:
                    value = self._call("undefined", [ast.Constant(target.id)])
                    out.append(locate(ast.Assign([store(target.id)], value), s))
                else:
                    out.append(locate(ast.Delete([self._visit(target)]), s))
            return out + self._settle(s)
        self._inside(s, bound, missing)
        if isinstance(s, (ast.Assign, ast.AnnAssign, ast.AugAssign, ast.Import, ast.ImportFrom, ast.FunctionDef)):
            bound |= set(stored_names([s]))
        return [*self._in_place(s), s, *self._settle(s)]

    def _in_place(self, s: ast.stmt) -> list[ast.stmt]:
        if not isinstance(s, ast.AugAssign) or any(
            isinstance(n, (ast.Call, ast.NamedExpr)) for n in ast.walk(s.target)
        ):
            return []
        return [locate(ast.Expr(self._call("in_place", [self._fresh_copy(s.target)])), s)]

    def _settle(self, s: ast.stmt) -> list[ast.stmt]:
        """After what writes to an object: if a traced condition chose that, others change with it (aliases.py)."""
        in_place = isinstance(s, ast.AugAssign) or any(
            isinstance(t, (ast.Attribute, ast.Subscript)) for t in targets(s)
        )
        return [locate(ast.Expr(self._call("settle", [])), s)] if in_place else []

    def _inside(self, s: ast.stmt, bound: set[str], missing: dict[str, None]) -> None:
        """Visits the expressions and blocks of a statement that stays."""
        if isinstance(s, (ast.FunctionDef, ast.AsyncFunctionDef, ast.ClassDef)):
            return  # functions inside are converted on their own
        reason = getattr(s, "python_only", None)
        if reason is not None:
            self._c.facts.append(Fact(s, reason))  # type: ignore[arg-type]
        for field, value in ast.iter_fields(s):
            if field in ("body", "orelse", "finalbody"):
                setattr(s, field, self._block(value, set(bound), missing))
            elif field in ("handlers", "cases"):
                for part in value:
                    part.body = self._block(part.body, set(bound), missing)
                    guard = getattr(part, "guard", None)
                    if guard is not None:
                        part.guard = self._python_only(self._visit(guard), "the guard of a case")
            elif isinstance(value, ast.expr):
                new = self._visit(value)
                if reason is not None and field in ("test", "iter"):
                    word = {ast.If: "if", ast.For: "for", ast.While: "while"}[type(s)]
                    new = self._python_only(new, f"this `{word}` cannot be converted: {reason}")
                if field == "subject":
                    new = self._python_only(new, "`match` compares values in Python; use if and elif")
                setattr(s, field, new)
            elif isinstance(value, list):
                for item in value:
                    if isinstance(item, ast.withitem):
                        item.context_expr = self._visit(item.context_expr)
                setattr(s, field, [self._visit(v) if isinstance(v, ast.expr) else v for v in value])

    def _control(self, s: Control, bound: set[str], missing: dict[str, None]) -> list[ast.stmt]:
        variables = self._scope.variables(s)
        state = variables.names
        written = [ast.unparse(n) for n in (*variables.attributes, *(c for c, _ in variables.containers))]
        live = [self._label(n) for n in state if n not in variables.dead]
        self._c.facts.append(Fact(s, "", live, [*variables.dead], written))
        for name in state:
            if name not in bound:
                missing[name] = None
                bound.add(name)
        out: list[ast.stmt] = []
        get_state, set_state = self._state_functions(variables, s, out)
        common: list[ast.expr] = [load(get_state), load(set_state)]
        labels = [self._label(n) for n in state]
        labels += [ast.unparse(a) for a in variables.attributes]
        labels += [ast.unparse(c) for c, _ in variables.containers]
        common.append(strings(labels))
        keywords = []
        guarded = [n for n in state if n in self._assigned or n == self._return_value]
        if guarded:
            keywords.append(ast.keyword("guarded", strings([self._label(n) for n in guarded])))
        if isinstance(s, ast.If) and len(chain := self._chain(s)) >= MANY_TESTS:
            returned = [getattr(part, "returns", (False, False))[0] for part in chain]
            returned.append(getattr(chain[-1], "returns", (False, False))[1])
            if any(returned):
                keywords.append(ast.keyword("returns", ast.Tuple([ast.Constant(r) for r in returned], ast.Load())))
            if variables.dead:
                keywords.append(ast.keyword("dead", strings([self._label(n) for n in variables.dead])))
            bodies: list[ast.expr] = [load(self._body("if_body", [], part.body, state, out, part)) for part in chain]
            last = chain[-1].orelse
            orelse = self._body("else_body", [], last, state, out, chain[-1]) if last else None
            tests = [self._thunk(self._expressions.condition(part.test), part.test) for part in chain]
            both = [ast.Tuple(tests, ast.Load()), ast.Tuple(bodies, ast.Load())]
            call = self._call("if_chain", [*both, load(orelse) if orelse else ast.Constant(None), *common])
        elif isinstance(s, ast.If):
            returns = getattr(s, "returns", (False, False))
            if any(returns):
                keywords.append(ast.keyword("returns", ast.Constant("if" if returns[0] else "else")))
            if variables.dead:
                keywords.append(ast.keyword("dead", strings([self._label(n) for n in variables.dead])))
            body = self._body("if_body", [], s.body, state, out, s)
            orelse = self._body("else_body", [], s.orelse, state, out, s) if s.orelse else None
            test = self._expressions.condition(s.test)
            call = self._call("if_", [test, load(body), load(orelse) if orelse else ast.Constant(None), *common])
        elif isinstance(s, ast.While):
            flags = list(s.flags) if hasattr(s, "flags") else []
            if flags:
                keywords.append(ast.keyword("flags", strings(flags)))
            test_at = s.test
            returned = locate(ast.Return(self._expressions.condition(s.test)), test_at)
            test_name = self._define("loop_test", [], [returned], [], out, test_at)
            body = self._body("loop_body", [], s.body, state, out, s)
            call = self._call("while_", [load(test_name), load(body), *common])
        else:
            if hasattr(s, "proceed"):
                keywords.append(ast.keyword("flags", strings(list(s.flags))))  # type: ignore[attr-defined]
                keywords.append(ast.keyword("proceed", self._thunk(s.proceed.value, s)))
            stmts = [b for b in s.body if b is not getattr(s, "proceed", None)]
            if isinstance(s.target, ast.Name) and s.target.id not in state:
                item = s.target.id
            else:
                item = self._c.fresh("item")
                stmts = [locate(ast.Assign([s.target], load(item)), s.target), *stmts]
            body = self._body("loop_body", [item], stmts, state, out, s)
            call = self._call("for_", [self._visit(s.iter), load(body), *common])
        call.keywords = keywords
        out.append(locate(ast.Expr(locate(call, s)), s))
        return out

    def _chain(self, s: ast.If) -> list[ast.If]:
        """An `if` with the `elif`s after it whose tests can be evaluated with its own."""
        chain = [s]
        while len(chain[-1].orelse) == 1:
            (inner,) = chain[-1].orelse
            if not isinstance(inner, ast.If) or hasattr(inner, "python_only") or not self._c.is_simple(inner.test):
                break
            chain.append(inner)
        return chain

    def _body(
        self, base: str, args: list[str], stmts: list[ast.stmt], state: list[str], out: list[ast.stmt], at: ast.AST
    ) -> str:
        stored = stored_names(stmts)
        shared = [n for n in state if n in stored]
        # Names of this statement's state that an inner statement passes on.
        shared += [n for n in state if n not in stored and self._passes_on(n, stmts)]
        body = self._owner(stmts, set(state) | set(args) | self._scope.outer)
        return self._define(base, args, body, shared, out, at)

    def _passes_on(self, name: str, stmts: list[ast.stmt]) -> bool:
        controls = [n for s in stmts for n in [s, *own_nodes(s)] if isinstance(n, (ast.If, ast.For, ast.While))]
        return any(name in self._scope.variables(c).names for c in controls if not hasattr(c, "python_only"))

    def _define(
        self, base: str, args: list[str], body: list[ast.stmt], shared: list[str], out: list[ast.stmt], at: ast.AST
    ) -> str:
        name = self._c.fresh(base)
        self._c.synthetic.add(name)
        declared = [n for n in dict.fromkeys(shared) if n not in args]
        if declared:
            body = [locate(ast.Nonlocal(declared), at), *body]
        out.append(locate(ast.FunctionDef(name, plain_arguments(args), body, []), at))
        return name

    def _state_functions(self, variables, s: ast.stmt, out: list[ast.stmt]) -> tuple[str, str]:
        values: list[ast.expr] = [load(n) for n in variables.names]
        targets: list[ast.expr] = [store(n) for n in variables.names]
        after: list[ast.stmt] = []
        for attribute in variables.attributes:
            value, key = self._fresh_copy(attribute.value), ast.Constant(attribute.attr)
            values.append(self._call("attribute", [value, key]))
            new = self._c.fresh("value")
            targets.append(store(new))
            after.append(ast.Expr(self._call("set_attribute", [self._fresh_copy(attribute.value), key, load(new)])))
        for container, by_subscript in variables.containers:
            arguments: list[ast.expr] = [self._fresh_copy(container)]
            if by_subscript:
                arguments.append(ast.Constant(ast.unparse(container)))
            values.append(self._call("contents", arguments))
            new = self._c.fresh("value")
            targets.append(store(new))
            after.append(ast.Expr(self._call("set_contents", [self._fresh_copy(container), load(new)])))
        get: list[ast.stmt] = [ast.Return(ast.Tuple(values, ast.Load()))]
        put: list[ast.stmt] = []
        if targets:
            put = [ast.Assign([ast.Tuple(targets, ast.Store())], load(self._c.state)), *after]
        get_state = self._define("get_state", [], [locate(g, s) for g in get], [], out, s)
        put = [locate(p, s) for p in put] or [locate(ast.Pass(), s)]
        set_state = self._define("set_state", [self._c.state], put, variables.names, out, s)
        return get_state, set_state

    def _fresh_copy(self, node: ast.expr) -> ast.expr:
        return ast.parse(ast.unparse(node), mode="eval").body

    def _visit(self, node):
        return self._expressions.visit(node)

    def _call(self, operator: str, args: list[ast.expr]) -> ast.Call:
        return self._expressions.operator(operator, args)

    def _thunk(self, value: ast.expr, at: ast.AST) -> ast.expr:
        return locate(ast.Lambda(plain_arguments([]), value), at)

    def _python_only(self, value: ast.expr, reason: str) -> ast.expr:
        return self._expressions.python_only(value, reason)


class _Annotations(ast.NodeTransformer):
    """Takes the annotations of variables away, which functions do not evaluate: a variable that a branch shares with
    what is around it cannot have one."""

    def visit_AnnAssign(self, node: ast.AnnAssign) -> ast.stmt:
        return locate(ast.Pass() if node.value is None else ast.Assign([node.target], node.value), node)

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        node.body = [s if isinstance(s, ast.AnnAssign) else self.visit(s) for s in node.body]
        return node


def convert_node(node: ast.FunctionDef, free: list[str], space: dict[str, Any]) -> Conversion:
    """Converts a function's node in place. `free`: its free variables; `space`: its globals."""
    return Conversion(node, free, space)

"""Converting functions: from a function object to a new one with the same globals, closure and defaults."""

from __future__ import annotations

import ast
import contextlib
import copy
import functools
import inspect
import sys
import threading
import types
from collections.abc import Callable, Iterator
from typing import Any

from .._core import traced_calls
from .._core.errors import PACKAGE
from . import aliases, membership, operators
from .attempts import run as attempt
from .errors import ConversionError
from .overloads import METHODS, OVERLOADS
from .rewrite import Fact, convert_node
from .source import SourceError, find_function, is_users

__all__ = ["attempt", "convert", "converted_text", "facts", "is_converted", "leave_alone"]

# What calls functions that it is given: of Python, and modules of Weft.
_PYTHON_CALLERS = frozenset((map, filter, functools.reduce))
_CALLERS = frozenset(
    (
        "weft.arguments",
        "weft.batching",
        "weft.compiled",
        "weft.control",
        "weft.custom",
        "weft.derivatives",
        "weft.jacobians",
        "weft.lax._reductions",
        "weft.lax._scans",
        "weft.program",
        "weft.recurrences",
        "weft.tree",
    )
)

_lock = threading.RLock()


class _Converted:
    """What was made of one code object."""

    __slots__ = ("code", "text", "original")

    def __init__(self, code: types.CodeType, text: str, original: types.CodeType):
        self.code, self.text, self.original = code, text, original


# By identity: equal code objects of different files are different functions. Code objects that were converted stay.
_done: dict[int, _Converted] = {}
_refused: dict[int, tuple[types.CodeType, ConversionError]] = {}
_made: dict[int, types.CodeType] = {}
_left_alone: dict[int, Any] = {}


def is_converted(function: types.FunctionType) -> bool:
    return id(function.__code__) in _made


def leave_alone(function: Callable) -> Callable:
    """Marks a function as one that is called as it is."""
    code = getattr(function, "__code__", function)
    _left_alone[id(code)] = code
    return function


def convert(function: types.FunctionType) -> types.FunctionType:
    """The converted function. Raises ConversionError naming what cannot be converted, its file and line."""
    if is_converted(function):
        return function
    result = _convert_code(function)
    code = result.code
    cells = dict(zip(function.__code__.co_freevars, function.__closure__ or ()))
    closure = tuple(cells[n] if n in cells else types.CellType(operators) for n in code.co_freevars)
    new = types.FunctionType(code, function.__globals__, function.__name__, function.__defaults__, closure)
    new.__kwdefaults__ = function.__kwdefaults__
    functools.update_wrapper(new, function)
    return new


def converted_text(function: types.FunctionType) -> str:
    """The source of the converted function."""
    if is_converted(function):
        function = function.__wrapped__  # type: ignore[attr-defined]
    return _convert_code(function).text


def _convert_code(function: types.FunctionType) -> _Converted:
    code = function.__code__
    with _lock:
        if id(code) in _refused:
            raise _refused[id(code)][1].with_traceback(None)
        if id(code) not in _done:
            try:
                _done[id(code)] = _convert_source(function)
            except ConversionError as error:
                _refused[id(code)] = code, error
                raise
        return _done[id(code)]


def _convert_source(function: types.FunctionType) -> _Converted:
    code = function.__code__
    found, class_name = find_function(function)
    place = f"{code.co_filename}:{found.lineno}"
    if isinstance(found, ast.AsyncFunctionDef):
        raise ConversionError(
            f"autograph: {place}: '{code.co_name}' is an async function; a traced program cannot wait for Python"
        )
    if code.co_flags & (0x20 | 0x200):  # CO_GENERATOR, CO_ASYNC_GENERATOR
        raise ConversionError(
            f"autograph: {place}: '{code.co_name}' has a `yield`; a traced program cannot be left and entered again. "
            "Collect results in a list or with weft.scan"
        )
    with _room_for(found):
        return _convert_node(copy.deepcopy(found), code, class_name, function.__globals__)


@contextlib.contextmanager
def _room_for(node: ast.AST) -> Iterator[None]:
    """Lets Python's functions call each other as deeply as going through a syntax tree takes: an `elif` is inside the
    one before it, and so will be what follows an early `return`."""
    depth, level = 0, [node]
    while level:
        depth += 1 + sum(isinstance(n, ast.If) for n in level)
        level = [child for parent in level for child in ast.iter_child_nodes(parent)]
    limit = sys.getrecursionlimit()
    sys.setrecursionlimit(limit + _FRAMES * depth)
    try:
        yield
    finally:
        sys.setrecursionlimit(limit)


_FRAMES = 16  # of Python for each level of a syntax tree


def facts(function: types.FunctionType) -> list[Fact]:
    """What the conversion finds out about the control flow of a function."""
    found, class_name = find_function(function)
    with _room_for(found):
        node = _as_statement(copy.deepcopy(found), class_name)
        return convert_node(node, list(function.__code__.co_freevars), function.__globals__).facts


def _as_statement(node: Any, class_name: str | None) -> ast.FunctionDef:
    """A function without what its definition has evaluated, and with the names that its class gave."""
    if isinstance(node, ast.Lambda):
        body: ast.stmt = ast.copy_location(ast.Return(node.body), node.body)
        node = ast.copy_location(ast.FunctionDef("_lambda", node.args, [body], []), node)
    assert isinstance(node, ast.FunctionDef)
    _strip(node)
    if class_name is not None:
        _Mangle(class_name).visit(node)
    return node


def _convert_node(node: Any, code: types.CodeType, class_name: str | None, space: dict[str, Any]) -> _Converted:
    node = _as_statement(node, class_name)
    conversion = convert_node(node, list(code.co_freevars), space)
    text = ast.unparse(ast.fix_missing_locations(node))
    arguments = [ast.arg(n) for n in dict.fromkeys([*code.co_freevars, conversion.ag])]
    node.name = "_converted"  # its own name may be a global that it calls
    factory = ast.FunctionDef("_factory", ast.arguments([], arguments, None, [], [], None, []), [node, ast.Pass()], [])
    module = ast.fix_missing_locations(ast.Module([ast.copy_location(factory, node)], []))
    compiled = compile(module, code.co_filename, "exec", dont_inherit=True, flags=code.co_flags & _FUTURES)
    outer = _child(compiled, "_factory")
    new = _rename(_child(outer, node.name), code, conversion.synthetic)
    _remember(new)
    return _Converted(new, text, code)


_FUTURES = 0x1000000  # from __future__ import annotations


def _strip(node: ast.FunctionDef) -> None:
    """Takes away what the original function has evaluated already."""
    node.decorator_list, node.returns = [], None
    a = node.args
    a.defaults = [ast.copy_location(ast.Constant(None), d) for d in a.defaults]
    a.kw_defaults = [ast.copy_location(ast.Constant(None), d) if d is not None else None for d in a.kw_defaults]
    for arg in [*a.posonlyargs, *a.args, *a.kwonlyargs, a.vararg, a.kwarg]:
        if arg is not None:
            arg.annotation = None


class _Mangle(ast.NodeTransformer):
    """Private names (__x) of a method, as the class would have made them."""

    def __init__(self, class_name: str):
        self._prefix = "_" + class_name.lstrip("_")

    def _name(self, name: str) -> str:
        private = name.startswith("__") and not name.endswith("__") and self._prefix != "_"
        return self._prefix + name if private else name

    def visit_Name(self, node: ast.Name) -> ast.Name:
        node.id = self._name(node.id)
        return node

    def visit_Attribute(self, node: ast.Attribute) -> ast.Attribute:
        self.generic_visit(node)
        node.attr = self._name(node.attr)
        return node

    def visit_arg(self, node: ast.arg) -> ast.arg:
        node.arg = self._name(node.arg)
        return node

    def visit_ClassDef(self, node: ast.ClassDef) -> ast.ClassDef:
        return node


def _child(code: types.CodeType, name: str) -> types.CodeType:
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType) and constant.co_name == name:
            return constant
    raise AssertionError(name)


def _rename(code: types.CodeType, original: types.CodeType, synthetic: set[str]) -> types.CodeType:
    """Gives functions that conversion made the name of the function that the user wrote, for tracebacks and places."""

    def walk(c: types.CodeType, name: str, qualname: str) -> types.CodeType:
        constants: list = []
        for constant in c.co_consts:
            if isinstance(constant, types.CodeType):
                inner = constant.co_name
                if inner in synthetic:
                    constant = walk(constant, name, qualname)
                else:
                    constant = walk(constant, inner, f"{qualname}.<locals>.{inner}")
            constants.append(constant)
        return c.replace(co_name=name, co_qualname=qualname, co_consts=tuple(constants))

    return walk(code, original.co_name, original.co_qualname)


def _remember(code: types.CodeType) -> None:
    _made[id(code)] = code
    for constant in code.co_consts:
        if isinstance(constant, types.CodeType):
            _remember(constant)


# --- What converted code calls ----------------------------------------------------------------------------------------


def callee(function: Any, may_link: bool = False) -> Any:
    """What converted code calls in place of a function: itself converted if a user wrote it, Weft's version of Python's
    own (print, range ...), otherwise the function. `may_link`: what makes its arguments may choose containers."""
    found = _callee(function)
    return functools.partial(_settled, found) if (may_link or aliases.any_links()) and _may_write(found) else found


def _may_write(function: Any) -> bool:
    """Whether what a function writes is not seen by itself, as converted functions see it."""
    if type(function) is types.MethodType:
        function = function.__func__
    if type(function) is types.FunctionType:
        return not is_converted(function) and not function.__code__.co_filename.startswith(PACKAGE)
    return id(function) not in _READERS  # not by hash: that may be the user's, and need numbers


_READERS = frozenset(
    map(id, (len, abs, isinstance, getattr, hasattr, type, id, repr, super, locals, vars, dir, eval, exec, globals))
)


def _settled(function: Callable, /, *args: Any, **kwargs: Any) -> Any:
    """Calls a function that may write to containers."""
    result = function(*args, **kwargs)
    del args, kwargs
    aliases.settle()
    return result


def _callee(function: Any) -> Any:
    kind = type(function)
    if kind is types.FunctionType:
        return _callee_function(function)
    if kind is types.BuiltinFunctionType or kind is type:
        try:
            if kind is types.BuiltinFunctionType:
                method = METHODS.get((type(function.__self__), function.__name__))
                if method is not None:
                    return functools.partial(method, function.__self__)
            if function in _PYTHON_CALLERS:
                return functools.partial(_call_with_converted, function)
            return OVERLOADS.get(function, function)
        except TypeError:  # not hashable
            return function
    if kind is types.MethodType:
        inner = function.__func__
        if type(inner) is types.FunctionType:
            new = _callee_function(inner)
            return function if new is inner else types.MethodType(new, function.__self__)
        return function
    if kind is functools.partial:
        return functools.partial(_callee(function.func), *function.args, **function.keywords)
    if isinstance(function, type):
        return function
    call = inspect.getattr_static(kind, "__call__", None)
    if type(call) is types.FunctionType:
        new = _callee_function(call)
        if new is not call:
            return types.MethodType(new, function)
    return function


def _callee_function(function: types.FunctionType) -> Any:
    code = function.__code__
    if id(code) in _made or id(code) in _left_alone:
        return function
    file = code.co_filename
    if file.startswith(PACKAGE):
        if function.__module__ in _CALLERS:
            return functools.partial(_call_with_converted, function)
        return function
    if id(code) in _refused or not is_users(file):
        return function
    if code.co_flags & (0x20 | 0x80 | 0x200):  # generators and coroutines: Python's
        return function
    try:
        return convert(function)
    except SourceError:
        return function


def _call_with_converted(function: Callable, *args: Any, **kwargs: Any) -> Any:
    """Calls a function of Weft that calls functions: those are converted."""
    return function(*map(_argument, args), **{k: _argument(v) for k, v in kwargs.items()})


def _argument(value: Any) -> Any:
    if type(value) in (types.FunctionType, types.MethodType, functools.partial):
        return callee(value)
    if type(value) in (list, tuple) and value and all(callable(v) for v in value):
        return type(value)(map(_argument, value))
    return value


operators.callee = membership.callee = callee
traced_calls.tell(aliases)
assert sys.version_info >= (3, 11)

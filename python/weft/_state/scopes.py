"""What references hold while functions are traced.

Each function that is being traced has a scope. A reference is *bound* in a scope that says what it holds there: in
the one in which it was made, and in those of functions that transforms have made take its contents as an argument and
return them (weft._state.sites). Outside of all it holds an array.

A function that finds a reference unbound may read it as far as values of outer functions may be read. To change it, the
transform has to know: Unbound goes up to it, and it traces the function once more with the reference bound.
"""

from __future__ import annotations

import threading
from typing import Any

from .. import _weft
from .._core import traced_calls
from .._core import tree as _tree
from .._core.errors import not_implemented, unexpected_tracer, value_error


class Site:
    """A call of a transform, which binds references in what it traces. `written`: the ids of those that changed, with
    the
    line where, if the transform differentiates."""

    def __init__(self, kind: str, differentiates: bool = False):
        self.kind, self.differentiates = kind, differentiates
        self.written: dict[int, str] = {}


class Scope:
    """Of one function that is being traced."""

    __slots__ = ("bound", "kind", "left", "name", "open", "site", "touched")

    def __init__(self, name: str, kind: str):
        self.name, self.kind = name, kind
        self.bound: dict[int, tuple[Any, Any]] = {}  # by id: the reference, and what it holds
        self.site: Any = None
        self.touched: set[int] = set()
        self.left: dict[int, Any] = {}  # by id: objects that the function changes in another way than references
        self.open = True

    def bind(self, ref: Any, value: Any) -> None:
        self.bound[id(ref)] = (ref, value)

    def value(self, ref: Any) -> Any:
        return self.bound[id(ref)][1]


class Changed:
    """What a function leaves to its caller besides its result and what references hold, as a container: of objects
    that change (as_jax/boxes.py) what they take. Each has

    - `_place()`: the reference by which a jitted function takes it for an argument, or None,
    - `_leave()`: the tree of arrays that it leaves, called once at the end of the function,
    - `_take(tree)`: called outside of it with that tree.
    """

    def __init__(self, keys: tuple[Any, ...], trees: list[Any]):
        self.keys, self.trees = keys, trees


_tree.register(Changed, lambda c: (list(c.trees), c.keys), lambda keys, trees: Changed(keys, list(trees)))


class _Itself:
    """An object as a key: equal to itself alone."""

    def __init__(self, of: Any):
        self.of = of

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Itself) and other.of is self.of

    def __hash__(self) -> int:
        return id(self.of)


def leave(scope: Scope | None, slots: list[Any]) -> Changed:
    """What the function of this scope leaves; `slots`: references that stand for those among its arguments."""
    keys, trees = [], list[Any]()
    assert scope is not None
    for changed in list(scope.left.values()):
        place = changed._place()
        number = next((i for i, slot in enumerate(slots) if slot is place), None)
        keys.append(_Itself(changed) if number is None else number)
        trees.append(changed._leave())
    scope.left.clear()
    return Changed(tuple(keys), trees)


def take(changed: Changed, given: list[Any]) -> None:
    """Changes the caller's objects; `given`: the references among the arguments."""
    for key, tree in zip(changed.keys, changed.trees):
        (key.of if isinstance(key, _Itself) else given[key]._of)._take(tree)


class Unbound(BaseException):
    """A reference is used in a function that does not take its contents yet; for the site of that function.
    `backward`: a
    backward rule may change it, so that the site has to say what it holds then. `inlined`: it may change that of the
    caller, so that the site, a jitted function, has to be a part of its caller."""

    def __init__(self, ref: Any, site: Any, backward: bool = False, inlined: bool = False):
        super().__init__("a reference is not bound")
        self.ref, self.site, self.backward, self.inlined = ref, site, backward, inlined


class _Thread(threading.local):
    def __init__(self) -> None:
        # Those of functions that were being traced before the first reference was made: none of them uses one.
        self.scopes = [Scope("", "") for _ in traced_calls.arguments()]


_thread = _Thread()


def start() -> None:
    """This thread makes the first reference."""
    _thread.__init__()  # type: ignore[misc]


def begin(name: str, kind: str) -> None:
    """A function is traced from here on."""
    _thread.scopes.append(Scope(name, kind))


def end() -> None:
    """Its trace is over."""
    scope = _thread.scopes.pop()
    scope.open = False
    scope.bound.clear()


def here() -> Scope | None:
    """The scope of the innermost function that is being traced."""
    return _thread.scopes[-1] if _thread.scopes else None


def usable(ref: Any) -> bool:
    """Whether a reference may be used here: it was made outside of all functions, or in one that is being traced, or a
    rule that is being traced got it, which may run after the trace in which it was made."""
    scopes = _thread.scopes
    return ref._home is None or ref._home in scopes or any(id(ref) in s.bound for s in scopes if _of_a_rule(s))


def _of_a_rule(scope: Scope) -> bool:
    return isinstance(scope.site, Site) and scope.site.kind in ("custom_jvp", "custom_vjp")


def read(ref: Any) -> Any:
    """What it holds here."""
    scope = _locate(ref, writing=False)
    return ref._value if scope is None else scope.value(ref)


def write(ref: Any, value: Any) -> None:
    """From here on it holds `value`."""
    scope = _locate(ref, writing=True)
    if scope is None:
        ref._value = value
        return
    if ref._apart and _weft.is_inexact(ref.dtype):
        value = _weft.bind_elementwise("stop_gradient", (value,), {})
    scope.bind(ref, value)
    if isinstance(scope.site, Site):
        moving = any(isinstance(s.site, Site) and s.site.differentiates for s in _thread.scopes)
        scope.site.written[id(ref)] = _weft.user_stack().partition("\n")[0].strip() if moving else ""


def differentiating(ref: Any) -> Any:
    """The site of the innermost reverse mode around, where a reference was made outside of it; None where there is
    none."""
    for scope in reversed(_thread.scopes):
        if scope is ref._home:
            return None
        if isinstance(scope.site, Site) and scope.site.differentiates:
            return scope.site
    return None


def stands_for_argument(ref: Any) -> Any:
    """The site of the jitted function in which a reference stands for one among its arguments; None where it does
    not."""
    home = ref._home
    slots = getattr(home.site, "slots", ()) if home in _thread.scopes else ()
    return home.site if any(ref is own for own in slots) else None


def differentiated_around(ref: Any) -> bool:
    """Whether the function in which a reference was made is part of one that is differentiated."""
    return any(
        isinstance(s.site, Site) and s.site.differentiates for s in _thread.scopes[: _thread.scopes.index(ref._home)]
    )


def _locate(ref: Any, writing: bool) -> Scope | None:
    """The scope that says what it holds; None outside of all."""
    scopes, key = _thread.scopes, id(ref)
    at = len(scopes) - 1
    while at >= 0 and key not in scopes[at].bound:
        at -= 1
    if at < 0 and ref._home is not None:
        where = f"inside '{ref._home.name}' ({ref._home.kind})"
        raise unexpected_tracer(
            f"a reference escaped: {ref._type} made {where}{ref._line}, was used after the trace of that function had "
            "ended, or in another thread. Return ref[...], what it holds, instead of storing the reference outside"
        )
    for scope in scopes[at + 1 :]:
        # The program of a jitted function is for other calls, too, when the reference holds something else.
        if writing or scope.kind == "jit":
            if scope.site is None:
                _refuse(ref, scope)
            raise Unbound(ref, scope.site)
    if at < 0:
        return None
    scopes[at].touched.add(key)
    return scopes[at]


def _refuse(ref: Any, scope: Scope) -> None:
    made = f"a reference of type {ref._type} that was made outside of it{ref._line}"
    what = f"{scope.kind}: '{scope.name}' changes {made}"
    if scope.kind == "vmap":
        raise value_error(
            f"{what}, and is mapped over several values at once. Make the reference an argument that is mapped, or sum "
            "up the results outside"
        )
    raise not_implemented(f"{what}, which {scope.kind} cannot follow; return the new contents and write them outside")

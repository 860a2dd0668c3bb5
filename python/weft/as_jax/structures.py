"""JAX's words for what a loop, its branches or a rule return in another structure, or of other types, than they have
to, and for arguments of another structure."""

from __future__ import annotations

import inspect
from collections.abc import Callable, Iterator, Sequence
from typing import Any

from .. import _weft
from .._core import tree as _tree
from .prefixes import of_prefix
from .treedefs import PyTreeDef


def _metadata(tree: Any) -> Any:
    """The static data of a container; of a dict its keys."""
    if tree.type is dict:
        return tuple(tree.entries())
    found = PyTreeDef(tree).node_data()
    return None if found is None else found[1]


def _difference(path: str, ours: Any, theirs: Any) -> Iterator[tuple[str, str, str, str]]:
    """Where two structures differ: the path, what is there in each, and in what way that is something else."""
    if ours.is_leaf() and theirs.is_leaf():
        return
    if ours.type is not theirs.type:
        a, b = (f"a {'pytree leaf' if tree.is_leaf() else tree.type}" for tree in (ours, theirs))
        yield path, a, b, "their Python types differ"
        return
    count = [tree.num_children for tree in (ours, theirs)]
    if count[0] != count[1] and ours.type in (tuple, list):
        a, b = (f"a {ours.type.__name__} of length {n}" for n in count)
        yield path, a, b, "the lengths do not match"
        return
    if count[0] != count[1]:
        a, b = (f"a {ours.type} with {n} child{'ren' * (n > 1)}" for n in count)
        keys = [ours.entries(), theirs.entries()]
        alone = " ".join(repr(key) for key in (*keys[0], *keys[1]) if (key in keys[0]) != (key in keys[1]))
        apart = f", with the symmetric difference of key sets: {{{alone}}}" if alone else ""
        yield path, a, b, f"the numbers of children do not match{apart}"
        return
    said = [_metadata(tree) for tree in (ours, theirs)]
    if said[0] != said[1]:
        a, b = (f"a {ours.type} with pytree metadata {data}" for data in said)
        yield path, a, b, "the pytree node metadata does not match"
        return
    for entry, one, other in zip(ours.entries(), ours.children(), theirs.children()):
        yield from _difference(f"{path}[{entry!r}]", one, other)


def _listed(found: Sequence[str]) -> str:
    if len(found) == 1:
        return f"{found[0][0].upper()}{found[0][1:]}.\n"
    return ";\n".join(f"  * {line}" for line in found) + ".\n"


def _named(function: Callable[..., Any], at: int) -> str:
    """What a function calls the argument that is carried."""
    try:
        return list(inspect.signature(function).parameters)[at]
    except (TypeError, ValueError, IndexError):
        return ""


def _type(kind: tuple) -> str:
    shape, dtype = kind[:2]
    return f"{dtype}[{','.join(map(str, shape))}]"


def _why(a: tuple, b: tuple) -> str:
    reasons = ["the dtypes do not match"] * (a[1] != b[1]) + ["the shapes do not match"] * (tuple(a[0]) != tuple(b[0]))
    return ", and ".join(reasons)


def of_carry(what: str, function: Any, at: int, trees: Any, kinds: Any = None) -> str:
    """Of what a loop carries: `trees`, the structures before a step and after it, and `kinds`, their types."""
    name = _named(function, at)
    component = lambda path: f"the input carry component {name}{path}" if path else f"the input carry {name}".rstrip()
    if kinds is None:
        found = [
            f"{component(path)} is {a} but the corresponding component of the carry output is {b}, so {why}"
            for path, a, b, why in _difference("", *trees)
        ]
        head = "the same pytree structure"
    else:
        found = [
            f"{component(path)} has type {_type(a)} but the corresponding output carry component has type {_type(b)}, "
            f"so {_why(a, b)}"
            for path, a, b in zip(_tree.path_texts(trees[0]), *kinds)
            if tuple(a[0]) != tuple(b[0]) or a[1] != b[1]
        ]
        head = "equal types"
    if not found:
        return ""
    body = "scan body function" if what == "scan" else f"{what} body function"
    return f"{body} carry input and carry output must have {head}, but they differ:\n\n{_listed(found)}"


def of_branches(what: str, trees: Sequence[Any], kinds: Sequence[Any] | None = None) -> str:
    """Of the results of branches."""
    names = ["false_fun", "true_fun"] if what == "cond" else [f"branch {i}" for i in range(len(trees))]
    order = [1, 0] if what == "cond" else range(len(trees))
    first, *others = order
    for other in others:
        second = names[other].replace(" ", "")
        if kinds is None:
            found = [
                f"{names[first]} output{f' at path {path}' * bool(path)} is {a} but {second} "
                f"output{f' at path {path}' * bool(path)} is {b}, so {why}"
                for path, a, b, why in _difference("", trees[first], trees[other])
            ]
            if found:
                lines = ";\n".join(found)
                return f"{what} branch outputs must have the same pytree structure, but they differ:\n\n{lines}.\n"
        else:
            found = [
                f"the output of {names[first]}{f' at path {path}' * bool(path)} has type {_type(a)} but the "
                f"corresponding output of {second} has type {_type(b)}, so {_why(a, b)}"
                for path, a, b in zip(_tree.path_texts(trees[first]), kinds[first], kinds[other])
                if tuple(a[0]) != tuple(b[0]) or a[1] != b[1]
            ]
            if found:
                return f"{what} branches must have equal output types but they differ:\n\n{_listed(found)}"
    return ""


def of_condition(tree: Any, kinds: Sequence[tuple]) -> str:
    """Of what the condition of a loop returns."""
    got = f"pytree {PyTreeDef(tree)}"
    if tree.is_leaf():
        got = f"output type(s) [{', '.join(f'ShapedArray({_type(kind)})' for kind in kinds)}]"
    return f"cond_fun must return a boolean scalar, but got {got}."


def of_pair(tree: Any, kinds: Sequence[tuple]) -> str:
    """Of what the body of a scan returns."""
    got = _type(kinds[0]) if tree.is_leaf() else PyTreeDef(tree)
    return f"scan body output must be a pair, got {got}."


def _shown(value: Any, text: Callable[[Any], str]) -> str:
    """A tree with a text in the place of each leaf."""
    leaves, tree = _tree.flatten(value)

    class Leaf(str):
        __repr__ = str.__str__

    return repr(_tree.unflatten(tree, [Leaf(text(leaf)) for leaf in leaves]))


def _rule_name(rule: Any) -> str:
    return getattr(rule, "__name__", str(rule))


def of_mapped_result(axis_name: str | None) -> str:
    """Of a mapped result whose out_axes is None."""
    named = f" (axis_name={axis_name})" if axis_name else ""
    return f"vmap has mapped output{named} but out_axes is None; at vmap out_axes"


def of_no_pair(rule: Any, name: str, value: Any) -> str:
    """Of a rule of custom_jvp that returns no pair."""
    return (
        f"Custom JVP rule {_rule_name(rule)} for function {name} must produce a pair (list or tuple of length two) "
        f"representing primal and tangent outputs, but got {value}"
    )


def of_pair_of_trees(rule: Any, name: str, trees: Sequence[Any]) -> str:
    """Of a rule of custom_jvp whose value and tangent differ."""
    return (
        f"Custom JVP rule {_rule_name(rule)} for function {name} must produce primal and tangent outputs with equal "
        f"container (pytree) structures, but got {PyTreeDef(trees[0])} and {PyTreeDef(trees[1])} respectively."
    )


def of_rule(what: str, rule: Any, name: str, value: Any, trees: Sequence[Any], results: Sequence[tuple]) -> str:
    """Of a rule whose value is not what the function returns."""
    function = _tree.unflatten(trees[1], list(map(_type, results)))
    given = _shown(value, lambda x: _type(_weft.abstract(x)) if _weft.is_operand(x) else repr(x))
    expected, same = _shown(function, str), trees[0] == trees[1]
    kind = "shapes/dtypes" if same else "container/pytree structure"
    if what == "custom_jvp":
        also = "with leaves of the same shape/dtype" if same else "of the same container/pytree structure"
        role, equal = (
            "JVP",
            f"(equal in value to the output of the {what}-decorated function {name}, and in particular {also})",
        )
    else:
        role = "VJP fwd"
        equal = (
            f"(equal to the output of the {what}-decorated function {name}) and the second element represents "
            "residuals (i.e. values stored from the forward pass for use on the backward pass)"
        )
    doubt = f" (got fwd output type {given} which doesn't match the primal output type {expected})"
    doubt *= same and what == "custom_vjp"
    which = "JVP rule" if what == "custom_jvp" else "fwd rule"
    of = " of" * same
    return (
        f"Custom {role} rule {_rule_name(rule)} for function {name} must produce a pair (list or tuple of length two) "
        f"where the first element represents the primal output {equal}, but instead the {which} output's first element "
        f"had {kind}{of}:\n    {given}\nwhile the {what}-decorated function {name} had output {kind}{of}:\n"
        f"    {expected}.{doubt}"
    )


def of_jvp(trees: Sequence[Any]) -> str:
    """Of tangents that are not as the arguments."""
    return (
        "primal and tangent arguments to jax.jvp must have the same tree structure; primals have tree structure "
        f"{PyTreeDef(trees[0])} whereas tangents have tree structure {PyTreeDef(trees[1])}."
    )


def of_linearized(trees: Sequence[Any]) -> str:
    """Of tangents for what linearize gives."""
    return f"expected {PyTreeDef(trees[0])}, got {PyTreeDef(trees[1])}"


def of_cotangent(trees: Sequence[Any]) -> str:
    """Of a cotangent that is not as the result."""
    lines = "\n".join(
        f"  * out{path} was {a} in the original output, but {b} here, so {why}."
        for path, a, b, why in _difference("", *trees)
    )
    return (
        "unexpected tree structure of argument to vjp function: unexpected tree structure.\n\nThe argument to a VJP "
        "function returned by `jax.vjp` must match the pytree\nstructure of the differentiated function.\n\nBut the "
        f"tree structures differ:\n{lines}"
    )


def of_compiled(trees: Sequence[Any]) -> str:
    """Of arguments that are not as those that a program was compiled for."""
    found: list[str] = []
    for name, ours, theirs in zip(("args", "kwargs"), *(tree.children() for tree in trees)):
        found += [
            f"    * at {name}{path}, seen {a.removeprefix('a ')} but now given {b.removeprefix('a ')}, so {why}"
            for path, a, b, why in _difference("", ours, theirs)
        ]
    return (
        "Function compiled with input pytree does not match the input pytree it was called with. There are "
        f"{len(found)} mismatches, including:\n" + "\n".join(found)
    )


def of_backward_rule(trees: Sequence[Any]) -> str:
    """Of a backward rule whose cotangents are not as the arguments."""
    return (
        "Custom VJP bwd rule must produce an output with the same container (pytree) structure as the args tuple of "
        "the primal function, and in particular must produce a tuple of length equal to the number of arguments to "
        f"the primal function, but got bwd output structure {PyTreeDef(trees[1])} for primal input structure "
        f"{PyTreeDef(trees[0])}."
    )


_SAY: dict[str, Callable[..., str]] = {
    "backward rule": of_backward_rule,
    "branches": of_branches,
    "carry": of_carry,
    "compiled": of_compiled,
    "condition": of_condition,
    "jvp": of_jvp,
    "linear_transpose": lambda trees: "cotangent tree does not match function output",
    "linearize": of_linearized,
    "mapped result": of_mapped_result,
    "no pair": of_no_pair,
    "pair": of_pair,
    "pair of trees": of_pair_of_trees,
    "prefix": of_prefix,
    "rule": of_rule,
    "vjp": of_cotangent,
}


def said(facts: dict[str, Any]) -> str:
    """JAX's words for what an exception knows of two structures."""
    given = dict(facts)
    kind = given.pop("kind")
    return _SAY[kind](**given) if kind in _SAY else ""

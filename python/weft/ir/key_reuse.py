"""Whether a program uses a random key twice: weft.ir.check_key_reuse.

A program is traced with marks where keys are used (_key_uses.py), and followed operation by operation: each key has
a root, the operation or parameter that made it, and each root knows which of its elements have been used. What an
operation does to keys is its signature, of a table; of one that is not in it every key counts as used.
"""

from __future__ import annotations

import dataclasses
import math
from collections.abc import Callable, Iterator, Sequence
from typing import Any, NamedTuple

import numpy as np

from .. import _key_uses as _uses
from .._core import ir_view as _view
from .._core.errors import value_error
from .._core.ir_view import Literal, Operation, Value
from .._core.tracing import Flat, flat_function, trace_flat
from ..errors import KeyReuseError
from ..program import IR

__all__ = ["Forward", "KeyReuseSignature", "Sink", "Source", "check_key_reuse"]

_Mask = Any  # True, False, or an array of booleans


class _Place:
    """An operand or result, and which of its elements."""

    __slots__ = ("idx", "mask")
    idx: int
    mask: _Mask

    def __init__(self, idx: int, mask: _Mask = True):
        if isinstance(mask, np.ndarray):
            if mask.all() or not mask.any():
                mask = bool(mask.any())
            else:
                mask = mask.copy()
                mask.flags.writeable = False
        object.__setattr__(self, "idx", int(idx))
        object.__setattr__(self, "mask", mask if isinstance(mask, np.ndarray) else bool(mask))

    def __setattr__(self, name: str, value: Any) -> None:
        raise value_error(f"{type(self).__name__} does not change")

    def _key(self) -> tuple[Any, ...]:
        mask = self.mask
        return type(self).__name__, self.idx, np.shape(mask), tuple(np.ravel(mask).tolist())

    def __eq__(self, other: object) -> bool:
        return isinstance(other, _Place) and self._key() == other._key()

    def __hash__(self) -> int:
        return hash(self._key())

    def __repr__(self) -> str:
        return f"{type(self).__name__}({self.idx}{'' if self.mask is True else f', {self.mask}'})"


class Sink(_Place):
    """An operand whose keys an operation uses.

    Args:
        idx: the number of the operand.
        mask: which of its elements, an array of booleans; True: all.

    Example:
        >>> weft.ir.Sink(0) == weft.ir.Sink(0, True)
        True
    """

    __slots__ = ()


class Source(_Place):
    """A result that has keys which nothing has used.

    Args:
        idx: the number of the result.
        mask: which of its elements, an array of booleans; True: all.

    Example:
        >>> weft.ir.Source(1)
        Source(1)
    """

    __slots__ = ()


class Forward(NamedTuple):
    """A result that has the keys of an operand.

    Attributes:
        in_idx: the number of the operand.
        out_idx: the number of the result.

    Example:
        >>> weft.ir.Forward(0, 1)
        Forward(0, 1)
    """

    in_idx: int
    out_idx: int

    def __repr__(self) -> str:
        return f"Forward({self.in_idx}, {self.out_idx})"


class KeyReuseSignature:
    """What an operation or a program does to random keys: a set of Sink, Source and Forward. weft.ir.check_key_reuse
    gives that of a program.

    Args:
        *parts: what is in it.

    Example:
        >>> weft.ir.KeyReuseSignature(weft.ir.Source(0), weft.ir.Sink(0))
        KeyReuseSignature(Sink(0), Source(0))
    """

    def __init__(self, *parts: Sink | Source | Forward):
        self._parts = frozenset(part for part in parts if isinstance(part, Forward) or np.any(part.mask))
        self._constants: frozenset[bytes] = frozenset()  # keys that stand in the program itself, which it uses
        self._by: dict[int, str] = {}  # what uses the operands, by their numbers

    def _all(self, kind: type) -> Iterator[Any]:
        return (part for part in self._parts if isinstance(part, kind))

    @property
    def sinks(self) -> Iterator[Sink]:
        """The operands whose keys are used.

        Example:
            >>> list(weft.ir.KeyReuseSignature(weft.ir.Sink(0)).sinks)
            [Sink(0)]
        """
        return self._all(Sink)

    @property
    def sources(self) -> Iterator[Source]:
        """The results with keys that nothing has used.

        Example:
            >>> list(weft.ir.KeyReuseSignature(weft.ir.Sink(0)).sources)
            []
        """
        return self._all(Source)

    @property
    def forwards(self) -> Iterator[Forward]:
        """The results with keys of an operand.

        Example:
            >>> list(weft.ir.KeyReuseSignature(weft.ir.Forward(0, 0)).forwards)
            [Forward(0, 0)]
        """
        return self._all(Forward)

    def __eq__(self, other: object) -> bool:
        return isinstance(other, KeyReuseSignature) and self._parts == other._parts

    def __hash__(self) -> int:
        return hash(self._parts)

    def __repr__(self) -> str:
        order = (Sink, Source, Forward)
        parts = sorted(
            self._parts,
            key=lambda part: (order.index(type(part)), tuple(part)[:2] if isinstance(part, Forward) else (part.idx,)),
        )
        return f"KeyReuseSignature({', '.join(map(repr, parts))})"


_NOTHING = KeyReuseSignature()
_SAME = KeyReuseSignature(Forward(0, 0))


def _slice(op: Operation) -> KeyReuseSignature:
    """A part of an array of keys is taken out of it: who takes it again uses it twice."""
    used = np.zeros(_shape(op.operands[0]) or (), bool)
    parts = zip(op.attributes["start"], op.attributes["limit"], op.attributes["strides"], strict=True)
    used[tuple(slice(int(start), int(limit), int(step)) for start, limit, step in parts)] = True
    return KeyReuseSignature(Sink(0, used), Source(0))


def _joined(op: Operation) -> KeyReuseSignature:
    if len(op.operands) == 1:
        return _SAME
    return KeyReuseSignature(*map(Sink, range(len(op.operands))), Source(0))


def _marked(op: Operation) -> KeyReuseSignature:
    what = _mark(op)
    return KeyReuseSignature(Sink(0)) if what and not what.startswith(_ASSERTED) else _NOTHING


# What operations do to keys, by name: a signature, or a function of the operation that gives one.
SIGNATURES: dict[str, KeyReuseSignature | Callable[[Operation], KeyReuseSignature]] = {
    **dict.fromkeys(
        ("broadcast", "reshape", "convert", "transpose", "reverse", "gather", "dynamic_slice", "stop_gradient"), _SAME
    ),
    **dict.fromkeys(("optimization_barrier", "reshard", "shard", "pvary", "checkpoint_name", "copy"), _SAME),
    **dict.fromkeys(("random_unwrap", "eq", "ne"), _NOTHING),
    "random_wrap": KeyReuseSignature(Source(0)),
    "dynamic_update_slice": KeyReuseSignature(Sink(1), Forward(0, 0)),
    "scatter": KeyReuseSignature(Sink(2), Forward(0, 0)),
    # The key that is chosen is one to be used; those that it is chosen from are not used otherwise.
    "select": KeyReuseSignature(Sink(1), Sink(2), Source(0)),
    "slice": _slice,
    "concatenate": _joined,
    "debug_print": _marked,
}

_ASSERTED = "assert "


def _mark(op: Operation) -> str:
    """What a mark says of its operand; empty of other operations."""
    text = str(op.attributes.get("format", "")) if op.name == "debug_print" else ""
    return text[len(_uses.MARK) :].removesuffix("{}") if text.startswith(_uses.MARK) else ""


def assert_used(key: Any, used: _Mask = True) -> None:
    """In a program that is checked: an AssertionError where other elements of the key have been used so far."""
    if _uses.here.marks:
        bits = "".join("01"[int(on)] for on in np.ravel(used))
        _uses.mark(f"{_ASSERTED}{bits}", key)


def _is_key(x: Value | Literal) -> bool:
    return str(x.type).startswith("key")


def _shape(x: Value | Literal) -> tuple[int, ...] | None:
    """None where a size is open."""
    shape = x.array.shape if isinstance(x, Literal) else x.type.shape
    return tuple(shape) if all(isinstance(size, int) for size in shape) else None


@dataclasses.dataclass(eq=False)
class _Root:
    """Keys that are made at one place, and which of them have been used."""

    used: _Mask = False
    by: str = ""  # what used them last, and where
    constant: bytes | None = None

    def use(self, mask: _Mask, by: str) -> str | None:
        """Uses some; where one of them has been used, what by."""
        if isinstance(mask, np.ndarray) and np.ndim(self.used) and np.shape(self.used) != mask.shape:
            mask = bool(mask.any())
        if np.any(np.logical_and(self.used, mask)):
            return self.by
        self.used, self.by = np.logical_or(self.used, mask), by
        return None


class _Alias(NamedTuple):
    """Keys of a root. `at`: which of its elements each is, by number; None: in the same order; whole: any."""

    root: _Root
    at: Any = None
    whole: bool = False

    def mask(self, mask: _Mask) -> _Mask:
        """A mask of these keys as one of the root's elements, in their order."""
        if self.whole or (self.at is None and not isinstance(mask, np.ndarray)) or not np.any(mask):
            return bool(np.any(mask))
        if self.at is None:
            return mask.ravel()
        at, count = self.at
        found = np.zeros(count, bool)
        found[at[np.broadcast_to(mask, at.shape)]] = True
        return found


# Operations whose results have an operand's elements in other places, as NumPy's functions.
def _moved(op: Operation, at: np.ndarray) -> np.ndarray | None:
    shape = _shape(op.results[0])
    if shape is None or op.name not in ("reshape", "broadcast", "transpose", "reverse", "convert"):
        return None
    if op.name == "reshape":
        return at.reshape(shape)
    if op.name == "broadcast":
        dims = list(op.attributes["dims"])
        return np.broadcast_to(
            at.reshape([at.shape[dims.index(d)] if d in dims else 1 for d in range(len(shape))]), shape
        )
    if op.name == "transpose":
        return at.transpose(next(iter(op.attributes.values())))
    return np.flip(at, tuple(op.attributes["dims"])) if op.name == "reverse" else at


class _Follower:
    """Follows the keys of one function."""

    def __init__(self, ir: IR):
        self._ir = ir
        self._env: dict[Value, _Alias] = {}
        self._constants: dict[bytes, _Root] = {}

    def _of(self, x: Value | Literal) -> _Alias:
        if isinstance(x, Value):
            return self._env.setdefault(x, _Alias(_Root()))
        data = repr(x).encode()
        return _Alias(self._constants.setdefault(data, _Root(constant=data)))

    def signature(self) -> KeyReuseSignature:
        """What the function does to keys."""
        view = self._ir._view
        parameters = {id(self._of(p).root): i for i, p in enumerate(view.parameters) if _is_key(p)}
        for op in view.operations:
            self._follow(op)
        parts: list[Any] = []
        by: dict[int, str] = {}
        for i, p in enumerate(view.parameters):
            if _is_key(p):
                used, shape = self._of(p).root.used, _shape(p)
                parts.append(
                    Sink(i, used.reshape(shape) if np.ndim(used) and shape is not None else bool(np.any(used)))
                )
                by[i] = self._of(p).root.by
        for i, x in enumerate(view.results):
            if _is_key(x):
                alias = self._of(x)
                if id(alias.root) in parameters:
                    parts.append(Forward(parameters[id(alias.root)], i))
                elif not np.any(alias.root.used):
                    parts.append(Source(i))
        found = KeyReuseSignature(*parts)
        found._by = by
        found._constants = frozenset(c for c, root in self._constants.items() if np.any(root.used))
        return found

    def _follow(self, op: Operation) -> None:
        keys = [x for x in (*op.operands, *op.results) if _is_key(x)]
        if not keys and not op.regions:
            return
        use = _view.region_use(op.name)
        operands = list(map(self._of, op.operands))
        asserted = _mark(op)
        if asserted.startswith(_ASSERTED):
            self._check(op, operands[0], asserted.removeprefix(_ASSERTED))
        if op.primitive not in SIGNATURES and op.regions:
            if use == _view.BRANCHES:
                results = self._apply(op, _of_branches(op), operands)
            elif op.name in ("scan", "while"):
                results = self._loop(op, operands)
            elif use in (_view.CALL, _view.WITH_RULES, _view.DEVICES):
                region = op.regions[1] if op.name == "custom_linear" and len(op.regions) > 1 else op.regions[0]
                results = self._apply(op, signature_of(region), operands)
            else:
                # Programs of derivatives compute again what has been computed; here each function is looked at alone.
                for region in op.regions:
                    signature_of(region)
                results = [_Alias(_Root()) for _ in op.results]
        else:
            results = self._apply(op, signature_of_operation(op), operands)
        for x, alias in zip(op.results, results, strict=True):
            if _is_key(x):
                self._env[x] = alias

    def _apply(self, op: Operation, signature: KeyReuseSignature, operands: Sequence[_Alias]) -> list[_Alias]:
        """What becomes of operands, and the results."""
        by = _name(op)
        for sink in sorted(signature.sinks, key=lambda sink: sink.idx):
            if not _is_key(op.operands[sink.idx]):
                continue
            alias = operands[sink.idx]
            if (before := alias.root.use(alias.mask(sink.mask), _placed(by, op))) is not None:
                raise _twice(op, f"{by}: the key (operand {sink.idx}) has been used before, by {before}")
        for data in signature._constants:
            root = self._constants.setdefault(data, _Root(constant=data))
            if (before := root.use(True, _placed(by, op))) is not None:
                raise _twice(
                    op, f"{by}: a key of the program (operand {len(op.operands)}) has been used before, by {before}"
                )
        results = [_Alias(_Root(True, _placed(by, op))) for _ in op.results]
        for source in signature.sources:
            results[source.idx] = _Alias(_Root(np.ravel(~source.mask) if np.ndim(source.mask) else not source.mask))
        for forward in signature.forwards:
            results[forward.out_idx] = _forwarded(op, operands[forward.in_idx], op.operands[forward.in_idx])
        return results

    def _check(self, op: Operation, alias: _Alias, bits: str) -> None:
        expected = np.array([bit == "1" for bit in bits])
        used, shape = alias.root.used, _shape(op.operands[0])
        if np.ndim(used) and alias.at is not None:
            used = used[alias.at[0]].ravel()
        if not np.all(np.ravel(used) == expected):
            raise AssertionError(f"of the keys {op.operands[0]} {used} have been used, expected {expected} of {shape}")

    def _loop(self, op: Operation, operands: list[_Alias]) -> list[_Alias]:
        """A loop as its trips, one after the other, until what is carried has come round."""
        carried = op.attributes["num_carry"]
        if op.name == "while":
            fixed, carry, mapped = operands[carried:], operands[:carried], []
            place = lambda c, f, m: [*c, *f]
        else:
            n = op.attributes["num_consts"]
            fixed, carry, mapped = operands[:n], operands[n : n + carried], operands[n + carried :]
            place = lambda c, f, m: [*f, *c, *m]
        functions = [(region, signature_of(region)) for region in op.regions]
        by = _placed(f"a trip of {op.name}", op)  # one object, which tells this loop from all others
        most = op.trips if op.trips is not None else carried + 2
        results = [*carry, *(_Alias(_Root()) for _ in op.results[carried:])]
        for trip in range(min(most, carried + 2)):
            given = place(carry, fixed, mapped if trip == 0 else [_Alias(_Root()) for _ in mapped])
            for i, (region, signature) in enumerate(functions):
                what = "condition" if op.name == "while" and i == 0 else "body"
                out = self._trip(op, region, signature, given, what, trip, by)
            results = [out[i] if i < len(out) else _Alias(_Root()) for i in range(len(op.results))]
            carry = results[:carried]
        return results

    def _trip(
        self,
        op: Operation,
        region: IR,
        signature: KeyReuseSignature,
        given: list[_Alias],
        what: str,
        trip: int,
        by: str,
    ) -> list[_Alias]:
        used = [(sink.idx, given[sink.idx], sink.mask) for sink in signature.sinks]
        constants = [(0, _Alias(self._constants.setdefault(c, _Root(constant=c))), True) for c in signature._constants]
        for i, alias, mask in [*used, *constants]:
            # In each trip a part of what is mapped is another one; all of them have been used when it ends.
            mask = alias.mask(mask if np.ndim(mask) and _shape(op.operands[i]) == mask.shape else bool(np.any(mask)))
            before = alias.root.use(mask, by)
            if before is by or (before is not None and trip):
                raise _twice(
                    op,
                    f"{op.name}: the {what} uses a key (operand {i}) that has been used before: in each trip it needs "
                    "another one",
                )
            if before is not None:
                within = signature._by.get(i, by).partition(" at ")[0]
                raise _twice(op, f"{within}: the key (operand {i}) has been used before, by {before}")
        results = [_Alias(_Root(True, op.name)) for _ in region._view.results]
        for source in signature.sources:
            results[source.idx] = _Alias(_Root())
        for forward in signature.forwards:
            results[forward.out_idx] = given[forward.in_idx]
        return results


def _forwarded(op: Operation, alias: _Alias, operand: Value | Literal) -> _Alias:
    shape = _shape(operand)
    if alias.whole or shape is None:
        return _Alias(alias.root, None, True)
    if op.regions or not op.results:
        return alias
    at, count = alias.at or (np.arange(math.prod(shape)).reshape(shape), math.prod(shape))
    moved = _moved(op, at)
    same = _shape(op.results[0]) == shape and op.name not in ("gather", "dynamic_slice")
    if moved is None:
        return alias if same else _Alias(alias.root, None, True)
    return _Alias(alias.root, (moved, count))


def _of_branches(op: Operation) -> KeyReuseSignature:
    """A key counts as used where one of the branches uses it."""
    signatures = list(map(signature_of, op.regions))
    sinks: dict[int, _Mask] = {}
    for sink in (sink for s in signatures for sink in s.sinks):
        sinks[sink.idx] = np.logical_or(sinks.get(sink.idx, False), sink.mask)
    same = set.intersection(*(set(s.forwards) for s in signatures))
    fresh = set.intersection(*({source.idx for source in s.sources} for s in signatures))
    found = KeyReuseSignature(
        *(Sink(i + 1, mask) for i, mask in sinks.items()),
        *map(Source, fresh),
        *(Forward(f.in_idx + 1, f.out_idx) for f in same),
    )
    found._constants = frozenset().union(*(s._constants for s in signatures))
    return found


def signature_of_operation(op: Operation) -> KeyReuseSignature:
    """What an operation without functions inside does to keys."""
    found = SIGNATURES.get(op.primitive)
    if found is None:
        return KeyReuseSignature(*(Sink(i) for i, x in enumerate(op.operands) if _is_key(x)))
    return found if isinstance(found, KeyReuseSignature) else found(op)


def signature_of(ir: IR) -> KeyReuseSignature:
    """What a program that has marks does to keys."""
    return _Follower(ir).signature()


def _name(op: Operation) -> str:
    mark = _mark(op)
    return f"random.{mark}" if mark else op.primitive


def _placed(by: str, op: Operation) -> str:
    at = op.location
    return f"{by} at {at.file}:{at.line}" if at.file else by


def _twice(op: Operation, message: str) -> KeyReuseError:
    stack = op.location.stack
    return KeyReuseError(message + (f"\n{stack}" if stack else ""))


# An axis of this name is bound around programs with marks: functions that are traced with them are not used elsewhere.
_AXIS = "uses of keys"


def marked(flat: Flat) -> IR:
    """The program of a function with marks."""
    out_tree = flat.out_tree
    try:
        with _uses.marks():
            traced = trace_flat(flat, "check_key_reuse", known=False, axes=[(_AXIS, 1, False)], concrete=False)
        return IR(traced.fn, traced.captures, flat.in_tree, flat.out_tree, traced.weak_results)
    finally:
        flat.out_tree = out_tree


def check_flat(flat: Flat) -> KeyReuseSignature:
    """What a flattened function does to keys; raises KeyReuseError."""
    return signature_of(marked(flat))


def check_key_reuse(fun: Callable[..., Any], *args: Any, **kwargs: Any) -> KeyReuseSignature:
    """Looks for random keys that a function uses twice. It is traced for that, and not run.

    A key is used by what draws numbers of it and by split, not by fold_in. A slice of an array of keys uses these keys
    and gives others, so that each may be taken out once; what is taken out at a computed place counts as all of the
    array. In a loop a key has to be another one in each trip. weft.random.clone gives a key that has not been used.
    Looked at are keys of dtype key; not words, nor keys of other generators than the default one.

    Args:
        fun: the function.
        *args: its arguments: arrays, numbers, or weft.ShapeDtype where only the type matters.
        **kwargs: its keyword arguments.

    Returns: KeyReuseSignature: what it does to keys among its arguments and results, each with its number.

    Raises:
        weft.errors.KeyReuseError: a key is used twice; the message says where.

    Example:
        >>> def f(key):
        ...     return weft.random.normal(key) + weft.random.uniform(key)
        >>> try:
        ...     weft.ir.check_key_reuse(f, weft.random.key(0))
        ... except weft.errors.KeyReuseError as error:
        ...     print(str(error).partition(",")[0])
        random.uniform: the key (operand 0) has been used before
        >>> weft.ir.check_key_reuse(weft.random.split, weft.random.key(0))
        KeyReuseSignature(Sink(0), Source(0))
    """
    return check_flat(flat_function(fun, args, kwargs))

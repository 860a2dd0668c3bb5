"""Shapes and dtypes without arrays."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, NamedTuple

import numpy as np

from .. import _weft
from .errors import not_implemented, type_error, value_error
from .names import belong_to
from .sums_of_devices import Sums, sums_of

if TYPE_CHECKING:
    from typing import Self

# The dtype of tangents of what has no derivative, integers for one, in JAX's types. No array of Weft's is of it.
FLOAT0 = np.dtype([("float0", np.void, 0)])


# What the type of a traced value says of where it lies (_sharding/typed.py, which comes later).
typed_sharding: Callable[[Any], Any] = lambda x: None


class ShapeDtype:
    """A shape and a dtype in place of an array, where only they matter: weft.make_ir, weft.eval_shape, callbacks.

    Args:
        shape: the dimensions: integers, weft.Dim or their text, such as "n" or "2*n+1".
        dtype: the dtype; float: the default float dtype.
        weak_type: whether it takes the dtype of what it meets, like a Python number.
        varying: inside shard_map, the axes of the mesh along which the value differs between devices.
        sharding: how the array lies on devices, for readers of the type; nothing is placed by it.
        memory_space: accepted, without effect: there is one memory.
        manual_axis_type: `varying` under JAX's name, as weft.typeof(x).mat gives it.

    Raises:
        TypeError: dtype is no dtype, or shape no sequence of sizes.
        NotImplementedError: manual_axis_type says of sums in parts.
        ValueError: a text is no dimension, or a dimension is negative.

    Example:
        >>> weft.ShapeDtype((3, 4), "float32")
        ShapeDtype((3, 4), float32)
        >>> weft.make_ir(lambda x: x.T)(weft.ShapeDtype(("n", 3))).out_types
        ['f32[3,n]']
    """

    __slots__ = ("shape", "dtype", "weak_type", "varying", "sharding")

    def __init__(
        self,
        shape: Sequence,
        dtype: Any = float,
        weak_type: bool = False,
        varying: Sequence[str] = (),
        *,
        sharding: Any = None,
        memory_space: Any = None,
        manual_axis_type: Any = None,
    ):
        del memory_space
        if manual_axis_type is not None:
            if manual_axis_type.unreduced or manual_axis_type.reduced:
                raise not_implemented(
                    f"{type(self).__name__}: manual_axis_type={manual_axis_type}: types of arguments and results say "
                    "of no sums in parts; give the axes along which values vary"
                )
            varying = sorted(manual_axis_type.varying)
        if dtype is None:
            raise value_error("ShapeDtype: dtype must be specified")
        if not isinstance(shape, Iterable):
            raise type_error(f"ShapeDtype: shape must be a tuple of sizes, got {shape!r}")
        self.shape = tuple(_weft.Dim(d) if isinstance(d, str) else d for d in shape)
        for d in self.shape:
            if not isinstance(d, (int, np.integer, _weft.Dim)):
                raise type_error(
                    f"ShapeDtype: shape has {d!r} of type '{type(d).__name__}'; a size is an integer, a weft.Dim or "
                    "its text"
                )
            if isinstance(d, int) and d < 0:
                raise value_error(f"ShapeDtype: a dimension of shape {self.shape} is negative")
        self.dtype = self._taken(dtype)
        self.weak_type = weak_type
        self.varying = list(varying)
        self.sharding = self._placed(sharding)

    def _taken(self, dtype: Any) -> Any:
        """The dtype, as types of this class say it."""
        return dtype if isinstance(dtype, np.dtype) and dtype == FLOAT0 else _weft.dtype(dtype)

    def _placed(self, sharding: Any) -> Any:
        """The sharding, as types of this class say it."""
        return sharding

    @property
    def ndim(self) -> int:
        """The number of dimensions.

        Example:
            >>> weft.ShapeDtype((3, 4)).ndim
            2
        """
        return len(self.shape)

    @property
    def size(self) -> Any:
        """The number of elements.

        Example:
            >>> weft.ShapeDtype((3, 4)).size
            12
        """
        n: Any = 1
        for d in self.shape:
            n = d * n
        return n

    @property
    def manual_axis_type(self) -> ManualAxisType:
        """`varying`, with JAX's name for how values differ between devices.

        Example:
            >>> weft.ShapeDtype((3,), varying=["i"]).manual_axis_type.varying
            frozenset({'i'})
        """
        return ManualAxisType(varying=self.varying)

    @property
    def vma(self) -> frozenset[str]:
        """`varying` as a set, under JAX's name.

        Example:
            >>> weft.ShapeDtype((3,)).vma
            frozenset()
        """
        return frozenset(self.varying)

    def update(self, **changes: Any) -> Self:
        """The same with some of its attributes changed.

        Args:
            **changes: shape, dtype, weak_type, varying, sharding.

        Returns: of the same class.

        Example:
            >>> weft.ShapeDtype((3, 4), "float32").update(shape=(5,))
            ShapeDtype((5,), float32)
        """
        kept = {name: getattr(self, name) for name in ShapeDtype.__slots__}
        return type(self)(**{**kept, **changes})

    @classmethod
    def like(cls, x: Any, **changes: Any) -> Self:
        """The type of an array, number or other type.

        Args:
            x: the array.
            **changes: what is to be different.

        Returns: of this class.

        Example:
            >>> weft.ShapeDtype.like(wnp.ones(3), dtype="int32")
            ShapeDtype((3,), int32)
        """
        if isinstance(x, _weft.Array) and not isinstance(x, _weft.Tracer) and x.is_deleted():
            traced = False
            shape, dtype, weak = x.shape, x.dtype, x.weak_type  # its type is left
        else:
            traced = _weft.is_traced(x)
            shape, dtype, weak, *_ = _weft.abstract(x)
        sharding = typed_sharding(x) if traced else getattr(x, "sharding", None)
        if not hasattr(sharding, "spec"):  # on one device: what is said of types are meshes and specs
            put = cls is ShapeDtype and not traced and isinstance(x, _weft.Array)
            sharding = _weft.sharding_of(x) if put else None
        varying = _weft.varying(x) if traced else getattr(x, "varying", ())
        given = {"shape": shape, "dtype": dtype, "weak_type": weak, "varying": varying, "sharding": sharding}
        return cls(**{**given, **changes})

    def __len__(self) -> int:
        if not self.shape:
            raise type_error("len() of a type without dimensions")
        return int(self.shape[0])

    def __repr__(self) -> str:
        if _weft.setting(_JAX_SEMANTICS):
            more = [f"sharding={self.sharding}"] * (self.sharding is not None) + ["weak_type=True"] * self.weak_type
            more += [f"manual_axis_type={self.manual_axis_type}"] * bool(self.varying)
            return f"ShapeDtypeStruct({', '.join([f'shape={self.shape}', f'dtype={self.dtype}', *more])})"
        return f"ShapeDtype({self.shape}, {self.dtype}{', weak_type=True' if self.weak_type else ''})"

    def __eq__(self, other) -> bool:
        if not isinstance(other, ShapeDtype):
            return False
        # Descriptions of arrays that are to be say where these lie; types of values say it along some axes alone.
        alike = isinstance(self, ShapedArray) or isinstance(other, ShapedArray) or self.sharding == other.sharding
        return alike and (self.shape, self.dtype, self.weak_type, self.varying) == (
            other.shape,
            other.dtype,
            other.weak_type,
            other.varying,
        )

    def __hash__(self) -> int:
        return hash((self.shape, self.dtype, self.weak_type))


_LONG = frozenset(np.dtype(name) for name in ("int64", "uint64", "float64", "complex128"))

_JAX_SEMANTICS = 3  # as in tracer/context.h

# The beginnings of dtypes' names, and what the texts of types call them.
_SHORT = {"float": "f", "int": "i", "uint": "u", "complex": "c", "bfloat": "bf"}


_KNOWN_AXES: dict[ManualAxisType, ManualAxisType] = {}


class _AxesOfKinds(NamedTuple):
    varying: frozenset[str] = frozenset()
    unreduced: frozenset[str] = frozenset()
    reduced: frozenset[str] = frozenset()


class ManualAxisType(_AxesOfKinds):
    """How a value inside shard_map differs between devices: along `varying` axes by itself, along `unreduced` ones as
    a part of a sum, and along `reduced` ones not at all, but its cotangent is a part of a sum.

    Raises:
        ValueError: an axis is varying and one of the others.

    Example:
        >>> weft.typeof(1.0).mat.varying
        frozenset()
    """

    def __new__(cls, *, varying: Any = (), unreduced: Any = (), reduced: Any = ()) -> ManualAxisType:
        made = super().__new__(cls, frozenset(varying), frozenset(unreduced), frozenset(reduced))
        for kind in ("unreduced", "reduced"):
            if both := made.varying & getattr(made, kind):
                raise value_error(
                    f"ManualAxisType: an axis is either varying or {kind}, got {', '.join(sorted(map(repr, both)))} as "
                    "both"
                )
        return _KNOWN_AXES.setdefault(made, made)  # equal ones are one object, as in JAX

    def __deepcopy__(self, memo: Any) -> ManualAxisType:
        return self

    def __reduce__(self) -> Any:
        return _axis_type, tuple(self)

    @property
    def vur(self) -> frozenset[str]:
        """All of these axes."""
        return self.varying | self.unreduced | self.reduced

    @property
    def empty(self) -> bool:
        """Whether there is none."""
        return not self.vur

    def invarying(self, mesh: Any) -> frozenset[str]:
        """The axes of Manual type along which the value is the same."""
        return frozenset(mesh.manual_axes) - self.vur

    def update(self, **kinds: Any) -> ManualAxisType:
        """The same with other axes of some kinds."""
        return ManualAxisType(**{**self._asdict(), **kinds})

    def to_ct_mat(self) -> ManualAxisType:
        """How the cotangent differs: parts of a sum where the value is the same, and the other way around."""
        return self.update(unreduced=self.reduced, reduced=self.unreduced)


def _axis_type(varying: Any, unreduced: Any, reduced: Any) -> ManualAxisType:
    return ManualAxisType(varying=varying, unreduced=unreduced, reduced=reduced)


class ShapedArray(ShapeDtype):
    """The type of a value, which x.aval and weft.typeof give: a ShapeDtype, with what JAX's types can be asked besides.

    Args:
        shape: the dimensions.
        dtype: the dtype.
        weak_type: whether it takes the dtype of what it meets.
        varying: inside shard_map, the axes of the mesh along which the value differs between devices.
        sharding: how the array lies on devices.
        memory_space: kept and shown, without effect: there is one memory.
        manual_axis_type: `varying` under JAX's name, as `mat` gives it.

    Example:
        >>> wnp.ones((2, 3)).aval.str_short()
        'float32[2,3]'
        >>> wnp.ones((2, 3)).aval.str_short(short_dtypes=True)
        'f32[2,3]'
    """

    __slots__ = ("memory_space", "sums")

    default_memory_space: ClassVar[Any] = None

    def __init__(
        self,
        shape: Sequence,
        dtype: Any = float,
        weak_type: bool = False,
        varying: Sequence[str] = (),
        *,
        sharding: Any = None,
        memory_space: Any = None,
        manual_axis_type: Any = None,
    ):
        self.sums = Sums()
        self.memory_space = self.default_memory_space if memory_space is None else memory_space
        if manual_axis_type is not None:
            varying = sorted(manual_axis_type.vur)
            self.sums = Sums(manual_axis_type.unreduced, manual_axis_type.reduced)
        super().__init__(shape, dtype, weak_type, varying, sharding=sharding, memory_space=memory_space)

    @classmethod
    def like(cls, x: Any, **changes: Any) -> Self:
        made = super().like(x, **changes)
        if "manual_axis_type" not in changes:
            made.sums = x.sums if isinstance(x, ShapedArray) else sums_of(x) if _weft.is_traced(x) else Sums()
        return made

    def update(self, **changes: Any) -> Self:
        if "sharding" not in changes and len(changes.get("shape", self.shape)) != len(self.shape):
            mesh = getattr(self.sharding, "mesh", None)
            # What is said of each dimension says nothing of others.
            if mesh is None or not mesh.explicit_axes:
                changes["sharding"] = None
        made = super().update(**changes)
        if "manual_axis_type" not in changes:
            made.sums = self.sums
        if "memory_space" not in changes:
            made.memory_space = self.memory_space
        return made

    def _taken(self, dtype: Any) -> Any:
        if hasattr(getattr(dtype, "_rules", None), "physical_element_aval"):
            return dtype  # a library's own, which says what its elements are stored as
        # As in JAX it says what there is, whatever dtypes arrays get that are made now.
        given = np.dtype(dtype) if isinstance(dtype, type) and issubclass(dtype, np.generic) else dtype
        return given if isinstance(given, np.dtype) and given in _LONG else super()._taken(dtype)

    def _placed(self, sharding: Any) -> Any:
        if not hasattr(sharding, "with_each_dim") or not sharding.mesh.explicit_axes:
            return sharding
        if _weft.setting(_JAX_SEMANTICS):
            sharding = sharding.said_by_types()
            if all(isinstance(d, int) for d in self.shape):
                sharding.shard_shape(self.shape)  # raises where devices cannot share a size evenly
        return sharding.with_each_dim(len(self.shape))

    def str_short(self, short_dtypes: bool = False, mesh_axis_types: bool = False) -> str:
        """The type in few characters.

        Args:
            short_dtypes: whether f32 stands for float32.
            mesh_axis_types: accepted, without effect.

        Returns: str.

        Example:
            >>> weft.typeof(1.0).str_short()
            'float32[]'
        """
        del mesh_axis_types
        name = str(self.dtype)
        word = name.rstrip("0123456789")
        if short_dtypes and word in _SHORT:
            name = _SHORT[word] + name[len(word) :]
        if self.memory_space not in (None, self.default_memory_space):
            name += f"<{str(getattr(self.memory_space, 'name', self.memory_space)).lower()}>"
        if self.sharding is None:
            return f"{name}[{','.join(map(str, self.shape))}]"
        return self._cut(name)

    def _cut(self, name: str) -> str:
        """With the axes that cut each dimension after its size."""
        spec, mesh = getattr(self.sharding, "spec", ()), getattr(self.sharding, "mesh", None)
        said = mesh.explicit_axes if mesh is not None else ()
        dims = []
        for d, size in enumerate(self.shape):
            names = spec[d] if d < len(spec) else None
            names = [n for n in ([names] if isinstance(names, str) else names or ()) if n in said]
            by = names[0] if len(names) == 1 else f"({','.join(names)})" if names else ""
            dims.append(f"{size}@{by}" if by else str(size))
        mat, none = self.mat, frozenset[str]()
        unreduced = mat.unreduced | getattr(spec, "unreduced", none)
        sums = ("V", mat.varying), ("U", unreduced), ("R", mat.reduced | getattr(spec, "reduced", none))
        said_of = [(letter, ",".join(sorted(axes)), len(axes)) for letter, axes in sums if axes]
        text = ", ".join(f"{letter}:{axes if n == 1 else f'({axes})'}" for letter, axes, n in said_of)
        return f"{name}[{','.join(dims)}]{'{' + text + '}' if text else ''}"

    @property
    def mat(self) -> ManualAxisType:
        """`vma`, with JAX's name for how values differ between devices.

        Example:
            >>> weft.typeof(1.0).mat.varying
            frozenset()
        """
        varying = frozenset(self.varying) - self.sums.unreduced - self.sums.reduced
        return _axis_type(varying, *self.sums)

    @property
    def manual_axis_type(self) -> ManualAxisType:
        """`mat`, under its other name.

        Example:
            >>> weft.typeof(1.0).manual_axis_type.varying
            frozenset()
        """
        return self.mat

    def strip_weak_type(self) -> ShapedArray:
        """The same without weak_type.

        Returns: weft.ShapedArray.

        Example:
            >>> weft.typeof(1.0).weak_type, weft.typeof(1.0).strip_weak_type().weak_type
            (True, False)
        """
        return self.update(weak_type=False)

    def to_tangent_aval(self) -> ShapedArray:
        """The type of tangents: the same, not weak; of what has no derivative the dtype is JAX's float0.

        Returns: weft.ShapedArray.

        Example:
            >>> weft.typeof(1.0).to_tangent_aval().weak_type
            False
        """
        if self.dtype == FLOAT0 or _weft.is_inexact(self.dtype):
            return self.strip_weak_type()
        return self.update(dtype=FLOAT0, weak_type=False)

    to_ct_aval = to_cotangent_aval = at_least_vspace = to_tangent_aval

    def __str__(self) -> str:
        return f"{'~' if self.weak_type else ''}{self.str_short()}"

    def __repr__(self) -> str:
        if not _weft.setting(_JAX_SEMANTICS):
            return super().__repr__()
        return f"ShapedArray({self.str_short()}{', weak_type=True' if self.weak_type else ''})"


belong_to({"__name__": "weft"}, ShapeDtype, ShapedArray)

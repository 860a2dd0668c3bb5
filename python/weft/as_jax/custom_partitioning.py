"""jax.experimental.custom_partitioning: functions that say how they are cut over a mesh.

Weft cuts the function itself, by the rules of its operations; what a device computes is the same as what `partition`
writes down by hand, so that and the rules for XLA's partitioner are taken and not asked.
"""

from __future__ import annotations

import functools
import inspect
import re
from collections.abc import Callable, Iterable, Sequence
from typing import Any

from .. import _weft
from .._core import tree as _tree
from .._core.errors import not_implemented, type_error, unexpected_tracer, value_error

BATCHING = "..."


def _checked_factor(factor: str) -> str:
    if re.fullmatch(r"[A-Za-z][A-Za-z0-9_]*", factor) is None:
        start = factor[:1]
        if not start.isalpha():
            raise value_error(f"Factor names have to start with a letter, but got '{start}'")
        unknown = re.sub(r"[A-Za-z0-9_]", "", factor)[0]
        raise value_error(f"Unknown character '{unknown}' in the factor {factor!r}")
    return factor


def _is_batching(factor: str) -> bool:
    return factor.startswith(BATCHING)


class CompoundFactor(tuple[str, ...]):
    """The factors of one dimension that is their product."""

    def __new__(cls, *factors: str) -> CompoundFactor:
        if len(factors) < 2:
            raise value_error("A compound factor should contain at least two factors")
        for factor in factors:
            if not isinstance(factor, str):
                raise value_error(f"Each element of CompoundFactor must be a str, but got {type(factor)}")
            if _is_batching(factor):
                raise value_error("Ellipsis can't be used in a compound factor")
            _checked_factor(factor)
        return super().__new__(cls, factors)


class ArrayMapping(tuple[Any, ...]):
    """The factors of the dimensions of an array; the first may be BATCHING, which stands for any number of them."""

    def __new__(cls, *dims: Any) -> ArrayMapping:
        for i, dim in enumerate(dims):
            if not isinstance(dim, (str, CompoundFactor)):
                raise value_error(f"Each element of ArrayMapping must be a str or CompoundFactor, but got {type(dim)}")
            if isinstance(dim, str) and _is_batching(dim):
                if i:
                    raise value_error("Ellipsis can only be used at the beginning of a dimension")
            elif isinstance(dim, str):
                _checked_factor(dim)
        return super().__new__(cls, dims)


_KINDS = ("reduction_factors", "need_replication_factors", "permutation_factors")


class SdyShardingRule:
    """Which dimensions of operands and results belong together, by factors that have one name.

    Raises:
        ValueError: the size of a factor is given that is a whole dimension, or is not given of another one; a factor
            is named that no dimension has, or that is of several kinds.
    """

    def __init__(
        self,
        operand_mappings: Sequence[ArrayMapping],
        result_mappings: Sequence[ArrayMapping],
        *,
        reduction_factors: tuple[str, ...] = (),
        need_replication_factors: tuple[str, ...] = (),
        permutation_factors: tuple[str, ...] = (),
        **factor_sizes: int,
    ):
        dims = [dim for mapping in (*operand_mappings, *result_mappings) for dim in mapping]
        whole = {dim for dim in dims if isinstance(dim, str)}
        used = whole | {factor for dim in dims if not isinstance(dim, str) for factor in dim}
        for factor in factor_sizes:
            if factor not in used:
                raise value_error(f"Factor {factor} is not used in the rule, but size is provided")
            if factor in whole:
                raise value_error(f"Factor {factor} represents a whole dimension; do not specify its size")
        for factor in sorted(used - whole - factor_sizes.keys()):
            raise value_error(f"Factor {factor} is only used in compound factors; must specify its size")
        self.operand_mappings, self.result_mappings = tuple(operand_mappings), tuple(result_mappings)
        self.factor_sizes = factor_sizes
        self.reduction_factors = reduction_factors
        self.need_replication_factors = need_replication_factors
        self.permutation_factors = permutation_factors
        self._check_kinds(used)

    def _check_kinds(self, used: set[str]) -> None:
        seen: set[str] = set()
        for kind in _KINDS:
            factors = getattr(self, kind)
            if not isinstance(factors, tuple):
                raise value_error(f"{kind} must be a tuple of factors")
            if len(set(factors)) != len(factors):
                raise value_error(f"{kind} contains duplicated factors")
            for factor in factors:
                if factor not in used:
                    raise value_error(f"Factor {factor} in {kind} is not used in the rule")
                if factor in seen:
                    raise value_error(
                        f"Factor {factor} can only be in one of the reduction, need replication, or permutation factor "
                        "sets."
                    )
                seen.add(factor)

    def __repr__(self) -> str:
        special = "".join(f" {kind}={getattr(self, kind)}" for kind in _KINDS if getattr(self, kind))
        return f"SdyShardingRule({self.operand_mappings}, {self.result_mappings}, {self.factor_sizes}{special})"


def _array_mapping(text: str, rule: str) -> ArrayMapping:
    """Of one array: "... i (j k)"."""
    dims: list[Any] = []
    for found in re.finditer(r"\(([^()]*)\)|([^\s()]+)|([()])", text):
        compound, factor, bracket = found.groups()
        if bracket is not None:
            raise value_error(f"Brackets are not balanced in rule: '{rule}'")
        if compound is None:
            dims.append(factor)
            continue
        inside = compound.split()
        if len(inside) < 2:
            raise value_error("Brackets should contain at least two factors")
        dims.append(CompoundFactor(*inside))
    return ArrayMapping(*dims)


def rule_of_text(rule: Any, **said: Any) -> SdyShardingRule:
    """The rule that a text is: "i j, j k -> i k"."""
    if not isinstance(rule, str):
        raise type_error(f"rule must be a str, but got {type(rule)}")
    sides = rule.split("->")
    if len(sides) != 2:
        raise value_error(f"There is no -> in rule: '{rule}'" if len(sides) < 2 else f"Several -> in rule: '{rule}'")
    operands, results = ([_array_mapping(part, rule) for part in side.split(",")] for side in sides)
    return SdyShardingRule(operands, results, **said)


class custom_partitioning:
    """A function that says how it is cut over a mesh; a decorator.

    Args:
        fun: the function.
        static_argnums: positions of arguments that are passed to it as they are.
    """

    __name__: str

    def __init__(self, fun: Callable[..., Any], static_argnums: Iterable[int] = ()):
        self.fun = self.__wrapped__ = fun
        self.static_argnums = tuple(static_argnums)
        self.partition: Callable[..., Any] | None = None
        self.infer_sharding_from_operands: Callable[..., Any] | None = None
        self.propagate_user_sharding: Callable[..., Any] | None = None
        self.sharding_rule: Any = None
        functools.update_wrapper(self, fun)

    def def_partition(
        self,
        partition: Callable[..., Any],
        infer_sharding_from_operands: Callable[..., Any] | None = None,
        propagate_user_sharding: Callable[..., Any] | None = None,
        decode_shardings: bool = True,
        sharding_rule: Any = None,
        *,
        reduction_factors: tuple[str, ...] = (),
        need_replication_factors: tuple[str, ...] = (),
        permutation_factors: tuple[str, ...] = (),
        **factor_sizes: int,
    ) -> Callable[..., Any]:
        """Takes what XLA's partitioner would ask. Weft's cuts the function by the rules of its operations.

        Raises:
            ValueError: the rule is none, or names factors that it has not.
        """
        kinds = zip(_KINDS, (reduction_factors, need_replication_factors, permutation_factors))
        said = {**factor_sizes, **{kind: factors for kind, factors in kinds if factors}}
        if sharding_rule is None or callable(sharding_rule) or isinstance(sharding_rule, SdyShardingRule):
            if said:
                raise value_error(f"Unknown keyword arguments: {said}")
            self.sharding_rule = sharding_rule
        else:
            self.sharding_rule = rule_of_text(sharding_rule, **said)
        self.partition, self.decode_shardings = partition, decode_shardings
        self.infer_sharding_from_operands = infer_sharding_from_operands
        self.propagate_user_sharding = propagate_user_sharding
        return partition

    def __call__(self, *args: Any, **kwargs: Any) -> Any:
        bound = inspect.signature(self.fun).bind(*args, **kwargs)
        bound.apply_defaults()
        if bound.kwargs:
            raise type_error("keyword arguments could not be resolved to positions")
        if self.partition is None:
            raise value_error(
                f"custom_partitioning: '{self.__name__}' has no partition function; give it one by def_partition"
            )
        fixed = [bound.args[i] for i in self.static_argnums if i < len(bound.args)]
        if any(map(_weft.is_traced, _tree.leaves(fixed))):
            raise unexpected_tracer(
                "Found a JAX Tracer object passed as an argument to a custom_partitioning function in a position "
                "indicated as static by static_argnums."
            )
        propagates = self.infer_sharding_from_operands or self.propagate_user_sharding
        if self.sharding_rule is None and propagates is not None:
            raise not_implemented(
                "Shardy is used, but sharding propagation callbacks instead of sharding_rule are provided. Need to "
                "provide sharding_rule to migrate to Shardy."
            )
        return self.fun(*bound.args)

"""Products of operands of several dtypes, or whose result has a dtype of its own (`preferred_element_type`).

Each is one equation of JAX's. Weft's converts what it multiplies, or its result; a scope around the calls of JAX's
functions says which conversions belong to a product, and the view of a program shows them as one dot_general."""

from __future__ import annotations

import collections
from collections.abc import Sequence
from typing import Any

import weft

from .hidden_scopes import in_product


def as_one(eqns: list[Any], results: Sequence[Any]) -> list[Any]:
    """The equations with each product and its conversions as one."""
    products = [eqn for eqn in eqns if eqn.primitive.name == "dot_general" and in_product(eqn.steps)]
    if not products:
        return eqns
    uses = collections.Counter(id(atom) for eqn in eqns for atom in eqn.invars)
    uses.update(id(atom) for atom in results)
    made = {id(v): eqn for eqn in eqns for v in eqn.outvars}
    readers = {id(atom): eqn for eqn in eqns for atom in eqn.invars}
    is_part = lambda eqn: eqn.primitive.name == "convert_element_type" and in_product(eqn.steps)
    gone: set[int] = set()
    for product in products:
        for i, atom in enumerate(product.invars):
            conversion = made.get(id(atom))
            if conversion is not None and is_part(conversion) and uses[id(atom)] == product.invars.count(atom):
                gone.add(id(conversion))
                product.invars[i] = conversion.invars[0]
        (result,) = product.outvars
        after = readers.get(id(result))
        if after is not None and is_part(after) and uses[id(result)] == 1:
            gone.add(id(after))
            product.outvars[:] = after.outvars
        product.params["preferred_element_type"] = product.outvars[0].aval.dtype
    return [eqn for eqn in eqns if id(eqn) not in gone]


def operands_of(args: Sequence[Any], preferred: Any) -> list[Any]:
    """The operands of such a product in the dtype that it is computed in."""
    common = weft.numpy.promote_types(weft.numpy.result_type(*[weft.numpy.asarray(x).dtype for x in args]), preferred)
    return [weft.lax.convert_element_type(x, common) for x in args]

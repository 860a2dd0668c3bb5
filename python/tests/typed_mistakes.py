"""What mypy --strict must refuse: every line that ends in `# wrong`, and no other (typing_test.py). Never run."""

from __future__ import annotations

import weft
import weft.numpy as wnp
from weft import lax, random


@weft.jit
def scaled(x: weft.Array, by: float) -> weft.Array:
    return x * by


def loss(params: dict[str, weft.Array], x: weft.Array) -> weft.Array:
    return wnp.sum(params["w"] * x)


x = wnp.ones(3)
scaled("x", 2.0)  # wrong
scaled(x)  # wrong
scaled(x, 2.0, 3.0)  # wrong
nothing = scaled(x, by=2.0).nothing  # wrong
weft.jit(3)  # wrong
weft.grad(3.0)  # wrong
weft.grad(loss)(x, x)  # wrong
weft.grad(loss)({"w": x})  # wrong
weft.vmap(loss)({"w": x}, "x")  # wrong
text: str = weft.grad(loss)({"w": x}, x)  # wrong
number: int = scaled(x, 2.0)  # wrong
wnp.sin("x")  # wrong
wnp.sin(x, x)  # wrong
lax.add(x)  # wrong
wnp.sum(x, axis="rows")  # wrong
wnp.sum(x, out=x)  # wrong
wnp.zeros("3")  # wrong
x + "1"  # wrong
x.shape = (3,)  # wrong
x[0] = 1.0  # wrong
x.at[0].replace(1.0)  # wrong
random.normal(0, (3,))  # wrong
wnp.nothing(x)  # wrong
scaled(x, 2.0).sum(axis=0)

"""Rearrangements, reductions and contractions by text, in programs that are compiled and differentiated."""

import einops
import jax
import jax.numpy as jnp


def program():
    x = jnp.arange(48.0).reshape(2, 4, 6)
    f = jax.jit(lambda v: einops.reduce(einops.rearrange(v, "b (h p) w -> b h p w", p=2), "b h p w -> b p", "mean"))
    packed, shapes = einops.pack([x, x[..., 0]], "b *")
    return (
        f(x),
        jax.grad(lambda v: (f(v) ** 2).sum())(x),
        einops.repeat(x[0], "h w -> (h 2) w"),
        einops.einsum(x, x, "b h w, b k w -> b h k"),
        packed,
        einops.unpack(packed, shapes, "b *"),
        jax.vmap(lambda v: einops.rearrange(v, "h w -> w h"))(x),
    )

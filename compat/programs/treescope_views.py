"""Texts and pages that show trees of arrays."""

import jax
import jax.numpy as jnp
import treescope


def program():
    tree = {"w": jnp.arange(6.0).reshape(2, 3), "n": [1, "text"], "k": jax.random.key(0), "f": jax.jit(jnp.sin)}
    text = treescope.render_to_text(tree)
    page = treescope.render_to_html(tree)
    assert "'w'" in text and "float32" in text, text
    assert "<" in page
    array = treescope.render_array(tree["w"])
    return "Array" in text, "w" in page, array is not None

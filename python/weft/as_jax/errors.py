"""Exceptions of JAX's that nothing of Weft's raises: programs name them where they catch several."""


class KeyReuseError(RuntimeError):
    """A random key was used twice, where jax_debug_key_reuse is on; Weft does not look for it."""

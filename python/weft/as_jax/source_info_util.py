"""jax.extend.source_info_util: which files are not the user's."""


def register_exclusion(path: str) -> None:
    """Nothing: Weft's messages name the user's lines, of libraries too."""
    del path

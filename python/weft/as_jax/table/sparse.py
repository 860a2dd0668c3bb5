"""jax.experimental.sparse, and the private names of its modules that libraries and tests read."""

from __future__ import annotations

import numpy as np

from ..served import Served, Value, of

_HERE = "weft.as_jax.sparse"


def _private(module: str, **names: str) -> dict[str, str]:
    """JAX's name -> Weft's, of a module."""
    return {f"_{theirs}": f"{_HERE}.{module}:{ours}" for theirs, ours in names.items()}


# What cuSPARSE's products take; Weft's take every dtype.
_OF_CUSPARSE = [np.float32, np.float64, np.complex64, np.complex128]

SPARSE: dict[str, Served] = {
    "jax.experimental.sparse._lowerings": Served(
        names={"SUPPORTED_DATA_DTYPES": Value(_OF_CUSPARSE), "SUPPORTED_INDEX_DTYPES": Value([np.int32])}
    ),
    "jax.experimental.sparse": Served(everything_of=(_HERE,)),
    "jax.experimental.sparse.ad": Served(everything_of=(f"{_HERE}.derivatives",)),
    "jax.experimental.sparse.bcoo": Served(
        everything_of=(f"{_HERE}.bcoo", f"{_HERE}.products", f"{_HERE}.shapes"),
        names={
            **_private("bcoo", bcoo_extract="extract", bcoo_fromdense="parts_fromdense", bcoo_todense="parts_todense"),
            **_private("products", bcoo_dot_general="parts_dot_general"),
        },
    ),
    "jax.experimental.sparse.bcsr": Served(
        everything_of=(f"{_HERE}.bcsr",),
        names=_private(
            "bcsr", bcsr_fromdense="bcsr_parts_fromdense", bcoo_to_bcsr="bcsr_indices", bcsr_to_bcoo="bcoo_indices"
        ),
    ),
    "jax.experimental.sparse.coo": Served(
        names={
            **of(f"{_HERE}.matrices", "COO COOInfo"),
            **_private(
                "matrices",
                coo_fromdense="coo_fromdense",
                coo_todense="coo_todense",
                coo_matvec="coo_product",
                coo_matmat="coo_product",
            ),
        }
    ),
    "jax.experimental.sparse.csr": Served(
        names={
            **of(f"{_HERE}.matrices", "CSC CSR"),
            **_private(
                "matrices",
                csr_fromdense="csr_fromdense",
                csr_todense="csr_todense",
                csr_matvec="csr_product",
                csr_matmat="csr_product",
            ),
        }
    ),
    "jax.experimental.sparse.linalg": Served(
        everything_of=(f"{_HERE}.linalg",), names=_private("linalg", lobpcg_standard_matrix="lobpcg_with_history")
    ),
    "jax.experimental.sparse.random": Served(everything_of=(f"{_HERE}.random",)),
    "jax.experimental.sparse.transform": Served(everything_of=(f"{_HERE}.transform",)),
    "jax.experimental.sparse.util": Served(
        everything_of=(f"{_HERE}.util",),
        names=_private(
            "util",
            count_stored_elements="count_stored_elements",
            count_stored_elements_per_batch="count_stored_elements_per_batch",
            csr_to_coo="csr_to_coo",
        ),
    ),
}

"""Calls of other runtimes that JAX writes where StableHLO has no operation: factors, by LAPACK's names."""

from __future__ import annotations

import re
from collections.abc import Callable
from typing import Any

from .. import lax
from .._core.errors import not_implemented
from .syntax import Op
from .types import TensorType

__all__ = ["CUSTOM_CALLS"]


def _letter(op: Op, name: str) -> str:
    """An option of LAPACK's, which is the number of a letter."""
    return chr(int(op.attributes.get("mhlo.backend_config", {}).get(name, 0)))


def _info(op: Op) -> Any:
    """That all went well: where it did not, there are NaNs."""
    last = op.types[-1]
    assert isinstance(last, TensorType)
    return lax.full([n for n in last.shape if n is not None], 0, last.dtype)


def _adjoint(x: Any) -> Any:
    turn = [*range(x.ndim - 2), x.ndim - 1, x.ndim - 2]
    return lax.transpose(lax.conj(x) if "complex" in str(x.dtype) else x, turn)


def _cholesky(op: Op, name: re.Match, values: list) -> list:
    (x,) = values
    lower = _letter(op, "uplo") == "L"
    factor = lax.linalg.cholesky(x if lower else _adjoint(x), symmetrize_input=False)
    return [factor if lower else _adjoint(factor), _info(op)]


def _eigh(op: Op, name: re.Match, values: list) -> list:
    eigenvectors, eigenvalues = lax.linalg.eigh(values[0], lower=_letter(op, "uplo") == "L", symmetrize_input=False)
    return [eigenvectors, eigenvalues, _info(op)]


def _lu(op: Op, name: re.Match, values: list) -> list:
    factors, pivots, _ = lax.linalg.lu(values[0])
    return [factors, lax.add(pivots, lax.full(pivots.shape, 1, pivots.dtype)), _info(op)]  # LAPACK counts from 1


def _svd(op: Op, name: re.Match, values: list) -> list:
    mode = _letter(op, "mode")
    (x,) = values
    if mode == "N":
        singular = lax.linalg.svd(x, compute_uv=False)
        u, vt = (lax.full([n for n in t.shape if n is not None], 0, t.dtype) for t in op.types[2:4])
    elif mode in ("A", "S"):
        u, singular, vt = lax.linalg.svd(x, full_matrices=mode == "A")
    else:
        raise not_implemented(f"a singular value decomposition of mode {mode!r}")
    return [x, singular, u, vt, _info(op)]


def _triangular_solve(op: Op, name: re.Match, values: list) -> Any:
    trans = _letter(op, "trans_x")
    return lax.linalg.triangular_solve(
        *values,
        left_side=_letter(op, "side") == "L",
        lower=_letter(op, "uplo") == "L",
        transpose_a=trans != "N",
        conjugate_a=trans == "C",
        unit_diagonal=_letter(op, "diag") == "U",
    )


def _itself(op: Op, name: re.Match, values: list) -> Any:
    return values[0]


CUSTOM_CALLS: dict[re.Pattern, Callable[[Op, re.Match, list], Any]] = {
    re.compile(r"lapack_[sdcz]potrf_ffi"): _cholesky,
    re.compile(r"lapack_([sd]sy|[cz]he)evd_ffi"): _eigh,
    re.compile(r"lapack_[sdcz]gesdd_ffi"): _svd,
    re.compile(r"lapack_[sdcz]getrf_ffi"): _lu,
    re.compile(r"lapack_[sdcz]trsm_ffi"): _triangular_solve,
    re.compile(r"Sharding|annotate_device_placement"): _itself,
}

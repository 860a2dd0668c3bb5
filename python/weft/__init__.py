"""Weft: functions of arrays, transformed and compiled.

import weft
import weft.numpy as wnp

@weft.jit
def loss(w, x, y):
    return wnp.mean((x @ w - y) ** 2)

gradient = weft.grad(loss)(w, x, y)
print(weft.make_ir(weft.grad(loss))(w, x, y))
"""

# ruff: noqa: E402

import atexit as _atexit
import importlib as _importlib
import os as _os
import typing as _typing

# The threads of NumPy's and SciPy's OpenBLAS wait by spinning for 2^28 cycles, a tenth of a second of a core at each
# start and after each product. 2^20 still keep them awake between two products that follow each other.
_os.environ.setdefault("OPENBLAS_THREAD_TIMEOUT", "20")

import numpy as _numpy  # noqa: F401  # before the setting below, which is not for its BLAS

# Weft's OpenBLAS would start threads when it is loaded, which wait by spinning; the work is cut without them.
_threads = _os.environ.get("OPENBLAS_NUM_THREADS")
_os.environ["OPENBLAS_NUM_THREADS"] = "1"
try:
    from . import _weft
finally:
    if _threads is None:
        del _os.environ["OPENBLAS_NUM_THREADS"]
    else:
        _os.environ["OPENBLAS_NUM_THREADS"] = _threads

_weft.set_package_folder(_os.path.dirname(_os.path.abspath(__file__)) + _os.sep)

# The compiler loads in the background; a fork or an exit in the middle of that would find its locks taken.
_os.register_at_fork(before=_weft.finish_warm_up)
_atexit.register(_weft.finish_warm_up)

from . import ad_checkpoint, debug, distributed, numpy, tree, typing
from ._weft import (
    Array,
    DerivativeError,
    Dim,
    InternalError,
    ParseError,
    Tracer,
    TracerError,
)
from .ad_checkpoint import (
    checkpoint,
    checkpoint_policies,
    print_saved_residuals,
    remat,
    saved_residuals,
)
from .aot import aot
from .api import (
    block_until_ready,
    device_get,
    effects_barrier,
    ensure_compile_time_eval,
    named_call,
    named_scope,
    stop_gradient,
    typeof,
)
from .autograph import autograph
from .batching import vmap
from .callbacks import io_callback, pure_callback
from .closure_conversion import closure_convert
from .compiled import jit
from .config import config, debug_nans, disable_jit, enable_x64, jax_semantics
from .control import cond, fori_loop, map, scan, switch, while_loop
from .custom import custom_gradient, custom_jvp, custom_vjp
from .custom_batching import custom_vmap
from .derivatives import (
    grad,
    jvp,
    linear_transpose,
    linearize,
    value_and_grad,
    vjp,
)
from .distributed import (
    make_array_from_callback,
    make_array_from_process_local_data,
    make_array_from_single_device_arrays,
)
from .jacobians import hessian, jacfwd, jacrev
from .jitted import clear_caches
from .mesh import (
    AbstractMesh,
    AxisType,
    Device,
    Mesh,
    NamedSharding,
    P,
    PartitionSpec,
    Shard,
    Sharding,
    SingleDeviceSharding,
    default_backend,
    device_count,
    device_put,
    devices,
    get_abstract_mesh,
    get_mesh,
    local_device_count,
    local_devices,
    make_mesh,
    process_count,
    process_index,
    set_mesh,
)
from .optimization import optimization, register_pass
from .options import (
    checking_leaks,
    debug_infs,
    debug_key_reuse,
    default_device,
    default_matmul_precision,
    explain_cache_misses,
    live_arrays,
    log_compiles,
    no_execution,
    no_tracing,
    numpy_dtype_promotion,
    numpy_rank_promotion,
    threefry_partitionable,
    transfer_guard,
    transfer_guard_device_to_device,
    transfer_guard_device_to_host,
    transfer_guard_host_to_device,
)
from .parallel import pmap, shard_map, smap
from .partitioning import Communication, pjit, reshard, with_sharding_constraint
from .plugins import load_plugin
from .program import IR, PassRecord, ShapedArray, ShapeDtype, deserialize_ir, eval_shape, make_ir, parse_ir
from .taylor import jet

# After the imports, so that threads are kept out before the tree library forgets its containers at exit.
_atexit.register(_weft.end_effects)

if _typing.TYPE_CHECKING:
    from . import (
        custom_batching,
        custom_derivatives,
        errors,  # noqa: F401
        experimental,
        flatten_util,
        image,
        ir,
        lax,
        nn,
        ops,
        random,
        ref,
        scipy,
        transforms,
        tree_util,
    )
    from .compiling import compile, script
    from .custom_primitive import Linear, Primitive
    from .ir.rewriting import rewrite
    from .recurrences import recurrence
    from .ref import Ref, empty_ref, free_ref, freeze, new_ref

# Modules that not every program uses are imported when one first asks for them; weft.autograph does the same with
# what converts functions.
_LATER = frozenset(
    [
        "custom_batching",
        "custom_derivatives",
        "errors",
        "experimental",
        "flatten_util",
        "image",
        "ir",
        "lax",
        "nn",
        "ops",
        "primitives",
        "random",
        "ref",
        "scipy",
        "transforms",
        "tree_util",
    ]
)


# Name -> the module that has it, of what most programs do not use.
_FROM = {
    "compile": "compiling",
    "Linear": "custom_primitive",
    "Primitive": "custom_primitive",
    "Ref": "ref",
    "empty_ref": "ref",
    "free_ref": "ref",
    "freeze": "ref",
    "new_ref": "ref",
    "recurrence": "recurrences",
    "rewrite": "ir.rewriting",
    "script": "compiling",
}


if not _typing.TYPE_CHECKING:  # for which a name that is not there is a mistake

    def __getattr__(name: str) -> _typing.Any:
        if name in _LATER:
            return _importlib.import_module(f"weft.{name}")
        if name in _FROM:
            return getattr(_importlib.import_module(f"weft.{_FROM[name]}"), name)
        raise AttributeError(f"module 'weft' has no attribute '{name}'")


def __dir__() -> list[str]:
    return sorted({*globals(), *_LATER, *_FROM})


ShapeDtypeStruct = ShapeDtype
make_jaxpr = make_ir
jacobian = jacrev

__version__ = "0.1.0"

__all__ = [
    "AbstractMesh",
    "AxisType",
    "Array",
    "Communication",
    "DerivativeError",
    "Device",
    "Dim",
    "IR",
    "InternalError",
    "Linear",
    "Mesh",
    "NamedSharding",
    "P",
    "ParseError",
    "PartitionSpec",
    "PassRecord",
    "Primitive",
    "Ref",
    "ShapeDtype",
    "ShapeDtypeStruct",
    "ShapedArray",
    "Shard",
    "Sharding",
    "SingleDeviceSharding",
    "Tracer",
    "TracerError",
    "ad_checkpoint",
    "aot",
    "autograph",
    "block_until_ready",
    "checking_leaks",
    "checkpoint",
    "checkpoint_policies",
    "clear_caches",
    "closure_convert",
    "compile",
    "cond",
    "config",
    "custom_batching",
    "custom_derivatives",
    "custom_gradient",
    "custom_jvp",
    "custom_vjp",
    "custom_vmap",
    "debug",
    "debug_infs",
    "debug_key_reuse",
    "debug_nans",
    "default_backend",
    "default_device",
    "default_matmul_precision",
    "deserialize_ir",
    "device_count",
    "device_get",
    "device_put",
    "devices",
    "disable_jit",
    "distributed",
    "effects_barrier",
    "empty_ref",
    "enable_x64",
    "ensure_compile_time_eval",
    "eval_shape",
    "experimental",
    "explain_cache_misses",
    "flatten_util",
    "fori_loop",
    "free_ref",
    "freeze",
    "grad",
    "get_abstract_mesh",
    "get_mesh",
    "hessian",
    "image",
    "io_callback",
    "ir",
    "jacfwd",
    "jacobian",
    "jacrev",
    "jax_semantics",
    "jet",
    "jit",
    "jvp",
    "lax",
    "linear_transpose",
    "linearize",
    "live_arrays",
    "load_plugin",
    "local_device_count",
    "local_devices",
    "log_compiles",
    "make_array_from_callback",
    "make_array_from_process_local_data",
    "make_array_from_single_device_arrays",
    "make_ir",
    "make_jaxpr",
    "make_mesh",
    "map",
    "named_call",
    "named_scope",
    "new_ref",
    "nn",
    "no_execution",
    "no_tracing",
    "numpy",
    "numpy_dtype_promotion",
    "numpy_rank_promotion",
    "threefry_partitionable",
    "ops",
    "optimization",
    "parse_ir",
    "pjit",
    "pmap",
    "print_saved_residuals",
    "process_count",
    "process_index",
    "pure_callback",
    "random",
    "recurrence",
    "ref",
    "register_pass",
    "remat",
    "reshard",
    "rewrite",
    "saved_residuals",
    "scan",
    "scipy",
    "script",
    "set_mesh",
    "shard_map",
    "smap",
    "stop_gradient",
    "switch",
    "transfer_guard",
    "transfer_guard_device_to_device",
    "transfer_guard_device_to_host",
    "transfer_guard_host_to_device",
    "transforms",
    "tree",
    "tree_util",
    "typeof",
    "typing",
    "value_and_grad",
    "vjp",
    "vmap",
    "while_loop",
    "with_sharding_constraint",
]

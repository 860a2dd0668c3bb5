"""jax.experimental."""

from __future__ import annotations

from ..served import Served, of, refused
from .private import HIJAX
from .sparse import SPARSE

_COLOCATED = "Python runs where the program runs"
KERNELS = "kernels are written by Weft's compiler; see docs/gpu.md"

EXPERIMENTAL: dict[str, Served] = {
    "jax.experimental": Served(
        names={
            **of("weft.as_jax.callbacks", "io_callback"),
            **of("weft.as_jax.hijax", "MutableArray"),
            **of("weft.as_jax.extended_dtypes", "EArray"),
            **of("weft.as_jax.boxes", "cur_qdd"),
            **refused("jax.experimental", "primal_tangent_dtype", "a dtype of one's own has no arrays"),
            "enable_x64": "weft.as_jax.settings:enable_x64",
            "disable_x64": "weft.as_jax.settings:disable_x64",
        },
    ),
    "jax.experimental.jet": Served(
        everything_of=("weft.experimental.jet",), names=of("weft.as_jax.arrays", "fact zero_series")
    ),
    "jax.experimental.pjit": Served(
        names={"pjit": "weft.as_jax.transforms:pjit", **of("weft.as_jax.transforms", "with_sharding_constraint")}
    ),
    "jax.experimental.multihost_utils": Served(
        everything_of=("weft.experimental.multihost_utils",),
        names=of("weft.as_jax.distributed", "reached_preemption_sync_point"),
    ),
    "jax.experimental.mesh_utils": Served(names=of("weft.as_jax.tori", "create_device_mesh create_hybrid_device_mesh")),
    "jax.experimental.shard_map": Served(names=of("weft.as_jax.meshes", "shard_map")),
    "jax.experimental.ode": Served(everything_of=("weft.experimental.ode",)),
    "jax.experimental.checkify": Served(
        everything_of=("weft.experimental.checkify",), names=of("weft.experimental.checkify", "ErrorCategory")
    ),
    **SPARSE,
    "jax.experimental.layout": Served(names=of("weft.as_jax.layouts", "Format Layout with_layout_constraint")),
    "jax.experimental.array_serialization": Served(),
    "jax.experimental.array_serialization.serialization": Served(),
    "jax.experimental.compilation_cache": Served(),
    "jax.experimental.compilation_cache.compilation_cache": Served(
        names=of("weft.as_jax.state", "set_cache_dir reset_cache")
    ),
    "jax.experimental.custom_partitioning": Served(
        names=of(
            "weft.as_jax.custom_partitioning",
            "custom_partitioning SdyShardingRule BATCHING ArrayMapping CompoundFactor",
        )
    ),
    "jax.experimental.colocated_python": Served(everything_of=("weft.as_jax.colocated_python",)),
    "jax.experimental.hijax": Served(
        names={
            **HIJAX,
            **of("weft.as_jax.effects", "control_flow_allowed_effects"),
        },
    ),
    "jax.experimental.colocated_python.func": Served(
        names=refused("jax.experimental.colocated_python.func", "_make_prng_wrapped_fun", _COLOCATED)
    ),
    "jax.experimental.colocated_python.serialization": Served(
        names=refused(
            "jax.experimental.colocated_python.serialization",
            "DeviceList _get_cpu_device_map _reduce_device_list _reduce_mesh _reduce_single_device_sharding",
            _COLOCATED,
        )
    ),
    # Libraries that have kernels of their own for GPUs import these beside all else that they hold.
    "jax.experimental.pallas": Served(
        names=refused(
            "jax.experimental.pallas",
            "pallas_call kernel core_map BlockSpec GridSpec Element Squeezed CostEstimate MemorySpace program_id "
            "num_programs when loop run_scoped multiple_of reciprocal dot debug_print cdiv next_power_of_2 ds dslice",
            KERNELS,
        )
    ),
    "jax.experimental.pallas.triton": Served(
        names=refused(
            "jax.experimental.pallas.triton",
            "CompilerParams load store dot approx_tanh atomic_add atomic_and atomic_cas atomic_max atomic_min "
            "atomic_or atomic_xchg atomic_xor debug_barrier elementwise_inline_asm max_contiguous",
            KERNELS,
        )
    ),
    "jax.experimental.pallas.tpu": Served(
        names=refused(
            "jax.experimental.pallas.tpu",
            "CompilerParams PrefetchScalarGridSpec MemorySpace VMEM SMEM SemaphoreType make_async_copy async_copy roll",
            KERNELS,
        )
    ),
    "jax.experimental.key_reuse": Served(),
    "jax.experimental.key_reuse._core": Served(everything_of=("weft.as_jax.key_reuse",)),
    "jax.experimental.compute_on": Served(names=of("weft.as_jax.hints", "compute_on compute_on2")),
    "jax.experimental.random": Served(names=of("weft.as_jax.stateful_random", "stateful_rng StatefulPRNG")),
    "jax.experimental.buffer_callback": Served(
        names=of("weft.as_jax.buffer_callback", "buffer_callback Buffer ExecutionContext ExecutionStage")
    ),
    "jax.experimental.scheduling_groups": Served(names=of("weft.as_jax.hints", "scheduling_group xla_metadata_call")),
    "jax.experimental.xla_metadata": Served(names=of("weft.as_jax.hints", "set_xla_metadata")),
    "jax.experimental.x64_context": Served(names=of("weft.as_jax.settings", "enable_x64 disable_x64")),
    "jax.experimental.roofline": Served(everything_of=("weft.as_jax.roofline",)),
    "jax.experimental.rnn": Served(
        names=of(
            "weft.as_jax.rnn",
            "get_num_params_in_lstm init_lstm_weight lstm lstm_ref swap_lstm_gates unpack_lstm_weights",
        )
    ),
}

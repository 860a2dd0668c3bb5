"""Saving and restoring a state of training, and managing several."""

import tempfile

import jax
import jax.numpy as jnp
import orbax.checkpoint as ocp


def program():
    state = {
        "params": {"w": jnp.arange(6.0).reshape(2, 3), "b": jnp.ones(3, jnp.bfloat16)},
        "step": jnp.array(7, jnp.int32),
        "nested": [jnp.zeros(2), jnp.array([True, False])],
    }
    with tempfile.TemporaryDirectory() as folder:
        with ocp.StandardCheckpointer() as checkpointer:
            checkpointer.save(f"{folder}/one", state)
            checkpointer.wait_until_finished()
            target = jax.tree.map(ocp.utils.to_shape_dtype_struct, state)
            restored = checkpointer.restore(f"{folder}/one", target)
        options = ocp.CheckpointManagerOptions(max_to_keep=2)
        with ocp.CheckpointManager(f"{folder}/many", options=options) as manager:
            for i in range(4):
                manager.save(
                    i,
                    args=ocp.args.StandardSave(jax.tree.map(lambda x: x + i if x.dtype != bool else x, state)),  # noqa: B023
                )
            manager.wait_until_finished()
            steps = manager.all_steps()
            last = manager.restore(manager.latest_step(), args=ocp.args.StandardRestore(target))
    assert restored["params"]["b"].dtype == jnp.bfloat16
    return jax.tree.map(lambda x: x.astype(jnp.float32), restored), last["step"], steps

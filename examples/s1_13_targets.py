"""S1-13: one text of a program, compiled for a CPU and for an NVIDIA GPU: the passes are the same and come first, the
forms after them are the target's own."""

import numpy as np

import weft

TEXT = """
fn f(x: f32[64,256], w: f32[256]) -> (f32[64]) {
  a: f32[64,256] = exp x
  b: f32[64,256] = broadcast[dims=[1], shape=<64,256>] w
  c: f32[64,256] = mul a b
  d: f32[64] = reduce_sum[dims=[1]] c
  return d
}
"""


def main():
    ir = weft.parse_ir(TEXT)
    rng = np.random.default_rng(0)
    x, w = rng.normal(size=(64, 256)).astype(np.float32), rng.normal(size=256).astype(np.float32)
    forms = {}
    for target in ("cpu", "cuda:sm_90a"):
        steps = weft.ir.pipeline(target)
        passes = [s.name for s in steps if s.kind == "pass"]
        assert steps[: len(passes)] == [weft.ir.PipelineStep(name, "pass") for name in passes]  # they come first
        lowered = weft.jit(ir).lower(x, w) if target == "cpu" else weft.jit(ir).lower(x, w, target=target)
        forms[target] = {"optimized": lowered.stage("optimized")}
        print(f"{target}: passes {', '.join(passes)}")
        for step in steps[len(passes) :]:
            text = forms[target][step.name] = lowered.stage(step.name)
            print(f"{target}: stage {step.name}, {len(text.splitlines())} lines")
        result = lowered.compile()(x, w) if target == "cpu" else lowered.emulate(x, w)
        np.testing.assert_allclose(result, (np.exp(x.astype(np.float64)) * w).sum(1), rtol=1e-4, atol=1e-3)
    assert forms["cpu"]["optimized"] == forms["cuda:sm_90a"]["optimized"]
    assert ".entry" in forms["cuda:sm_90a"]["ptx"] and "vmulps" in forms["cpu"]["asm"]


if __name__ == "__main__":
    main()

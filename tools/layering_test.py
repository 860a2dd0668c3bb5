"""Every #include of the tree follows the arrows of the architecture."""

import pytest

from tools import layering, tree


def test_tree():
    found = []
    read = 0
    for path in tree.files(*layering.SOURCES):
        read += 1
        text = (tree.workspace() / path).read_text(encoding="utf-8")
        found += layering.violations(path.as_posix(), text)
    assert read > 0, "no source was found"
    assert not found, "\n" + "\n".join(found)


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("ir/a.cc", '"ir/type.h"'),
        ("ir/a.cc", '"absl/status/status.h"'),
        ("ir/fn_serialize.cc", '"ir/fn.pb.h"'),
        ("transforms/a.cc", '"ir/type.h"'),
        ("tracer/a.h", '"tracer/b.h"'),
        ("lowering/emit/a.cc", '"mlir/IR/Builders.h"'),
        ("lowering/cpu/mlir/builder.h", '"mlir/IR/Builders.h"'),
        ("lowering/a.cc", '"lowering/cpu/mlir/builder.h"'),
        ("lowering/cpu/mlir/body.h", '"lowering/cpu/mlir/builder.h"'),
        ("lowering/a.cc", '"lowering/cpu/mlir/body.h"'),
        ("lowering/a.cc", '"transforms/ad/jvp.h"'),
        ("backends/cpu/a.cc", '"lowering/abi/artifact.h"'),
        ("backends/cpu/a.h", '"lowering/abi/abi.h"'),
        ("backends/cpu/a.h", '"base/dtype.h"'),
        ("driver/a.cc", '"transforms/opt/pass.h"'),
        ("python/a.cc", '"tracer/trace.h"'),
        ("backends/cuda/a.cc", "<cuda.h>"),
        ("backends/collectives/mpi.cc", "<mpi.h>"),
        ("python/a.cc", "<pybind11/pybind11.h>"),
        ("python/a.cc", '"backends/cpu/a.h"'),
        ("tests/a.cc", '"transforms/ad/jvp.h"'),
        ("ir/a.cc", "<vector>"),
    ],
)
def test_allowed(name, header):
    assert list(layering.violations(name, f"#include {header}\n")) == []


@pytest.mark.parametrize(
    ("name", "header"),
    [
        ("ir/a.cc", '"transforms/ad/jvp.h"'),
        ("ir/a.h", '"lowering/abi/abi.h"'),
        ("tracer/a.cc", '"transforms/ad/jvp.h"'),
        ("transforms/a.cc", '"tracer/trace.h"'),
        ("transforms/a.cc", '"lowering/lower.h"'),
        ("lowering/a.cc", '"backends/cpu/a.h"'),
        ("lowering/a.cc", '"tracer/trace.h"'),
        ("driver/a.cc", '"tracer/trace.h"'),
        ("lowering/a.cc", '"python/a.h"'),
        ("backends/cpu/a.cc", '"ir/type.h"'),
        ("backends/cpu/a.cc", '"lowering/lower.h"'),
        ("ir/a.cc", '"tests/util.h"'),
        ("lowering/a.h", '"mlir/IR/Builders.h"'),
        ("lowering/a.h", '"lowering/cpu/mlir/builder.h"'),
        ("python/a.cc", '"lowering/cpu/mlir/builder.h"'),
        ("lowering/a.h", '"lowering/cpu/mlir/body.h"'),
        ("backends/cpu/a.cc", '"llvm/ADT/StringRef.h"'),
        ("lowering/a.cc", "<cuda.h>"),
        ("backends/cpu/a.cc", "<cuda_runtime.h>"),
        ("backends/cpu/a.cc", "<nccl.h>"),
        ("backends/cpu/a.cc", "<mpi.h>"),
        ("ir/a.cc", "<Python.h>"),
        ("tracer/a.cc", "<pybind11/pybind11.h>"),
        ("ir/fn.cc", '"ir/fn.pb.h"'),
        ("ir/fn_serialize.h", '"ir/fn.pb.h"'),
        ("ir/fn.cc", "<google/protobuf/message.h>"),
        ("ir/a.cc", '"type.h"'),
        ("somewhere/a.cc", '"ir/type.h"'),
    ],
)
def test_refused(name, header):
    found = list(layering.violations(name, f"// a comment\n  #  include {header}  // why\n"))
    assert len(found) == 1
    assert found[0].startswith(f"{name}:2: ")

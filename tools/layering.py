"""The include arrows of the architecture, as a function from a file to its violations.

    base -> ir -> transforms -> lowering -> driver -> python
    ir -> tracer -> python
    base, lowering/abi -> backends -> driver

Bazel's visibility (//:BUILD.bazel) checks the same on targets; this checks the #include lines themselves, which system
headers (MLIR, CUDA, pybind11, protobuf) need because the compiler finds those without any dependency.
"""

import re
from collections.abc import Iterator
from pathlib import PurePosixPath

SOURCES = (".h", ".cc", ".hpp", ".cpp", ".cu", ".cuh", ".inc")

_INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.MULTILINE)

_LIBRARIES_IN_CPP = {"base", "ir", "tracer", "transforms", "lowering", "backends", "driver"}
_EVERYTHING = _LIBRARIES_IN_CPP | {"python", "tests", "bench", "compat", "examples", "tools"}

# Folder -> the folders whose headers it may include, with all that is in them.
_ARROWS = {
    "base": {"base"},
    "ir": {"base", "ir"},
    "tracer": {"base", "ir", "tracer"},
    "transforms": {"base", "ir", "transforms"},
    "lowering": {"base", "ir", "transforms", "lowering"},
    "lowering/abi": {"base", "lowering/abi"},
    "backends": {"base", "lowering/abi", "backends"},
    "driver": {"base", "ir", "transforms", "lowering", "backends", "driver"},
    "python": _LIBRARIES_IN_CPP | {"python"},
    "tests": _EVERYTHING,
    "bench": _EVERYTHING,
    "compat": _EVERYTHING,
    "examples": _EVERYTHING,
    "tools": _EVERYTHING,
}


def _sees(folder: str) -> set[str] | None:
    """What a folder may see: as the nearest one above it that the table has. None where there is none."""
    while folder not in _ARROWS:
        folder, slash, _ = folder.rpartition("/")
        if not slash:
            return None
    return _ARROWS[folder]


# The first folder of third-party headers that are written in quotes.
_FOREIGN = {
    "absl",
    "benchmark",
    "boost",
    "google",
    "gtest",
    "llvm",
    "llvm-c",
    "mlir",
    "mlir-c",
    "pybind11",
}


def _backend_of(path: PurePosixPath, *names: str) -> bool:
    """Whether the file belongs to a backend of that name: backends/**/NAME/** or backends/**/NAME*.cc."""
    return path.parts[0] == "backends" and (
        any(part in names for part in path.parts[1:-1]) or path.name.startswith(names)
    )


def _is_serialiser(path: PurePosixPath) -> bool:
    stem = path.stem
    return path.suffix == ".cc" and ("serialize" in stem or "artifact" in stem or stem.endswith("_proto"))


# Lists of headers that are compiled once (tools/cc.bzl), by the library that each is there for.
_PRECOMPILED = PurePosixPath("third_party/headers")


def _may_see_mlir(path: PurePosixPath) -> bool:
    return path == _PRECOMPILED / "mlir.h" or (
        path.parts[0] == "lowering" and (path.suffix == ".cc" or path.parent.name == "mlir")
    )


# (headers, where they may be included, how to say that)
_LIBRARIES = [
    (
        re.compile(r"(mlir|mlir-c|llvm|llvm-c)/|lowering/(.*/)?mlir/"),
        _may_see_mlir,
        "MLIR and LLVM appear only in sources of lowering/ and in headers for those alone: "
        "lowering/cpu/mlir/*.h, lowering/gpu/mlir/*.h",
    ),
    (
        re.compile(
            r"(cuda|cublas|cudnn|cufft|curand|cusolver|cusparse|nvJitLink|nvPTXCompiler|nvml|nvrtc|nvvm|nvtx)[\w/]*\.h"
        ),
        lambda path: _backend_of(path, "cuda", "nccl"),
        "CUDA appears only in backends/cuda/",
    ),
    (
        re.compile(r"nccl\w*\.h"),
        lambda path: _backend_of(path, "cuda", "nccl"),
        "NCCL appears only in its backend's folder",
    ),
    (re.compile(r"mpi\w*\.h"), lambda path: _backend_of(path, "mpi"), "MPI appears only in its backend's folder"),
    (
        re.compile(r"Python\.h|pybind11/|numpy/"),
        lambda path: path.parts[0] == "python" or path == _PRECOMPILED / "python.h",
        "Python's C API and pybind11 appear only in python/",
    ),
    (
        re.compile(r"google/protobuf/|.*\.pb\.h$"),
        _is_serialiser,
        "protobuf appears only in *serialize*.cc, *artifact*.cc and *_proto.cc",
    ),
]


def violations(name: str, text: str) -> Iterator[str]:
    """What is wrong with the #include lines of one file.

    Args:
      name: the path from the workspace's root.
      text: the file's contents.
    """
    path = PurePosixPath(name)
    folder = path.parent.as_posix()
    seen = _sees(folder)
    for match in _INCLUDE.finditer(text):
        delimiter, header = match.groups()
        where = f"{name}:{text.count(chr(10), 0, match.start(1)) + 1}: #include of {header}"
        for pattern, allowed, rule in _LIBRARIES:
            if pattern.match(header) and not allowed(path):
                yield f"{where}: {rule}"
        first, _, rest = header.partition("/")
        if rest and first in _ARROWS:
            if seen is None:
                yield f"{where}: {folder}/ is not a folder of the architecture (see tools/layering.py)"
            elif not any(header.startswith(allowed + "/") for allowed in seen):
                yield f"{where}: {folder}/ may not see {PurePosixPath(header).parent}/"
        elif delimiter == '"' and first not in _FOREIGN and path.parent != _PRECOMPILED:
            yield f"{where}: headers of Weft are named from the root, others by <...>"

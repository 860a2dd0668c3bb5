"""Finds CUDA's headers, or does without them.

@cuda//:headers         the headers and -DWEFT_HAVE_CUDA=1; an empty library where there are none
@cuda//:config.bzl      CUDA_AVAILABLE and NCCL_AVAILABLE, for BUILD files

Nothing is linked: the driver and the CUDA libraries are opened at run time, so one build serves machines with and
without a GPU. WEFT_CUDA_HOME names another folder than CUDA_HOME or /usr/local/cuda; WEFT_CUDA_HOME=none means none.
"""

_BUILD_WITH = """
cc_library(
    name = "headers",
    hdrs = glob(
        ["include/**/*.h", "include/**/*.hpp"],
        exclude = ["include/cccl/**", "include/nvtx3/**", "include/thrust/**", "include/cub/**"],
    ),
    defines = [{defines}],
    includes = ["include"],
    linkopts = ["-ldl"],
    visibility = ["//visibility:public"],
)
"""

_BUILD_WITHOUT = """
cc_library(
    name = "headers",
    visibility = ["//visibility:public"],
)
"""

def _find(rctx):
    chosen = rctx.os.environ.get("WEFT_CUDA_HOME", "")
    if chosen == "none":
        return None
    for root in [chosen, rctx.os.environ.get("CUDA_HOME", ""), "/usr/local/cuda"]:
        if root and rctx.path(root + "/include/cuda.h").exists:
            return rctx.path(root + "/include")
    return None

def _cuda_configure_impl(rctx):
    include = _find(rctx)
    nccl = False
    if include:
        nccl = rctx.path(str(include) + "/nccl.h").exists
        rctx.symlink(include, "include")
        defines = ["WEFT_HAVE_CUDA=1"] + (["WEFT_HAVE_NCCL=1"] if nccl else [])
        rctx.file("BUILD.bazel", _BUILD_WITH.format(defines = ", ".join(["\"%s\"" % d for d in defines])))
    else:
        rctx.file("BUILD.bazel", _BUILD_WITHOUT)
    rctx.file("config.bzl", "CUDA_AVAILABLE = {}\nNCCL_AVAILABLE = {}\n".format(include != None, nccl))

cuda_configure = repository_rule(
    implementation = _cuda_configure_impl,
    configure = True,
    environ = ["CUDA_HOME", "WEFT_CUDA_HOME"],
    local = True,
)

"""Makes the interpreter that ./bazelw chose (its venv) known to Bazel.

@python//:headers    Python.h and its friends
@python//:pybind11   pybind11's headers, on top of :headers
@python//:toolchain  the interpreter that py_binary and py_test run under
"""

_BUILD = """
load("@bazel_tools//tools/python:toolchain.bzl", "py_runtime_pair")

package(default_visibility = ["//visibility:public"])

cc_library(
    name = "headers",
    hdrs = glob(["include/python/**/*.h"]),
    includes = ["include/python"],
)

cc_library(
    name = "pybind11",
    hdrs = glob(["include/pybind11/pybind11/**/*.h"]),
    includes = ["include/pybind11"],
    deps = [":headers"],
)

py_runtime(
    name = "runtime",
    interpreter_path = "{interpreter}",
    python_version = "PY3",
    stub_shebang = "#!/usr/bin/python3",
)

py_runtime_pair(
    name = "runtime_pair",
    py3_runtime = ":runtime",
)

toolchain(
    name = "toolchain",
    toolchain = ":runtime_pair",
    toolchain_type = "@bazel_tools//tools/python:toolchain_type",
)
"""

_QUERY = "import sysconfig, pybind11; print(sysconfig.get_path('include')); print(pybind11.get_include())"

def _python_configure_impl(rctx):
    interpreter = rctx.os.environ.get("WEFT_PYTHON", "")
    if not interpreter:
        fail("WEFT_PYTHON is not set: call ./bazelw instead of bazel once, it installs what is missing and writes .bazelrc.user.")
    if not rctx.path(interpreter).exists:
        fail("The interpreter {} is gone: call ./bazelw, it makes a new one.".format(interpreter))
    result = rctx.execute([interpreter, "-c", _QUERY])
    if result.return_code != 0:
        fail("{} cannot tell where the headers of Python and pybind11 are: {}".format(interpreter, result.stderr))
    python_include, pybind11_include = result.stdout.strip().split("\n")
    if not rctx.path(python_include + "/Python.h").exists:
        fail("{}/Python.h is missing: install python3-dev, or call ./bazelw, which does.".format(python_include))
    rctx.symlink(python_include, "include/python")
    rctx.symlink(pybind11_include, "include/pybind11")
    rctx.file("BUILD.bazel", _BUILD.format(interpreter = interpreter))

python_configure = repository_rule(
    implementation = _python_configure_impl,
    configure = True,
    environ = ["WEFT_PYTHON"],
    local = True,
)

// What the Python bindings include. Compiled once, see tools/cc.bzl.
#include <pybind11/pybind11.h>
#include <pybind11/stl.h>

#include "third_party/headers/common.h"

// What tests include. Compiled once, see tools/cc.bzl.
#include <gtest/gtest.h>

#include "third_party/headers/common.h"

#!/bin/bash
# What --config=asan|ubsan|tsan runs tests under (--run_under in .bazelrc): options and suppressions that are files of the
# tree, and the sanitizer's runtime in front of Python, which is not linked with it.
#   sanitized.sh asan|ubsan|tsan TEST ARGUMENTS...
set -euo pipefail
kind="$1"
shift
folder="$PWD/tools"   # tests start in the root of their runfiles
common="print_stacktrace=1:suppressions=$folder/suppressions/$kind.txt"
# LLVM gives its threads signal stacks of its own, which AddressSanitizer would take for its own when they end.
# More memory than there is is an error of the program, which tests ask for.
export ASAN_OPTIONS="allocator_may_return_null=1:use_sigaltstack=0:detect_stack_use_after_return=1:strict_string_checks=1:check_initialization_order=1"
export LSAN_OPTIONS="suppressions=$folder/suppressions/lsan.txt:print_suppressions=0"
export UBSAN_OPTIONS="$common"
# A fork takes every lock there is (base/fork_safe_mutex.h), and the deadlock detector gives up at 64. Children of a
# fork start threads: that ThreadSanitizer cannot follow them there is no reason to end them.
export TSAN_OPTIONS="$common:halt_on_error=1:detect_deadlocks=0:die_after_fork=0:ignore_noninstrumented_modules=1:allocator_may_return_null=1"
# Libraries that are not instrumented: one thread, no code of their own making.
export OPENBLAS_NUM_THREADS=1 OMP_NUM_THREADS=1
if [[ "$(head -c 2 "$1")" == '#!' ]]; then
  # CPython keeps much until the process ends; leaks are looked for in the C++ tests.
  ASAN_OPTIONS+=":detect_leaks=0"
  case "$kind" in
    asan) runtime=libasan.so ;;
    ubsan) runtime=libubsan.so ;;
    tsan) runtime=libtsan.so ;;
  esac
  # libstdc++ too: the interpreter does not load it, and the runtime looks for its functions when it starts.
  export LD_PRELOAD="$(gcc -print-file-name="$runtime") $(gcc -print-file-name=libstdc++.so)"
fi
exec "$@"

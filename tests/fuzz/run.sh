#!/bin/sh
# Fuzzes the readers of foreign text and bytes with libFuzzer (clang-19; AddressSanitizer and UndefinedBehaviorSanitizer).
#
#   tests/fuzz/run.sh [text|bytes|all] [seconds]         default: all, 60 seconds each
#
# New interesting inputs stay in $WEFT_FUZZ_DIR (default: a folder under the user's cache). Minimise them into the
# committed corpus with
#   tests/fuzz/run.sh merge
# A finding stops the run and leaves a file crash-*; put it into tests/fuzz/corpus/<target>/ with its fix.
set -eu
root=$(cd "$(dirname "$0")/../.." && pwd)
work=${WEFT_FUZZ_DIR:-${XDG_CACHE_HOME:-$HOME/.cache}/weft/fuzz}
cxx=${CXX:-clang++-19}
have_clang() { echo '#include <sanitizer/common_interface_defs.h>' | "$cxx" -x c++ -E - >/dev/null 2>&1; }
"$root/bazelw" venv >/dev/null  # the libraries; clang is needed by nothing else
if ! have_clang && [ "$cxx" = clang++-19 ]; then
  sudo=; [ "$(id -u)" = 0 ] || sudo=sudo
  $sudo env DEBIAN_FRONTEND=noninteractive apt-get -y -q install --no-install-recommends clang-19 libclang-rt-19-dev >&2 || true
fi
have_clang || { echo "run.sh: needs $cxx and its sanitizers (apt-get install clang-19 libclang-rt-19-dev)" >&2; exit 1; }
what=${1:-all}
seconds=${2:-60}
# Objects name their sources, so each checkout has its own.
build=$work/build-$(printf %s "$root" | cksum | cut -d ' ' -f 1)
mkdir -p "$build/obj" "$build/gen" "$work/text" "$work/bytes"

flags="-std=c++20 -O1 -g -fno-omit-frame-pointer -fsanitize=address,undefined -fno-sanitize-recover=undefined -I$root -I$build/gen"
(cd "$root" && protoc --proto_path=. --cpp_out="$build/gen" ir/exchange/weft.proto)

# make compiles what changed; one rule per source.
{
  objects=
  for source in $(find "$root/base" "$root/ir" -name '*.cc' ! -name '*_test.cc' ! -path '*/samples/*' | sort) $(find "$build/gen" -name '*.pb.cc'); do
    object=$build/obj/$(printf %s "${source#"$root"/}" | tr / _).o
    objects="$objects $object"
    printf '%s: %s\n\t%s %s -fsanitize=fuzzer-no-link -MMD -MP -c -o $@ %s\n' "$object" "$source" "$cxx" "$flags" "$source"
  done
  for target in text bytes; do
    printf '%s: %s%s\n\t%s %s -fsanitize=fuzzer -o $@ $^ %s\n' "$build/$target-fuzzer" "$root/tests/fuzz/${target}_fuzzer.cc" "$objects" \
      "$cxx" "$flags" "-lprotobuf -labsl_strings -labsl_strings_internal -labsl_hash -labsl_city -labsl_low_level_hash -labsl_raw_hash_set -labsl_throw_delegate -labsl_raw_logging_internal -labsl_int128 -lboost_context -lmd"
  done
  echo "-include $build/obj/*.d"
} >"$build/Makefile"
make -s -j"$(nproc)" -f "$build/Makefile" "$build/text-fuzzer" "$build/bytes-fuzzer"

for target in text bytes; do
  corpus=$root/tests/fuzz/corpus/$target
  case $what in
    merge) "$build/$target-fuzzer" -merge=1 -max_len=4096 "$corpus" "$work/$target" ;;
    "$target"|all)
      dictionary=
      [ "$target" = text ] && dictionary="-dict=$root/tests/fuzz/text.dict"
      (cd "$work" && "$build/$target-fuzzer" -max_total_time="$seconds" -timeout=10 -rss_limit_mb=4096 -max_len=4096 -print_final_stats=1 $dictionary "$target" "$corpus") ;;
  esac
done

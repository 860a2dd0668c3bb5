// Products and what follows them on some rows after the other (lowering/program/by_rows.h): the numbers of the
// reference interpreter, whatever the sizes, the dtypes and the number of threads.
#include <gtest/gtest.h>

#include <memory>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "backends/cpu/core/thread_pool.h"
#include "driver/executable.h"
#include "ir/eval/eval.h"
#include "ir/text/parser.h"

namespace weft {
namespace {

std::string Replaced(std::string text, const std::vector<std::pair<std::string, std::string>>& pairs) {
  for (const auto& [from, to] : pairs) {
    for (size_t at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size()))
      text.replace(at, from.size(), to);
  }
  return text;
}

// Small whole numbers: sums and halves are exact, whatever the order.
Tensors Numbers(const Fn& fn) {
  Tensors all;
  int64_t seed = 1;
  for (const Type& type : fn.ParamTypes()) {
    Shape shape;
    for (const Dim& d : type.dims) shape.push_back(*d.TryValue());
    Tensor t(type.dtype, std::move(shape));
    for (int64_t i = 0; i < t.size(); ++i) t.Set(i, static_cast<double>((i * 31 + i / 97 + seed) % 7) - 3);
    all.push_back(std::move(t));
    seed += 2;
  }
  return all;
}

struct Program {
  std::string name, text;
};

// T: the dtype, M, N, K: rows, columns and what is summed.
std::vector<Program> Programs() {
  return {
      {"bias and maximum",
       "fn f(x: T[M,K], w: T[K,N], b: T[N]) {\n  p = contract[spec=\"ij,jk->ik\"] x w\n"
       "  c = broadcast[dims=[1], shape=<M,N>] b\n  s = add p c\n  o = neg s\n  r = max s o\n  return r\n}\n"},
      {"alpha and beta",
       "fn f(x: T[M,K], w: T[K,N], c: T[M,N]) {\n  p = contract[spec=\"ij,jk->ik\"] x w\n  a = add p p\n"
       "  d = add a c\n  r = mul d d\n  return r\n}\n"},
      {"the product is a result, too",
       "fn f(x: T[M,K], w: T[K,N]) {\n  p = contract[spec=\"ij,jk->ik\"] x w\n  r = neg p\n  return p, r\n}\n"},
      {"two layers",
       "fn f(x: T[M,K], w: T[K,N], v: T[N,K], b: T[K]) {\n  p = contract[spec=\"ij,jk->ik\"] x w\n  h = neg p\n"
       "  q = contract[spec=\"ij,jk->ik\"] h v\n  c = broadcast[dims=[1], shape=<M,K>] b\n  r = add q c\n"
       "  return r\n}\n"},
      {"two products that meet",
       "fn f(x: T[M,K], w: T[K,N], y: T[M,K], v: T[K,N]) {\n  p = contract[spec=\"ij,jk->ik\"] x w\n"
       "  q = contract[spec=\"ij,jk->ik\"] y v\n  r = max p q\n  return r\n}\n"},
      {"three products side by side",
       "fn f(x: T[M,K], u: T[K,N], v: T[K,N], w: T[K,N]) {\n  p = contract[spec=\"ij,jk->ik\"] x u\n"
       "  q = contract[spec=\"ij,jk->ik\"] x v\n  s = contract[spec=\"ij,jk->ik\"] x w\n  a = neg p\n  b = abs q\n"
       "  c = neg s\n  return a, b, c\n}\n"},
      {"rows less their largest",
       "fn f(x: T[M,K], w: T[K,N]) {\n  p = contract[spec=\"ij,jk->ik\"] x w\n  m = reduce_max[dims=[1]] p\n"
       "  c = broadcast[dims=[0], shape=<M,N>] m\n  r = sub p c\n  return r\n}\n"},
      {"columns less their largest",
       "fn f(x: T[M,K], w: T[K,N]) {\n  p = contract[spec=\"ij,jk->ik\"] x w\n  m = reduce_max[dims=[0]] p\n"
       "  c = broadcast[dims=[1], shape=<M,N>] m\n  r = sub p c\n  return r\n}\n"},
      {"the transpose",
       "fn f(x: T[M,K], w: T[K,N], c: T[N,M]) {\n  p = contract[spec=\"ij,jk->ik\"] x w\n"
       "  t = transpose[perm=[1,0]] p\n  r = add t c\n  return r\n}\n"},
      {"a layer backwards",
       "fn f(g: T[M,K], w: T[N,K], h: T[M,N], x: T[M,K]) {\n  p = contract[spec=\"ij,kj->ik\"] g w\n  s = neg h\n"
       "  d = mul p s\n  a = contract[spec=\"ij,ik->jk\"] x d\n  b = reduce_sum[dims=[0]] d\n  e = neg p\n"
       "  return a, b, e\n}\n"},
      {"layers that take turns in two rooms",
       "fn f(x: T[M,N], w: T[N,N]) {\n  s = sub w w\n  t = add s s\n  p = contract[spec=\"ij,jk->ik\"] x w\n"
       "  a = add p x\n  q = contract[spec=\"ij,jk->ik\"] a t\n  b = sub x q\n"
       "  u = contract[spec=\"ij,jk->ik\"] b w\n  c = neg u\n  v = contract[spec=\"ij,jk->ik\"] c t\n"
       "  d = add v c\n  return d\n}\n"},
      {"rows that move",
       "fn f(x: T[M,K], w: T[K,N]) {\n  p = contract[spec=\"ij,jk->ik\"] x w\n  m = reverse[dims=[0]] p\n  r = add p "
       "m\n"
       "  return r\n}\n"},
      {"one array is both factors",
       "fn f(x: T[M,M], b: T[M]) {\n  p = contract[spec=\"ij,jk->ik\"] x x\n  c = broadcast[dims=[1], shape=<M,M>] b\n"
       "  r = add p c\n  return r\n}\n"},
      {"a matrix and its transpose",
       "fn f(x: T[M,K], b: T[M]) {\n  p = contract[spec=\"ij,kj->ik\"] x x\n  c = broadcast[dims=[1], shape=<M,M>] b\n"
       "  r = add p c\n  return r\n}\n"},
      {"a stack",
       "fn f(x: T[3,M,K], w: T[3,K,N], b: T[N]) {\n  p = contract[spec=\"bij,bjk->bik\"] x w\n"
       "  c = broadcast[dims=[2], shape=<3,M,N>] b\n  r = add p c\n  return r\n}\n"},
      {"an attention without its quotients",
       "fn f(q: T[3,M,K], k: T[3,N,K], v: T[3,N,K]) {\n  s = contract[spec=\"bij,bkj->bik\"] q k\n"
       "  a = add s s\n  p = contract[spec=\"bij,bjk->bik\"] a v\n  r = neg p\n  return r\n}\n"},
      {"a stack of rows less their largest",
       "fn f(x: T[2,3,M,K], w: T[2,3,K,N]) {\n  p = contract[spec=\"abij,abjk->abik\"] x w\n"
       "  m = reduce_max[dims=[3]] p\n  c = broadcast[dims=[0,1,2], shape=<2,3,M,N>] m\n  r = sub p c\n  return "
       "r\n}\n"},
  };
}

TEST(ByRows, TheNumbersOfTheInterpreter) {
  const int before = cpu::NumThreads();
  for (const Program& program : Programs()) {
    for (const char* dtype : {"f32", "f64", "c64", "i32", "bf16"}) {
      const bool complex = std::string(dtype) == "c64", narrow = std::string(dtype) == "bf16";
      if (complex && program.text.find("max") != std::string::npos) continue;
      if (narrow && program.name != "bias and maximum") continue;  // sums are rounded
      for (const auto& [m, n, k] :
           {std::tuple{"64", "160", "96"}, {"257", "48", "100"}, {"531", "129", "16"}, {"130", "256", "32"}}) {
        const bool first = std::string(m) == "64";
        if (narrow ? std::string(k) != "16" : !first && std::string(dtype) != "f32") continue;
        const FnRef fn =
            ParseFn(Replaced(program.text, {{"T[", std::string(dtype) + "["}, {"M", m}, {"N", n}, {"K", k}}));
        const Tensors in = Numbers(*fn), want = Eval(*fn, in);
        CompileRequest request{fn};
        request.passes = {};
        request.use_disk_cache = false;
        const auto compiled = Compile(request);
        for (const int threads : {1, 2, 3}) {
          cpu::SetNumThreads(threads);
          const Tensors got = compiled->Run(in);
          ASSERT_EQ(got.size(), want.size());
          for (size_t r = 0; r < got.size(); ++r) {
            EXPECT_TRUE(got[r].BitEquals(want[r])) << program.name << ", " << dtype << ", " << m << " x " << n << " x "
                                                   << k << ", result " << r << ", " << threads << " threads";
          }
        }
      }
    }
  }
  cpu::SetNumThreads(before);
}

}  // namespace
}  // namespace weft

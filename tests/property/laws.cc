#include "tests/property/laws.h"

#include <cmath>

#include "driver/executable.h"
#include "ir/builder.h"
#include "ir/eval/eval.h"
#include "ir/exchange/serialize.h"
#include "ir/ops.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/verify.h"
#include "tests/property/random_fn.h"
#include "transforms/ad/grad.h"
#include "transforms/ad/jet.h"
#include "transforms/ad/jvp.h"
#include "transforms/batch/vmap.h"
#include "transforms/opt/pass.h"

namespace weft {
namespace {

constexpr double kStep = 1e-5;

// How far values may differ: exact transforms not at all beyond rounding, derivatives by the error of differences.
std::string Compare(const Tensors& got, const Tensors& want, double tolerance, const std::string& what) {
  if (got.size() != want.size())
    return what + ": " + std::to_string(got.size()) + " results, expected " + std::to_string(want.size());
  for (size_t r = 0; r < got.size(); ++r) {
    if (!(got[r].type() == want[r].type()))
      return what + ": result " + std::to_string(r) + " has type " + got[r].type().ToString() + ", expected " +
             want[r].type().ToString();
    double scale = 1;
    for (int64_t i = 0; i < want[r].size(); ++i) scale = std::max(scale, std::abs(want[r].Get(i)));
    for (int64_t i = 0; i < got[r].size(); ++i) {
      const double g = got[r].Get(i).real(), w = want[r].Get(i).real();
      if (!std::isfinite(w)) continue;
      if (!(std::abs(g - w) <= tolerance * scale)) {
        return what + ": result " + std::to_string(r) + " element " + std::to_string(i) + " is " + std::to_string(g) +
               ", expected " + std::to_string(w);
      }
    }
  }
  return "";
}

Mask Inexact(const Fn& f) {
  Mask m;
  for (const Param& p : f.params()) m.push_back(IsInexact(p.type.dtype));
  return m;
}

// What difference quotients with steps h, h / 2 and h / 4 tend to, by Richardson's extrapolation: their errors are
// series in the square of the step, whose first two terms cancel. NaN where neighbours disagree: a kink or a jump lies
// within the step, and there is no derivative to compare with. A small jump, such as from x to sin(x) at 0.02, shows
// only once the terms have cancelled: then a smooth function's neighbours agree to many digits.
std::complex<double> Extrapolated(std::complex<double> h1, std::complex<double> h2, std::complex<double> h4) {
  for (const auto& [coarse, fine] : {std::pair{h1, h2}, std::pair{h2, h4}}) {
    if (!(std::abs(coarse - fine) <= 1e-2 * (1 + std::abs(fine)))) return NAN;
  }
  const auto once = (4.0 * h2 - h1) / 3.0, twice = (4.0 * h4 - h2) / 3.0;
  if (!(std::abs(once - twice) <= 3e-5 * (1 + std::abs(twice)))) return NAN;
  return (16.0 * twice - once) / 15.0;
}

// Directional derivative along dx by central differences.
Tensors Difference(const Fn& f, const Tensors& x, const Tensors& dx) {
  auto at = [&](double h) {
    Tensors moved = x;
    size_t k = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      if (!IsInexact(x[i].dtype())) continue;
      moved[i] = x[i].Copy();
      for (int64_t e = 0; e < x[i].size(); ++e) moved[i].Set(e, x[i].Get(e) + h * dx[k].Get(e));
      ++k;
    }
    return Eval(f, moved);
  };
  const double h = 1e3 * kStep;
  const Tensors a = at(h), b = at(-h), c = at(h / 2), d = at(-h / 2), m = at(h / 4), n = at(-h / 4);
  Tensors out;
  for (size_t r = 0; r < a.size(); ++r) {
    if (!IsInexact(a[r].dtype())) continue;
    Tensor t(a[r].dtype(), a[r].shape());
    for (int64_t e = 0; e < t.size(); ++e) {
      t.Set(e, Extrapolated((a[r].Get(e) - b[r].Get(e)) / (2 * h), (c[r].Get(e) - d[r].Get(e)) / h,
                            (m[r].Get(e) - n[r].Get(e)) / (h / 2)));
    }
    out.push_back(t);
  }
  return out;
}

Tensors Directions(const Fn& f, std::mt19937& rng) {
  std::uniform_real_distribution<double> uniform(-1, 1);
  Tensors dx;
  for (const Param& p : f.params()) {
    if (!IsInexact(p.type.dtype)) continue;
    Tensor t(p.type.dtype, StaticSizes(p.type.dims, "a direction"));
    for (int64_t e = 0; e < t.size(); ++e) t.Set(e, uniform(rng));
    dx.push_back(t);
  }
  return dx;
}

std::string CheckJvp(const FnRef& f, const FnRef& jvp, std::mt19937& rng) {
  const Tensors x = RandomArgs(*f, rng), dx = Directions(*f, rng);
  Tensors args = x;
  args.insert(args.end(), dx.begin(), dx.end());
  Tensors want = Eval(*f, x);
  for (const Tensor& t : Difference(*f, x, dx)) want.push_back(t);
  return Compare(Eval(*jvp, args), want, 1e-4, "jvp");
}

// Coefficients 1 and 2 along x + dx s + ddx s^2: the derivative along dx, and half the second one along the curve.
std::string CheckJet(const FnRef& f, const FnRef& jet, std::mt19937& rng) {
  const Tensors x = RandomArgs(*f, rng), dx = Directions(*f, rng), ddx = Directions(*f, rng);
  Tensors args = x, want = Eval(*f, x);
  for (size_t i = 0; i < dx.size(); ++i) args.push_back(dx[i]), args.push_back(ddx[i]);
  const Tensors first = Difference(*f, x, dx);
  auto at = [&](double s) {
    Tensors moved = x;
    size_t k = 0;
    for (size_t i = 0; i < x.size(); ++i) {
      if (!IsInexact(x[i].dtype())) continue;
      moved[i] = x[i].Copy();
      for (int64_t e = 0; e < x[i].size(); ++e) moved[i].Set(e, x[i].Get(e) + s * dx[k].Get(e) + s * s * ddx[k].Get(e));
      ++k;
    }
    return Eval(*f, moved);
  };
  const double h = 2e3 * kStep;
  const Tensors middle = at(0), a = at(h), b = at(-h), c = at(h / 2), d = at(-h / 2), m = at(h / 4), n = at(-h / 4);
  size_t k = 0;
  for (size_t r = 0; r < middle.size(); ++r) {
    if (!IsInexact(middle[r].dtype())) continue;
    Tensor t(middle[r].dtype(), middle[r].shape());
    for (int64_t e = 0; e < t.size(); ++e) {
      const auto y = middle[r].Get(e);
      const auto second = Extrapolated((a[r].Get(e) - 2.0 * y + b[r].Get(e)) / (2 * h * h),
                                       (c[r].Get(e) - 2.0 * y + d[r].Get(e)) / (h * h / 2),
                                       (m[r].Get(e) - 2.0 * y + n[r].Get(e)) / (h * h / 8));
      t.Set(e, std::isnan(first[k].Get(e).real()) ? std::complex<double>(NAN) : second);
    }
    want.push_back(first[k++]);
    want.push_back(t);
  }
  return Compare(Eval(*jet, args), want, 1e-3, "jet");
}

// sum(sin(results)): a scalar that every result matters to.
FnRef Loss(const FnRef& f) {
  Builder b(f->name());
  Atoms args;
  for (const Param& p : f->params()) args.push_back(b.Parameter(p.type));
  std::optional<Atom> total;
  for (const Atom& y : b.Inline(*f, args)) {
    if (!IsFloat(b.DTypeOf(y))) continue;
    total = AddTangents(b, total, ReduceSum(b, Sin(b, y), Range(0, b.TypeOf(y).rank())));
  }
  return b.Build({*total});
}

std::string CheckGrad(const FnRef& loss, const FnRef& grad, std::mt19937& rng) {
  const Tensors x = RandomArgs(*loss, rng), dx = Directions(*loss, rng);
  const Tensors g = Eval(*grad, x);
  double dot = 0;
  for (size_t i = 0; i < g.size(); ++i) {
    for (int64_t e = 0; e < g[i].size(); ++e) dot += g[i].Get(e).real() * dx[i].Get(e).real();
  }
  return Compare({Tensor::Scalar<double>(DType::kF64, dot)}, Difference(*loss, x, dx), 1e-4, "grad");
}

std::string CheckVmap(const FnRef& f, const FnRef& vmapped, int64_t lanes, std::mt19937& rng) {
  std::vector<Tensors> each;
  for (int64_t l = 0; l < lanes; ++l) each.push_back(RandomArgs(*f, rng));
  Tensors stacked;
  for (size_t i = 0; i < f->params().size(); ++i) {
    Shape shape = each[0][i].shape();
    shape.insert(shape.begin(), lanes);
    Tensor t(each[0][i].dtype(), shape);
    for (int64_t l = 0; l < lanes; ++l)
      std::memcpy(t.data<char>() + l * each[l][i].bytes(), each[l][i].raw(), each[l][i].bytes());
    stacked.push_back(t);
  }
  const Tensors out = Eval(*vmapped, stacked);
  for (int64_t l = 0; l < lanes; ++l) {
    Tensors lane;
    for (const Tensor& t : out) {
      Tensor part(t.dtype(), Shape(t.shape().begin() + 1, t.shape().end()));
      std::memcpy(part.raw(), t.data<char>() + l * part.bytes(), part.bytes());
      lane.push_back(part);
    }
    const std::string bad = Compare(lane, Eval(*f, each[l]), 1e-9, "vmap, lane " + std::to_string(l));
    if (!bad.empty()) return bad;
  }
  return "";
}

std::string CheckSame(const FnRef& f, const FnRef& g, const std::string& what, std::mt19937& rng) {
  const Tensors x = RandomArgs(*f, rng);
  return Compare(Eval(*g, x), Eval(*f, x), 1e-9, what);
}

}  // namespace

const std::vector<std::string>& ChainLinks() {
  static const auto& links =
      *new std::vector<std::string>{"jvp", "grad", "jet", "vmap", "remat", "optimize", "text", "bytes", "compile"};
  return links;
}

LawResult ApplyAndCheck(const std::string& link, const FnRef& f, std::mt19937& rng) {
  LawResult r;
  if (link == "jvp") {
    Mask force;
    for (const Type& t : f->ResultTypes()) force.push_back(IsInexact(t.dtype));
    r.transformed = Jvp(f, Inexact(*f), force).fn;
    Verify(*r.transformed);
    r.violation = CheckJvp(f, r.transformed, rng);
  } else if (link == "jet") {
    Mask force;
    for (const Type& t : f->ResultTypes()) force.push_back(IsInexact(t.dtype));
    r.transformed = Jet(f, Inexact(*f), 2, force).fn;
    Verify(*r.transformed);
    r.violation = CheckJet(f, r.transformed, rng);
  } else if (link == "grad") {
    const FnRef loss = Loss(f);
    r.transformed = Grad(loss, {.wrt = Inexact(*loss)});
    Verify(*r.transformed);
    r.violation = CheckGrad(loss, r.transformed, rng);
  } else if (link == "vmap") {
    r.transformed = Batch(f, Mask(f->params().size(), true), Mask(f->results().size(), true), 2).fn;
    Verify(*r.transformed);
    r.violation = CheckVmap(f, r.transformed, 2, rng);
  } else if (link == "remat") {
    Builder b(f->name());
    Atoms args;
    for (const Param& p : f->params()) args.push_back(b.Parameter(p.type));
    r.transformed = b.Build(b.Emit(FindPrim("remat"), args, {}, {f}));
    r.violation = CheckSame(f, r.transformed, link, rng);
  } else if (link == "optimize") {
    r.transformed = Optimize(f);
    Verify(*r.transformed);
    r.violation = CheckSame(f, r.transformed, link, rng);
  } else if (link == "compile") {  // the program stays; native code computes what the interpreter does
    CompileRequest options;
    options.use_cache = options.use_disk_cache = false;
    const Tensors x = RandomArgs(*f, rng);
    r.transformed = f;
    const Tensors plain = Compile(options.For(f))->Run(x);
    r.violation = Compare(plain, Eval(*f, x), 1e-9, link);
    // Arguments whose memory is given away change nothing.
    for (size_t i = 0; i < x.size(); ++i) options.donated.push_back(rng() % 4 != 0);
    Tensors given;
    for (const Tensor& t : x) given.push_back(t.Copy());
    if (r.violation.empty())
      r.violation =
          Compare(Compile(options.For(f))->RunOwned(std::move(given)), plain, 0, link + " with donated arguments");
  } else {
    r.transformed = link == "text" ? ParseFn(Print(*f)) : Deserialize(Serialize(*f));
    if (!r.transformed->StructurallyEquals(*f)) r.violation = link + ": the function that came back differs";
  }
  return r;
}

std::string CheckChain(const FnRef& f, const std::vector<std::string>& chain, unsigned seed) {
  std::mt19937 rng(seed);
  FnRef current = f;
  std::string done;
  for (const std::string& link : chain) {
    done += (done.empty() ? "" : " then ") + link;
    try {
      const LawResult r = ApplyAndCheck(link, current, rng);
      if (!r.violation.empty()) return done + ": " + r.violation;
      current = r.transformed;
    } catch (const Error& error) {
      return done + " raised: " + error.what();
    }
  }
  return "";
}

FnRef Shrink(const FnRef& f, const std::vector<std::string>& chain, unsigned seed) {
  FnRef best = f;
  for (bool again = true; again;) {
    again = false;
    for (size_t k = best->eqns().size(); k-- > 0;) {
      Builder b(best->name());
      Atoms env;
      for (const Param& p : best->params()) env.push_back(b.Parameter(p.type));
      env.resize(best->num_vars());
      for (size_t i = 0; i < best->eqns().size(); ++i) {
        const Eqn& e = best->eqns()[i];
        Atoms operands;
        for (const Atom& a : e.operands) operands.push_back(a.is_var() ? env[a.id()] : a);
        Atoms y;
        if (i == k) {
          for (uint32_t r = 0; r < e.num_results; ++r)
            y.push_back(Zeros(b, best->TypeOf(e.result(static_cast<int>(r)))));
        } else {
          y = b.Clone(e, operands);
        }
        std::copy(y.begin(), y.end(), env.begin() + e.first_result);
      }
      Atoms results;
      for (const Atom& a : best->results()) results.push_back(a.is_var() ? env[a.id()] : a);
      const FnRef smaller = b.Build(results);
      if (smaller->NumEqns() < best->NumEqns() && !CheckChain(smaller, chain, seed).empty()) {
        best = smaller;
        again = true;
        break;
      }
    }
  }
  return best;
}

}  // namespace weft

#include <algorithm>
#include <map>
#include <utility>

#include "absl/strings/ascii.h"
#include "tracer/ops.h"

namespace weft {
namespace {

// An array whose dimensions are named by letters.
struct Named {
  Atom atom;
  std::string letters;
};

// Sums letters that occur nowhere else and takes diagonals of letters that occur twice.
Named Reduce(Builder& b, Named x, const std::string& needed) {
  for (size_t i = 0; i < x.letters.size(); ++i) {
    const size_t j = x.letters.find(x.letters[i], i + 1);
    if (j == std::string::npos) continue;
    // Diagonal: keep where the two indices agree, then sum one of them away.
    const Type type = b.TypeOf(x.atom);
    const Atom row = Iota(b, type.dims, static_cast<int64_t>(i), DType::kI32);
    const Atom column = Iota(b, type.dims, static_cast<int64_t>(j), DType::kI32);
    const Atom kept = Select(b, Eq(b, row, column), x.atom, Zeros(b, type));
    x.atom = ReduceSum(b, kept, {static_cast<int64_t>(j)});
    x.letters.erase(j, 1);
    --i;
  }
  Ints dims;
  std::string rest;
  for (size_t i = 0; i < x.letters.size(); ++i) {
    if (needed.find(x.letters[i]) == std::string::npos)
      dims.push_back(static_cast<int64_t>(i));
    else
      rest += x.letters[i];
  }
  if (!dims.empty()) x = {ReduceSum(b, x.atom, dims), rest};
  return x;
}

Named Permute(Builder& b, const Named& x, const std::string& order) {
  if (x.letters == order) return x;
  Ints perm;
  for (char c : order) perm.push_back(static_cast<int64_t>(x.letters.find(c)));
  return {Transpose(b, x.atom, perm), order};
}

// An index has one size, but that dimensions of size 1 stretch between operands, as in NumPy's einsum.
void CheckSizes(const std::string& text, const std::vector<std::string>& terms, Operands xs) {
  std::map<char, std::pair<Dim, size_t>> sizes;  // and the operand that has it
  for (size_t k = 0; k < terms.size(); ++k) {
    const Dims dims = xs[k].dims();
    for (size_t i = 0; i < terms[k].size(); ++i) {
      const char index = terms[k][i];
      if (const size_t j = terms[k].find(index); !(dims[j] == dims[i])) {
        throw TypeError("einsum: in '", text, "' index '", index, "' is both ", dims[j], " and ", dims[i],
                        " in operand ", k);
      }
      const auto [it, first] = sizes.try_emplace(index, dims[i], k);
      auto& [size, operand] = it->second;
      const bool stretches = operand != k && (size == Dim(1) || dims[i] == Dim(1));
      if (!first && !(size == dims[i]) && !stretches) {
        const std::string name =
            absl::ascii_isdigit(static_cast<unsigned char>(index)) ? "of '...'" : std::string("'") + index + "'";
        throw TypeError("einsum: in '", text, "' index ", name, " is ", size, " in operand ", operand, " and ", dims[i],
                        " in operand ", k);
      }
      if (size == Dim(1)) it->second = {dims[i], k};
    }
  }
}

Named ContractTwo(Builder& b, Named x, Named y, const std::string& result) {
  x = Reduce(b, x, y.letters + result);
  y = Reduce(b, y, x.letters + result);
  for (size_t i = 0; i < x.letters.size(); ++i) {
    const size_t j = y.letters.find(x.letters[i]);
    if (j == std::string::npos) continue;
    const Dim dx = b.TypeOf(x.atom).dims[i], dy = b.TypeOf(y.atom).dims[j];
    if (dx == dy) continue;
    auto drop = [&](Named& v, size_t at) {
      v.atom = Reshape(b, v.atom, WithoutDims(b.TypeOf(v.atom).dims, {static_cast<int64_t>(at)}));
      v.letters.erase(at, 1);
    };
    if (dx == Dim(1)) {
      drop(x, i);
      --i;
    } else {
      drop(y, j);
    }
  }
  x = Reduce(b, x, y.letters + result);
  y = Reduce(b, y, x.letters + result);
  std::string out;
  for (char c : result) {
    if (x.letters.find(c) != std::string::npos || y.letters.find(c) != std::string::npos) out += c;
  }
  return {Contract(b, x.letters + "," + y.letters + "->" + out, x.atom, y.atom), out};
}

std::string Letters(int n, char first) {
  std::string s;
  for (int i = 0; i < n; ++i) s += static_cast<char>(first + i);
  return s;
}

// In which dtype a product is computed, and of which it is. The product of booleans, "or" of "and"s, is whether a sum
// of products is not 0: floats, which no number of terms brings back to 0.
struct ContractDType {
  explicit ContractDType(Operands xs) : result(PromoteAll(xs)) {}
  DType in() const { return IsBool(result.dtype) ? DType::kF32 : result.dtype; }
  Value Finish(Site& site, const Atom& y) const {
    if (!IsBool(result.dtype)) return site.Finish(y, result.weak);
    return site.Finish(site.b().Emit1(FindPrim("ne"), {y, Atom::Scalar(DType::kF32, 0)}));
  }
  WeakDType result;
};

}  // namespace

Value Tensordot(const Operand& x, const Operand& y, const Ints& x_axes, const Ints& y_axes) {
  const int rx = x.rank(), ry = y.rank();
  if (x_axes.size() != y_axes.size())
    throw ValueError("tensordot: axes names ", x_axes.size(), " axes of the first array and ", y_axes.size(),
                     " of the second; expected equally many");
  CheckAxes(x_axes, rx, "tensordot"), CheckAxes(y_axes, ry, "tensordot");
  if (rx + ry > 50)
    throw ValueError("tensordot: arrays of ", rx, " and ", ry, " dimensions; expected at most 50 together");
  std::string lx = Letters(rx, 'a'), ly = Letters(ry, 'A');
  for (size_t i = 0; i < x_axes.size(); ++i) {
    const int64_t ax = CheckAxis(x_axes[i], rx, "tensordot"), ay = CheckAxis(y_axes[i], ry, "tensordot");
    const Dim dx = x.dims()[ax], dy = y.dims()[ay];
    if (!(dx == dy)) {
      throw TypeError("tensordot: axis ", ax, " of shape ", ShapeText(x.dims()), " has size ", dx, ", axis ", ay,
                      " of shape ", ShapeText(y.dims()), " has size ", dy, "; expected equal sizes");
    }
    ly[ay] = lx[ax];
  }
  std::string out;
  for (int i = 0; i < rx; ++i) {
    if (ly.find(lx[i]) == std::string::npos) out += lx[i];
  }
  for (char c : ly) {
    if (lx.find(c) == std::string::npos) out += c;
  }
  // The IR's letters are lower-case.
  std::string from = lx + ly, lower = "abcdefghijklmnopqrstuvwxyz";
  std::map<char, char> rename;
  for (char c : from) {
    if (!rename.count(c)) rename[c] = lower.at(rename.size());
  }
  for (std::string* s : {&lx, &ly, &out}) {
    for (char& c : *s) c = rename[c];
  }
  const Operand xs[] = {x, y};
  const ContractDType t(xs);
  Site site(xs);
  const Atom a = site.Use(x, t.in()), c = site.Use(y, t.in());
  return t.Finish(site, Contract(site.b(), lx + "," + ly + "->" + out, a, c));
}

Value Dot(const Operand& x, const Operand& y) {
  if (x.rank() == 0 || y.rank() == 0) return Apply(Binary::kMul, x, y);
  const int64_t y_axis = y.rank() == 1 ? 0 : y.rank() - 2;
  const Dim dx = x.dims()[x.rank() - 1], dy = y.dims()[y_axis];
  if (!(dx == dy))
    throw TypeError("dot: shapes ", ShapeText(x.dims()), " and ", ShapeText(y.dims()), " do not fit: ", dx, " against ",
                    dy);
  return Tensordot(x, y, {x.rank() - 1}, {y_axis});
}

Value Matmul(const Operand& x, const Operand& y) {
  const int rx = x.rank(), ry = y.rank();
  if (rx == 0 || ry == 0)
    throw TypeError("matmul: operands need at least one dimension, got shapes ", ShapeText(x.dims()), " and ",
                    ShapeText(y.dims()), "; use * for numbers");
  const Dims sx = x.dims(), sy = y.dims();
  const Dim kx = sx[rx - 1], ky = sy[ry == 1 ? 0 : ry - 2];
  if (!(kx == ky))
    throw TypeError("matmul: shapes ", ShapeText(sx), " and ", ShapeText(sy), " do not fit: ", kx, " columns against ",
                    ky, " rows");
  const Operand xs[] = {x, y};
  const ContractDType t(xs);
  Site site(xs);
  Builder& b = site.b();
  Atom a = site.Use(x, t.in()), c = site.Use(y, t.in());
  if (ry <= 2) {
    // No batch dimensions on the right: all of x but its columns are rows.
    const std::string rows = Letters(rx - 1, 'a'), cols = ry == 2 ? "y" : "";
    return t.Finish(site, Contract(b, rows + "z,z" + cols + "->" + rows + cols, a, c));
  }
  // Batch dimensions, aligned at the end; those of size 1 stretch.
  const int bx = std::max(rx - 2, 0), by = ry - 2, n = std::max(bx, by);
  std::string lx, ly, out;
  Dims x_shape, y_shape;
  for (int i = 0; i < n; ++i) {
    const char letter = static_cast<char>('a' + i);
    const int ix = i - (n - bx), iy = i - (n - by);
    const std::optional<Dim> dx = ix >= 0 ? std::optional<Dim>(sx[ix]) : std::nullopt,
                             dy = iy >= 0 ? std::optional<Dim>(sy[iy]) : std::nullopt;
    const bool x_has = dx && (!(*dx == Dim(1)) || !dy || *dy == Dim(1)), y_has = dy && (!(*dy == Dim(1)) || !x_has);
    if (x_has && y_has && !(*dx == *dy)) {
      throw TypeError("matmul: shapes ", ShapeText(sx), " and ", ShapeText(sy), " do not broadcast: batch sizes ", *dx,
                      " and ", *dy);
    }
    if (x_has) lx += letter, x_shape.push_back(*dx);
    if (y_has) ly += letter, y_shape.push_back(*dy);
    out += letter;
  }
  if (rx >= 2) lx += 'x', out += 'x', x_shape.push_back(sx[rx - 2]);
  lx += 'z', x_shape.push_back(kx);
  ly += "zy", out += 'y';
  y_shape.push_back(ky), y_shape.push_back(sy[ry - 1]);
  a = Reshape(b, a, x_shape), c = Reshape(b, c, y_shape);
  return t.Finish(site, Contract(b, lx + "," + ly + "->" + out, a, c));
}

Value Einsum(const std::string& text, Operands xs) {
  std::string spec;
  for (char c : text) {
    if (c != ' ') spec += c;
  }
  const size_t arrow = spec.find("->");
  std::string left = spec.substr(0, arrow), result = arrow == std::string::npos ? "" : spec.substr(arrow + 2);
  std::vector<std::string> terms(1);
  for (char c : left) {
    if (c == ',')
      terms.emplace_back();
    else
      terms.back() += c;
  }
  if (terms.size() != xs.size())
    throw ValueError("einsum: '", text, "' names ", terms.size(), " operands, got ", xs.size());
  // "..." stands for the remaining dimensions, aligned at the end; capital letters come last in the renaming.
  int most = 0;
  for (size_t i = 0; i < terms.size(); ++i) {
    const size_t dots = terms[i].find("...");
    const int named = static_cast<int>(terms[i].size()) - (dots == std::string::npos ? 0 : 3);
    if (dots == std::string::npos ? named != xs[i].rank() : named > xs[i].rank()) {
      throw TypeError("einsum: operand ", i, " has shape ", ShapeText(xs[i].dims()), ", but '", terms[i], "' names ",
                      named, " dimensions");
    }
    if (dots != std::string::npos) most = std::max(most, xs[i].rank() - named);
  }
  std::string ellipsis;
  for (int i = 0; i < most; ++i) ellipsis += static_cast<char>('0' + i);
  for (size_t i = 0; i < terms.size(); ++i) {
    const size_t dots = terms[i].find("...");
    if (dots == std::string::npos) continue;
    const int n = xs[i].rank() - (static_cast<int>(terms[i].size()) - 3);
    terms[i] = terms[i].substr(0, dots) + ellipsis.substr(most - n) + terms[i].substr(dots + 3);
  }
  if (arrow == std::string::npos) {  // letters that occur once, in alphabetical order
    std::map<char, int> count;
    for (const std::string& t : terms) {
      for (char c : t) ++count[c];
    }
    for (auto [c, n] : count) {
      if (absl::ascii_isdigit(static_cast<unsigned char>(c))) continue;
      if (n == 1) result += c;
    }
    result = ellipsis + result;
  } else if (const size_t dots = result.find("..."); dots != std::string::npos) {
    result = result.substr(0, dots) + ellipsis + result.substr(dots + 3);
  }
  CheckSizes(text, terms, xs);
  std::map<char, char> rename;
  for (const std::string& t : terms) {
    for (char c : t) {
      if (!absl::ascii_isalnum(static_cast<unsigned char>(c)))
        throw ValueError("einsum: '", text, "' has the character '", std::string(1, c),
                         "'; expected letters, ',', '...' and '->'");
      if (!rename.count(c)) {
        if (rename.size() == 26) throw ValueError("einsum: more than 26 different indices in '", text, "'");
        const char letter = static_cast<char>('a' + rename.size());
        rename[c] = letter;
      }
    }
  }
  for (std::string& t : terms) {
    for (char& c : t) c = rename[c];
  }
  for (char& c : result) {
    if (!rename.count(c))
      throw ValueError("einsum: '", text, "' has the index '", std::string(1, c),
                       "' in its result, and no operand has it");
    c = rename[c];
  }
  for (size_t i = 0; i < result.size(); ++i) {
    if (result.find(result[i], i + 1) != std::string::npos)
      throw ValueError("einsum: '", text, "' repeats an index in its result");
  }

  const ContractDType t(xs);
  Site site(xs);
  Builder& b = site.b();
  std::vector<Named> work;
  for (size_t i = 0; i < xs.size(); ++i) work.push_back({site.Use(xs[i], t.in()), terms[i]});
  // Left to right; the order of a chain is the optimiser's business.
  while (work.size() > 1) {
    std::string later = result;
    for (size_t i = 2; i < work.size(); ++i) later += work[i].letters;
    std::string keep;
    for (char c : work[0].letters + work[1].letters) {
      if (later.find(c) != std::string::npos && keep.find(c) == std::string::npos) keep += c;
    }
    if (work.size() == 2) keep = result;
    work[0] = ContractTwo(b, work[0], work[1], keep);
    work.erase(work.begin() + 1);
  }
  Named y = Reduce(b, work[0], result);
  if (y.letters.size() != result.size())
    throw TypeError(
        "einsum: '", text,
        "': an index of its result has size 1 in one operand and another size in another; expected equal sizes");
  y = Permute(b, y, result);
  return t.Finish(site, y.atom);
}

}  // namespace weft

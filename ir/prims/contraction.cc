// contract: the sum of products over shared dimensions, named by an einsum specification without repeats.
#include "ir/prims/contraction.h"

#include <algorithm>
#include <bit>
#include <functional>
#include <map>

#include "base/product.h"
#include "ir/ops.h"
#include "ir/prim_table.h"
#include "ir/prims/elementwise.h"
#include "ir/prims/families.h"
#include "ir/prims/shape.h"

namespace weft {

ContractSpec ContractSpec::Parse(const std::string& text) {
  const size_t comma = text.find(','), arrow = text.find("->");
  if (comma == std::string::npos || arrow == std::string::npos || comma > arrow)
    throw ValueError("contract: spec \"", text, "\" is not of the form \"mk,kn->mn\"");
  ContractSpec spec{text.substr(0, comma), text.substr(comma + 1, arrow - comma - 1), text.substr(arrow + 2)};
  // Sets of letters: bit c of the word for the character kBase + c.
  uint64_t once = 0, twice = 0;
  constexpr char kBase = 'A';
  for (const std::string* part : {&spec.lhs, &spec.rhs, &spec.out}) {
    uint64_t seen = 0;
    for (char letter : *part) {
      if (!std::isalpha(static_cast<unsigned char>(letter)))
        throw ValueError("contract: spec \"", text, "\" holds '", std::string(1, letter),
                         "'; only letters name dimensions");
      const uint64_t bit = uint64_t{1} << (letter - kBase);
      if (seen & bit)
        throw ValueError("contract: spec \"", text, "\" repeats '", std::string(1, letter), "' in one term");
      seen |= bit;
    }
    twice |= once & seen;
    once |= seen;
  }
  if (once != twice) {
    const char letter = static_cast<char>(kBase + std::countr_zero(once & ~twice));
    throw ValueError("contract: spec \"", text, "\": '", std::string(1, letter),
                     "' must occur in two of the three terms");
  }
  return spec;
}

std::string ContractSpec::ToString() const { return lhs + "," + rhs + "->" + out; }

char ContractSpec::FreshLetter() const {
  const std::string used = lhs + rhs + out;
  for (char c = 'a'; c <= 'z'; ++c) {
    if (used.find(c) == std::string::npos) return c;
  }
  for (char c = 'A'; c <= 'Z'; ++c) {
    if (used.find(c) == std::string::npos) return c;
  }
  throw ValueError("contract: spec \"", ToString(), "\" has used all letters");
}

std::string MatrixProductSpec(int rank) {
  std::string stack;
  for (int d = 0; d + 2 < rank; ++d) stack += static_cast<char>('a' + d);
  WEFT_CHECK(stack.size() < 26) << "a stack of matrices with " << stack.size() << " dimensions";
  return stack + "MK," + stack + "KN->" + stack + "MN";
}

std::optional<Multiple> AsMultiple(const Builder& b, const Atom& x, const Atom& dx) {
  const Eqn* e = b.Definition(dx);
  // The pattern sought: a product of matrices has this spelling alone.
  if (e == nullptr || !Is<"contract">(*e->prim) || b.TypeOf(x).rank() < 2) return std::nullopt;
  if (!(e->attrs == Attrs{{"spec", MatrixProductSpec(b.TypeOf(x).rank())}})) return std::nullopt;
  if (e->operands[0] == x) return Multiple{e->operands[1], false};
  if (e->operands[1] == x) return Multiple{e->operands[0], true};
  return std::nullopt;
}

namespace {

using Complex = std::complex<double>;

void CheckOrder(const Sig& s, const ContractSpec& spec, const std::map<char, Dim>& sizes, DType result) {
  const std::string& along = s.attrs.Get<std::string>("along");
  const int64_t leaf = s.attrs.GetInt("leaf");
  std::string summed;
  for (char letter : spec.lhs) {
    if (spec.out.find(letter) == std::string::npos) summed += letter;
  }
  const bool one = along.size() == 1 && summed.find(along) != std::string::npos;
  if (!one && !(along.empty() && summed.empty()))
    throw ValueError("contract: along=\"", along, "\"; expected a letter that spec \"", spec.ToString(), "\" sums");
  const std::optional<int64_t> n = one ? sizes.at(along[0]).TryValue() : 1;
  if (leaf < 1 || (n && *n % leaf != 0))
    throw ValueError("contract: leaf=", leaf, "; expected a divisor of the ", n.value_or(0), " terms along '", along,
                     "'");
  if (!IsInexact(result) || ByteWidth(RealPart(result)) < 4)
    throw TypeError("contract: a deterministic sum (leaf=", leaf, ") into ", result,
                    "; expected f32, f64, c64 or c128");
}

Types Infer(const Sig& s) {
  const ContractSpec spec = ContractSpec::Parse(s.attrs.Get<std::string>("spec"));
  const Type &x = s.operands[0], &y = s.operands[1];
  if (x.dtype != y.dtype)
    throw TypeError("contract: operand 0 is ", x, ", but operand 1 is ", y, "; dtypes must be equal");
  if (!s.prim.dtypes.Has(x.dtype))
    throw TypeError("contract: operands are ", x.dtype, "; expected one of ", s.prim.dtypes.ToString());
  std::map<char, Dim> sizes;
  auto bind = [&](const std::string& letters, const Type& t, int operand) {
    if (static_cast<int>(letters.size()) != t.rank()) {
      throw TypeError("contract: operand ", operand, " is ", t, " of rank ", t.rank(), "; spec \"", spec.ToString(),
                      "\" names ", letters.size(), " dimensions");
    }
    for (size_t i = 0; i < letters.size(); ++i) {
      const auto [it, inserted] = sizes.emplace(letters[i], t.dims[i]);
      if (!inserted && !(it->second == t.dims[i])) {
        throw TypeError("contract: '", std::string(1, letters[i]), "' of spec \"", spec.ToString(), "\" has size ",
                        it->second, " in operand 0 ", x, " and ", t.dims[i], " in operand 1 ", y);
      }
    }
  };
  bind(spec.lhs, x, 0);
  bind(spec.rhs, y, 1);
  Type result = x;
  result.dtype = s.attrs.GetOr<DType>("dtype", x.dtype);
  if (s.attrs.Find("leaf") != nullptr) CheckOrder(s, spec, sizes, result.dtype);
  if (IsComplex(result.dtype) != IsComplex(x.dtype) || IsFloat(result.dtype) != IsFloat(x.dtype)) {
    throw TypeError("contract: dtype=", result.dtype, " is of another kind than the operands' ", x.dtype);
  }
  result.dims.clear();
  for (char letter : spec.out) result.dims.push_back(sizes.at(letter));
  return {result};
}

std::map<char, int64_t> SizesOf(const ContractSpec& spec, const Tensor& x, const Tensor& y) {
  std::map<char, int64_t> sizes;
  for (size_t i = 0; i < spec.lhs.size(); ++i) sizes[spec.lhs[i]] = x.shape()[i];
  for (size_t i = 0; i < spec.rhs.size(); ++i) sizes[spec.rhs[i]] = y.shape()[i];
  return sizes;
}

// How many elements of an array of this shape, whose dimensions are the letters of `term`, lie between two values of
// each letter.
std::vector<int64_t> StepsOf(const std::string& letters, const std::string& term, const Shape& shape) {
  std::vector<int64_t> steps(letters.size(), 0);
  const std::vector<int64_t> row_major = RowMajorStrides(shape);
  for (size_t i = 0; i < term.size(); ++i) steps[letters.find(term[i])] = row_major[i];
  return steps;
}

template <class K>
Tensor Sum(const ContractSpec& spec, const Tensor& x, const Tensor& y, const Type& result) {
  std::string letters = spec.out;  // results first, then the summed ones
  for (char letter : spec.lhs) {
    if (letters.find(letter) == std::string::npos) letters += letter;
  }
  const std::map<char, int64_t> sizes = SizesOf(spec, x, y);
  Shape space;
  for (char letter : letters) space.push_back(sizes.at(letter));
  const Shape shape = StaticSizes(result.dims, "eval");
  const auto sx = StepsOf(letters, spec.lhs, x.shape()), sy = StepsOf(letters, spec.rhs, y.shape()),
             sz = StepsOf(letters, spec.out, shape);
  const std::vector<K> vx = LoadAs<K>(x), vy = LoadAs<K>(y);
  std::vector<K> z(NumElements(shape), K(0));
  ForEachIndex(space, [&](const Shape& index) {
    z[Offset(index, sz)] += Product(vx[Offset(index, sx)], vy[Offset(index, sy)]);
  });
  return StoreAs<K>(result.dtype, shape, z);
}

// The deterministic sum. The terms of the letter `along` are cut into leaves of `leaf` of them; a leaf is the sum,
// from 0 on, of its terms one after the other, those of the other summed letters, alphabetically, faster; it is rounded
// to the result's dtype. The sum of several leaves is, rounded, that of the first ones, the largest power of two of
// them below all, and that of the others.
template <class K>
Tensor OrderedSum(const ContractSpec& spec, const Attrs& attrs, const Tensor& x, const Tensor& y, const Type& result) {
  const std::string& along = attrs.Get<std::string>("along");
  const int64_t leaf = attrs.GetInt("leaf");
  std::map<char, int64_t> sizes = SizesOf(spec, x, y);
  std::string within;
  for (char letter : spec.lhs) {
    if (spec.out.find(letter) == std::string::npos && along.find(letter) == std::string::npos) within += letter;
  }
  std::sort(within.begin(), within.end());
  const int64_t leaves = along.empty() ? 1 : std::max<int64_t>(1, sizes[along[0]] / leaf);
  if (!along.empty()) sizes[along[0]] /= leaves;
  const std::string letters = spec.out + along + within;
  Shape space;
  for (char letter : letters) space.push_back(sizes[letter]);
  const Shape shape = StaticSizes(result.dims, "eval");
  const auto sx = StepsOf(letters, spec.lhs, x.shape()), sy = StepsOf(letters, spec.rhs, y.shape()),
             sz = StepsOf(letters, spec.out, shape);
  const size_t first = spec.out.size();  // where `along` is among the letters
  const std::vector<K> vx = LoadAs<K>(x), vy = LoadAs<K>(y);
  const auto rounded = [&](const std::vector<K>& v) { return LoadAs<K>(StoreAs<K>(result.dtype, shape, v)); };
  const std::function<std::vector<K>(int64_t, int64_t)> sum = [&](int64_t begin, int64_t end) {
    std::vector<K> z(NumElements(shape), K(0));
    if (end - begin > 1) {
      int64_t half = 1;
      while (2 * half < end - begin) half *= 2;
      const std::vector<K> low = sum(begin, begin + half), high = sum(begin + half, end);
      for (size_t i = 0; i < z.size(); ++i) z[i] = low[i] + high[i];
      return rounded(z);
    }
    const int64_t skipped = along.empty() ? 0 : begin * space[first];
    const int64_t x0 = along.empty() ? 0 : skipped * sx[first], y0 = along.empty() ? 0 : skipped * sy[first];
    ForEachIndex(space, [&](const Shape& index) {
      z[Offset(index, sz)] += Product(vx[x0 + Offset(index, sx)], vy[y0 + Offset(index, sy)]);
    });
    return rounded(z);
  };
  return StoreAs<K>(result.dtype, shape, sum(0, leaves));
}

// The cotangent of one operand is a contraction of the result's cotangent with the other operand.
Atom TransposeOnto(TransposeContext& c, int operand) {
  const ContractSpec spec = ContractSpec::Parse(c.eqn.attrs.Get<std::string>("spec"));
  const DType dtype = c.types[operand].dtype;
  const Atom ct = Convert(c.b, *c.ct[0], dtype);
  if (operand == 0) return Contract(c.b, spec.out + "," + spec.rhs + "->" + spec.lhs, ct, *c.x[1]);
  return Contract(c.b, spec.lhs + "," + spec.out + "->" + spec.rhs, *c.x[0], ct);
}

// Of y = the contraction of x with another operand, where x is operand `i` and dx = x k or k x: the contraction of dx
// with the other operand, as that of k with y. That takes no more operations than the first if k is no longer than what
// is summed, and where nothing else reads dx, it need not be there. k has to turn a dimension of y.
std::optional<Atom> MultipleOfResult(JvpContext& c, int i) {
  if (c.eqn.attrs.entries().size() != 1) return std::nullopt;  // the dtype or the order of the sum is given
  const std::optional<Multiple> multiple = AsMultiple(c.b, c.x[i], *c.dx[i]);
  if (!multiple) return std::nullopt;
  const ContractSpec spec = ContractSpec::Parse(c.eqn.attrs.Get<std::string>("spec"));
  const Type x = c.b.TypeOf(c.x[i]);
  const std::string &letters = i == 0 ? spec.lhs : spec.rhs, &other = i == 0 ? spec.rhs : spec.lhs;
  const char turned = letters[x.rank() - (multiple->left ? 2 : 1)], fresh = spec.FreshLetter();
  const std::string stack = letters.substr(0, x.rank() - 2);
  if (other.find(turned) != std::string::npos) return std::nullopt;
  int64_t summed = 1;
  for (int d = 0; d < x.rank(); ++d) {
    if (spec.out.find(letters[d]) != std::string::npos) continue;
    if (stack.find(letters[d]) != std::string::npos || !x.dims[d].is_static()) return std::nullopt;
    summed *= x.dims[d].value();
  }
  const std::optional<int64_t> length = c.b.TypeOf(multiple->factor).dims.back().TryValue();
  if (!length || *length > summed) return std::nullopt;
  std::string y = spec.out;
  y[y.find(turned)] = fresh;
  const std::string factor = multiple->left ? stack + turned + fresh : stack + fresh + turned;
  return Contract(c.b, factor + "," + y + "->" + spec.out, multiple->factor, c.y[0]);
}

void ContractJvp(JvpContext& c) {
  c.y = c.b.Emit(*c.eqn.prim, c.x, c.eqn.attrs);
  std::optional<Atom> dy;
  for (int i : {0, 1}) {
    if (!c.dx[i]) continue;
    std::optional<Atom> term = MultipleOfResult(c, i);
    if (!term) {
      Atoms operands = c.x;
      operands[i] = *c.dx[i];
      term = c.b.Emit1(*c.eqn.prim, operands, c.eqn.attrs);
    }
    dy = AddTangents(c.b, dy, term);
  }
  c.dy = {dy};
}

}  // namespace

void RegisterContraction(PrimRegistry& r) {
  Prim& p = r.Add("contract", Family::kContraction, 2,
                  "The sum of products over the letters of `spec` (such as \"bmk,bkn->bmn\") that are not in the "
                  "result. No letter repeats in a term; each "
                  "occurs in two terms at least. Optional `dtype`: of the result and the accumulation; `along` and "
                  "`leaf`: the sum is deterministic, its terms are added in an order of its own "
                  "(transforms/shard/deterministic.h).");
  p.more_attributes = {"along", "leaf"};
  p.dtypes = kAnyNumbers;
  p.tolerance = 1e-5;
  p.infer = Infer;
  p.eval = [](const EvalContext& c, const Tensors& in) -> Tensors {
    const ContractSpec spec = ContractSpec::Parse(c.sig.attrs.Get<std::string>("spec"));
    if (c.sig.attrs.Find("leaf") != nullptr) {
      if (IsComplex(in[0].dtype())) return {OrderedSum<Complex>(spec, c.sig.attrs, in[0], in[1], c.results[0])};
      return {OrderedSum<double>(spec, c.sig.attrs, in[0], in[1], c.results[0])};
    }
    if (IsComplex(in[0].dtype())) return {Sum<Complex>(spec, in[0], in[1], c.results[0])};
    if (IsFloat(in[0].dtype())) return {Sum<double>(spec, in[0], in[1], c.results[0])};
    return {Sum<uint64_t>(spec, in[0], in[1], c.results[0])};  // wraps
  };
  p.flops = [](const Sig& s, const Types& results, const SizeOf& size) {
    const ContractSpec spec = ContractSpec::Parse(s.attrs.Get<std::string>("spec"));
    double n = 2;  // a product and a sum
    for (const Dim& d : results[0].dims) n *= size(d);
    for (size_t i = 0; i < spec.lhs.size(); ++i) {
      if (spec.out.find(spec.lhs[i]) == std::string::npos) n *= size(s.operands[0].dims[i]);
    }
    return n;
  };
  p.linear = {0, 1};
  p.multilinear = true;
  p.jvp = ContractJvp;
  p.transpose = [](TransposeContext& c) -> OptionalAtoms {
    if (c.linear(0)) return {TransposeOnto(c, 0), std::nullopt};
    return {std::nullopt, TransposeOnto(c, 1)};
  };
  p.batch = [](BatchContext& c) {
    ContractSpec spec = ContractSpec::Parse(c.eqn.attrs.Get<std::string>("spec"));
    const std::string fresh(1, spec.FreshLetter());
    if (c.batched[0]) spec.lhs = fresh + spec.lhs;
    if (c.batched[1]) spec.rhs = fresh + spec.rhs;
    spec.out = fresh + spec.out;
    c.y = {c.b.Emit1(*c.eqn.prim, {c.x[0], c.x[1]}, c.eqn.attrs.With("spec", spec.ToString()))};
    c.batched_out = {true};
  };
  p.samples = [] {
    std::vector<Sample> samples;
    auto add = [&](DType t, Dims x, Dims y, const char* spec) {
      Sample s = SampleOf({Type{t, std::move(x), {}}, Type{t, std::move(y), {}}}, {{"spec", std::string(spec)}});
      if (IsUnsigned(t)) s.low = 0;
      samples.push_back(s);
    };
    for (DType t : SampledDTypes(
             {DType::kF32, DType::kF64, DType::kF16, DType::kBF16, DType::kI32, DType::kU8, DType::kC64, DType::kC128}))
      add(t, {3, 4}, {4, 5}, "mk,kn->mn");
    const DType t = DType::kF32;
    add(t, {2, 3, 4}, {2, 4, 5}, "bmk,bkn->bmn");
    add(t, {4, 3}, {5, 4}, "km,nk->nm");
    add(t, {6}, {6}, "k,k->");
    add(t, {3}, {4}, "m,n->mn");
    add(t, {3, 2, 4}, {4, 3, 5}, "abc,cad->bd");
    add(t, {3, 0}, {0, 5}, "mk,kn->mn");
    add(t, {7, 4}, {4}, "mk,k->m");
    add(t, {5, 3}, {5}, "bm,b->bm");
    samples.push_back(SampleOf({Type{DType::kBF16, {3, 4}, {}}, Type{DType::kBF16, {4, 5}, {}}},
                               {{"spec", std::string("mk,kn->mn")}, {"dtype", DType::kF32}}));
    samples.push_back(SampleOf({Type{DType::kI4, {3, 4}, {}}, Type{DType::kI4, {4, 5}, {}}},
                               {{"spec", std::string("mk,kn->mn")}, {"dtype", DType::kI32}}));
    return samples;
  };
}

}  // namespace weft

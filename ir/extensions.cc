#include "ir/extensions.h"

#include <algorithm>
#include <atomic>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "base/fork_safe_mutex.h"
#include "ir/builder.h"
#include "ir/error.h"
#include "ir/prims/elementwise.h"
#include "ir/prims/families.h"

namespace weft {
namespace {

struct Additions {
  ForkSafeMutex mutex;
  std::map<const Prim*, ExpansionFn> expansions;  // nodes do not move
  std::string key;
  std::atomic<int> first_id = -1;  // of the operations that were added: the tree's are below
};

Additions& TheAdditions() {
  static auto& additions = *new Additions();
  return additions;
}

bool IsWord(const std::string& name) {
  const auto letter = [](char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_'; };
  const auto digit = [](char c) { return c >= '0' && c <= '9'; };
  return !name.empty() && letter(name[0]) &&
         std::all_of(name.begin(), name.end(), [&](char c) { return letter(c) || digit(c); });
}

// The operations that are being expanded, innermost last.
std::vector<const Prim*>& BeingExpanded() {
  thread_local std::vector<const Prim*> prims;
  return prims;
}

struct Entered {
  explicit Entered(const Prim& prim) {
    std::vector<const Prim*>& prims = BeingExpanded();
    if (std::find(prims.begin(), prims.end(), &prim) != prims.end())
      throw ValueError("the primitive '", prim.name, "' expands into itself");
    prims.push_back(&prim);
  }
  ~Entered() { BeingExpanded().pop_back(); }
  Entered(const Entered&) = delete;
};

// The program with every operation that was added replaced by what it computes.
FnRef WithoutAdded(const FnRef& fn) {
  const auto added = [](const Eqn& e) { return ExpansionOf(*e.prim) != nullptr; };
  if (std::none_of(fn->eqns().begin(), fn->eqns().end(), added)) return fn;
  Builder b(fn->name());
  Atoms map(fn->num_vars());
  for (size_t i = 0; i < fn->params().size(); ++i) map[i] = b.Parameter(fn->params()[i].type, fn->params()[i].name);
  const auto get = [&](const Atom& a) { return a.is_var() ? map[a.id()] : a; };
  for (const Eqn& e : fn->eqns()) {
    Atoms operands;
    for (const Atom& a : e.operands) operands.push_back(get(a));
    Atoms results;
    if (added(e)) {
      const ExpandedEqn inner = ExpandedOf(b, e, operands);
      results = b.Inline(*inner.fn, inner.args);
    } else {
      results = b.Clone(e, operands);
    }
    for (uint32_t r = 0; r < e.num_results; ++r) map[e.first_result + r] = results[r];
  }
  Atoms results;
  for (const Atom& a : fn->results()) results.push_back(get(a));
  return std::move(b).Build(results);
}

// What an expansion gives for operands of these types.
FnRef FunctionOf(const Prim& prim, const Types& operands, const Attrs& attrs) {
  Builder b(prim.name);
  Atoms x;
  for (const Type& t : operands) x.push_back(b.Parameter(t));
  return b.Build((*ExpansionOf(prim))(b, x, attrs));
}

Types InferByExpansion(const Sig& sig) {
  if (sig.prim.is_elementwise()) InferElementwise(sig);  // that shapes and dtypes agree, and are its own
  if (!sig.operands.empty() && !sig.prim.dtypes.Has(sig.operands[0].dtype)) {
    throw TypeError(sig.prim.name, ": operand 0 is ", sig.operands[0], "; expected one of ",
                    sig.prim.dtypes.ToString());
  }
  Builder b(sig.prim.name);
  Atoms x;
  // A number beside arrays may be any number: only its type counts here.
  for (size_t i = 0; i < sig.operands.size(); ++i) {
    const Type& t = sig.operands[i];
    x.push_back(sig.literal[i] && t.rank() == 0 ? Atom(Tensor::Zeros(t.dtype, {})) : b.Parameter(t));
  }
  Types types;
  try {
    for (const Atom& y : (*ExpansionOf(sig.prim))(b, x, sig.attrs)) types.push_back(b.TypeOf(y));
  } catch (const Error& error) {
    throw Error(error.kind(), sig.prim.name + " of (" + ToString(sig.operands) + "): " + error.message());
  }
  return types;
}

Tensors EvalByExpansion(const EvalContext& c, const Tensors& in) {
  Builder b(c.sig.prim.name);
  Atoms x;
  Tensors args;
  for (size_t i = 0; i < in.size(); ++i) {
    if (c.sig.literal[i]) {
      x.push_back(Atom(in[i]));
      continue;
    }
    x.push_back(b.Parameter(in[i].type()));
    args.push_back(in[i]);
  }
  return c.run(*b.Build((*ExpansionOf(c.sig.prim))(b, x, c.sig.attrs)), args);
}

void JvpByExpansion(JvpContext& c) {
  const ExpandedEqn inner = ExpandedOf(c.b, c.eqn, c.x);
  Mask active;
  Atoms args = inner.args;
  for (size_t i : inner.operand) {
    active.push_back(c.dx[i].has_value());
    if (c.dx[i]) args.push_back(*c.dx[i]);
  }
  const size_t n = c.eqn.num_results;
  const JvpFn f = c.regions.jvp(inner.fn, active, Mask(n, false));
  const Atoms out = c.b.Inline(*f.fn, args);
  c.y.assign(out.begin(), out.begin() + static_cast<ptrdiff_t>(n));
  c.dy.assign(n, std::nullopt);
  size_t next = n;
  for (size_t r = 0; r < n; ++r) {
    if (f.active_out[r]) c.dy[r] = out[next++];
  }
}

OptionalAtoms TransposeByExpansion(TransposeContext& c) {
  // As a function of all operands: which are literals is not known of those that are linear.
  const FnRef f = FunctionOf(*c.eqn.prim, c.types.list(), c.eqn.attrs);
  Mask linear;
  Atoms args;
  for (const auto& x : c.x) {
    linear.push_back(!x);
    if (x) args.push_back(*x);
  }
  const Types results = f->ResultTypes();
  for (size_t i = 0; i < results.size(); ++i) args.push_back(c.ct[i] ? *c.ct[i] : Zeros(c.b, results[i]));
  const Atoms out = c.b.Inline(*c.regions.transpose(f, linear), args);
  OptionalAtoms all(linear.size());
  size_t next = 0;
  for (size_t i = 0; i < linear.size(); ++i) {
    if (linear[i]) all[i] = out[next++];
  }
  return all;
}

void BatchByExpansion(BatchContext& c) {
  // The function of one example: operands that are batched have one dimension less.
  Builder one(c.eqn.prim->name);
  Atoms x, args;
  Mask batched;
  for (size_t i = 0; i < c.x.size(); ++i) {
    if (c.x[i].is_literal() && !c.batched[i]) {
      x.push_back(c.x[i]);
      continue;
    }
    Type type = c.b.TypeOf(c.x[i]);
    if (c.batched[i]) type.dims.erase(type.dims.begin());
    x.push_back(one.Parameter(type));
    args.push_back(c.x[i]);
    batched.push_back(c.batched[i]);
  }
  const FnRef f = one.Build((*ExpansionOf(*c.eqn.prim))(one, x, c.eqn.attrs));
  const BatchedFn mapped = c.regions.batch(f, batched, Mask(f->results().size(), false), c.size);
  c.y = c.b.Inline(*mapped.fn, args);
  c.batched_out = mapped.batched_out;
}

// The first operation of an expansion that is not element-wise; "" where all are; nullopt where arrays of one shape are
// none of its operands, or it asks for an attribute.
std::optional<std::string> NotElementwise(const Prim& prim, const ExpansionFn& expansion) {
  if (prim.num_operands < 1) return std::nullopt;
  DType dtype = DType::kF32;
  for (int i = 0; i < kNumDTypes && !prim.dtypes.Has(dtype); ++i) dtype = static_cast<DType>(i);
  Builder b(prim.name);
  Atoms x;
  for (int i = 0; i < prim.num_operands; ++i) x.push_back(b.Parameter({dtype, {Dim(2), Dim(3)}, {}}));
  Atoms y;
  try {
    y = expansion(b, x, {});
  } catch (const Error&) {
    return std::nullopt;
  }
  for (const Eqn& e : b.eqns()) {
    if (!e.prim->is_elementwise()) return e.prim->name;
  }
  const auto of_one_shape = [&](const Atom& a) { return b.TypeOf(a).rank() == 2; };
  return std::all_of(y.begin(), y.end(), of_one_shape) ? "" : "a number";
}

// `Prim::family` is element-wise where nothing is said, so that is found out rather than believed.
void SettleFamily(Prim& prim, const ExpansionFn& expansion) {
  if (!prim.is_elementwise()) return;
  const std::optional<std::string> other = NotElementwise(prim, expansion);
  if (other == "" || (!other && prim.partials)) return;
  if (prim.partials) {
    throw ValueError("the primitive '", prim.name,
                     "' has partial derivatives, as element-wise operations have, but it ",
                     "computes something else: it expands into ", *other, "; give it a jvp rule, or none");
  }
  prim.family = Family::kShape;
}

}  // namespace

const Prim& RegisterPrimitive(Prim prim, ExpansionFn expansion) {
  if (!IsWord(prim.name))
    throw ValueError("RegisterPrimitive: the name '", prim.name, "' is no word; expected letters, digits and _");
  if (!expansion)
    throw ValueError("the primitive '", prim.name, "' has no expansion, so nothing says what it computes");
  if (prim.region_use != RegionUse::kNone || prim.has_effect || prim.family == Family::kCollective ||
      prim.family == Family::kControl) {
    throw ValueError("the primitive '", prim.name,
                     "' has regions, effects or communicates; only operations on arrays can be added");
  }
  if (prim.dtypes.ToString().empty()) prim.dtypes = kAll;
  SettleFamily(prim, expansion);
  const bool has_derivative =
      prim.partials || prim.jvp || prim.push || prim.is_linear() || !prim.not_differentiable.empty();
  if (!prim.infer) prim.infer = InferByExpansion;
  if (!prim.eval) prim.eval = EvalByExpansion;
  if (!has_derivative) prim.jvp = JvpByExpansion;
  if (prim.is_linear() && !prim.transpose) prim.transpose = TransposeByExpansion;
  if (!prim.batch) prim.batch = prim.is_elementwise() ? BatchElementwise : BatchByExpansion;
  if (!prim.samples) prim.samples = [] { return std::vector<Sample>(); };
  const std::string name = prim.name;
  Additions& additions = TheAdditions();
  const std::lock_guard<ForkSafeMutex> lock(additions.mutex);
  if (additions.first_id < 0) additions.first_id = static_cast<int>(AllPrims().size());
  const Prim& added = AddPrim(std::move(prim));
  additions.expansions.emplace(&added, std::move(expansion));
  additions.key += "primitive " + name + ";";
  return added;
}

bool PrimitivesWereAdded() { return TheAdditions().first_id >= 0; }

const ExpansionFn* ExpansionOf(const Prim& prim) {
  Additions& additions = TheAdditions();
  const int first = additions.first_id;
  if (first < 0 || prim.id < first) return nullptr;
  const std::lock_guard<ForkSafeMutex> lock(additions.mutex);
  const auto it = additions.expansions.find(&prim);
  return it == additions.expansions.end() ? nullptr : &it->second;
}

ExpandedEqn ExpandedOf(const Builder& b, const Eqn& e, const Atoms& operands) {
  const Entered entered(*e.prim);
  Builder inside(e.prim->name);
  ExpandedEqn out;
  Atoms x;
  Types types;
  Mask literal;
  for (size_t i = 0; i < operands.size(); ++i) {
    types.push_back(b.TypeOf(operands[i]));
    literal.push_back(operands[i].is_literal());
    if (operands[i].is_literal()) {
      x.push_back(operands[i]);
    } else {
      x.push_back(inside.Parameter(types.back()));
      out.args.push_back(operands[i]);
      out.operand.push_back(i);
    }
  }
  inside.set_loc(e.loc.Through(e.prim->name));
  const Atoms y = (*ExpansionOf(*e.prim))(inside, x, e.attrs);
  Types given;
  for (const Atom& a : y) given.push_back(inside.TypeOf(a));
  const Types said = InferTypes(Sig{*e.prim, types, literal, e.attrs, {}});
  if (given != said) {
    throw UserError(ErrorKind::kType, e.loc, "the primitive '", e.prim->name, "' has the result types (",
                    ToString(said), "), but it expands into (", ToString(given), ")");
  }
  out.fn = WithoutAdded(std::move(inside).Build(y));
  return out;
}

void NoteExtension(const std::string& what) {
  Additions& additions = TheAdditions();
  const std::lock_guard<ForkSafeMutex> lock(additions.mutex);
  additions.key += what + ";";
}

std::string ExtensionsKey() {
  Additions& additions = TheAdditions();
  const std::lock_guard<ForkSafeMutex> lock(additions.mutex);
  return additions.key;
}

}  // namespace weft

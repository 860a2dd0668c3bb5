#include "ir/verify.h"

#include <algorithm>
#include <string>
#include <unordered_set>

#include "absl/strings/str_join.h"
#include "ir/prim.h"
#include "ir/text/printer.h"

namespace weft {
namespace {

class Verifier {
 public:
  explicit Verifier(const VerifyOptions& options) : options_(options) {}
  void Check(const Fn& fn) {
    if (!seen_.insert(&fn).second) return;
    CheckParams(fn);
    uint32_t defined = static_cast<uint32_t>(fn.params().size());
    for (size_t i = 0; i < fn.eqns().size(); ++i) CheckEqn(fn, i, defined);
    if (defined != fn.num_vars()) {
      FailFn(fn, "numbering", std::to_string(defined) + " variables, one per parameter and result of an equation",
             std::to_string(fn.num_vars()) + " variables");
    }
    for (size_t i = 0; i < fn.results().size(); ++i) {
      const std::string problem = AtomProblem(fn.results()[i], defined);
      if (!problem.empty())
        FailFn(fn, "result " + std::to_string(i), "a variable of this function or a small literal", problem);
    }
  }

 private:
  [[noreturn]] static void FailFn(const Fn& fn, const std::string& what, const std::string& expected,
                                  const std::string& found) {
    const size_t last = fn.eqns().empty() ? 0 : fn.eqns().size() - 1;
    throw UserError(ErrorKind::kInternal, {}, "verify: ", fn.name(), ": ", what, " is wrong\n",
                    PrintAround(fn, last + 1), "\n  expected ", expected, "\n  found    ", found);
  }
  [[noreturn]] static void FailEqn(const Fn& fn, size_t index, const std::string& what, const std::string& expected,
                                   const std::string& found) {
    const Eqn& e = fn.eqns()[index];
    std::string message =
        "verify: " + fn.name() + ": " + what + "\n" + (e.prim ? PrintAround(fn, index) : std::string());
    const std::vector<std::string> transforms = e.loc.transforms();
    if (!transforms.empty()) message += "\n  made by " + absl::StrJoin(transforms, ", ");
    if (e.loc) message += "\n" + e.loc.Stack();
    if (!expected.empty()) message += "\n  expected " + expected;
    if (!found.empty()) message += "\n  found    " + found;
    throw Error(ErrorKind::kInternal, std::move(message));
  }

  static std::string TypeProblem(const Type& t) {
    for (const Dim& d : t.dims) {
      if (d.is_static() && d.value() < 0) return t.ToString() + ", of negative size";
    }
    if (std::adjacent_find(t.varying.begin(), t.varying.end(), std::greater_equal<>()) != t.varying.end()) {
      return t.ToString() + ", whose mesh axes are not in order";
    }
    return "";
  }

  std::string AtomProblem(const Atom& a, uint32_t defined) {
    if (a.is_var())
      return a.id() < defined ? "" : "variable number " + std::to_string(a.id()) + ", which is not defined before";
    if (!a.literal().defined()) return "a literal without data";
    if (!options_.large_literals && a.literal().size() > kMaxLiteralElements) {
      return "a literal of " + std::to_string(a.literal().size()) + " elements; more than " +
             std::to_string(kMaxLiteralElements) + " belong into a constant parameter";
    }
    if (a.literal().dtype() == DType::kTape && a.literal().size() > 0 && !a.IsSplat(0))
      return "a tape with records as a literal";
    return "";
  }

  void CheckParams(const Fn& fn) const {
    if (fn.num_vars() < fn.params().size()) {
      FailFn(fn, "numbering", "a variable per parameter", std::to_string(fn.num_vars()) + " variables");
    }
    for (size_t i = 0; i < fn.params().size(); ++i) {
      const Type& type = fn.TypeOf(Var{static_cast<uint32_t>(i)});
      const std::string what = "parameter " + std::to_string(i);
      if (!(type == fn.params()[i].type))
        FailFn(fn, what, fn.params()[i].type.ToString(), type.ToString() + " in the table of variables");
      const std::string problem = TypeProblem(type);
      if (!problem.empty()) FailFn(fn, what, "a legal type", problem);
    }
  }

  void CheckEqn(const Fn& fn, size_t index, uint32_t& defined) {
    const Eqn& e = fn.eqns()[index];
    if (e.prim == nullptr) FailEqn(fn, index, "equation " + std::to_string(index) + " has no primitive", "", "");
    const std::string& name = e.prim->name;
    if (e.first_result != defined || e.num_results > fn.num_vars() - defined) {
      FailEqn(fn, index, name + ": its results are numbered wrongly",
              "results from variable " + std::to_string(defined) + " on",
              std::to_string(e.num_results) + " from variable " + std::to_string(e.first_result) + " on, of " +
                  std::to_string(fn.num_vars()));
    }
    for (size_t i = 0; i < e.operands.size(); ++i) {
      const std::string problem = AtomProblem(e.operands[i], defined);
      if (!problem.empty())
        FailEqn(fn, index, name + ": operand " + std::to_string(i) + " is no value",
                "a variable defined before or a small literal", problem);
    }
    if (e.prim->num_operands >= 0 && static_cast<int>(e.operands.size()) != e.prim->num_operands) {
      FailEqn(fn, index, name + ": wrong number of operands", std::to_string(e.prim->num_operands),
              std::to_string(e.operands.size()));
    }
    for (size_t i = 1; i < e.attrs.entries().size(); ++i) {
      if (!(e.attrs.entries()[i - 1].first < e.attrs.entries()[i].first)) {
        FailEqn(fn, index, name + ": attributes are not in order", "each name once, in order",
                "'" + e.attrs.entries()[i].first + "'");
      }
    }
    for (size_t i = 0; i < e.regions.size(); ++i) {
      if (e.regions[i] == nullptr)
        FailEqn(fn, index, name + ": region " + std::to_string(i) + " is missing", "a function", "nothing");
      Check(*e.regions[i]);
    }
    CheckTypes(fn, index);
    defined += e.num_results;
  }

  static void CheckTypes(const Fn& fn, size_t index) {
    const Eqn& e = fn.eqns()[index];
    Types operands, results;
    Mask literal;
    for (const Atom& a : e.operands) {
      operands.push_back(fn.TypeOf(a));
      literal.push_back(a.is_literal());
    }
    for (uint32_t r = 0; r < e.num_results; ++r) results.push_back(fn.TypeOf(Var{e.first_result + r}));
    Types inferred;
    try {
      inferred = InferTypes(Sig{*e.prim, operands, literal, e.attrs, e.regions});
    } catch (const Error& error) {
      FailEqn(fn, index, "the type rule refuses the equation: " + error.message(), "",
              "operands (" + ToString(operands) + ")");
    }
    for (const Type& type : results) {
      const std::string problem = TypeProblem(type);
      if (!problem.empty()) FailEqn(fn, index, e.prim->name + ": a result has no legal type", "a legal type", problem);
    }
    if (inferred != results) {
      FailEqn(fn, index,
              e.prim->name + " has result types (" + ToString(inferred) + "), but the function says (" +
                  ToString(results) + ")",
              "(" + ToString(inferred) + ")", "(" + ToString(results) + ")");
    }
  }

  std::unordered_set<const Fn*> seen_;
  const VerifyOptions options_;
};

}  // namespace

void Verify(const Fn& fn, const VerifyOptions& options) { Verifier(options).Check(fn); }

}  // namespace weft

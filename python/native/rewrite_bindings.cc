// Rules and passes that Python brings: patterns are matched here, what replaces them Python writes (weft.ir).
#include <memory>
#include <optional>
#include <set>
#include <tuple>
#include <utility>

#include "ir/memory_form.h"
#include "ir/ops.h"
#include "ir/text/printer.h"
#include "ir/verify.h"
#include "lowering/fusion/fusion.h"
#include "lowering/schedule/schedule.h"
#include "python/native/bindings.h"
#include "python/native/frames.h"
#include "python/native/plans.h"
#include "sdk/load_plugin.h"
#include "transforms/opt/components.h"
#include "transforms/opt/depthwise.h"
#include "transforms/opt/loops.h"
#include "transforms/opt/pass.h"
#include "transforms/opt/rewrite.h"
#include "transforms/opt/row_blocks.h"
#include "transforms/opt/rule_watch.h"
#include "transforms/opt/simplify.h"
#include "transforms/opt/vector_products.h"

namespace weft::python {
namespace {

// A pattern over the equations that make a value: an operation on patterns, a name that stands for any value, or a
// number.
struct Pattern {
  const Prim* prim = nullptr;
  std::string called;  // where `prim` is what programs define: which of these
  std::vector<Pattern> operands;
  bool any_operands = false;  // a name alone, "tanh": whatever its operands are
  int name = -1;              // an index: equal names stand for one value
  double number = 0;          // where it is neither
};

Pattern PatternFrom(const py::handle& tree) {
  Pattern p;
  if (py::isinstance<py::int_>(tree)) {
    p.name = tree.cast<int>();
  } else if (py::isinstance<py::float_>(tree)) {
    p.number = tree.cast<double>();
  } else {
    p.prim = &FindPrim(tree.attr("__getitem__")(0).cast<std::string>());
    const py::object operands = tree.attr("__getitem__")(1);
    p.any_operands = operands.is_none();
    p.called = tree.attr("__getitem__")(2).cast<std::string>();
    if (!p.any_operands) {
      for (py::handle operand : operands) p.operands.push_back(PatternFrom(operand));
    }
  }
  return p;
}

// What the names stand for, and the equations of the pattern's operations, in the order in which they stand there.
struct Match {
  std::vector<std::optional<Atom>> names;
  std::vector<const Eqn*> eqns;
};

// Whether all elements of a value are this number.
bool Repeats(const Builder& b, const Atom& a, double number) {
  if (a.is_literal()) return a.IsSplat(number);
  static const Prim& broadcast = FindPrim("broadcast");  // what makes an array of one number
  const Eqn* e = b.Definition(a);
  return e != nullptr && e->prim == &broadcast && e->operands[0].IsSplat(number);
}

std::vector<Match> MatchesOf(const Builder& b, const Pattern& p, const Atom& a, const Match& so_far);

std::vector<Match> MatchesOf(const Builder& b, const Pattern& p, const Eqn& e, const Atoms& x, Match so_far) {
  if (!p.called.empty() && e.attrs.GetOr<std::string>("name", "") != p.called) return {};
  so_far.eqns.push_back(&e);
  if (p.any_operands) return {std::move(so_far)};
  if (p.operands.size() != x.size()) return {};
  std::vector<Match> found;
  const bool both_ways = e.prim->commutes && x.size() == 2;
  for (bool swapped : {false, true}) {
    if (swapped && !both_ways) break;
    std::vector<Match> all = {so_far};
    for (size_t i = 0; i < x.size(); ++i) {
      std::vector<Match> more;
      for (const Match& m : all) {
        for (Match& next : MatchesOf(b, p.operands[i], x[swapped ? x.size() - 1 - i : i], m))
          more.push_back(std::move(next));
      }
      all = std::move(more);
    }
    for (Match& m : all) found.push_back(std::move(m));
  }
  return found;
}

std::vector<Match> MatchesOf(const Builder& b, const Pattern& p, const Atom& a, const Match& so_far) {
  if (p.prim != nullptr) {
    const Eqn* e = b.Definition(a);
    if (e == nullptr || e->prim != p.prim || e->num_results != 1) return {};
    return MatchesOf(b, p, *e, e->operands, so_far);
  }
  if (p.name < 0) return Repeats(b, a, p.number) ? std::vector<Match>{so_far} : std::vector<Match>{};
  Match m = so_far;
  std::optional<Atom>& stands_for = m.names[static_cast<size_t>(p.name)];
  if (stands_for && !(*stands_for == a)) return {};
  stands_for = a;
  return {std::move(m)};
}

// (name, attributes, their kinds, values as weft.primitives takes them, regions) of an equation.
py::tuple Described(const Eqn& e) {
  py::list regions;
  for (const FnRef& r : e.regions) regions.append(FnHandle{r, e.loc});
  return py::make_tuple(e.prim->name, AttrsObject(e.attrs), regions);
}

class PythonRule {
 public:
  PythonRule(std::string name, const py::handle& pattern, size_t names, py::function rule)
      : name_(std::move(name)), pattern_(PatternFrom(pattern)), names_(names), rule_(std::move(rule)) {}

  std::optional<Atoms> operator()(Builder& b, const Eqn& e, const Atoms& x) {
    if (e.prim != pattern_.prim) return std::nullopt;
    Match none;
    none.names.resize(names_);
    for (const Match& m : MatchesOf(b, pattern_, e, x, none)) {
      if (std::optional<Atoms> out = Try(b, e, x, m)) {
        ++applied;
        return out;
      }
    }
    return std::nullopt;
  }

  int64_t applied = 0;

 private:
  // What the rule gives for a match, in the builder; nullopt: it does not want to.
  std::optional<Atoms> Try(Builder& b, const Eqn& e, const Atoms& x, const Match& m) {
    Atoms given;
    if (pattern_.any_operands) {
      given = x;
    } else {
      for (const std::optional<Atom>& a : m.names) given.push_back(a.value());
    }
    const Loc loc = e.loc.Through(name_);
    const ScopedUserLoc place(loc);
    Types results;
    for (uint32_t i = 0; i < e.num_results; ++i) results.push_back(ResultType(b, e, x, i));
    FnRef fn;
    {
      ScopedTrace trace(name_, "rewrite");
      py::list values, eqns;
      Atoms args;
      for (const Atom& a : given) {
        if (a.is_var()) {
          values.append(Take(WrapValue(trace->Parameter(b.TypeOf(a), ""))));
          args.push_back(a);
        } else {
          values.append(Take(WrapValue(Value(a.literal()))));
        }
      }
      for (const Eqn* eqn : m.eqns) eqns.append(Described(*eqn));
      const py::object out = RunningPython([&] { return rule_(values, eqns, results, loc.Stack()); });
      if (out.is_none()) return std::nullopt;
      const Traced t = trace->Finish(ValuesFrom(out, name_.c_str()));
      for (const Value& v : t.captures) {
        if (v.traced()) {
          throw UserError(ErrorKind::kTracer, loc, "the rewrite '", name_, "' uses a traced value, ", v.type(),
                          ", from around it; what it writes is made of what it matched");
        }
        args.push_back(Atom(v.tensor()));
      }
      fn = t.fn;
      given = std::move(args);
    }
    const ScopedLoc here(b, loc);
    return b.Inline(*fn, given);
  }

  static Type ResultType(const Builder& b, const Eqn& e, const Atoms& x, uint32_t i) {
    Types types;
    Mask literal;
    for (const Atom& a : x) {
      types.push_back(b.TypeOf(a));
      literal.push_back(a.is_literal());
    }
    return InferTypes(Sig{*e.prim, types, literal, e.attrs, e.regions})[i];
  }

  std::string name_;
  Pattern pattern_;
  size_t names_;
  py::function rule_;
};

std::vector<std::string> Expanded(const std::vector<std::string>& names) {
  std::vector<std::string> all;
  for (const std::string& name : names) {
    if (name == "optimize")
      all.insert(all.end(), DefaultPasses().begin(), DefaultPasses().end());
    else
      all.push_back(name);
  }
  return all;
}

}  // namespace

void BindRewrites(py::module_& m) {
  // (program, how often the rule applied). pattern: an index of a name, a number as a float, or (primitive, patterns,
  // name), of the outermost also (primitive, None, name); the name is that of an operation that Python defined.
  // rule(values of the names, [(name, attributes, regions) of the pattern's operations], types of the results, stack)
  // gives a list of values, or None.
  m.def("rewrite",
        [](const FnHandle& f, const std::string& name, py::handle pattern, size_t names, const py::function& rule) {
          PythonRule python_rule(name, pattern, names, rule);
          const HostFunctionsStay stay;
          FnRef out = Rewrite(f.fn, [&](Builder& b, const Eqn& e, const Atoms& x) { return python_rule(b, e, x); });
          return py::make_tuple(FnHandle{std::move(out), f.loc}, python_rule.applied);
        });
  // Passes in order; "optimize" stands for the default ones. What is disabled are rules, by name. Of the rules that
  // apply `most` do. (program, [(pass, rule, operation, where, stack, before, after) of each that applied]); before and
  // after, expressions, with `texts`.
  m.def(
      "run_passes",
      [](const FnHandle& f, const std::vector<std::string>& names, const std::set<std::string>& disabled, bool marks,
         std::optional<int64_t> most, bool texts) {
        py::list applied;
        FnRef fn = f.fn;
        for (const std::string& name : Expanded(names)) {
          RuleWatch watch(disabled);
          watch.marks = marks;
          watch.texts = texts;
          if (most) watch.most = *most - static_cast<int64_t>(applied.size());
          watch.applied = [&](const AppliedRule& a) {
            applied.append(
                py::make_tuple(a.pass, a.rule, a.operation, a.at.ToString(), a.at.Stack(), a.before, a.after));
          };
          fn = RunPasses(std::move(fn), {name});
        }
        return py::make_tuple(FnHandle{std::move(fn), f.loc}, applied);
      },
      py::arg("fn"), py::arg("passes"), py::arg("disabled") = std::set<std::string>{}, py::arg("marks") = false,
      py::arg("most") = py::none(), py::arg("texts") = false);
  // Of a program as passes left it: why its equations were not folded, and which were not computed together, a sentence
  // each.
  m.def("why_not_folded", [](const FnHandle& f) { return WhyNotFolded(*f.fn); });
  m.def("why_not_fused", [](const FnHandle& f) { return WhyNotFused(*WithoutCalls(f.fn), FusionPolicy{}); });
  m.def("pass_names", [] {
    std::vector<std::string> names;
    for (const Pass& p : AllPasses()) names.emplace_back(p.name);
    return names;
  });
  m.def("default_passes", [] { return DefaultPasses(); });
  m.def("rule_names", [] {
    std::vector<std::string> names;
    for (const SimplifyRule* rule : SimplifyRules()) names.emplace_back(rule->name);
    for (const char* rule : LoopRuleNames()) names.emplace_back(rule);
    names.emplace_back(kWiderType);
    names.emplace_back(kRowBlocks);
    names.emplace_back(kComponents);
    names.emplace_back(kDepthwise);
    names.emplace_back(kVectorProduct);
    return names;
  });
  // Loads a plugin: (name, path, names of passes, rules and primitives that it added).
  m.def("load_plugin", [](const std::string& path) {
    const LoadedPlugin& p = LoadPlugin(path);
    return py::make_tuple(p.name, p.path, p.passes, p.rules, p.primitives);
  });
  // Raises ValueError where the program reads memory that something else has; the bytes of its arena.
  m.def("verify_memory", [](const FnHandle& f) {
    VerifyMemory(*f.fn);
    return ArenaBytes(*f.fn);
  });
  m.def("verify", [](const FnHandle& f) { Verify(*f.fn, {.large_literals = true}); });
  m.def("set_plan_hooks", [](py::object by_plan, py::object left_out) {
    g_plan_hook = by_plan.release().ptr();
    g_left_out_hook = left_out.release().ptr();
  });
  m.def("set_plan_of_process", SetPlanOfProcess);
  m.def("set_plan_of_thread", SetPlanOfThread);
  m.def("plan_around", PlanAround);
}

}  // namespace weft::python

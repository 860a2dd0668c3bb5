#include "driver/command_line/command_passes.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <functional>
#include <iostream>
#include <optional>
#include <utility>
#include <vector>

#include "absl/strings/str_format.h"
#include "absl/strings/str_join.h"
#include "ir/dim.h"
#include "ir/error.h"
#include "ir/exchange/serialize.h"
#include "ir/text/parser.h"
#include "ir/text/printer.h"
#include "ir/verify.h"
#include "transforms/ad/grad.h"
#include "transforms/ad/jet.h"
#include "transforms/ad/jvp.h"
#include "transforms/batch/vmap.h"
#include "transforms/opt/pass.h"

namespace weft {
namespace {

using Arguments = std::vector<std::string>;

// A pass as it stands on the command line: grad(0,1).
struct Request {
  std::string name;
  Arguments arguments;
};

struct CommandPass {
  std::string name, arguments, doc;
  std::function<FnRef(const FnRef&, const Arguments&)> run;
  // For a list of passes: tells of each. Empty: `run` is one.
  std::function<FnRef(const FnRef&, const PassObserver&)> run_list = {};
};

// The parameters that `arguments` number; without any, those that `by_default` picks.
Mask ParameterMask(const Fn& fn, const char* pass, const Arguments& arguments,
                   const std::function<bool(size_t)>& by_default) {
  const size_t n = fn.params().size();
  Mask mask(n, false);
  for (const std::string& text : arguments) {
    size_t index = 0;
    const auto result = std::from_chars(text.data(), text.data() + text.size(), index);
    if (result.ec != std::errc() || result.ptr != text.data() + text.size() || index >= n) {
      throw ValueError(pass, ": '", text, "' is no parameter of ", fn.name(), ", which has ", n);
    }
    mask[index] = true;
  }
  for (size_t i = 0; i < n && arguments.empty(); ++i) mask[i] = by_default(i);
  return mask;
}

FnRef RunGrad(const FnRef& fn, const Arguments& arguments) {
  GradOptions options;
  options.wrt = ParameterMask(*fn, "grad", arguments, [](size_t i) { return i == 0; });
  return Grad(fn, options);
}

FnRef RunJvp(const FnRef& fn, const Arguments& arguments) {
  return Jvp(fn, ParameterMask(*fn, "jvp", arguments, [&](size_t i) { return IsInexact(fn->params()[i].type.dtype); }))
      .fn;
}

FnRef RunJet(const FnRef& fn, const Arguments& arguments) {
  int order = 0;
  const std::string text = arguments.empty() ? "" : arguments[0];
  const auto result = std::from_chars(text.data(), text.data() + text.size(), order);
  if (result.ec != std::errc() || result.ptr != text.data() + text.size() || order < 1)
    throw ValueError("jet: '", text, "' is no order; expected one of 1 or more, as in jet(3)");
  const Mask active = ParameterMask(*fn, "jet", Arguments(arguments.begin() + 1, arguments.end()),
                                    [&](size_t i) { return IsInexact(fn->params()[i].type.dtype); });
  return Jet(fn, active, order).fn;
}

FnRef RunVmap(const FnRef& fn, const Arguments& arguments) {
  const std::optional<Dim> size = arguments.size() == 1 ? Dim::Parse(arguments[0]) : std::nullopt;
  if (!size) throw ValueError("vmap: expected one size, as in vmap(8) or vmap(n)");
  if (size->TryValue().value_or(0) < 0)
    throw ValueError("vmap: '", arguments[0], "' is no size; expected one of 0 or more, as in vmap(8) or vmap(n)");
  return Batch(fn, Mask(fn->params().size(), true), Mask(fn->results().size(), true), *size).fn;
}

FnRef RunRoundTrip(const FnRef& fn, const Arguments&) {
  for (const FnRef& back : {ParseFn(Print(*fn)), Deserialize(Serialize(*fn))}) {
    if (!back->StructurallyEquals(*fn)) {
      throw UserError(ErrorKind::kInternal, {}, "the program changes when it is written and read:\n", Print(*fn),
                      "becomes\n", Print(*back));
    }
  }
  return fn;
}

const std::vector<CommandPass>& CommandPasses() {
  static const auto& list = *new std::vector<CommandPass>([] {
    std::vector<CommandPass> passes;
    for (const Pass& pass : AllPasses()) {
      passes.push_back(
          {pass.name, "", pass.doc, [&pass](const FnRef& fn, const Arguments&) { return RunPass(pass, fn); }});
    }
    std::string defaults;
    for (const std::string& name : DefaultPasses()) defaults += (defaults.empty() ? "" : ", ") + name;
    passes.push_back(
        {"optimize", "", "The passes before lowering: " + defaults + ".",
         [](const FnRef& fn, const Arguments&) { return Optimize(fn); },
         [](const FnRef& fn, const PassObserver& observe) { return RunPasses(fn, DefaultPasses(), observe); }});
    passes.push_back({"grad", "(PARAMETER,...)",
                      "The gradient of result 0 with respect to these parameters; to the first, when none is given.",
                      RunGrad});
    passes.push_back(
        {"jvp", "(PARAMETER,...)",
         "Forward mode, with tangents for these parameters; for all that can have one, when none is given.", RunJvp});
    passes.push_back({"jet", "(ORDER,PARAMETER,...)",
                      "Taylor mode to that order, along these parameters; along all that can vary, when none is given.",
                      RunJet});
    passes.push_back({"vmap", "(SIZE)", "Every parameter and result gets a leading dimension of that size.", RunVmap});
    passes.push_back({"print", "", "Print the program as it is at this point.", [](const FnRef& fn, const Arguments&) {
                        std::cout << Print(*fn) << "\n";
                        return fn;
                      }});
    passes.push_back(
        {"roundtrip", "", "Check that text and protobuf form read back as the same program.", RunRoundTrip});
    passes.push_back({"verify", "", "Check the program, as is done after every pass anyway.",
                      [](const FnRef& fn, const Arguments&) { return fn; }});
    return passes;
  }());
  return list;
}

const CommandPass& Find(const std::string& name) {
  for (const CommandPass& pass : CommandPasses()) {
    if (pass.name == name) return pass;
  }
  throw ValueError(
      "there is no pass '", name, "'; there are ",
      absl::StrJoin(CommandPasses(), ", ", [](std::string* out, const CommandPass& p) { *out += p.name; }));
}

std::vector<Request> ParseRequests(const std::string& text) {
  std::vector<Request> requests;
  size_t pos = 0;
  while (pos < text.size()) {
    Request request;
    const size_t end = std::min(text.find_first_of(",()", pos), text.size());
    request.name = text.substr(pos, end - pos);
    pos = end;
    if (pos < text.size() && text[pos] == '(') {
      const size_t close = text.find(')', pos);
      if (close == std::string::npos) throw ValueError("--passes: '(' without ')' after ", request.name);
      for (size_t begin = pos + 1; begin < close;) {
        const size_t comma = std::min(text.find(',', begin), close);
        request.arguments.push_back(text.substr(begin, comma - begin));
        begin = comma + 1;
      }
      pos = close + 1;
    }
    if (pos < text.size() && text[pos] != ',') throw ValueError("--passes: expected ',' after ", request.name);
    ++pos;
    const CommandPass& pass = Find(request.name);
    if (pass.arguments.empty() && !request.arguments.empty())
      throw ValueError("--passes: ", request.name, " takes no argument");
    requests.push_back(std::move(request));
  }
  return requests;
}

}  // namespace

namespace {

// Raises kValue for a name in --dump-after that stands for no pass.
void CheckNames(const std::vector<std::string>& names) {
  for (const std::string& name : names) {
    if (name != "all") Find(name);
  }
}

void PrintTable(const std::vector<PassRecord>& records) {
  double sum = 0;
  for (const PassRecord& r : records) sum += r.milliseconds;
  std::cerr << absl::StrFormat("%10s  %7s  %10s  %10s  %s\n", "ms", "share", "equations", "left", "pass");
  for (const PassRecord& r : records) {
    std::cerr << absl::StrFormat("%10.3f  %6.1f%%  %10d  %10d  %s\n", r.milliseconds,
                                 sum > 0 ? 100 * r.milliseconds / sum : 0, r.equations_before, r.equations_after,
                                 r.name);
  }
  std::cerr << absl::StrFormat("%10.3f  %6.1f%%  %10s  %10s  %s\n", sum, 100.0, "", "", "together");
}

}  // namespace

FnRef RunCommandPasses(const FnRef& fn, const std::string& passes, const PassReport& report) {
  const std::vector<Request> requests = ParseRequests(passes);
  CheckNames(report.dump_after);
  std::vector<PassRecord> records;
  const auto observe = [&](const PassRecord& record, const Fn& result) {
    records.push_back(record);
    const auto& names = report.dump_after;
    if (std::any_of(names.begin(), names.end(), [&](const auto& n) { return n == "all" || n == record.name; }))
      std::cerr << "# after " << record.name << "\n" << Print(result) << "\n";
  };
  FnRef f = fn;
  for (const Request& request : requests) {
    const CommandPass& pass = Find(request.name);
    if (pass.run_list) {
      f = pass.run_list(f, observe);
    } else {
      const int64_t before = f->NumEqns();
      const auto start = std::chrono::steady_clock::now();
      f = pass.run(f, request.arguments);
      const auto took = std::chrono::steady_clock::now() - start;
      observe({request.name, std::chrono::duration<double, std::milli>(took).count(), before, f->NumEqns()}, *f);
    }
    Verify(*f);
  }
  if (report.timing) PrintTable(records);
  return f;
}

std::string ListCommandPasses() {
  std::string text;
  for (const CommandPass& pass : CommandPasses()) text += pass.name + pass.arguments + ": " + pass.doc + "\n";
  return text;
}

}  // namespace weft

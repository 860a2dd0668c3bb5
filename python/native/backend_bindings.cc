// Programs on their way through a backend: stages, bundles, emulation.
#include <algorithm>
#include <tuple>

#include "driver/backend.h"
#include "driver/bundle/bundle.h"
#include "driver/compile_gate.h"
#include "driver/files/array_files.h"
#include "driver/files/files.h"
#include "ir/text/printer.h"
#include "python/native/bindings.h"
#include "python/native/run.h"
#include "transforms/opt/stable_rules.h"

namespace weft::python {
namespace {

Tensors TensorsFrom(py::handle sequence, const char* what) {
  Tensors tensors;
  for (const Value& v : ValuesFrom(sequence, what)) {
    if (v.traced()) throw TypeError(what, ": takes arrays, not traced values");
    tensors.push_back(v.tensor());
  }
  return tensors;
}

py::list Listed(Tensors tensors) {
  py::list list;
  for (Tensor& t : tensors) list.append(Take(WrapValue(Value(std::move(t)))));
  return list;
}

// `optimized`: the passes have run.
CompileRequest RequestOf(const FnHandle& f, const std::string& backend, bool same_bits, bool optimized = false) {
  CompileRequest request{f.fn};
  if (optimized) request.passes = {};
  request.backend = backend;
  request.target.fused_products = !same_bits;
  if (same_bits) std::erase(request.passes, "widen");
  return request;
}

// For every parameter, as a request has it; empty where none is donated, so that equal requests are equal.
std::vector<bool> OfParameters(std::vector<bool> donated, const FnHandle& f) {
  if (std::find(donated.begin(), donated.end(), true) == donated.end()) return {};
  donated.resize(f.fn->params().size(), false);
  return donated;
}

}  // namespace

void BindBackends(py::module_& m) {
  // Raises ValueError unless there is this backend.
  m.def("check_backend", [](const std::string& name) { FindBackend(name); });
  // The forms that a backend makes of a program, in order.
  m.def("stages", [](const std::string& name) { return FindBackend(name)->Stages(); });
  // Licences of these names, as a number; raises ValueError where there is no such licence.
  m.def("licences_named", [](const std::vector<std::string>& names) { return Licences::Named(names).bits(); });
  // function() where rewriting may change what they say.
  m.def("with_licences", [](uint8_t licences, const py::object& function) {
    const ScopedLicences scope(Licences::OfBits(licences));
    return RunningPython([&] { return function(); });
  });
  // All rules of simplification: (name, licence, pattern, replacement, condition, numbers of the tests), the last four
  // empty for rules that are no formulas.
  m.def("simplify_rules", [] {
    py::list rules;
    for (const SimplifyRule* rule : SimplifyRules()) {
      const FormulaRule none{"", rule->licence, "", ""};
      const FormulaRule& f = rule->formula != nullptr ? *rule->formula : none;
      rules.append(py::make_tuple(rule->name, Name(rule->licence), f.pattern, f.replacement, f.where, f.numbers));
    }
    return rules;
  });
  // [(platform, kind, (kind of memory, its bytes)), ...] of the devices of this process that its programs run on.
  m.def("devices_of_backend", [](const std::string& name) {
    py::list list;
    for (const Device& d : FindBackend(name)->Devices())
      list.append(py::make_tuple(d.platform, d.kind, py::make_tuple(d.memory.kind, d.memory.bytes)));
    return list;
  });
  // Bytes that the memory of its devices keeps for reuse.
  m.def("kept_bytes", [](const std::string& name) { return FindBackend(name)->Memory().KeptBytes(); });
  // Compiles now what the first call would compile. Raises what compiling raises.
  m.def(
      "compile",
      [](const FnHandle& f, const std::string& backend, bool same_bits, bool optimized, std::vector<bool> donated) {
        ProgramOf(f.fn, {.backend = backend,
                         .donated = OfParameters(std::move(donated), f),
                         .same_bits = same_bits,
                         .optimized = optimized});
      },
      py::arg("fn"), py::arg("backend"), py::arg("same_bits"), py::arg("optimized") = false,
      py::arg("donated") = std::vector<bool>{});
  // The program at a stage of compilation, as text. `donated`: which of the first parameters are given away.
  m.def(
      "stage",
      [](const FnHandle& f, const std::string& backend, const std::string& stage, bool same_bits, bool optimized,
         std::vector<bool> donated) {
        Unlocked unlocked;
        Compiling compiling;
        CompileRequest request = RequestOf(f, backend, same_bits, optimized);
        request.donated = OfParameters(std::move(donated), f);
        return StageText(request, stage);
      },
      py::arg("fn"), py::arg("backend"), py::arg("stage"), py::arg("same_bits"), py::arg("optimized") = false,
      py::arg("donated") = std::vector<bool>{});
  // What each pass before a backend did: (name, milliseconds, equations before, equations after, the program's text).
  m.def("passes", [](const FnHandle& f) {
    std::vector<std::tuple<std::string, double, int64_t, int64_t, std::string>> all;
    Unlocked unlocked;
    CompileRequest{f.fn}.Optimized([&](const PassRecord& r, const Fn& result) {
      all.emplace_back(r.name, r.milliseconds, r.equations_before, r.equations_after, Print(result));
    });
    return all;
  });
  // A bundle's bytes. `captured`: values of the last parameters.
  m.def(
      "export_bundle",
      [](const FnHandle& f, const std::string& backend, py::handle captured, bool emulation, bool same_bits,
         bool optimized) {
        const Tensors values = TensorsFrom(captured, "export");
        std::string bytes;
        {
          Unlocked unlocked;
          Compiling compiling;
          bytes = MakeBundle(RequestOf(f, backend, same_bits, optimized), values, emulation).Serialize();
        }
        return py::bytes(bytes);
      },
      py::arg("fn"), py::arg("backend"), py::arg("captured"), py::arg("emulation"), py::arg("same_bits"),
      py::arg("optimized") = false);
  // The results of a bundle in a file on arrays in files, by name (driver/files/array_files.h).
  m.def("run_bundle", [](const std::string& path, const std::vector<std::string>& inputs, const std::string& device) {
    Tensors out;
    {
      Unlocked unlocked;
      const Bundle bundle = ParseBundle(ReadFile(path), path);
      out = RunBundle(bundle, ReadArguments(bundle, inputs), device);
    }
    return Listed(std::move(out));
  });
  // Its results by an emulation of the device on the CPU.
  m.def("emulate", [](const FnHandle& f, const std::string& backend, py::handle args) {
    const Tensors tensors = TensorsFrom(args, "emulate");
    Tensors out;
    {
      Unlocked unlocked;
      Compiling compiling;
      const CompileRequest request = RequestOf(f, backend, false);
      out = FindBackend(backend)->Emulate(request, request.Optimized(), tensors);
    }
    return Listed(std::move(out));
  });
}

}  // namespace weft::python

#include "driver/command_line/gpu_selftest.h"

#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdio>
#include <cstring>
#include <filesystem>
#include <iostream>
#include <limits>
#include <memory>
#include <sstream>
#include <stdexcept>
#include <vector>

#include "backends/cuda/cuda_device.h"
#include "backends/cuda/program.h"
#include "driver/files/array_files.h"
#include "driver/files/files.h"
#include "driver/files/npy.h"
#include "driver/files/npz.h"
#include "ir/error.h"
#include "ir/tensor.h"

namespace weft {
namespace {

// A sample is long enough that launching its first kernel is small beside it.
constexpr int kWarmUp = 3, kSamples = 15, kRunsPerSample = 10;

struct Case {
  std::string kind;  // check; or also measured: copy, memory, product
  std::string name;
  double relative = 0, absolute = 0;  // tolerances, which add up
};

struct Outcome {
  Case of;
  double error = 0;     // the largest, in tolerances; where nothing is tolerated, infinite or 0
  std::string failure;  // why there are no results; empty where there are
  double milliseconds = 0, bytes = 0, operations = 0;

  bool right() const { return failure.empty() && error <= 1; }
  bool measured() const { return failure.empty() && of.kind != "check"; }
  double bytes_per_second() const { return bytes / milliseconds * 1e3; }
};

class Material {
 public:
  explicit Material(const std::string& path) : path_(path), files_(path) {
    std::istringstream lines(File("cases.txt"));
    std::string line;
    while (std::getline(lines, line)) {
      std::istringstream words(line);
      Case c;
      std::string target;
      words >> c.kind;
      if (c.kind == "targets") {
        while (words >> target) targets.push_back(target);
      } else if (words >> c.name >> c.relative >> c.absolute) {
        cases.push_back(c);
      } else {
        throw UserError(ErrorKind::kParse, {}, path_, ": cases.txt: cannot read the line \"", line,
                        "\"; expected \"targets SM...\" or \"KIND NAME RELATIVE ABSOLUTE\"");
      }
    }
  }

  std::string File(const std::string& name) const {
    if (!files_.Has(name)) throw UserError(ErrorKind::kParse, {}, path_, ": the archive has no file ", name);
    return files_.Read(name);
  }
  Tensor Array(const std::string& name, DType wanted) const {
    return ParseNpy(File(name), wanted, path_ + ": " + name);
  }

  std::vector<std::string> targets;
  std::vector<Case> cases;

 private:
  std::string path_;
  NpzArchive files_;
};

// `block` again and again along its first dimension, as a value that the program takes.
Tensor Repeated(const Tensor& block, const Bundle::Value& v, const std::string& name) {
  Tensor whole(static_cast<DType>(v.dtype), v.shape);
  if (block.dtype() != whole.dtype() || block.size() == 0 || whole.size() % block.size() != 0)
    throw TypeError(name, " is ", block.type(), ", which cannot be repeated to ", whole.type());
  for (int64_t at = 0; at < whole.bytes(); at += block.bytes())
    std::memcpy(whole.data<char>() + at, block.raw(), static_cast<size_t>(block.bytes()));
  return whole;
}

// The largest difference between `got` and `want`, which is repeated, in what is tolerated there.
double Error(const Tensor& got, const Tensor& want, const Case& c) {
  double error = 0;
  for (int64_t i = 0; i < got.size(); ++i) {
    const std::complex<double> g = got.Get(i), w = want.Get(i % want.size());
    const auto same = [](double a, double b) { return a == b || (std::isnan(a) && std::isnan(b)); };
    if (same(g.real(), w.real()) && same(g.imag(), w.imag())) continue;
    const double allowed = c.relative * std::abs(w) + c.absolute, by = std::abs(g - w) / allowed;
    if (!(by <= error)) error = std::isnan(by) ? std::numeric_limits<double>::infinity() : by;
  }
  return error;
}

void RunCase(const Material& material, const std::string& target, Outcome* outcome) {
  const std::string& name = outcome->of.name;
  const std::string file = name + "." + target + ".weftb";
  const Bundle bundle = ParseBundle(material.File(file), file);
  Tensors inputs;
  for (size_t i = 0; i < bundle.params.size(); ++i) {
    const std::string array = name + ".in." + std::to_string(i);
    const DType dtype = static_cast<DType>(bundle.params[i].dtype);
    inputs.push_back(Repeated(material.Array(array, dtype), bundle.params[i], array));
  }
  std::vector<cuda::HostArgument> arguments;
  for (const Tensor& t : inputs) arguments.push_back({t.raw(), t.shape()});

  auto device = std::make_shared<cuda::CudaDevice>(*bundle.gpu);
  cuda::Program program(*bundle.gpu, device);
  std::vector<cuda::HostArray> results = program.Run(arguments);
  for (size_t i = 0; i < results.size(); ++i) {
    cuda::HostArray& a = results[i];
    const Tensor got(static_cast<DType>(a.dtype), a.shape, std::make_shared<int>(), a.bytes.data());
    const Tensor want = material.Array(name + ".out." + std::to_string(i), got.dtype());
    if (want.size() == 0 || got.size() % want.size() != 0)
      throw TypeError("result ", i, " is ", got.type(), ", which does not repeat ", want.type());
    outcome->error = std::max(outcome->error, Error(got, want, outcome->of));
  }
  if (outcome->of.kind == "check") return;

  const auto moves = [&](int64_t bytes) { outcome->bytes += static_cast<double>(bytes); };
  bundle.gpu->ForEachStep(StepVisitor{[&](const abi::Launch<abi::InWords>& s) { moves(s.bytes); },
                                      [&](const abi::Copy<abi::InWords>& s) { moves(2 * s.bytes); },
                                      [&](const abi::Product<abi::InWords>& s) {
                                        moves(s.bytes);
                                        const GpuMatmul& m = s.product;
                                        outcome->operations += 2.0 * static_cast<double>(m.batch) *
                                                               static_cast<double>(m.m) * static_cast<double>(m.n) *
                                                               static_cast<double>(m.k);
                                      }});
  for (int i = 0; i < kWarmUp; ++i) program.RunSteps();
  std::vector<double> samples;
  for (int i = 0; i < kSamples; ++i)
    samples.push_back(device->Milliseconds([&] {
      for (int run = 0; run < kRunsPerSample; ++run) program.RunSteps();
    }));
  std::nth_element(samples.begin(), samples.begin() + kSamples / 2, samples.end());
  outcome->milliseconds = samples[kSamples / 2] / kRunsPerSample;
}

template <class... Args>
std::string Format(const char* format, Args... args) {
  char text[256];
  std::snprintf(text, sizeof text, format, args...);
  return text;
}

// What was measured, by name and unit; `copy`: bytes per second, 0 where it is not known.
std::vector<std::pair<std::string, double>> Figures(const Outcome& o, double copy) {
  if (!o.measured()) return {};
  std::vector<std::pair<std::string, double>> figures = {{"milliseconds", o.milliseconds}};
  if (o.operations > 0) {
    figures.emplace_back("teraflops", o.operations / o.milliseconds * 1e-9);
    return figures;
  }
  figures.emplace_back("gigabytes_per_second", o.bytes_per_second() * 1e-9);
  if (copy > 0) figures.emplace_back("of_copy", o.bytes_per_second() / copy);
  return figures;
}

std::string TextLine(const Outcome& o, double copy) {
  std::string line = Format("%-24s %-6s", o.of.name.c_str(),
                            o.right()           ? "right"
                            : o.failure.empty() ? "WRONG"
                                                : "FAILED");
  if (!o.failure.empty()) return line + " " + o.failure;
  line += Format(" %6.3f of the tolerance", o.error);
  for (const auto& [what, value] : Figures(o, copy)) {
    if (what == "milliseconds") line += Format(" %9.4f ms", value);
    if (what == "gigabytes_per_second") line += Format(" %7.0f GB/s", value);
    if (what == "teraflops") line += Format(" %7.1f TFLOP/s", value);
    if (what == "of_copy") line += Format(" %5.1f %% of the copy", 100 * value);
  }
  return line;
}

std::string Quoted(const std::string& text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') out += '\\';
    out += static_cast<unsigned char>(c) < 0x20 ? ' ' : c;
  }
  return out + '"';
}

// JSON has no infinity.
std::string Number(double v) { return std::isfinite(v) ? Format("%.6g", v) : "null"; }

std::string Json(const cuda::Card& card, const std::string& target, const std::vector<Outcome>& outcomes, double copy) {
  std::string text = "{\"device\": " + Quoted(card.name) + ", \"capability\": " + std::to_string(card.capability) +
                     ", \"driver\": " + std::to_string(card.driver_version) + ", \"target\": " + Quoted(target) +
                     ", \"cases\": [";
  for (const Outcome& o : outcomes) {
    text += std::string(&o == outcomes.data() ? "\n" : ",\n") + "  {\"name\": " + Quoted(o.of.name) +
            ", \"right\": " + (o.right() ? "true" : "false");
    if (o.failure.empty())
      text += ", \"of_tolerance\": " + Number(o.error);
    else
      text += ", \"failure\": " + Quoted(o.failure);
    for (const auto& [what, value] : Figures(o, copy)) text += ", " + Quoted(what) + ": " + Number(value);
    text += "}";
  }
  return text + "\n]}\n";
}

std::string Beside() {
  std::error_code error;
  const auto executable = std::filesystem::read_symlink("/proc/self/exe", error);
  return (executable.parent_path() / "selftest.zip").string();
}

}  // namespace

bool SelftestCommand::Run() const {
  if (!gpu) throw ValueError("selftest: say what to test; there is --gpu");
  try {
    // The card before anything else: without one, that is all there is to say.
    const cuda::Card card = cuda::Card::Find();
    const std::string path = cases.empty() ? Beside() : cases;
    if (!std::filesystem::exists(path))
      throw ValueError("selftest: there is no ", path, "; it is part of the archive that `./bazelw run ",
                       "//tests/gpu:pack_selftest` writes; --cases=FILE says where it lies");
    const Material material(path);
    std::string target, all;
    for (const std::string& t : material.targets) {
      if (target.empty() && card.Runs(t)) target = t;
      all += (all.empty() ? "" : " and ") + t;
    }
    if (target.empty())
      throw std::runtime_error("cuda: the programs are compiled for " + all + "; device 0 (" + card.name + ") is " +
                               card.SmName());
    std::cout << card.name << ", " << card.SmName() << ", driver of CUDA " << card.driver_version / 1000 << "."
              << card.driver_version % 1000 / 10 << ", programs compiled for " << target << std::endl;
    // Holds the card's context, which each program would make anew otherwise; until a failure, which may have spoilt
    // it.
    GpuArtifact nothing;
    nothing.sm = target;
    std::unique_ptr<cuda::CudaDevice> context;
    std::vector<Outcome> outcomes;
    double copy = 0;
    for (const Case& c : material.cases) {
      Outcome o;
      o.of = c;
      try {
        if (!context) context = std::make_unique<cuda::CudaDevice>(nothing);
        RunCase(material, target, &o);
      } catch (const std::exception& failure) {
        o.failure = failure.what();
        context.reset();
      }
      if (c.kind == "copy" && o.measured()) copy = o.bytes_per_second();
      std::cout << TextLine(o, copy) << std::endl;
      outcomes.push_back(std::move(o));
    }
    const auto right = std::count_if(outcomes.begin(), outcomes.end(), [](const Outcome& o) { return o.right(); });
    std::cout << right << " of " << outcomes.size() << " are right" << std::endl;
    if (!json.empty()) WriteFile(json, Json(card, target, outcomes, copy));
    return !outcomes.empty() && right == static_cast<int64_t>(outcomes.size());
  } catch (const std::runtime_error& failure) {
    throw weft::Error(ErrorKind::kRuntime, failure.what());
  }
}

}  // namespace weft

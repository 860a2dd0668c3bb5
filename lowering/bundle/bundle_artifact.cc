#include <algorithm>
#include <limits>
#include <stdexcept>

#include "base/digest.h"
#include "base/dtype.h"
#include "base/utf8.h"
#include "lowering/abi/abi.h"
#include "lowering/bundle/bundle.h"
#include "lowering/bundle/bundle.pb.h"

namespace weft {
namespace {

constexpr char kMagic[] = "weft bundle\n";
constexpr size_t kMagicBytes = sizeof kMagic - 1, kDigestBytes = 64;
// A bundle holds code and descriptors that one version of the interface between code and runtime reads.
constexpr int kVersion = WEFT_ABI_VERSION;

void Write(const GpuArtifact& a, bundle::GpuProgram* out) {
  out->set_sm(a.sm);
  out->set_ptx(a.ptx);
  out->set_emulation(a.emulation);
  out->set_emulation_target(a.emulation_target);
  out->set_arena_bytes(a.plan.arena_bytes);
  out->set_constants(a.plan.constants);
  out->set_schedule(a.plan.schedule);
  for (const Artifact::Slot& s : a.plan.slots) {
    bundle::Slot* slot = out->add_slots();
    slot->set_place(static_cast<int>(s.place));
    slot->set_index(s.index);
  }
  for (const Artifact::Buffer& b : a.plan.buffers) {
    bundle::Buffer* buffer = out->add_buffers();
    buffer->set_bytes(b.bytes.constant);
    buffer->set_offset(b.offset);
  }
  for (const GpuKernel& k : a.kernels) {
    bundle::Kernel* kernel = out->add_kernels();
    kernel->set_name(k.name);
    kernel->set_blocks(k.blocks);
    kernel->set_threads(k.threads);
    kernel->set_shared_bytes(k.shared_bytes);
    kernel->set_meets(k.meets);
  }
  for (int64_t word : a.plan.desc) out->add_steps(word);
}

[[noreturn]] void Damaged(const std::string& what) { throw std::invalid_argument("the bundle is damaged: " + what); }

GpuArtifact Read(const bundle::GpuProgram& p) {
  GpuArtifact a;
  a.sm = p.sm();
  a.ptx = p.ptx();
  a.emulation = p.emulation();
  a.emulation_target = p.emulation_target();
  a.plan.target = "cuda:" + p.sm();
  a.plan.arena_bytes = p.arena_bytes();
  a.plan.constants = p.constants();
  a.plan.schedule = p.schedule();
  for (const bundle::Buffer& b : p.buffers()) {
    Artifact::Buffer buffer;
    buffer.bytes.constant = b.bytes();
    buffer.offset = b.offset();
    a.plan.buffers.push_back(buffer);
  }
  for (const bundle::Slot& s : p.slots()) {
    if (s.place() < 0 || s.place() > UINT8_MAX) Damaged("a slot has no place");
    a.plan.slots.push_back({static_cast<Artifact::Place>(s.place()), s.index()});
  }
  for (const bundle::Kernel& k : p.kernels())
    a.kernels.push_back({k.name(), k.blocks(), k.threads(), k.shared_bytes(), k.meets()});
  a.plan.desc.assign(p.steps().begin(), p.steps().end());
  return a;
}

void Write(const std::vector<Bundle::Value>& values, google::protobuf::RepeatedPtrField<bundle::Value>* out) {
  for (const Bundle::Value& v : values) {
    bundle::Value* value = out->Add();
    value->set_name(v.name);
    value->set_dtype(v.dtype);
    for (int64_t d : v.shape) value->add_shape(d);
    value->set_is_constant(v.is_constant);
    value->set_constant(v.constant);
  }
}

std::vector<Bundle::Value> Read(const google::protobuf::RepeatedPtrField<bundle::Value>& values) {
  std::vector<Bundle::Value> out;
  for (const bundle::Value& v : values) {
    for (int64_t d : v.shape()) {
      if (d < 0) Damaged("a negative size");
    }
    if (v.dtype() < 0 || v.dtype() >= kNumDTypes) Damaged("an array of no type");
    if (!IsUtf8(v.name())) Damaged("a name that is no UTF-8");
    out.push_back({v.name(), v.dtype(), {v.shape().begin(), v.shape().end()}, v.is_constant(), v.constant()});
  }
  return out;
}

std::vector<Artifact::Value> Plain(const std::vector<Bundle::Value>& values) {
  std::vector<Artifact::Value> out;
  for (const Bundle::Value& v : values) {
    out.emplace_back();
    out.back().dtype = static_cast<uint8_t>(v.dtype);
    for (int64_t d : v.shape) {
      out.back().dims.emplace_back();
      out.back().dims.back().constant = d;
    }
  }
  return out;
}

bool SameTypes(const std::vector<Artifact::Value>& of_code, const std::vector<Bundle::Value>& said) {
  return std::equal(
      of_code.begin(), of_code.end(), said.begin(), said.end(), [](const Artifact::Value& a, const Bundle::Value& b) {
        return a.dtype == b.dtype &&
               std::equal(a.dims.begin(), a.dims.end(), b.shape.begin(), b.shape.end(),
                          [](const SizeExpr& d, int64_t size) { return d.is_static() && d.constant == size; });
      });
}

}  // namespace

bool Bundle::IsBundle(const std::string& bytes) { return bytes.compare(0, kMagicBytes, kMagic) == 0; }

std::string Bundle::Serialize() const {
  bundle::Bundle b;
  b.set_version(kVersion);
  b.set_name(name);
  Write(params, b.mutable_params());
  Write(results, b.mutable_results());
  if (gpu) Write(*gpu, b.mutable_gpu());
  if (cpu) b.set_cpu(cpu->Serialize());
  // The format's own limit.
  std::string message;
  if (b.ByteSizeLong() > std::numeric_limits<int>::max() || !b.SerializeToString(&message))
    throw std::invalid_argument("a bundle holds at most 2 GiB; this one needs " + std::to_string(b.ByteSizeLong()) +
                                " bytes, captured arrays included");
  return kMagic + Sha256(message) + message;
}

Bundle Bundle::Parse(const std::string& bytes) {
  if (!IsBundle(bytes)) throw std::invalid_argument("this is no bundle of Weft");
  // What is run is code and the addresses that it uses, of which no check of single entries could say enough.
  const std::string message = bytes.size() < kMagicBytes + kDigestBytes ? "" : bytes.substr(kMagicBytes + kDigestBytes);
  if (message.empty() || message.size() > std::numeric_limits<int>::max() ||
      bytes.compare(kMagicBytes, kDigestBytes, Sha256(message)) != 0)
    Damaged("its bytes are not those that were written (or it is of an earlier version of Weft)");
  bundle::Bundle b;
  if (!b.ParseFromString(message)) Damaged("it cannot be read");
  if (b.version() != kVersion)
    throw std::invalid_argument("the bundle is of version " + std::to_string(b.version()) + "; this program reads " +
                                std::to_string(kVersion));
  Bundle out;
  if (!IsUtf8(b.name())) Damaged("a name that is no UTF-8");
  out.name = b.name();
  out.params = Read(b.params());
  out.results = Read(b.results());
  if (b.has_gpu()) {
    out.gpu = Read(b.gpu());
    out.gpu->plan.params = Plain(out.params);
    out.gpu->plan.results = Plain(out.results);
    if (const std::string problem = out.gpu->PlanProblem(); !problem.empty()) Damaged(problem);
  } else {
    Artifact a;
    if (!Artifact::Parse(b.cpu(), &a)) Damaged("its code is of another version of Weft, or cut off");
    if (const std::string problem = a.PlanProblem(); !problem.empty()) Damaged(problem);
    if (!a.symbols.empty()) Damaged("it has sizes that are not known");
    if (!SameTypes(a.params, out.params) || !SameTypes(a.results, out.results))
      Damaged("its code takes and gives other arrays than it says");
    for (uint8_t donated : a.donated) {
      if (donated != 0) Damaged("it overwrites what it is given");
    }
    out.cpu = std::move(a);
  }
  return out;
}

}  // namespace weft

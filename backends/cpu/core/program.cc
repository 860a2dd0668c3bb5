#include "backends/cpu/core/program.h"

#include <absl/container/inlined_vector.h>

#include <algorithm>
#include <cstring>
#include <limits>
#include <mutex>
#include <optional>
#include <stdexcept>

#include "backends/cpu/core/buffer_cache.h"
#include "backends/cpu/core/runtime.h"
#include "base/dtype.h"
#include "base/interrupt.h"
#include "base/out_of_memory.h"
#include "base/run_messages.h"
#include "lowering/abi/cpu_features.h"

namespace weft::cpu {
namespace {

constexpr size_t kKeptLayouts = 16;

std::string ShapeText(const int64_t* shape, size_t rank) {
  std::string text = "[";
  for (size_t i = 0; i < rank; ++i) text += (i ? "," : "") + std::to_string(shape[i]);
  return text + "]";
}

// ", where n = 3, m = 4" of a program of symbolic sizes.
std::string SizesText(const std::vector<std::string>& symbols, const std::vector<int64_t>& values) {
  std::string text;
  for (size_t s = 0; s < symbols.size(); ++s)
    text += (s ? ", " : ", where ") + symbols[s] + " = " + std::to_string(values[s]);
  return text;
}

// Results that are tapes own what they refer to: tapes made by the call and those of its arguments.
void KeepTapes(const Artifact& a, std::span<const Argument> arguments, Call& call, std::span<Array> results) {
  struct Owner {
    std::shared_ptr<void> memory;
    std::vector<std::shared_ptr<TapeRegion>> made;
    std::vector<std::shared_ptr<void>> given;
  };
  for (size_t i = 0; i < results.size(); ++i) {
    if (static_cast<DType>(a.results[i].dtype) != DType::kTape) continue;
    std::shared_ptr<void>& data = results[i].data;
    void* const address = data.get();
    auto owner = std::make_shared<Owner>(Owner{std::move(data), call.device_tapes, {}});
    owner->made.push_back(call.tapes);
    for (const Argument& x : arguments) {
      if (x.tapes) owner->given.push_back(x.tapes);
    }
    data = std::shared_ptr<void>(std::move(owner), address);
  }
}

}  // namespace

std::shared_ptr<Program> Program::Load(Artifact artifact, std::vector<int64_t> callbacks) {
  std::shared_ptr<Program> p(new Program(std::move(artifact)));
  p->callbacks_ = std::move(callbacks);
  p->lacking_ = LackingFeature(p->artifact_.target);
  p->code_ = std::make_unique<LoadedCode>(p->artifact_.code);
  p->main_ = reinterpret_cast<WeftMain>(p->code_->Find("weft_main"));
  if (p->main_ == nullptr) throw std::runtime_error("the artifact is damaged: its code has no function weft_main");
  for (size_t i = 0; i < p->artifact_.functions.size(); ++i) {
    p->functions_.push_back(reinterpret_cast<WeftMain>(p->code_->Find("weft_f" + std::to_string(i))));
    if (p->functions_.back() == nullptr)
      throw std::runtime_error("the artifact is damaged: its code has no function weft_f" + std::to_string(i));
  }
  const std::string& constants = p->artifact_.constants;
  p->constants_ = AllocateBuffer(static_cast<int64_t>(constants.size()));
  std::memcpy(p->constants_.get(), constants.data(), constants.size());
  if (p->artifact_.symbols.empty()) p->layouts_.push_back(p->MakeLayout({}));
  Runtime();
  return p;
}

std::shared_ptr<const Program::Layout> Program::MakeLayout(std::vector<int64_t> symbols) const {
  auto layout = std::make_shared<Layout>();
  const Artifact& a = artifact_;
  for (const Artifact::Condition& c : a.conditions) {
    const int64_t size = c.size.Evaluate(symbols);
    if (size < c.least && c.reads.Evaluate(symbols) != 0) {
      throw std::invalid_argument(SizeMessage(c.what, size, c.least, SizesText(a.symbols, symbols)));
    }
  }
  layout->desc = a.desc;
  for (const Artifact::DescPatch& patch : a.desc_patches) layout->desc[patch.index] = patch.value.Evaluate(symbols);
  auto place = [&](const std::vector<Artifact::Slot>& slots, const std::vector<Artifact::Buffer>& buffers,
                   int64_t planned, std::vector<int64_t>* slot_offset) {
    std::vector<int64_t> offsets, bytes;
    int64_t arena_bytes = planned;
    if (planned >= 0) {
      for (const Artifact::Buffer& b : buffers) offsets.push_back(b.offset);
    } else {
      for (const Artifact::Buffer& b : buffers) bytes.push_back(b.bytes.Evaluate(symbols));
      arena_bytes = PlanArena(buffers, bytes, &offsets);
    }
    for (const Artifact::Slot& s : slots)
      slot_offset->push_back(s.place == Artifact::Place::kArena ? offsets[s.index] : s.index);
    return arena_bytes;
  };
  layout->arena_bytes = place(a.slots, a.buffers, a.arena_bytes, &layout->slot_offset);
  for (const Artifact::Function& f : a.functions) {
    layout->functions.emplace_back();
    layout->functions.back().arena_bytes =
        place(f.slots, f.buffers, f.arena_bytes, &layout->functions.back().slot_offset);
  }
  auto shape_of = [&](const Artifact::Value& v) {
    std::vector<int64_t> shape;
    for (const SizeExpr& d : v.dims) shape.push_back(d.Evaluate(symbols));
    return shape;
  };
  for (const Artifact::Value& v : a.results) {
    layout->result_shapes.push_back(std::make_shared<const std::vector<int64_t>>(shape_of(v)));
    int64_t bytes = ByteWidth(static_cast<DType>(v.dtype));
    bool empty = false, overflow = false;
    for (int64_t d : *layout->result_shapes.back()) {
      if (d < 0)
        throw std::invalid_argument("result " + std::to_string(layout->result_shapes.size() - 1) +
                                    " would have the size " + std::to_string(d) + SizesText(a.symbols, symbols) +
                                    "; expected 0 or more");
      empty |= d == 0;
      overflow |= __builtin_mul_overflow(bytes, d, &bytes);
    }
    if (overflow && !empty)
      throw std::overflow_error("result " + std::to_string(layout->result_shapes.size() - 1) +
                                " would need more than 2^63 bytes" + SizesText(a.symbols, symbols));
    layout->result_bytes.push_back(empty ? 0 : bytes);
  }
  for (const Artifact::Value& v : a.params) layout->param_shapes.push_back(shape_of(v));
  layout->symbols = std::move(symbols);
  return layout;
}

std::shared_ptr<const Program::Layout> Program::LayoutFor(std::span<const Argument> arguments) const {
  const Artifact& a = artifact_;
  constexpr int64_t kUnknown = std::numeric_limits<int64_t>::min();
  std::vector<int64_t> symbols(a.symbols.size(), kUnknown);
  // A symbol's value is read from a dimension that is linear in it, and whose other symbols are known.
  for (bool more = true; more;) {
    more = false;
    for (size_t i = 0; i < a.params.size(); ++i) {
      for (size_t d = 0; d < a.params[i].dims.size(); ++d) {
        const SizeExpr& e = a.params[i].dims[d];
        int64_t rest = arguments[i].shape[d] - e.constant, coefficient = 0;
        std::optional<size_t> unknown;
        bool linear = true;
        for (const auto& term : e.terms) {
          int64_t product = term.coefficient;
          bool known = true;
          for (const auto symbol : term.symbols) {
            if (symbols[symbol] != kUnknown) {
              product *= symbols[symbol];
            } else {
              linear &= known && (!unknown || *unknown == static_cast<size_t>(symbol));
              unknown = symbol;
              known = false;
            }
          }
          (known ? rest : coefficient) += known ? -product : product;
        }
        if (!linear || !unknown || coefficient == 0 || rest % coefficient != 0) continue;
        symbols[*unknown] = rest / coefficient;
        more = true;
      }
    }
  }
  std::lock_guard<ForkSafeMutex> lock(mutex_);
  for (size_t i = 0; i < layouts_.size(); ++i) {
    if (layouts_[i]->symbols != symbols) continue;
    if (i != 0)
      std::rotate(layouts_.begin(), layouts_.begin() + static_cast<int64_t>(i),
                  layouts_.begin() + static_cast<int64_t>(i) + 1);
    return layouts_[0];
  }
  for (size_t s = 0; s < symbols.size(); ++s) {
    if (symbols[s] == kUnknown)
      throw std::invalid_argument("the size '" + a.symbols[s] + "' cannot be told from the arguments");
    if (symbols[s] < 0)
      throw std::invalid_argument("the arguments would have the size '" + a.symbols[s] + "' be " +
                                  std::to_string(symbols[s]));
  }
  layouts_.insert(layouts_.begin(), MakeLayout(symbols));
  if (layouts_.size() > kKeptLayouts) layouts_.pop_back();
  return layouts_[0];
}

int64_t Program::arena_bytes() const {
  std::lock_guard<ForkSafeMutex> lock(mutex_);
  return layouts_.empty() ? 0 : layouts_[0]->arena_bytes;
}

std::vector<Array> Program::Run(std::span<const Argument> arguments) const {
  std::vector<Array> results(artifact_.results.size());
  Run(arguments, results);
  return results;
}

void Program::Run(std::span<const Argument> arguments, std::span<Array> results) const {
  const Artifact& a = artifact_;
  if (!lacking_.empty())
    throw std::runtime_error("the program was compiled for a CPU with " + lacking_ + ", which this one lacks");
  if (arguments.size() != a.params.size()) {
    throw std::invalid_argument("takes " + std::to_string(a.params.size()) + " arguments, got " +
                                std::to_string(arguments.size()));
  }
  std::shared_ptr<const Layout> of_sizes;
  if (!a.symbols.empty()) of_sizes = LayoutFor(arguments);
  const Layout* layout = of_sizes ? of_sizes.get() : layouts_[0].get();
  for (size_t i = 0; i < arguments.size(); ++i) {
    const std::vector<int64_t>& want = layout->param_shapes[i];
    if (!std::equal(want.begin(), want.end(), arguments[i].shape)) {
      throw std::invalid_argument("argument " + std::to_string(i) + " has shape " +
                                  ShapeText(arguments[i].shape, want.size()) + "; expected " +
                                  ShapeText(want.data(), want.size()) + SizesText(a.symbols, layout->symbols));
    }
  }
  for (size_t i = 0; i < a.donated.size(); ++i) {
    if (a.donated[i] && arguments[i].donated.get() != arguments[i].data)
      throw std::invalid_argument("argument " + std::to_string(i) + " is donated, but comes without its memory");
  }
  for (size_t i = 0; i < results.size(); ++i) {
    const int32_t in = a.result_in.empty() ? -1 : a.result_in[i];
    results[i] = {in >= 0 ? arguments[static_cast<size_t>(in)].donated : AllocateBuffer(layout->result_bytes[i]),
                  layout->result_shapes[i]};
  }
  struct Arena {
    explicit Arena(int64_t n) : bytes(n), data(n > 0 ? AllocateRaw(n) : nullptr) {}
    ~Arena() {
      if (data != nullptr) FreeRaw(data, bytes);
    }
    int64_t bytes;
    void* data;
  } arena(layout->arena_bytes);
  constexpr size_t kSmall = 64;
  void* small[kSmall];
  std::unique_ptr<void*[]> large;
  void** slots = small;
  if (a.slots.size() > kSmall) {
    large.reset(new void*[a.slots.size()]);
    slots = large.get();
  }
  for (size_t s = 0; s < a.slots.size(); ++s) {
    const int64_t at = layout->slot_offset[s];
    switch (a.slots[s].place) {
      case Artifact::Place::kArena: slots[s] = static_cast<char*>(arena.data) + at; break;
      case Artifact::Place::kParam: slots[s] = const_cast<void*>(arguments[at].data); break;
      case Artifact::Place::kResult: slots[s] = results[at].data.get(); break;
      case Artifact::Place::kConstant: slots[s] = static_cast<char*>(constants_.get()) + at; break;
      case Artifact::Place::kMoving: slots[s] = nullptr; break;
    }
  }
  Call call;
  call.strings = &a.strings;
  call.callbacks = &callbacks_;
  call.constants = static_cast<char*>(constants_.get());
  absl::InlinedVector<Call::Function, 2> functions;
  for (size_t i = 0; i < a.functions.size(); ++i) {
    functions.push_back({functions_[i], &a.functions[i].name, &a.functions[i].slots, &layout->functions[i].slot_offset,
                         layout->functions[i].arena_bytes});
  }
  call.functions = functions;
  WeftFrame frame{slots, layout->desc.data(), &Runtime(), &call, 0, kTripsPerPoll};
  main_(&frame);
  if (call.failure) std::rethrow_exception(call.failure);
  if (frame.error != 0) {
    if (call.error.empty()) throw std::bad_alloc();
    if (OutOfMemory::Says(call.error)) throw OutOfMemory(call.error);
    throw std::runtime_error(call.error);
  }
  KeepTapes(a, arguments, call, results);
}

}  // namespace weft::cpu

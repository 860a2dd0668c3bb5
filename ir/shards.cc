#include "ir/shards.h"

#include <algorithm>
#include <cstring>
#include <map>
#include <utility>

#include "ir/error.h"
#include "ir/prim.h"

namespace weft {
namespace {

// An array in equal blocks.
struct Blocks {
  const Shape& block;
  const std::vector<std::vector<int64_t>>& index;  // which one each is, along every dimension
};

// Copies a box of `sizes` elements between two arrays of `from_shape` and `to_shape`, in which it begins at `from` and
// `to`.
void CopyBox(const Shape& sizes, int64_t width, const Shape& from_shape, const char* from, const Shape& to_shape,
             char* to) {
  // The last dimensions that are whole in both lie together, and so does what there is of the one before.
  size_t outer = sizes.size();
  int64_t piece = width;
  while (outer > 0 && sizes[outer - 1] == from_shape[outer - 1] && sizes[outer - 1] == to_shape[outer - 1])
    piece *= sizes[--outer];
  if (outer > 0) piece *= sizes[--outer];
  const std::vector<int64_t> from_strides = RowMajorStrides(from_shape), to_strides = RowMajorStrides(to_shape);
  const int64_t count = NumElements(absl::Span<const int64_t>(sizes).subspan(0, outer));
  std::vector<int64_t> row(outer, 0);
  for (int64_t r = 0; r < count; ++r) {
    std::memcpy(to, from, static_cast<size_t>(piece));
    for (size_t d = outer; d-- > 0;) {
      from += from_strides[d] * width, to += to_strides[d] * width;
      if (++row[d] < sizes[d]) break;
      from -= sizes[d] * from_strides[d] * width, to -= sizes[d] * to_strides[d] * width;
      row[d] = 0;
    }
  }
}

// Makes the blocks `to`, one behind the other, of the blocks `from`: each is copied from those that it meets.
// `address`: of a block in `from`. False where one that is needed is not among them; then nothing is copied.
template <class F>
bool CopyBlocks(int64_t width, const Blocks& from, const F& address, const Blocks& to, char* stack) {
  const size_t rank = to.block.size();
  std::map<std::vector<int64_t>, size_t> places;
  for (size_t i = 0; i < from.index.size(); ++i) places.emplace(from.index[i], i);
  const int64_t bytes = NumElements(to.block) * width;
  if (bytes == 0) return true;
  for (const bool copy : {false, true}) {
    char* out = stack;
    for (const std::vector<int64_t>& index : to.index) {
      std::vector<int64_t> first(rank), last(rank), at;
      for (size_t d = 0; d < rank; ++d) {
        first[d] = index[d] * to.block[d] / from.block[d];
        last[d] = ((index[d] + 1) * to.block[d] - 1) / from.block[d];
      }
      at = first;
      for (bool more = true; more;) {
        const auto found = places.find(at);
        if (found == places.end()) return false;
        if (copy) {
          // Where both begin in the whole array; what they share begins at the later place.
          Shape sizes(rank);
          const std::vector<int64_t> from_strides = RowMajorStrides(from.block), to_strides = RowMajorStrides(to.block);
          int64_t skip_from = 0, skip_to = 0;
          for (size_t d = 0; d < rank; ++d) {
            const int64_t a = at[d] * from.block[d], b = index[d] * to.block[d], begin = std::max(a, b);
            sizes[d] = std::min(a + from.block[d], b + to.block[d]) - begin;
            skip_from += (begin - a) * from_strides[d];
            skip_to += (begin - b) * to_strides[d];
          }
          CopyBox(sizes, width, from.block, address(found->second) + skip_from * width, to.block,
                  out + skip_to * width);
        }
        more = false;
        for (size_t d = rank; d-- > 0 && !more;) {
          more = ++at[d] <= last[d];
          if (!more) at[d] = first[d];
        }
      }
      out += bytes;
    }
  }
  return true;
}

// Whether each block lies in the whole array where it lies in the stack.
bool InOrder(const ShardLayout& layout) {
  if (layout.block_bytes == 0) return true;
  // A block is in one piece where it is whole in all dimensions behind the first one that it has more than one of.
  size_t d = 0;
  while (d < layout.block.size() && layout.block[d] == 1) ++d;
  for (++d; d < layout.block.size(); ++d) {
    if (layout.block[d] != layout.shape[d]) return false;
  }
  const std::vector<int64_t> strides = RowMajorStrides(layout.shape);
  for (size_t k = 0; k < layout.held.index.size(); ++k) {
    int64_t start = 0;
    for (size_t i = 0; i < layout.block.size(); ++i) start += layout.held.index[k][i] * layout.block[i] * strides[i];
    if (start * ByteWidth(layout.dtype) != static_cast<int64_t>(k) * layout.block_bytes) return false;
  }
  return true;
}

// The blocks of an array that is a sum in parts: each device along `sharding.partial` has a part of its own, so the
// same block is there several times.
HeldBlocks PartsHeld(const Mesh& mesh, const Sharding& sharding, const Ints& processes) {
  HeldBlocks held;
  std::map<std::vector<int64_t>, size_t> places;
  const HeldBlocks each = BlocksHeld(mesh, sharding, processes);
  for (size_t k = 0; k < each.devices.size(); ++k) {
    const std::vector<int64_t> at = mesh.Coordinates(each.devices[k]);
    const std::vector<int64_t>& index = each.index[each.place[k]];
    std::vector<int64_t> which = index;
    for (size_t a = 0; a < at.size(); ++a) {
      const auto& partial = sharding.partial;
      if (std::find(partial.begin(), partial.end(), mesh.axes[a].name) != partial.end()) which.push_back(at[a]);
    }
    const auto [it, added] = places.try_emplace(which, held.index.size());
    if (added) held.index.push_back(index);
    held.devices.push_back(each.devices[k]);
    held.place.push_back(it->second);
  }
  return held;
}

// For each block of a stack whether it is the first of those with its index: of a sum in parts there are several.
std::vector<bool> FirstParts(const ShardLayout& layout) {
  std::map<std::vector<int64_t>, size_t> seen;
  std::vector<bool> first;
  for (const auto& index : layout.held.index) first.push_back(seen.try_emplace(index, first.size()).second);
  return first;
}
bool IsInParts(const ShardLayout& layout) {
  const std::vector<bool> first = FirstParts(layout);
  return std::find(first.begin(), first.end(), false) != first.end();
}

// The indices of the first parts.
std::vector<std::vector<int64_t>> DistinctBlocks(const ShardLayout& layout) {
  const std::vector<bool> first = FirstParts(layout);
  std::vector<std::vector<int64_t>> distinct;
  for (size_t k = 0; k < first.size(); ++k) {
    if (first[k]) distinct.push_back(layout.held.index[k]);
  }
  return distinct;
}

// The stack of a sum in parts from one of its blocks, each once: the first part has all, and the others nothing.
Tensor FirstHaveAll(const Tensor& distinct, const ShardLayout& layout) {
  Tensor stack(layout.dtype, layout.stack);
  const std::vector<bool> first = FirstParts(layout);
  const auto bytes = static_cast<size_t>(layout.block_bytes);
  const char* from = distinct.data<char>();
  for (size_t k = 0; k < first.size(); ++k) {
    char* to = stack.data<char>() + k * bytes;
    if (first[k]) {
      std::memcpy(to, from, bytes);
      from += bytes;
    } else {
      std::memset(to, 0, bytes);
    }
  }
  return stack;
}

Tensor Sum(const Tensor& a, const Tensor& b) {
  const Prim& add = FindPrim("add");
  const Types operands = {a.type(), b.type()}, results = {a.type()};
  const Mask literal(2, false);
  const Attrs attrs;
  const std::vector<FnRef> regions;
  return add.eval(EvalContext{Sig{add, operands, literal, attrs, regions}, results, nullptr}, {a, b})[0];
}

// The blocks of the sum, each once.
Tensor SumOfParts(Tensor stack, const ShardLayout& layout) {
  std::map<std::vector<int64_t>, Tensor> sum_of;
  const std::vector<std::vector<int64_t>> distinct = DistinctBlocks(layout);
  for (size_t k = 0; k < layout.held.index.size(); ++k) {
    char* const address = stack.data<char>() + static_cast<int64_t>(k) * layout.block_bytes;
    const Tensor part(layout.dtype, layout.block, stack.owner(), address);
    Tensor& sum = sum_of[layout.held.index[k]];
    sum = sum.defined() ? Sum(sum, part) : part;
  }
  Shape shape = layout.block;
  shape.insert(shape.begin(), static_cast<int64_t>(distinct.size()));
  Tensor sums(layout.dtype, shape);
  const auto bytes = static_cast<size_t>(layout.block_bytes);
  for (size_t k = 0; k < distinct.size(); ++k) {
    std::memcpy(sums.data<char>() + k * bytes, sum_of[distinct[k]].raw(), bytes);
  }
  return sums;
}

}  // namespace

HeldBlocks BlocksHeld(const Mesh& mesh, const Sharding& sharding, const Ints& processes) {
  HeldBlocks held;
  std::map<std::vector<int64_t>, size_t> places;
  for (int64_t device = 0; device < mesh.num_devices(); ++device) {
    if (processes[static_cast<size_t>(device) + 1] != processes[0]) continue;
    const std::vector<int64_t> at = mesh.Coordinates(device);
    std::vector<int64_t> index;
    for (size_t d = 0; d < sharding.dims.size(); ++d) index.push_back(BlockOf(mesh, sharding, d, at).index);
    const auto [it, added] = places.try_emplace(index, held.index.size());
    if (added) held.index.push_back(index);
    held.devices.push_back(device);
    held.place.push_back(it->second);
  }
  return held;
}

bool Placement::Spans() const {
  const bool cut = std::any_of(mesh.axes.begin(), mesh.axes.end(), [&](const Mesh::Axis& a) {
    return a.size > 1 && std::any_of(sharding.dims.begin(), sharding.dims.end(), [&](const auto& axes) {
             return std::find(axes.begin(), axes.end(), a.name) != axes.end();
           });
  });
  return cut && std::any_of(processes.begin() + 1, processes.end(), [&](int64_t p) { return p != processes[0]; });
}

std::shared_ptr<const ShardLayout> ShardLayout::Make(const Mesh& mesh, Sharding sharding, const Ints& processes,
                                                     DType dtype, Shape shape, const Placement* placement) {
  auto layout = std::make_shared<ShardLayout>();
  sharding.dims.resize(shape.size());
  const Type local =
      LocalType(mesh, sharding, Type{dtype, Dims(shape.begin(), shape.end()), {}}, "an array on several devices");
  layout->placement = placement;
  layout->dtype = dtype;
  layout->block = StaticSizes(local.dims, "an array on several devices");
  layout->shape = std::move(shape);
  layout->held = PartsHeld(mesh, sharding, processes);
  if (layout->held.devices.empty()) throw ValueError("process ", processes[0], " has no device of ", mesh.ToString());
  layout->block_bytes = NumElements(layout->block) * ByteWidth(dtype);
  layout->stack = layout->block;
  layout->stack.insert(layout->stack.begin(), static_cast<int64_t>(layout->held.index.size()));
  int64_t blocks = 1;
  for (const auto& axes : sharding.dims) {
    for (const std::string& axis : axes) blocks *= mesh.Size(axis);
  }
  for (const std::string& axis : sharding.partial) blocks *= mesh.Size(axis);
  layout->complete =
      static_cast<int64_t>(layout->held.index.size()) == blocks && (placement == nullptr || !placement->Spans());
  layout->in_order = layout->complete && !IsInParts(*layout) && InOrder(*layout);
  return layout;
}

std::shared_ptr<const ShardLayout> ShardLayout::Make(const Placement& placement, DType dtype, Shape shape) {
  return Make(placement.mesh, placement.sharding, placement.processes, dtype, std::move(shape), &placement);
}

int64_t ShardLayout::device(size_t k) const {
  return placement == nullptr ? held.devices[k] : placement->devices[static_cast<size_t>(held.devices[k])];
}

bool ShardLayout::SameBlocks(const ShardLayout& other) const {
  // The first blocks of halves and of quarters have the same indices.
  return block == other.block && held.devices == other.held.devices && held.place == other.held.place &&
         held.index == other.held.index;
}

ShardCopies& CountedShardCopies() {
  static ShardCopies copies;
  return copies;
}

Tensor StackOfBlocks(const Tensor& whole, const ShardLayout& layout) {
  WEFT_CHECK(whole.shape() == layout.shape) << "an array does not fit its layout";
  if (layout.in_order) return whole.Reshaped(layout.stack);
  if (IsInParts(layout)) {
    const std::vector<std::vector<int64_t>> distinct = DistinctBlocks(layout);
    Shape shape = layout.block;
    shape.insert(shape.begin(), static_cast<int64_t>(distinct.size()));
    Tensor each(layout.dtype, shape);
    const std::vector<std::vector<int64_t>> only(1, std::vector<int64_t>(layout.shape.size(), 0));
    CopyBlocks(
        ByteWidth(layout.dtype), {layout.shape, only}, [&](size_t) { return whole.data<char>(); },
        {layout.block, distinct}, each.data<char>());
    ++CountedShardCopies().cut;
    return FirstHaveAll(each, layout);
  }
  Tensor stack(layout.dtype, layout.stack);
  const std::vector<std::vector<int64_t>> only(1, std::vector<int64_t>(layout.shape.size(), 0));
  CopyBlocks(
      ByteWidth(layout.dtype), {layout.shape, only}, [&](size_t) { return whole.data<char>(); },
      {layout.block, layout.held.index}, stack.data<char>());
  ++CountedShardCopies().cut;
  return stack;
}

Shards::Shards(std::shared_ptr<const ShardLayout> layout, Tensor stack, std::shared_ptr<Event> ready)
    : layout_(std::move(layout)), stacked_(true), stack_(std::move(stack)), ready_(std::move(ready)) {}

Shards::Shards(std::shared_ptr<const ShardLayout> layout, std::vector<Buffer> buffers)
    : layout_(std::move(layout)), stacked_(false), buffers_(std::move(buffers)) {
  WEFT_CHECK(buffers_.size() == num_buffers()) << "not as many buffers as devices";
}

std::shared_ptr<Shards> Shards::Cut(std::shared_ptr<const ShardLayout> layout, const Tensor& whole) {
  Tensor stack = StackOfBlocks(whole, *layout);
  auto shards = std::make_shared<Shards>(std::move(layout), std::move(stack));
  if (shards->layout().in_order) {
    shards->whole_ = whole;
    shards->whole_known_ = true;
  }
  return shards;
}

Buffer Shards::buffer(size_t k) const {
  const std::lock_guard<ForkSafeMutex> lock(mutex_);
  if (!stacked_) return buffers_[k];
  char* address =
      static_cast<char*>(stack_.raw()) + static_cast<int64_t>(layout_->held.place[k]) * layout_->block_bytes;
  return {layout_->device(k), address, layout_->block_bytes, stack_.owner(), ready_};
}

Tensor Shards::Block(size_t k) const {
  const Buffer b = buffer(k);
  b.Wait();
  return Tensor(layout_->dtype, layout_->block, b.owner, b.address);
}

void Shards::Wait() const {
  if (stacked_.load(std::memory_order_acquire)) {
    if (ready_ != nullptr) ready_->Wait();
    return;
  }
  for (size_t k = 0; k < num_buffers(); ++k) buffer(k).Wait();
}

Tensor Shards::Stack() const {
  Wait();
  if (stacked_.load(std::memory_order_acquire)) return stack_;
  std::vector<Buffer> apart;  // let go after the lock: what frees them may wait for others
  const std::lock_guard<ForkSafeMutex> lock(mutex_);
  if (stacked_) return stack_;
  const HeldBlocks& held = layout_->held;
  const auto bytes = static_cast<size_t>(layout_->block_bytes);
  const auto of_place = [&](size_t place) -> const Buffer& {
    const auto first = std::find(held.place.begin(), held.place.end(), place);
    return buffers_[static_cast<size_t>(first - held.place.begin())];
  };
  if (held.index.size() == 1) {
    stack_ = Tensor(layout_->dtype, layout_->stack, buffers_[0].owner, buffers_[0].address);
  } else {
    stack_ = Tensor(layout_->dtype, layout_->stack);
    for (size_t place = 0; place < held.index.size(); ++place)
      std::memcpy(stack_.data<char>() + place * bytes, of_place(place).address, bytes);
    ++CountedShardCopies().stacked;
  }
  apart.swap(buffers_);
  stacked_.store(true, std::memory_order_release);
  return stack_;
}

namespace {

[[noreturn]] void ThrowElsewhere(const ShardLayout& layout) {
  throw Error(ErrorKind::kRuntime,
              "the array " + Type{layout.dtype, Dims(layout.shape.begin(), layout.shape.end()), {}}.ToString() +
                  " spans devices of several processes, and this one holds only a part: x.addressable_shards has "
                  "that, weft.experimental.multihost_utils.process_allgather(x) brings all of it, and jitted "
                  "functions take it as an argument (one that they close over cannot be cut)");
}

}  // namespace

// Copies the blocks from where they lie, in one stack or apart.
bool Shards::CopyTo(const Shape& block, const std::vector<std::vector<int64_t>>& index, char* stack) const {
  Wait();
  std::vector<Buffer> apart;
  Tensor together;
  {
    const std::lock_guard<ForkSafeMutex> lock(mutex_);
    if (stacked_)
      together = stack_;
    else
      apart = buffers_;
  }
  const HeldBlocks& held = layout_->held;
  const auto address = [&](size_t place) -> const char* {
    if (together.defined()) return together.data<char>() + static_cast<int64_t>(place) * layout_->block_bytes;
    const auto first = std::find(held.place.begin(), held.place.end(), place);
    return static_cast<const char*>(apart[static_cast<size_t>(first - held.place.begin())].address);
  };
  return CopyBlocks(ByteWidth(layout_->dtype), {layout_->block, held.index}, address, {block, index}, stack);
}

Tensor Shards::Assembled() const {
  const ShardLayout& layout = *layout_;
  if (!layout.complete) ThrowElsewhere(layout);
  if (layout.in_order) return Stack().Reshaped(layout.shape);
  Tensor whole(layout.dtype, layout.shape);
  if (IsInParts(layout)) {
    const Tensor sums = SumOfParts(Stack(), layout);
    const std::vector<std::vector<int64_t>> distinct = DistinctBlocks(layout);
    const std::vector<std::vector<int64_t>> only(1, std::vector<int64_t>(layout.shape.size(), 0));
    CopyBlocks(
        ByteWidth(layout.dtype), {layout.block, distinct},
        [&](size_t place) { return sums.data<char>() + static_cast<int64_t>(place) * layout.block_bytes; },
        {layout.shape, only}, whole.data<char>());
    ++CountedShardCopies().assembled;
    return whole;
  }
  CopyTo(layout.shape, std::vector<std::vector<int64_t>>(1, std::vector<int64_t>(layout.shape.size(), 0)),
         whole.data<char>());
  ++CountedShardCopies().assembled;
  return whole;
}

Tensor Shards::StackAs(const ShardLayout& to) const {
  WEFT_CHECK(to.shape == layout_->shape && to.dtype == layout_->dtype) << "an array does not fit its layout";
  if (layout_->SameBlocks(to)) return Stack();
  if (layout_->in_order && to.in_order) return Stack().Reshaped(to.stack);  // both are the whole array
  if (IsInParts(*layout_) || IsInParts(to)) return StackOfBlocks(Whole(), to);
  Tensor stack(to.dtype, to.stack);
  if (!CopyTo(to.block, to.held.index, stack.data<char>())) ThrowElsewhere(*layout_);
  ++CountedShardCopies().moved;
  return stack;
}

const Tensor& Shards::Whole() const {
  if (whole_known_.load(std::memory_order_acquire)) return whole_;
  Tensor whole = Assembled();
  const std::lock_guard<ForkSafeMutex> lock(mutex_);
  if (!whole_known_) {
    whole_ = std::move(whole);
    whole_known_.store(true, std::memory_order_release);
  }
  return whole_;
}

bool Shards::HoldsAlone() const {
  const std::lock_guard<ForkSafeMutex> lock(mutex_);
  if (!stacked_) {
    return std::all_of(buffers_.begin(), buffers_.end(), [&](const Buffer& b) {
      const auto same =
          std::count_if(buffers_.begin(), buffers_.end(), [&](const Buffer& c) { return c.owner == b.owner; });
      return b.owner.use_count() == same;
    });
  }
  const bool twice = whole_known_ && whole_.owner() == stack_.owner();
  return stack_.raw() == stack_.owner().get() && stack_.owner().use_count() == (twice ? 2 : 1);
}

}  // namespace weft

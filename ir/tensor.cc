#include "ir/tensor.h"

#include <new>

#include "absl/hash/hash.h"
#include "absl/strings/string_view.h"
#include "base/array_memory.h"
#include "base/out_of_memory.h"
#include "base/to_integer.h"

namespace weft {

int64_t NumElements(absl::Span<const int64_t> shape) {
  int64_t product = 1;
  for (int64_t size : shape) {
    if (__builtin_mul_overflow(product, size, &product)) throw ValueError("an array of more than 2^63 elements");
  }
  return product;
}

std::vector<int64_t> RowMajorStrides(absl::Span<const int64_t> shape) {
  std::vector<int64_t> strides(shape.size(), 1);
  for (int i = static_cast<int>(shape.size()) - 2; i >= 0; --i) strides[i] = strides[i + 1] * shape[i + 1];
  return strides;
}

namespace {
struct FreeMemory {
  size_t bytes;
  void operator()(void* memory) const { FreeArray(memory, bytes); }
};
}  // namespace

bool Tensor::made_here() const { return std::get_deleter<FreeMemory>(owner_) != nullptr; }

const Shape Tensor::kOfScalars;

Tensor::Tensor(DType dtype, Shape shape) : dtype_(dtype), shape_(Shared(std::move(shape)).shape) {
  int64_t bytes = 0;
  const int64_t elements = size();
  if (__builtin_mul_overflow(elements, ByteWidth(dtype), &bytes)) throw ValueError("an array of more than 2^63 bytes");
  void* memory = AllocateArray(static_cast<size_t>(bytes));
  if (memory == nullptr) {
    throw OutOfMemory("out of memory: an array " + type().ToString() + " needs " + std::to_string(bytes) + " bytes");
  }
  owner_ = std::shared_ptr<void>(memory, FreeMemory{static_cast<size_t>(bytes)});
  data_ = memory;
}

Tensor Tensor::Zeros(DType dtype, Shape shape) {
  Tensor t(dtype, std::move(shape));
  std::memset(t.data_, 0, t.bytes());
  return t;
}

Tensor Tensor::Full(DType dtype, Shape shape, double value) {
  Tensor t(dtype, std::move(shape));
  const int64_t n = t.size();
  for (int64_t i = 0; i < n; ++i) t.Set(i, value);
  return t;
}

std::complex<double> Tensor::Get(int64_t i) const {
  return VisitDType(dtype_, [&](auto tag) -> std::complex<double> {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
      return std::complex<double>(at<T>(i).real(), at<T>(i).imag());
    } else {
      return static_cast<double>(at<T>(i));
    }
  });
}

void Tensor::Set(int64_t i, std::complex<double> value) {
  VisitDType(dtype_, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>) {
      data<T>()[i] =
          T(static_cast<typename T::value_type>(value.real()), static_cast<typename T::value_type>(value.imag()));
    } else if constexpr (std::is_same_v<T, bool>) {
      data<T>()[i] = value.real() != 0;
    } else if constexpr (kIsSmallFloat<T>) {
      data<T>()[i] = T(static_cast<float>(value.real()));
    } else if constexpr (kIsInteger<T>) {
      data<T>()[i] = ToInteger<T>(value.real());
    } else {
      data<T>()[i] = static_cast<T>(value.real());
    }
  });
}

namespace {
// The byte that stores what `byte` stands for.
template <class T>
uint8_t NumberIn(uint8_t byte) {
  if constexpr (std::is_same_v<T, bool>)
    return byte != 0;
  else if constexpr (kIsSmallFloat<T>)
    return byte & ((1u << kBitsOf<T>)-1);
  else
    return static_cast<uint8_t>(static_cast<WordOf<T>>(T(byte)));
}
template <class T>
inline constexpr bool kHasOtherBytes =
    std::is_same_v<T, bool> || kIsSmallInt<T> || (kIsSmallFloat<T> && kBitsOf<T> < 8);
}  // namespace

bool Tensor::HasNumbersAlone() const {
  return VisitDType(dtype_, [&](auto tag) {
    using T = typename decltype(tag)::type;
    uint8_t differ = 0;
    if constexpr (kHasOtherBytes<T>) {
      const auto* bytes = data<uint8_t>();
      for (int64_t i = 0, n = size(); i < n; ++i) differ |= bytes[i] ^ NumberIn<T>(bytes[i]);
    }
    return differ == 0;
  });
}

Tensor Tensor::WithNumbersAlone() const {
  if (HasNumbersAlone()) return *this;
  Tensor t(dtype_, shape());
  VisitDType(dtype_, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (kHasOtherBytes<T>) {
      const auto* from = data<uint8_t>();
      for (int64_t i = 0, n = size(); i < n; ++i) t.data<uint8_t>()[i] = NumberIn<T>(from[i]);
    }
  });
  return t;
}

Tensor Tensor::OutOfBounds(DType dtype) {
  Tensor t(dtype, {});
  VisitDType(dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (kIsInteger<T>) {
      using Limits = std::numeric_limits<T>;
      *t.data<T>() = Limits::is_signed ? Limits::min() : Limits::max();
    } else {
      t.Set(0, std::numeric_limits<double>::quiet_NaN());
    }
  });
  if (dtype == DType::kTape) std::memset(t.raw(), 0, sizeof(uint64_t));  // no tape is a null tape
  return t;
}

Tensor Tensor::Reshaped(Shape shape) const {
  Tensor t = *this;
  t.shape_ = Shared(std::move(shape)).shape;
  WEFT_CHECK(t.size() == size()) << "Reshaped: element counts differ";
  return t;
}

Tensor Tensor::Copy() const {
  Tensor t(dtype_, shape());
  std::memcpy(t.data_, data_, bytes());
  return t;
}

bool Tensor::BitEquals(const Tensor& other) const {
  return dtype_ == other.dtype_ && shape() == other.shape() && std::memcmp(data_, other.data_, bytes()) == 0;
}

size_t Tensor::Hash() const {
  return absl::HashOf(static_cast<int>(dtype_), shape(), absl::string_view(static_cast<const char*>(data_), bytes()));
}

}  // namespace weft

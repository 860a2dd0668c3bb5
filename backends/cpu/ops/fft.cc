// Discrete Fourier transforms of any length: mixed radix (Stockham, sorted as it goes) for products of small primes,
// Bluestein's chirp for the rest. In double precision throughout.
#include <algorithm>
#include <cmath>
#include <complex>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <vector>

#include "backends/cpu/core/runtime.h"
#include "backends/cpu/core/thread_pool.h"
#include "base/dtype.h"
#include "base/fork_safe_mutex.h"

namespace weft::cpu {
namespace {

using Complex = std::complex<double>;
constexpr double kPi = 3.14159265358979323846;

#define WEFT_INLINE inline __attribute__((always_inline))

// e^(-2 pi i k / n)
Complex Root(int64_t k, int64_t n) {
  const double angle = -2 * kPi * static_cast<double>(k % n) / static_cast<double>(n);
  return {std::cos(angle), std::sin(angle)};
}

// Without the branch for infinities that the operator of std::complex has.
WEFT_INLINE Complex Product(Complex a, Complex b) {
  return {a.real() * b.real() - a.imag() * b.imag(), a.real() * b.imag() + a.imag() * b.real()};
}
// a - i b and a + i b
WEFT_INLINE Complex Down(Complex a, Complex b) { return {a.real() + b.imag(), a.imag() - b.real()}; }
WEFT_INLINE Complex Up(Complex a, Complex b) { return {a.real() - b.imag(), a.imag() + b.real()}; }

// The transform of P numbers in place; `roots` are those of P.
template <int P>
WEFT_INLINE void Small(Complex* v, const Complex* roots) {
  if constexpr (P == 2) {
    const Complex d = v[0] - v[1];
    v[0] += v[1];
    v[1] = d;
  } else if constexpr (P == 3) {
    constexpr double kSine = 0.86602540378443864676;
    const Complex sum = v[1] + v[2], d = (v[1] - v[2]) * kSine, m = v[0] - sum * 0.5;
    v[0] += sum;
    v[1] = Down(m, d);
    v[2] = Up(m, d);
  } else if constexpr (P == 4) {
    const Complex a = v[0] + v[2], b = v[0] - v[2], c = v[1] + v[3], d = v[1] - v[3];
    v[0] = a + c;
    v[1] = Down(b, d);
    v[2] = a - c;
    v[3] = Up(b, d);
  } else if constexpr (P == 5) {
    constexpr double kCos1 = 0.30901699437494742410, kCos2 = -0.80901699437494742410;
    constexpr double kSin1 = 0.95105651629515357212, kSin2 = 0.58778525229247312917;
    const Complex s1 = v[1] + v[4], s2 = v[2] + v[3], d1 = v[1] - v[4], d2 = v[2] - v[3];
    const Complex m1 = v[0] + s1 * kCos1 + s2 * kCos2, m2 = v[0] + s1 * kCos2 + s2 * kCos1;
    const Complex n1 = d1 * kSin1 + d2 * kSin2, n2 = d1 * kSin2 - d2 * kSin1;
    v[0] += s1 + s2;
    v[1] = Down(m1, n1);
    v[2] = Down(m2, n2);
    v[3] = Up(m2, n2);
    v[4] = Up(m1, n1);
  } else {
    Complex y[P];
    for (int j = 0; j < P; ++j) {
      y[j] = v[0];
      for (int q = 1; q < P; ++q) y[j] += Product(v[q], roots[j * q % P]);
    }
    std::copy(y, y + P, v);
  }
}

// One factor of the length: x[(q * rest + r) * done + s], q < factor  ->  y[(r * factor + j) * done + s]. Lines side by
// side, x[i, line], are as if more were done.
struct Stage {
  int64_t factor, done, rest;  // done: the product of the factors before
  std::vector<Complex> roots;  // of the factor
  std::vector<Complex> turns;  // [rest, factor - 1]: what entry j > 0 is multiplied by
};

template <int P>
WEFT_INLINE void RunStage(const Stage& stage, int64_t lines, const Complex* x, Complex* y) {
  const int64_t done = stage.done * lines, apart = stage.rest * done;
  for (int64_t r = 0; r < stage.rest; ++r) {
    const Complex* turn = stage.turns.data() + r * (P - 1);
    const Complex* from = x + r * done;
    Complex* to = y + r * P * done;
    for (int64_t s = 0; s < done; ++s) {
      Complex v[P];
      for (int q = 0; q < P; ++q) v[q] = from[q * apart + s];
      Small<P>(v, stage.roots.data());
      to[s] = v[0];
      for (int j = 1; j < P; ++j) to[j * done + s] = Product(v[j], turn[j - 1]);
    }
  }
}

WEFT_INLINE void RunAnyStage(const Stage& stage, int64_t lines, const Complex* x, Complex* y) {
  switch (stage.factor) {
    case 2: return RunStage<2>(stage, lines, x, y);
    case 3: return RunStage<3>(stage, lines, x, y);
    case 4: return RunStage<4>(stage, lines, x, y);
    case 5: return RunStage<5>(stage, lines, x, y);
    case 7: return RunStage<7>(stage, lines, x, y);
    case 11: return RunStage<11>(stage, lines, x, y);
    default: return RunStage<13>(stage, lines, x, y);
  }
}

void RunAnywhere(const Stage& stage, int64_t lines, const Complex* x, Complex* y) { RunAnyStage(stage, lines, x, y); }
#ifdef __x86_64__
__attribute__((target("avx2,fma"))) void RunAvx2(const Stage& stage, int64_t lines, const Complex* x, Complex* y) {
  RunAnyStage(stage, lines, x, y);
}
#endif

void Run(const Stage& stage, int64_t lines, const Complex* x, Complex* y) {
#ifdef __x86_64__
  static const bool avx2 = __builtin_cpu_supports("avx2") && __builtin_cpu_supports("fma");
  if (avx2) return RunAvx2(stage, lines, x, y);
#endif
  RunAnywhere(stage, lines, x, y);
}

class Plan {
 public:
  explicit Plan(int64_t n) : n_(n) {
    int64_t rest = n;
    for (int64_t p : {4, 2, 3, 5, 7, 11, 13}) {
      for (; rest % p == 0; rest /= p) AddStage(p);
    }
    if (rest == 1) return;
    // Bluestein: x_j w^(j^2/2) convolved with w^(-j^2/2), by transforms of a power of two.
    stages_.clear();
    int64_t m = 1;
    while (m < 2 * n - 1) m *= 2;
    inner_ = std::make_unique<Plan>(m);
    chirp_.resize(static_cast<size_t>(n));
    for (int64_t j = 0; j < n; ++j)
      chirp_[j] = Root(static_cast<int64_t>((static_cast<__int128>(j) * j) % (2 * n)), 2 * n);
    filter_.assign(static_cast<size_t>(m), 0);
    for (int64_t j = 0; j < n; ++j) filter_[j] = filter_[(m - j) % m] = std::conj(chirp_[j]);
    std::vector<Complex> scratch;
    inner_->Forward(filter_.data(), 1, scratch);
  }

  // In place: x[i, line].
  void Forward(Complex* x, int64_t lines, std::vector<Complex>& scratch) const {
    if (n_ <= 1) return;
    if (inner_ != nullptr) {
      for (int64_t l = 0; l < lines; ++l) Bluestein(x + l, lines, scratch);
      return;
    }
    scratch.resize(static_cast<size_t>(n_ * lines));
    Complex *from = x, *to = scratch.data();
    for (const Stage& stage : stages_) {
      Run(stage, lines, from, to);
      std::swap(from, to);
    }
    if (from != x) std::copy(from, from + n_ * lines, x);
  }

 private:
  // Of a line whose elements are `step` apart.
  void Bluestein(Complex* x, int64_t step, std::vector<Complex>& scratch) const {
    std::vector<Complex> a(filter_.size(), 0);
    for (int64_t j = 0; j < n_; ++j) a[j] = Product(x[j * step], chirp_[j]);
    inner_->Forward(a.data(), 1, scratch);
    // Backwards by conjugates.
    for (size_t j = 0; j < a.size(); ++j) a[j] = std::conj(Product(a[j], filter_[j]));
    inner_->Forward(a.data(), 1, scratch);
    const double scale = 1 / static_cast<double>(a.size());
    for (int64_t k = 0; k < n_; ++k) x[k * step] = Product(std::conj(a[k]) * scale, chirp_[k]);
  }

  void AddStage(int64_t factor) {
    Stage s{factor, stages_.empty() ? 1 : stages_.back().done * stages_.back().factor, 0, {}, {}};
    s.rest = n_ / (s.done * factor);
    for (int64_t k = 0; k < factor; ++k) s.roots.push_back(Root(k, factor));
    for (int64_t r = 0; r < s.rest; ++r) {
      for (int64_t j = 1; j < factor; ++j) s.turns.push_back(Root(j * r * s.done, n_));
    }
    stages_.push_back(std::move(s));
  }

  int64_t n_;
  std::vector<Stage> stages_;
  std::vector<Complex> chirp_, filter_;
  std::unique_ptr<Plan> inner_;
};

std::shared_ptr<const Plan> PlanFor(int64_t n) {
  // Never destroyed: threads may run while the process ends.
  static auto& mutex = *new ForkSafeMutex;
  static auto& plans = *new std::map<int64_t, std::shared_ptr<const Plan>>;
  std::lock_guard<ForkSafeMutex> lock(mutex);
  auto& plan = plans[n];
  if (plan == nullptr) plan = std::make_shared<const Plan>(n);
  return plan;
}

// Transforms dimension of size n, lines `inner` apart, of `total` elements in place.
void AlongDimension(std::vector<Complex>& data, int64_t n, int64_t inner, bool inverse) {
  if (n == 0 || data.empty()) return;
  const std::shared_ptr<const Plan> plan = PlanFor(n);
  const double scale = inverse ? 1 / static_cast<double>(n) : 1;
  // Lines that lie side by side go together, as many as share cache lines.
  const int64_t together = std::min<int64_t>(inner, 16), groups = (inner + together - 1) / together;
  const int64_t blocks = static_cast<int64_t>(data.size()) / (n * inner);
  ParallelFor(blocks * groups, static_cast<int64_t>(data.size()) * 5, [&](int64_t begin, int64_t end) {
    std::vector<Complex> copy(inner == 1 ? 0 : static_cast<size_t>(n * together)), scratch;
    for (int64_t g = begin; g < end; ++g) {
      const int64_t first = g % groups * together, lines = std::min(together, inner - first);
      Complex* base = data.data() + g / groups * n * inner + first;
      Complex* x = inner == 1 ? base : copy.data();
      const bool moves = inner != 1 || inverse;
      for (int64_t i = 0; moves && i < n; ++i) {
        for (int64_t l = 0; l < lines; ++l)
          x[i * lines + l] = inverse ? std::conj(base[i * inner + l]) : base[i * inner + l];
      }
      plan->Forward(x, lines, scratch);
      for (int64_t i = 0; moves && i < n; ++i) {
        for (int64_t l = 0; l < lines; ++l)
          base[i * inner + l] = inverse ? std::conj(x[i * lines + l]) * scale : x[i * lines + l];
      }
    }
  });
}

void Fft(WeftFrame* frame, const abi::Fft<InWords>& op) {
  using Kind = abi::FftKind;
  const Kind kind = op.kind;
  const std::span<const int64_t> lengths = op.lengths;
  const DenseTensor x(frame, op.x), y(frame, op.result);
  if (y.size() == 0) return;
  const size_t rank = x.shape.size(), first = rank - lengths.size();
  const bool inverse = kind == Kind::kIfft || kind == Kind::kIrfft;
  // The whole transform on complex numbers, with full length in the last dimension.
  std::vector<int64_t> shape = x.shape;
  shape.back() = lengths.back();
  const int64_t have = x.shape.back(), full = shape.back(), want = y.shape.back();
  const int64_t rows = x.size() / std::max<int64_t>(1, have);
  std::vector<Complex> data(static_cast<size_t>(rows * full), 0);
  VisitDType(x.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    if constexpr (std::is_floating_point_v<T> || std::is_same_v<T, std::complex<float>> ||
                  std::is_same_v<T, std::complex<double>>) {
      for (int64_t i = 0; i < rows; ++i) {
        for (int64_t j = 0; j < have; ++j) data[i * full + j] = Complex(x.as<T>()[i * have + j]);
      }
    }
  });
  auto dimension = [&](size_t d, bool backwards) {
    int64_t inner = 1;
    for (size_t e = d + 1; e < rank; ++e) inner *= shape[e];
    AlongDimension(data, shape[d], inner, backwards);
  };
  for (size_t d = first; d + 1 < rank; ++d) dimension(d, inverse);
  if (kind == Kind::kIrfft) {
    // The other half is the mirror image; the imaginary parts of entry 0 and the middle are not looked at.
    for (int64_t i = 0; i < rows; ++i) {
      Complex* row = data.data() + i * full;
      row[0] = row[0].real();
      if (full % 2 == 0) row[full / 2] = row[full / 2].real();
      for (int64_t j = full / 2 + 1; j < full; ++j) row[j] = std::conj(row[full - j]);
    }
  }
  dimension(rank - 1, inverse);
  VisitDType(y.dtype, [&](auto tag) {
    using T = typename decltype(tag)::type;
    for (int64_t i = 0; i < rows; ++i) {
      for (int64_t j = 0; j < want; ++j) {
        const Complex v = data[i * full + j];
        if constexpr (std::is_floating_point_v<T>)
          y.as<T>()[i * want + j] = static_cast<T>(v.real());
        else if constexpr (std::is_same_v<T, std::complex<float>> || std::is_same_v<T, std::complex<double>>)
          y.as<T>()[i * want + j] = T(v);
      }
    }
  });
}

}  // namespace

void FillFft(WeftOp* ops) { Put<Fft>(ops); }

}  // namespace weft::cpu

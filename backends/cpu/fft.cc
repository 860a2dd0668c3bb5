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

#include "backends/cpu/fork_safe_mutex.h"
#include "backends/cpu/runtime.h"
#include "backends/cpu/thread_pool.h"
#include "ir/dtype.h"

namespace weft::cpu {
namespace {

using Complex = std::complex<double>;
constexpr double kPi = 3.14159265358979323846;

// e^(-2 pi i k / n)
Complex Root(int64_t k, int64_t n) {
  const double angle = -2 * kPi * static_cast<double>(k % n) / static_cast<double>(n);
  return {std::cos(angle), std::sin(angle)};
}

class Plan {
 public:
  explicit Plan(int64_t n) : n_(n) {
    int64_t rest = n;
    for (int64_t p : {4, 2, 3, 5, 7, 11, 13}) {
      for (; rest % p == 0; rest /= p) factors_.push_back(p);
    }
    if (rest == 1) {
      roots_.resize(static_cast<size_t>(n));
      for (int64_t k = 0; k < n; ++k) roots_[k] = Root(k, n);
      return;
    }
    // Bluestein: x_j w^(j^2/2) convolved with w^(-j^2/2), by transforms of a power of two.
    factors_.clear();
    int64_t m = 1;
    while (m < 2 * n - 1) m *= 2;
    inner_ = std::make_unique<Plan>(m);
    chirp_.resize(static_cast<size_t>(n));
    for (int64_t j = 0; j < n; ++j)
      chirp_[j] = Root(static_cast<int64_t>((static_cast<__int128>(j) * j) % (2 * n)), 2 * n);
    std::vector<Complex> b(static_cast<size_t>(m), 0);
    for (int64_t j = 0; j < n; ++j) b[j] = b[(m - j) % m] = std::conj(chirp_[j]);
    inner_->Forward(b);
    filter_ = std::move(b);
  }

  void Forward(std::vector<Complex>& x) const {
    if (n_ <= 1) return;
    if (inner_ != nullptr) {
      std::vector<Complex> a(filter_.size(), 0);
      for (int64_t j = 0; j < n_; ++j) a[j] = x[j] * chirp_[j];
      inner_->Forward(a);
      // Backwards by conjugates.
      for (size_t j = 0; j < a.size(); ++j) a[j] = std::conj(a[j] * filter_[j]);
      inner_->Forward(a);
      const double scale = 1 / static_cast<double>(a.size());
      for (int64_t k = 0; k < n_; ++k) x[k] = std::conj(a[k]) * scale * chirp_[k];
      return;
    }
    std::vector<Complex> y(x.size());
    int64_t done = 1;  // product of the factors so far
    for (int64_t p : factors_) {
      const int64_t rest = n_ / (done * p);
      // x[(q * rest + r) * done + s], q < p  ->  y[(r * p + j) * done + s]
      for (int64_t r = 0; r < rest; ++r) {
        for (int64_t s = 0; s < done; ++s) {
          Complex v[13];
          for (int64_t q = 0; q < p; ++q) v[q] = x[(q * rest + r) * done + s];
          for (int64_t j = 0; j < p; ++j) {
            Complex sum = v[0];
            for (int64_t q = 1; q < p; ++q) sum += v[q] * roots_[(j * q % p) * (n_ / p)];
            y[(r * p + j) * done + s] = sum * roots_[(j * r * done) % n_];
          }
        }
      }
      std::swap(x, y);
      done *= p;
    }
  }

 private:
  int64_t n_;
  std::vector<int64_t> factors_;
  std::vector<Complex> roots_, chirp_, filter_;
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
  const int64_t lines = n == 0 ? 0 : static_cast<int64_t>(data.size()) / n;
  const std::shared_ptr<const Plan> plan = PlanFor(std::max<int64_t>(1, n));
  ParallelFor(lines, static_cast<int64_t>(data.size()) * 20, [&](int64_t begin, int64_t end) {
    std::vector<Complex> line(static_cast<size_t>(n));
    for (int64_t l = begin; l < end; ++l) {
      Complex* base = data.data() + l / inner * n * inner + l % inner;
      for (int64_t i = 0; i < n; ++i) line[i] = inverse ? std::conj(base[i * inner]) : base[i * inner];
      plan->Forward(line);
      const double scale = inverse ? 1 / static_cast<double>(n) : 1;
      for (int64_t i = 0; i < n; ++i) base[i * inner] = inverse ? std::conj(line[i]) * scale : line[i];
    }
  });
}

enum Kind { kFft, kIfft, kRfft, kIrfft };

// [kind, lengths, x, result]
void Fft(WeftFrame* frame, const int64_t* desc) {
  DescReader r(frame, desc);
  const int64_t kind = r.Int();
  const std::vector<int64_t> lengths = r.Ints();
  const DenseTensor x(r), y(r);
  if (y.size() == 0) return;
  const size_t rank = x.shape.size(), first = rank - lengths.size();
  const bool inverse = kind == kIfft || kind == kIrfft;
  // The whole transform on complex numbers, with full length in the last dimension.
  std::vector<int64_t> shape = x.shape;
  shape.back() = lengths.back();
  const int64_t have = x.shape.back(), full = shape.back(), want = y.shape.back();
  const int64_t rows = x.size() / std::max<int64_t>(1, have);
  std::vector<Complex> data(static_cast<size_t>(rows * full), 0);
  VisitDType(static_cast<DType>(x.dtype), [&](auto tag) {
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
  if (kind == kIrfft) {
    // The other half is the mirror image; the imaginary parts of entry 0 and the middle are not looked at.
    for (int64_t i = 0; i < rows; ++i) {
      Complex* row = data.data() + i * full;
      row[0] = row[0].real();
      if (full % 2 == 0) row[full / 2] = row[full / 2].real();
      for (int64_t j = full / 2 + 1; j < full; ++j) row[j] = std::conj(row[full - j]);
    }
  }
  dimension(rank - 1, inverse);
  VisitDType(static_cast<DType>(y.dtype), [&](auto tag) {
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

void FillFft(WeftOp* ops) { ops[WEFT_OP_FFT] = Fft; }

}  // namespace weft::cpu

#include "ir/prims/linalg/linalg_reference.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace weft {
namespace {

double Conj(double x) { return x; }
std::complex<double> Conj(std::complex<double> x) { return std::conj(x); }

// Rotates columns p and q of `m` so that entry (p, q) of a Hermitian matrix with diagonal entries app, aqq and
// off-diagonal apq becomes 0: columns (c p - s e^-i q, s e^i p + c q), e^i the phase of apq.
template <class T>
struct Rotation {
  double c, s;
  T phase;

  static Rotation Of(double app, double aqq, T apq) {
    const double size = std::abs(apq), theta = (aqq - app) / (2 * size);
    const double t = std::copysign(1.0, theta) / (std::abs(theta) + std::hypot(theta, 1.0)), c = 1 / std::hypot(t, 1.0);
    return {c, t * c, apq / size};
  }
  void Columns(Matrix<T>& m, int64_t p, int64_t q) const {
    for (int64_t i = 0; i < m.rows; ++i) {
      const T x = m(i, p), y = m(i, q);
      m(i, p) = c * x - s * Conj(phase) * y;
      m(i, q) = s * phase * x + c * y;
    }
  }
  void Rows(Matrix<T>& m, int64_t p, int64_t q) const {  // the adjoint, from the left
    for (int64_t j = 0; j < m.cols; ++j) {
      const T x = m(p, j), y = m(q, j);
      m(p, j) = c * x - s * phase * y;
      m(q, j) = s * Conj(phase) * x + c * y;
    }
  }
};

constexpr int kMaxSweeps = 60;

template <class T>
bool AllFinite(const Matrix<T>& a) {
  return std::all_of(a.values.begin(), a.values.end(),
                     [](const T& x) { return std::isfinite(std::real(x)) && std::isfinite(std::imag(x)); });
}

constexpr double kNan = std::numeric_limits<double>::quiet_NaN();

// The power of 2 by which to multiply a matrix so that squares of its largest elements are ordinary numbers.
template <class T>
double ScaleOf(const Matrix<T>& a) {
  double largest = 0;
  for (const T& x : a.values) largest = std::max({largest, std::abs(std::real(x)), std::abs(std::imag(x))});
  int exponent = 0;
  std::frexp(largest, &exponent);
  return largest > 0 && std::isfinite(largest) && std::abs(exponent) > 400
             ? std::ldexp(1, -std::clamp(exponent, -1000, 1000))
             : 1;
}

template <class T>
Matrix<T> Scaled(Matrix<T> a, double scale) {
  for (T& x : a.values) x *= scale;
  return a;
}

std::vector<int64_t> SortedBy(const std::vector<double>& keys, bool descending) {
  std::vector<int64_t> order(keys.size());
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(),
                   [&](int64_t i, int64_t j) { return descending ? keys[i] > keys[j] : keys[i] < keys[j]; });
  return order;
}

template <class T>
double ColumnNorm(const Matrix<T>& m, int64_t j) {
  double sum = 0;
  for (int64_t i = 0; i < m.rows; ++i) sum += std::norm(m(i, j));
  return std::sqrt(sum);
}

// Makes column j a unit vector orthogonal to columns 0 .. j - 1: the first unit vector that is not among their span.
template <class T>
void CompleteColumn(Matrix<T>& u, int64_t j) {
  for (int64_t e = 0; e < u.rows; ++e) {
    for (int64_t i = 0; i < u.rows; ++i) u(i, j) = i == e ? 1 : 0;
    for (int pass = 0; pass < 2; ++pass) {
      for (int64_t k = 0; k < j; ++k) {
        T dot = 0;
        for (int64_t i = 0; i < u.rows; ++i) dot += Conj(u(i, k)) * u(i, j);
        for (int64_t i = 0; i < u.rows; ++i) u(i, j) -= dot * u(i, k);
      }
    }
    const double norm = ColumnNorm(u, j);
    if (norm < 0.1 / std::sqrt(static_cast<double>(u.rows))) continue;
    for (int64_t i = 0; i < u.rows; ++i) u(i, j) /= norm;
    return;
  }
}

}  // namespace

template <class T>
Matrix<T> Matrix<T>::Identity(int64_t rows, int64_t cols) {
  Matrix m(rows, cols);
  for (int64_t i = 0; i < std::min(rows, cols); ++i) m(i, i) = 1;
  return m;
}

template <class T>
Matrix<T> Matrix<T>::Adjoint() const {
  Matrix m(cols, rows);
  for (int64_t i = 0; i < rows; ++i) {
    for (int64_t j = 0; j < cols; ++j) m(j, i) = Conj((*this)(i, j));
  }
  return m;
}

template <class T>
Matrix<T> HermitianFromLower(const Matrix<T>& a) {
  Matrix<T> h = a;
  for (int64_t i = 0; i < a.rows; ++i) {
    h(i, i) = std::real(a(i, i));
    for (int64_t j = 0; j < i; ++j) h(j, i) = Conj(a(i, j));
  }
  return h;
}

template <class T>
Matrix<T> Cholesky(const Matrix<T>& a) {
  Matrix<T> l(a.rows, a.cols);
  for (int64_t j = 0; j < a.rows; ++j) {
    double rest = std::real(a(j, j));
    for (int64_t k = 0; k < j; ++k) rest -= std::norm(l(j, k));
    if (!(rest > 0)) {
      for (int64_t r = 0; r < a.rows; ++r) std::fill_n(l.values.begin() + r * a.cols, r + 1, T(kNan));
      return l;
    }
    l(j, j) = std::sqrt(rest);
    for (int64_t i = j + 1; i < a.rows; ++i) {
      T sum = a(i, j);
      for (int64_t k = 0; k < j; ++k) sum -= l(i, k) * Conj(l(j, k));
      l(i, j) = sum / l(j, j);
    }
  }
  return l;
}

template <class T>
Matrix<T> SolveTriangular(const Matrix<T>& a, const Matrix<T>& b, bool lower, bool unit_diagonal) {
  Matrix<T> x = b;
  const int64_t n = a.rows;
  for (int64_t step = 0; step < n; ++step) {
    const int64_t i = lower ? step : n - 1 - step;
    for (int64_t c = 0; c < b.cols; ++c) {
      T sum = x(i, c);
      for (int64_t k = lower ? 0 : i + 1; k < (lower ? i : n); ++k) sum -= a(i, k) * x(k, c);
      x(i, c) = unit_diagonal ? sum : sum / a(i, i);
    }
  }
  return x;
}

template <class T>
void HouseholderQr(const Matrix<T>& a, Matrix<T>* q, Matrix<T>* r) {
  if (const double scale = ScaleOf(a); scale != 1) {
    HouseholderQr(Scaled(a, scale), q, r);
    *r = Scaled(*r, 1 / scale);
    return;
  }
  const int64_t m = a.rows, n = a.cols, k = std::min(m, n);
  Matrix<T> work = a;
  std::vector<std::vector<T>> vectors;  // v of each reflection I - tau v v^H, v[0] = 1
  std::vector<T> taus;
  auto reflect = [&](Matrix<T>& x, int64_t i, const std::vector<T>& v, T tau, int64_t first_col) {
    for (int64_t c = first_col; c < x.cols; ++c) {
      T dot = 0;
      for (int64_t row = i; row < m; ++row) dot += Conj(v[row - i]) * x(row, c);
      for (int64_t row = i; row < m; ++row) x(row, c) -= tau * v[row - i] * dot;
    }
  };
  for (int64_t i = 0; i < k; ++i) {
    double below = 0;
    for (int64_t row = i + 1; row < m; ++row) below += std::norm(work(row, i));
    const T alpha = work(i, i);
    std::vector<T> v(m - i, T(0));
    v[0] = 1;
    T tau = 0;
    if (below > 0 || std::imag(alpha) != 0) {
      const double beta = -std::copysign(std::sqrt(std::norm(alpha) + below), std::real(alpha));
      tau = (beta - alpha) / beta;
      for (int64_t row = i + 1; row < m; ++row) v[row - i] = work(row, i) / (alpha - beta);
      reflect(work, i, v, Conj(tau), i);
      work(i, i) = beta;
      for (int64_t row = i + 1; row < m; ++row) work(row, i) = 0;
    }
    vectors.push_back(v);
    taus.push_back(tau);
  }
  *r = Matrix<T>(k, n);
  for (int64_t i = 0; i < k; ++i) {
    for (int64_t j = i; j < n; ++j) (*r)(i, j) = work(i, j);
  }
  *q = Matrix<T>::Identity(m, k);
  for (int64_t i = k; i-- > 0;) reflect(*q, i, vectors[i], taus[i], 0);
}

template <class T>
Matrix<T> PivotedLu(const Matrix<T>& a, std::vector<int64_t>* pivots, std::vector<int64_t>* permutation) {
  Matrix<T> lu = a;
  permutation->resize(a.rows);
  std::iota(permutation->begin(), permutation->end(), 0);
  pivots->clear();
  auto size = [](const T& x) { return std::abs(std::real(x)) + std::abs(std::imag(x)); };  // LAPACK's
  for (int64_t j = 0; j < std::min(a.rows, a.cols); ++j) {
    int64_t best = j;
    for (int64_t i = j + 1; i < a.rows; ++i) {
      if (size(lu(i, j)) > size(lu(best, j))) best = i;
    }
    pivots->push_back(best);
    std::swap((*permutation)[j], (*permutation)[best]);
    for (int64_t c = 0; c < a.cols && best != j; ++c) std::swap(lu(j, c), lu(best, c));
    if (lu(j, j) == T(0)) continue;  // singular: U keeps the zero
    for (int64_t i = j + 1; i < a.rows; ++i) {
      lu(i, j) /= lu(j, j);
      for (int64_t c = j + 1; c < a.cols; ++c) lu(i, c) -= lu(i, j) * lu(j, c);
    }
  }
  return lu;
}

template <class T>
void JacobiEigh(Matrix<T> a, std::vector<double>* w, Matrix<T>* v) {
  const int64_t n = a.rows;
  if (!AllFinite(a)) {
    w->assign(n, kNan);
    *v = Matrix<T>(n, n);
    std::fill(v->values.begin(), v->values.end(), T(kNan));
    return;
  }
  if (const double scale = ScaleOf(a); scale != 1) {
    JacobiEigh(Scaled(a, scale), w, v);
    for (double& x : *w) x /= scale;
    return;
  }
  Matrix<T> vectors = Matrix<T>::Identity(n, n);
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    bool rotated = false;
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) {
        const double app = std::real(a(p, p)), aqq = std::real(a(q, q)), size = std::abs(a(p, q));
        if (!(size > 1e-300) || size <= 1e-17 * std::sqrt(std::abs(app)) * std::sqrt(std::abs(aqq))) continue;
        if (std::abs(app) + size == std::abs(app) && std::abs(aqq) + size == std::abs(aqq)) continue;
        rotated = true;
        const Rotation<T> rotation = Rotation<T>::Of(app, aqq, a(p, q));
        rotation.Columns(a, p, q);
        rotation.Rows(a, p, q);
        rotation.Columns(vectors, p, q);
      }
    }
    if (!rotated) break;
  }
  std::vector<double> values(n);
  for (int64_t i = 0; i < n; ++i) values[i] = std::real(a(i, i));
  const std::vector<int64_t> order = SortedBy(values, /*descending=*/false);
  w->resize(n);
  *v = Matrix<T>(n, n);
  for (int64_t j = 0; j < n; ++j) {
    (*w)[j] = values[order[j]];
    for (int64_t i = 0; i < n; ++i) (*v)(i, j) = vectors(i, order[j]);
  }
}

template <class T>
void JacobiSvd(const Matrix<T>& a, Matrix<T>* u, std::vector<double>* s, Matrix<T>* vt) {
  if (a.rows < a.cols) {  // a^H = u s vt, so a = vt^H s u^H
    Matrix<T> left, right;
    JacobiSvd(a.Adjoint(), &left, s, &right);
    *u = right.Adjoint();
    *vt = left.Adjoint();
    return;
  }
  const int64_t m = a.rows, n = a.cols;
  if (!AllFinite(a)) {
    s->assign(n, kNan);
    *u = Matrix<T>(m, n), *vt = Matrix<T>(n, n);
    for (Matrix<T>* x : {u, vt}) std::fill(x->values.begin(), x->values.end(), T(kNan));
    return;
  }
  if (const double scale = ScaleOf(a); scale != 1) {
    JacobiSvd(Scaled(a, scale), u, s, vt);
    for (double& x : *s) x /= scale;
    return;
  }
  Matrix<T> work = a, v = Matrix<T>::Identity(n, n);  // work = a v, whose columns become orthogonal
  for (int sweep = 0; sweep < kMaxSweeps; ++sweep) {
    bool rotated = false;
    for (int64_t p = 0; p < n; ++p) {
      for (int64_t q = p + 1; q < n; ++q) {
        double pp = 0, qq = 0;
        T pq = 0;
        for (int64_t i = 0; i < m; ++i) {
          pp += std::norm(work(i, p));
          qq += std::norm(work(i, q));
          pq += Conj(work(i, p)) * work(i, q);
        }
        if (!(std::abs(pq) > 1e-16 * std::sqrt(pp) * std::sqrt(qq)) || !(std::abs(pq) > 1e-300)) continue;
        rotated = true;
        const Rotation<T> rotation = Rotation<T>::Of(pp, qq, pq);
        rotation.Columns(work, p, q);
        rotation.Columns(v, p, q);
      }
    }
    if (!rotated) break;
  }
  std::vector<double> norms(n);
  for (int64_t j = 0; j < n; ++j) norms[j] = ColumnNorm(work, j);
  const std::vector<int64_t> order = SortedBy(norms, /*descending=*/true);
  s->resize(n);
  *u = Matrix<T>(m, n);
  *vt = Matrix<T>(n, n);
  for (int64_t j = 0; j < n; ++j) {
    const double norm = norms[order[j]];
    (*s)[j] = norm;
    if (norm == 0) CompleteColumn(*u, j);
    for (int64_t i = 0; i < m && norm != 0; ++i) (*u)(i, j) = work(i, order[j]) / norm;
    for (int64_t i = 0; i < n; ++i) (*vt)(j, i) = Conj(v(i, order[j]));
  }
}

namespace {

using Complex = std::complex<double>;

Matrix<Complex> Times(const Matrix<Complex>& a, const Matrix<Complex>& b) {
  Matrix<Complex> out(a.rows, b.cols);
  for (int64_t i = 0; i < a.rows; ++i) {
    for (int64_t k = 0; k < a.cols; ++k) {
      for (int64_t j = 0; j < b.cols; ++j) out(i, j) += a(i, k) * b(k, j);
    }
  }
  return out;
}

// The eigenvalue of the last 2 x 2 block of a(0 .. m) that is nearer to its last entry.
Complex WilkinsonShift(const Matrix<Complex>& a, int64_t m) {
  const Complex p = a(m - 2, m - 2), q = a(m - 2, m - 1), r = a(m - 1, m - 2), s = a(m - 1, m - 1);
  const Complex half = (p - s) / 2.0, root = std::sqrt(half * half + q * r);
  const Complex first = (p + s) / 2.0 + root, second = (p + s) / 2.0 - root;
  return std::abs(first - s) < std::abs(second - s) ? first : second;
}

// a becomes upper triangular, and z unitary, with the first a = z a z^H.
void Schur(Matrix<Complex>& a, Matrix<Complex>& z) {
  const int64_t n = a.rows;
  double scale = 0;
  for (const Complex& x : a.values) scale = std::max(scale, std::abs(x));
  for (int64_t m = n, steps = 0; m > 1;) {
    double rest = 0;
    for (int64_t j = 0; j + 1 < m; ++j) rest = std::max(rest, std::abs(a(m - 1, j)));
    if (rest <= 1e-16 * scale || steps > 100 * n) {
      for (int64_t j = 0; j + 1 < m; ++j) a(m - 1, j) = 0;
      --m;
      steps = 0;
      continue;
    }
    // A shift of another kind now and then, should the steps go in circles.
    const Complex shift = ++steps % 11 == 0 ? Complex(rest, rest) : WilkinsonShift(a, m);
    Matrix<Complex> block(m, m), q, r;
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < m; ++j) block(i, j) = a(i, j) - (i == j ? shift : 0.0);
    }
    HouseholderQr(block, &q, &r);
    Matrix<Complex> turn = Matrix<Complex>::Identity(n, n);
    for (int64_t i = 0; i < m; ++i) {
      for (int64_t j = 0; j < m; ++j) turn(i, j) = q(i, j);
    }
    a = Times(turn.Adjoint(), Times(a, turn));
    z = Times(z, turn);
  }
}

}  // namespace

void SchurEig(const Matrix<Complex>& a, Matrix<Complex>* w, Matrix<Complex>* v) {
  const int64_t n = a.rows;
  *w = Matrix<Complex>(n, 1);
  *v = Matrix<Complex>(n, n);
  if (!AllFinite(a)) {
    std::fill(w->values.begin(), w->values.end(), Complex(kNan, kNan));
    std::fill(v->values.begin(), v->values.end(), Complex(kNan, kNan));
    return;
  }
  if (const double scale = ScaleOf(a); scale != 1) {
    SchurEig(Scaled(a, scale), w, v);
    *w = Scaled(*w, 1 / scale);
    return;
  }
  Matrix<Complex> t = a, z = Matrix<Complex>::Identity(n, n);
  Schur(t, z);
  std::vector<int64_t> order(n);
  std::iota(order.begin(), order.end(), 0);
  std::stable_sort(order.begin(), order.end(), [&](int64_t i, int64_t j) {
    return std::make_pair(t(i, i).real(), t(i, i).imag()) < std::make_pair(t(j, j).real(), t(j, j).imag());
  });
  for (int64_t c = 0; c < n; ++c) {
    const int64_t k = order[c];
    w->values[c] = t(k, k);
    // t x = t_kk x by substitution, from x_k = 1 upwards; equal eigenvalues are told apart by a little.
    Matrix<Complex> x(n, 1);
    x.values[k] = 1;
    for (int64_t i = k - 1; i >= 0; --i) {
      Complex sum = 0;
      for (int64_t j = i + 1; j <= k; ++j) sum += t(i, j) * x.values[j];
      const Complex gap = t(i, i) - t(k, k);
      x.values[i] = -sum / (std::abs(gap) > 1e-16 * std::abs(t(k, k)) ? gap : Complex(1e-16 * (1 + std::abs(t(k, k)))));
    }
    x = Times(z, x);
    int64_t largest = 0;
    double length = 0;
    for (int64_t i = 0; i < n; ++i) {
      length += std::norm(x.values[i]);
      if (std::norm(x.values[i]) > std::norm(x.values[largest])) largest = i;
    }
    const Complex turn = std::conj(x.values[largest]) / (std::abs(x.values[largest]) * std::sqrt(length));
    for (int64_t i = 0; i < n; ++i) (*v)(i, c) = x.values[i] * turn;
  }
}

#define WEFT_INSTANTIATE(T)                                                                     \
  template struct Matrix<T>;                                                                    \
  template Matrix<T> HermitianFromLower(const Matrix<T>&);                                      \
  template Matrix<T> Cholesky(const Matrix<T>&);                                                \
  template Matrix<T> SolveTriangular(const Matrix<T>&, const Matrix<T>&, bool, bool);           \
  template void HouseholderQr(const Matrix<T>&, Matrix<T>*, Matrix<T>*);                        \
  template Matrix<T> PivotedLu(const Matrix<T>&, std::vector<int64_t>*, std::vector<int64_t>*); \
  template void JacobiEigh(Matrix<T>, std::vector<double>*, Matrix<T>*);                        \
  template void JacobiSvd(const Matrix<T>&, Matrix<T>*, std::vector<double>*, Matrix<T>*);
WEFT_INSTANTIATE(double)
WEFT_INSTANTIATE(std::complex<double>)
#undef WEFT_INSTANTIATE

}  // namespace weft

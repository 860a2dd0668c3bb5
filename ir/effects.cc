#include "ir/effects.h"

#include <cstdio>
#include <sstream>

namespace weft {
namespace {

EffectHandlers& Handlers() {
  static auto& handlers = *new EffectHandlers{
      [](const std::string& text) { std::fputs((text + "\n").c_str(), stdout); },
      [](int64_t, const Tensors&, const Types&) -> Tensors {
        throw Error(ErrorKind::kRuntime, "pure_callback: no callback handler is installed in this process");
      }};
  return handlers;
}

void PrintElement(const Tensor& t, int64_t i, std::ostream& out) {
  if (IsBool(t.dtype())) {
    out << (t.at<bool>(i) ? "True" : "False");
  } else if (IsComplex(t.dtype())) {
    out << t.Get(i).real() << (t.Get(i).imag() < 0 ? "" : "+") << t.Get(i).imag() << "j";
  } else if (IsFloat(t.dtype())) {
    out << t.Get(i).real();
  } else if (IsUnsigned(t.dtype()) || t.dtype() == DType::kKey) {
    VisitDType(t.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_integral_v<T>) out << static_cast<uint64_t>(t.at<T>(i));
    });
  } else {
    VisitDType(t.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (std::is_integral_v<T>) out << static_cast<int64_t>(t.at<T>(i));
    });
  }
}

void PrintTensor(const Tensor& t, int axis, int64_t begin, int64_t count, std::ostream& out) {
  if (axis == t.rank()) return PrintElement(t, begin, out);
  const int64_t n = t.shape()[axis], inner = n == 0 ? 0 : count / n;
  out << "[";
  for (int64_t i = 0; i < n; ++i) {
    if (i > 0) out << " ";
    PrintTensor(t, axis + 1, begin + i * inner, inner, out);
  }
  out << "]";
}

}  // namespace

void SetEffectHandlers(EffectHandlers handlers) { Handlers() = std::move(handlers); }
const EffectHandlers& GetEffectHandlers() { return Handlers(); }

std::string FormatTensors(const std::string& format, const Tensors& values) {
  std::ostringstream out;
  size_t next = 0;
  for (size_t i = 0; i < format.size(); ++i) {
    if (format.compare(i, 2, "{{") == 0 || format.compare(i, 2, "}}") == 0) {
      out << format[i++];
    } else if (format.compare(i, 2, "{}") == 0 && next < values.size()) {
      PrintTensor(values[next], 0, 0, values[next].size(), out);
      ++next;
      ++i;
    } else {
      out << format[i];
    }
  }
  return out.str();
}

}  // namespace weft

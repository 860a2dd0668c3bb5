#include "ir/eval/effects.h"

#include <algorithm>
#include <cmath>
#include <cstdio>
#include <optional>
#include <sstream>
#include <vector>

#include "ir/error.h"
#include "ir/text/element_text.h"

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

// As Python's repr: the shortest digits that give the same number of this dtype.
std::string FloatText(const Tensor& t, int64_t i) { return std::isnan(t.Get(i).real()) ? "nan" : ElementText(t, i); }

void PrintElement(const Tensor& t, int64_t i, std::ostream& out) {
  if (IsBool(t.dtype())) {
    out << (t.at<bool>(i) ? "True" : "False");
  } else if (IsComplex(t.dtype())) {
    const DType part = RealPart(t.dtype());
    const auto text = [&](double v) {
      const std::string number = FloatText(Tensor::Full(part, {}, v), 0);
      return number.size() > 2 && number.ends_with(".0") ? number.substr(0, number.size() - 2) : number;
    };
    const std::complex<double> v = t.Get(i);
    out << "(" << text(v.real()) << (std::signbit(v.imag()) && !std::isnan(v.imag()) ? "" : "+") << text(v.imag())
        << "j)";
  } else if (IsFloat(t.dtype())) {
    out << FloatText(t, i);
  } else if (IsUnsigned(t.dtype()) || t.dtype() == DType::kKey) {
    VisitDType(t.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (kIsInteger<T>) out << static_cast<uint64_t>(t.at<T>(i));
    });
  } else {
    VisitDType(t.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (kIsInteger<T>) out << static_cast<int64_t>(t.at<T>(i));
    });
  }
}

void PrintTensor(const Tensor& t, int axis, int64_t begin, int64_t count, std::ostream& out,
                 const std::function<void(int64_t)>& print) {
  if (axis == t.rank()) return print(begin);
  const int64_t n = t.shape()[axis], inner = n == 0 ? 0 : count / n;
  out << "[";
  for (int64_t i = 0; i < n; ++i) {
    if (i > 0) out << " ";
    PrintTensor(t, axis + 1, begin + i * inner, inner, out, print);
  }
  out << "]";
}

}  // namespace

void SetEffectHandlers(EffectHandlers handlers) { Handlers() = std::move(handlers); }
const EffectHandlers& GetEffectHandlers() { return Handlers(); }

namespace {

// "[[fill]align][sign][0][width][,][.precision][type]", the part of Python's format specifications that numbers need.
struct FormatSpec {
  char fill = 0, align = 0, sign = '-', type = 0;
  int width = 0, precision = -1;
  bool commas = false, zeros = false;
};

FormatSpec ParseSpec(const std::string& text) {
  FormatSpec spec;
  size_t i = 0;
  auto is_align = [](char c) { return c == '<' || c == '>' || c == '^' || c == '='; };
  if (text.size() >= 2 && is_align(text[1]))
    spec.fill = text[0], spec.align = text[1], i = 2;
  else if (!text.empty() && is_align(text[0]))
    spec.align = text[0], i = 1;
  if (i < text.size() && (text[i] == '+' || text[i] == '-' || text[i] == ' ')) spec.sign = text[i++];
  if (i < text.size() && text[i] == '0') spec.zeros = true, ++i;
  auto number = [&] {
    int n = 0;
    while (i < text.size() && text[i] >= '0' && text[i] <= '9' && n < 1000) n = n * 10 + (text[i++] - '0');
    return n;
  };
  spec.width = number();
  if (i < text.size() && text[i] == ',') spec.commas = true, ++i;
  if (i < text.size() && text[i] == '.') ++i, spec.precision = number();
  if (i < text.size()) spec.type = text[i++];
  if (i != text.size() || (spec.type && std::string("bdoxXeEfFgG%").find(spec.type) == std::string::npos))
    throw ValueError("'", text, "' is no format specification for numbers");
  return spec;
}

std::string Digits(uint64_t magnitude, char type) {
  const unsigned base = type == 'b' ? 2 : type == 'o' ? 8 : type == 'x' || type == 'X' ? 16 : 10;
  std::string digits;
  do {
    digits.insert(digits.begin(), (type == 'X' ? "0123456789ABCDEF" : "0123456789abcdef")[magnitude % base]);
    magnitude /= base;
  } while (magnitude > 0);
  return digits;
}

std::string Padded(const std::string& sign, const std::string& body, const FormatSpec& spec) {
  const size_t missing = std::max<int64_t>(0, spec.width - static_cast<int64_t>(sign.size() + body.size()));
  const char align = spec.align ? spec.align : spec.zeros ? '=' : '>';
  const char fill = spec.fill ? spec.fill : spec.zeros ? '0' : ' ';
  const size_t front = align == '<' ? 0 : align == '^' ? missing / 2 : missing;
  const std::string before(front, fill), after(missing - front, fill);
  return align == '=' ? sign + before + body + after : before + sign + body + after;
}

std::string Formatted(const Tensor& t, int64_t i, const FormatSpec& spec) {
  if (IsComplex(t.dtype())) {
    FormatSpec part = spec;
    part.width = 0;
    const DType dtype = RealPart(t.dtype());
    const std::string real = Formatted(Tensor::Full(dtype, {}, t.Get(i).real()), 0, part);
    part.sign = '+';
    return Padded("", real + Formatted(Tensor::Full(dtype, {}, t.Get(i).imag()), 0, part) + "j", spec);
  }
  const bool as_float = spec.type && std::string("eEfFgG%").find(spec.type) != std::string::npos;
  bool negative = false;
  std::string body;
  if (!as_float && !IsInexact(t.dtype())) {
    VisitDType(t.dtype(), [&](auto tag) {
      using T = typename decltype(tag)::type;
      if constexpr (kIsInteger<T>) {
        const WordOf<T> v = t.at<T>(i);
        negative = v < WordOf<T>(0);
        body = Digits(negative ? 0 - static_cast<uint64_t>(v) : static_cast<uint64_t>(v), spec.type);
      }
    });
  } else {
    double v = t.Get(i).real();
    negative = std::signbit(v) && !std::isnan(v);
    v = std::abs(v);
    char type = spec.type ? spec.type : 'g';
    if (type == '%') v *= 100, type = 'f';
    if (!spec.type && spec.precision < 0) {
      std::ostringstream plain;
      PrintElement(t, i, plain);
      body = plain.str();
      if (!body.empty() && body[0] == '-') body.erase(0, 1);
    } else if (std::isfinite(v)) {
      const char form[] = {'%', '.', '*', type, 0};
      const int precision = spec.precision < 0 ? 6 : spec.precision;
      body.resize(static_cast<size_t>(std::snprintf(nullptr, 0, form, precision, v)));
      std::snprintf(body.data(), body.size() + 1, form, precision, v);
    } else {
      const bool upper = type == 'E' || type == 'F' || type == 'G';
      body = std::isnan(v) ? (upper ? "NAN" : "nan") : upper ? "INF" : "inf";
    }
    if (spec.type == '%') body += '%';
  }
  if (spec.commas) {
    size_t end = body.find_first_not_of("0123456789");
    for (int64_t at = static_cast<int64_t>(end == std::string::npos ? body.size() : end) - 3; at > 0; at -= 3)
      body.insert(static_cast<size_t>(at), ",");
  }
  const std::string sign = negative ? "-" : spec.sign == '-' ? "" : std::string(1, spec.sign);
  return Padded(sign, body, spec);
}

// A format taken apart: text, and fields for values.
struct Piece {
  std::string text;
  bool is_field = false;
  std::optional<FormatSpec> spec;  // of a field that has one
};

std::vector<Piece> Pieces(const std::string& format) {
  std::vector<Piece> pieces(1);
  for (size_t i = 0; i < format.size(); ++i) {
    if (format.compare(i, 2, "{{") == 0 || format.compare(i, 2, "}}") == 0) {
      pieces.back().text += format[i++];
      continue;
    }
    const size_t end = format[i] == '{' ? format.find('}', i) : std::string::npos;
    if (end == std::string::npos || (end > i + 1 && format[i + 1] != ':')) {
      pieces.back().text += format[i];
      continue;
    }
    Piece field;
    field.is_field = true;
    if (end > i + 2) field.spec = ParseSpec(format.substr(i + 2, end - i - 2));
    pieces.push_back(std::move(field));
    pieces.emplace_back();
    i = end;
  }
  return pieces;
}

}  // namespace

void CheckFormat(const std::string& what, const std::string& format, size_t values) {
  const std::vector<Piece> pieces = Pieces(format);
  const auto fields = std::count_if(pieces.begin(), pieces.end(), [](const Piece& p) { return p.is_field; });
  if (static_cast<size_t>(fields) != values) {
    throw ValueError(what, ": '", format, "' has ", fields, " fields for values, and there are ", values,
                     "; braces that are no field are written twice");
  }
}

std::string FormatTensors(const std::string& format, const Tensors& values) {
  std::ostringstream out;
  size_t next = 0;
  for (const Piece& piece : Pieces(format)) {
    out << piece.text;
    if (!piece.is_field) continue;
    WEFT_CHECK(next < values.size()) << "a format with more fields than values";
    const Tensor& t = values[next++];
    PrintTensor(t, 0, 0, t.size(), out, [&](int64_t element) {
      if (piece.spec)
        out << Formatted(t, element, *piece.spec);
      else
        PrintElement(t, element, out);
    });
  }
  return out.str();
}

}  // namespace weft

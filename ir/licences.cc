#include "ir/licences.h"

#include "ir/error.h"

namespace weft {
namespace {

struct Row {
  const char* name;
  uint8_t includes;  // bits of the licences that it gives
};
constexpr Row kRows[kNumLicences] = {
    {"exact", 0b1},        {"signed-zero", 0b11}, {"accurate", 0b111},        {"products", 0b1111},
    {"rounding", 0b11111}, {"no-nan", 0b101111},  {"reassociate", 0b1001111},
};

thread_local Licences t_current;

}  // namespace

const char* Name(Licence licence) { return kRows[static_cast<int>(licence)].name; }

Licences Licences::Named(const std::vector<std::string>& names) {
  Licences all(uint8_t{0});
  for (const std::string& name : names) {
    uint8_t includes = 0;
    std::string known;
    for (const Row& row : kRows) {
      if (name == row.name) includes = row.includes;
      known += (known.empty() ? "" : ", ") + std::string(row.name);
    }
    if (includes == 0) throw ValueError("licence: there is none named '", name, "'; licences: ", known);
    all.bits_ |= includes;
  }
  return names.empty() ? Licences() : all;
}

std::string Licences::ToString() const {
  std::string text;
  for (int i = 0; i < kNumLicences; ++i) {
    if (Allow(static_cast<Licence>(i))) text += (text.empty() ? "" : ",") + std::string(kRows[i].name);
  }
  return text;
}

Licences CurrentLicences() { return t_current; }

ScopedLicences::ScopedLicences(Licences licences) : before_(t_current) { t_current = licences; }
ScopedLicences::~ScopedLicences() { t_current = before_; }

}  // namespace weft

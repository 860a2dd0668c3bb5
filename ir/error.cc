#include "ir/error.h"

namespace weft {

const char* Error::what() const noexcept {
  if (what_.empty()) {
    what_ = message_;
    if (loc_) what_ += "\n" + loc_.Stack();
  }
  return what_.c_str();
}

namespace internal {

CheckFailure::CheckFailure(const char* file, int line, const char* condition) {
  out_ << "internal error at " << file << ":" << line << ": " << condition << ": ";
}

CheckFailure::~CheckFailure() noexcept(false) { throw Error(ErrorKind::kInternal, out_.str()); }

}  // namespace internal
}  // namespace weft

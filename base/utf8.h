// Whether bytes are text: names in programs are shown to people, and are strings of Python.
#ifndef WEFT_BASE_UTF8_H_
#define WEFT_BASE_UTF8_H_

#include <string>

#include <boost/locale/utf.hpp>

namespace weft {

inline bool IsUtf8(const std::string& bytes) {
  namespace utf = boost::locale::utf;
  for (auto at = bytes.begin(); at != bytes.end();) {
    const utf::code_point c = utf::utf_traits<char>::decode(at, bytes.end());
    if (c == utf::illegal || c == utf::incomplete) return false;
  }
  return true;
}

}  // namespace weft
#endif  // WEFT_BASE_UTF8_H_

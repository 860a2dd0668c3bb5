// The protobuf form of the IR, for bundles, caches and export. The format is ir/exchange/weft.proto: stable, versioned,
// and free of anything that depends on the process; equal functions with equal names and locations give equal bytes.
//
//   std::string bytes = Serialize(*fn);
//   FnRef same = Deserialize(bytes);       // structurally equal, with the same names and locations
//
// Only serialize.cc includes protobuf headers.
#ifndef WEFT_IR_EXCHANGE_SERIALIZE_H_
#define WEFT_IR_EXCHANGE_SERIALIZE_H_

#include <cstdint>
#include <string>

#include "ir/fn.h"

namespace weft {

inline constexpr uint32_t kSerialVersion = 1;

struct SerializeOptions {
  bool locations = true;  // false: bytes that do not change when a program moves within its file
};

std::string Serialize(const Fn& fn, const SerializeOptions& options = {});

struct DeserializeOptions {
  bool any_attributes = false;  // keep attributes that their primitive does not have, for tests
};

// Raises kParse when the bytes are not Weft's, truncated, corrupted, of a later version, or say something that is no
// well-typed function; the error names the function and equation. Never trusts a number in them.
FnRef Deserialize(const std::string& bytes, const DeserializeOptions& options = {});

// Whether the bytes begin as a program in this form, whole or not.
bool IsSerialized(const std::string& bytes);

// The envelope around the bytes of a `Module`, with its digest. For tests that write modules of their own.
std::string WrapModule(const std::string& module, uint32_t version = kSerialVersion);

}  // namespace weft
#endif  // WEFT_IR_EXCHANGE_SERIALIZE_H_
